"""/agents/: the list, and one agent with its conversation, memory, tools and runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from agents.actions.blocks import update_block
from agents.actions.send import send
from agents.actions.tools import set_approval
from agents.filters import overview
from agents.filters.context import talk
from agents.filters.queue import with_neighbours
from agents.models import Agent, Block, Conversation, Message, MessageRole, Run, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING
from agents.policies import rows
from agents.policies.rights import BUILD, DECIDE, SEND, can
from agents.serializers.requests import message_request
from agents.views.pages.access import page, say, wants_fragment, words_of
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from tools import rules

MESSAGES, RUNS = 60, 12


@page()
def agents(request: HttpRequest) -> HttpResponse:
    """/agents/"""
    found = overview.agents(request.GET)
    return render(request, "agents/agents.html", {"here": "agents", "found": found, "q": request.GET.get("q", "")})


@page()
def agent(request: HttpRequest, agent_id: str) -> HttpResponse:
    """/agents/<agent>/; ``conversation`` chooses another than its own, ``above`` shows older messages."""
    found = rows.agent(agent_id)
    context = _conversation_context(request, found)
    if wants_fragment(request):
        return render(request, "agents/_conversation.html", context)
    return render(request, "agents/agent.html", {**context, **_beside(found)})


def _conversation_context(request: HttpRequest, found: Agent) -> dict[str, Any]:
    conversation = _chosen(request, found)
    calls = ToolCall.objects.filter(conversation=conversation, state__in=WAITING)
    messages_, older = _last_messages(conversation, request.GET.get("above", ""))
    return {
        "here": "agents",
        "agent": found,
        "conversation": conversation,
        "lines": talk(messages_),
        "older": older,
        "active": Run.objects.filter(conversation=conversation, status__in=ACTIVE).first(),
        "last_run": Run.objects.filter(conversation=conversation).order_by("-pk").first(),
        "waiting": list(with_neighbours(calls).order_by("pk")),
        "may_send": can(request.user, SEND),
        "may_decide": can(request.user, DECIDE),
        "may_build": can(request.user, BUILD),
    }


def _chosen(request: HttpRequest, found: Agent) -> Conversation:
    wire = request.GET.get("conversation") or request.POST.get("conversation")
    if not wire:
        return rows.default_conversation(found)
    uuid = ids.find(Conversation.PREFIX, wire)
    chosen = Conversation.objects.filter(agent=found, uuid=uuid).first() if uuid else None
    if chosen is None:
        raise Problem(404, "This agent has no such conversation.")
    chosen.agent = found
    return chosen


def _last_messages(conversation: Conversation, above: str) -> tuple[list[Message], int]:
    """The last messages (before number ``above``), oldest first, and the number that older ones come before."""
    said = Message.objects.filter(conversation=conversation).exclude(role=MessageRole.SYSTEM).select_related("agent")
    if above.isascii() and above.isdigit() and len(above) < 19:
        said = said.filter(pk__lt=int(above))
    newest = list(said.order_by("-pk")[: MESSAGES + 1])
    older = newest[MESSAGES - 1].pk if len(newest) > MESSAGES else 0
    return newest[:MESSAGES][::-1], older


def _beside(found: Agent) -> dict[str, Any]:
    parsed = rules.parse_rules(found.tool_rules or [])
    tools = list(found.tools.defer("source_code").order_by("name"))
    return {
        "blocks": found.blocks.order_by("label"),
        "tools": [(tool, rules.requires_approval(parsed, tool.name)) for tool in tools],
        "runs": overview.with_agent(Run.objects.filter(agent=found)).order_by("-pk")[:RUNS],
        "conversations": overview.conversations(found),
    }


# --- by form -----------------------------------------------------------------------------------------


def _here(found: Agent, conversation: Conversation | None = None) -> str:
    path = reverse("agent", args=[found.wire_id])
    return path if conversation is None or conversation.is_default else f"{path}?conversation={conversation.wire_id}"


@page(SEND, methods=("POST",))
def message(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Send a message; the answer arrives in the open page."""
    found = rows.agent(agent_id)
    conversation = _chosen(request, found)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        if not text.strip():
            raise Problem(422, "Please write something first.")
        body = {"messages": [{"role": "user", "content": text}], "stream_tokens": True}
        send(conversation, message_request(body, streaming=True), actor=request.user)
    except Problem as problem:
        say(request, words_of(problem), level=messages.ERROR)
    return redirect(_here(found, conversation))


@page(BUILD, methods=("POST",))
def approval(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Whether calls of a tool ask a person first."""
    found = rows.agent(agent_id)
    name, required = request.POST.get("tool", ""), request.POST.get("required") == "yes"
    set_approval(found, name, required)
    say(request, f"{name} {'asks a person from now on' if required else 'runs without asking from now on'}.")
    return redirect(_here(found))


@page()
def block(request: HttpRequest, agent_id: str, block_id: str) -> HttpResponse:
    """A memory block in full, with a form for those who may change it."""
    found, shown = rows.agent(agent_id), _block(agent_id, block_id)
    context = {"here": "agents", "agent": found, "memory": shown, "may_build": can(request.user, BUILD)}
    return render(request, "agents/block.html", {**context, "value": shown.value})


@page(BUILD, methods=("POST",))
def edit_block(request: HttpRequest, agent_id: str, block_id: str) -> HttpResponse:
    """Change a block's value, unless it has changed since it was shown."""
    found, shown = rows.agent(agent_id), _block(agent_id, block_id)
    value = request.POST.get("value", "").replace("\r\n", "\n")
    try:
        if request.POST.get("version") != str(shown.version):
            raise Problem(409, "The block has changed since you opened it. Your text is below; nothing was saved.")
        update_block(shown, {"value": value})
    except Problem as problem:
        context = {"here": "agents", "agent": found, "memory": _block(agent_id, block_id), "may_build": True}
        said = {"value": value, "error": words_of(problem)}
        return render(request, "agents/block.html", {**context, **said}, status=problem.status)
    say(request, f"{shown.label} was saved; the agent sees it with its next step.")
    return redirect(_here(found))


def _block(agent_id: str, block_id: str) -> Block:
    uuid, agent_uuid = ids.find(Block.PREFIX, block_id), ids.find(Agent.PREFIX, agent_id)
    found = Block.objects.filter(uuid=uuid, agents__uuid=agent_uuid).first() if uuid and agent_uuid else None
    if found is None:
        raise Problem(404, "This agent has no such block.")
    return found
