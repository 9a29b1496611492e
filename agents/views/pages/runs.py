"""/runs/: the list of runs, and one run with its steps, calls, tokens and errors."""

from __future__ import annotations

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from agents.actions.stop import cancel_runs
from agents.filters import overview
from agents.filters.context import talk
from agents.models import Message, MessageRole, ToolCall
from agents.policies import rows
from agents.policies.rights import SEND, can
from agents.views.pages.access import back, page, say, wants_fragment

MESSAGES, STEPS = 200, 200


@page()
def runs(request: HttpRequest) -> HttpResponse:
    """/runs/"""
    context = {
        "here": "runs",
        "found": overview.runs(request.GET),
        "states": overview.STATES.items(),
        "state": request.GET.get("state", ""),
        "agent": request.GET.get("agent", ""),
    }
    return render(request, "agents/runs.html", context)


@page()
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """/runs/<run>/"""
    found = rows.run(run_id)
    said = Message.objects.filter(run=found).exclude(role=MessageRole.SYSTEM).select_related("agent")
    calls = ToolCall.objects.select_related("tool", "agent", "decided_by", "step__run").order_by("pk")
    context = {
        "here": "runs",
        "run": found,
        "lines": talk(list(said.order_by("pk")[:MESSAGES])),
        "steps": found.steps.prefetch_related(Prefetch("calls", calls)).order_by("number")[:STEPS],
        "may_send": can(request.user, SEND),
    }
    return render(request, "agents/_run.html" if wants_fragment(request) else "agents/run.html", context)


@page(SEND, methods=("POST",))
def cancel(request: HttpRequest, run_id: str) -> HttpResponse:
    """Cancel a run, or what it waits for."""
    found = rows.run(run_id)
    done = cancel_runs(found.agent, [run_id], request.user)
    say(request, "The run was cancelled." if done else "The run was over already.")
    return redirect(back(request, reverse("run", args=[run_id])))
