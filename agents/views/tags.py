"""The REST API of tags: the words on agents."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.filters.agents import first
from agents.models import AgentTag
from lettaweb.lib.paging import page_of


class Tags(APIView):
    """/v1/tags/: names in alphabetical order; a cursor is a tag's name."""

    def get(self, request: Request) -> Response:
        page = page_of(request.query_params, order="asc", order_by=("name",))
        tags = AgentTag.objects.all()
        for text in filter(None, (first(request.query_params, "query_text"), first(request.query_params, "name"))):
            tags = tags.filter(tag__icontains=text)
        if page.after:
            tags = tags.filter(**{"tag__lt" if page.descending else "tag__gt": page.after})
        if page.before:
            tags = tags.filter(**{"tag__gt" if page.descending else "tag__lt": page.before})
        up = bool(page.before and not page.after)  # then the page ends next to its cursor
        names = tags.order_by("-tag" if page.descending != up else "tag").values_list("tag", flat=True).distinct()
        found = list(names[: page.limit])
        return Response(found[::-1] if up else found)
