"""/tools/: the list, and one tool with how people want it treated."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from agents.forms.tools import TreatmentForm, first_values
from agents.models import Agent
from agents.views.pages.access import page, say
from agents.wire.fields import shown_text
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from lettaweb.lib.text import clean_text
from tools import actions, policies, sandbox
from tools.models import Tool

TOOLS, AGENTS = 100, 50


@page()
def tools(request: HttpRequest) -> HttpResponse:
    """/tools/"""
    rows, q = Tool.objects.defer("source_code", "json_schema"), clean_text(request.GET.get("q", ""))[:100]
    if q:
        rows = rows.filter(name__icontains=q)
    after = clean_text(request.GET.get("after", ""))[:100]
    found = list(rows.filter(name__gt=after).order_by("name")[: TOOLS + 1])
    context = {
        "here": "tools",
        "tools": found[:TOOLS],
        "after": found[TOOLS - 1].name if len(found) > TOOLS else "",
        "q": q,
        "tier": sandbox.known_tier(),
    }
    return render(request, "tools/tools.html", context)


@page(methods=("GET", "HEAD", "POST"))
def tool(request: HttpRequest, tool_id: str) -> HttpResponse:
    """/tools/<tool>/"""
    found = _tool(tool_id)
    form = TreatmentForm(request.POST if request.method == "POST" else None, initial=first_values(found))
    if request.method == "POST" and form.is_valid():
        actions.treat_tool(request.user, found, form.cleaned_data)
        say(request, f"{found.name} was saved. What waits already keeps its risk and its time.")
        return redirect(reverse("tool", args=[tool_id]))
    context = {
        "here": "tools",
        "tool": found,
        "form": form,
        "may_write": policies.may_write(request.user),
        "agents": Agent.objects.filter(tools=found).only("uuid", "name").order_by("name")[:AGENTS],
        "schema": shown_text(json.dumps(found.json_schema.get("parameters") or {}, indent=2, ensure_ascii=False)),
        "tier": sandbox.known_tier(),
    }
    return render(request, "tools/tool.html", context, status=422 if form.is_bound else 200)


def _tool(wire: str) -> Tool:
    uuid = ids.find(Tool.PREFIX, wire)
    found = Tool.objects.filter(uuid=uuid).first() if uuid else None
    if found is None:
        raise Problem(404, "There is no such tool.")
    return found
