"""Stored messages: lists, one by id, searches. Sending is the raw routes' business."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.filters import messages as filters
from agents.filters import searches
from agents.models import Message
from agents.policies import rows
from agents.policies.rights import VIEW
from agents.serializers.searches import AgentMessageSearch, MessageSearch
from agents.wire.messages import messages_of
from agents.wire.searches import found_messages, ranked_messages
from lettaweb.lib import bodies
from lettaweb.lib.paging import Order, chronological, page_of


class AgentMessages(APIView):
    """GET /v1/agents/{agent_id}/messages; POST is a raw route."""

    def get(self, request: Request, agent_id: str) -> Response:
        owner = rows.named_agent(agent_id)
        return listed(request, filters.of_agent(request.query_params, owner), f"agent '{agent_id}'")


class Messages(APIView):
    """GET /v1/messages/"""

    def get(self, request: Request) -> Response:
        return listed(request, filters.of_everybody(request.query_params), "this organization")


class MessageDetail(APIView):
    """GET /v1/messages/{message_id}: the LettaMessages of one stored message."""

    def get(self, request: Request, message_id: str) -> Response:
        return Response(messages_of(rows.message(message_id), filters.view_of(request.query_params)))


class MessageEdit(APIView):
    """PATCH /v1/agents/{agent_id}/messages/{message_id}: what was said stays as it was said."""


class SearchMessages(APIView):
    """POST /v1/messages/search"""

    right = VIEW
    takes = {"POST": MessageSearch}

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(MessageSearch, request))
        return Response(found_messages(searches.found(given)))


class SearchAgentMessages(APIView):
    """POST /v1/agents/messages/search"""

    right = VIEW
    takes = {"POST": AgentMessageSearch}

    def post(self, request: Request) -> Response:
        given = bodies.given(bodies.read(AgentMessageSearch, request))
        return Response(ranked_messages(searches.found(given)))


def listed(request: Request, found: QuerySet[Message], place: str, order: Order = "desc") -> Response:
    """A page of ``found`` as LettaMessages, oldest first; ``place`` names the list in a cursor's 404."""
    page = page_of(request.query_params, limit=100, order=order)
    view = filters.view_of(request.query_params)
    picked = chronological(filters.readable(found), page, lambda cursor: rows.position(cursor, found, place))
    return Response([message for row in filters.named(picked) for message in messages_of(row, view)])
