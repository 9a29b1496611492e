"""Calls that wait for people, and the people: what tests of the desk begin with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.test import APIClient

from agents.actions.desk import Item
from agents.models import Agent, CallKind, CallState, Conversation, Run, ToolCall
from tests.agents import factories as make
from tools import arguments
from tools.models import Tool

PARAMETERS = {
    "type": "object",
    "properties": {
        "order": {"type": "integer", "description": "The order to refund."},
        "amount": {"type": "number"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "password": {"type": "string", "format": "password"},
    },
    "required": ["order"],
}
GIVEN = {"order": 7, "amount": 480.5}


def person(name: str = "anna", role: str = "operator") -> User:
    """A user of a role."""
    user, _ = User.objects.get_or_create(username=name)
    user.groups.add(Group.objects.get(name=role))
    return user


def refund_tool(**fields: Any) -> Tool:
    fields = {"json_schema": {"name": "refund", "parameters": PARAMETERS}, **fields}
    tool, _ = Tool.objects.get_or_create(name="refund", defaults=fields)
    return tool


def waiting(
    *given: Mapping[str, Any],
    conversation: Conversation | None = None,
    tool: Tool | None = None,
    **fields: Any,
) -> list[ToolCall]:
    """A set of calls of one answer that wait, one for each of ``given`` arguments (one by default)."""
    conversation = conversation or make.default_of(make.make_agent())
    tool = tool or refund_tool()
    run = make.make_run(conversation, stop_reason="requires_approval")
    make.make_message(conversation, "refund me", run=run)
    sets: Sequence[Mapping[str, Any]] = given or (GIVEN,)
    base = ToolCall.objects.count()
    parts = [make.call_part(f"c{base + number}", gated=True) for number in range(len(sets))]
    message = make.make_answer(run, parts)
    step = message.step
    assert step is not None
    wanted = {"kind": CallKind.SERVER, "state": CallState.PENDING, "gated": True, "asked_at": timezone.now(), **fields}
    return [
        ToolCall.objects.create(
            agent=conversation.agent, conversation=conversation, turn=run, step=step, message=message,
            position=number, call_id=str(parts[number]["id"]), name=tool.name,
            tool=None if wanted["kind"] == CallKind.CLIENT else tool,
            arguments=json.dumps(values), digest=arguments.digest(values), **wanted,
        )
        for number, values in enumerate(sets)
    ]  # fmt: skip


def many(count: int, **fields: Any) -> list[ToolCall]:
    """``count`` calls that wait, each in a conversation of its own."""
    agent = make.make_agent("many")
    return [
        waiting({"order": number}, conversation=make.make_conversation(agent), **fields)[0] for number in range(count)
    ]


def due(minutes: float) -> dict[str, Any]:
    """The fields of a call that expires in so many minutes (negative: has expired)."""
    return {"expires_at": timezone.now() + timedelta(minutes=minutes)}


def item(call: ToolCall) -> Item:
    return Item(call.uuid, call.version, call.digest)


def fresh(call: ToolCall) -> ToolCall:
    return ToolCall.objects.get(pk=call.pk)


def runs_after(call: ToolCall) -> list[Run]:
    """The runs of the call's conversation beyond the one that asked."""
    return list(Run.objects.filter(conversation=call.conversation_id, pk__gt=call.turn_id).order_by("pk"))


def owner(agent: Agent) -> Conversation:
    return make.default_of(agent)


class Caller:
    """The API as one person calls it, with a token of their own."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.token = AuthToken.objects.create(user)[1]
        self.client = APIClient()

    def call(self, method: str, path: str, body: Any = None, *, expect: int = 200) -> Any:
        """The JSON of the answer to ``method /api/approvals/path``."""
        response = self.client.generic(
            method, f"/api/approvals/{path}", "" if body is None else json.dumps(body),
            content_type="application/json", HTTP_AUTHORIZATION=f"Bearer {self.token}",
        )  # fmt: skip
        assert response.status_code == expect, (response.status_code, response.content)
        return response.json() if response.content else None

    def get(self, path: str = "", *, expect: int = 200) -> Any:
        return self.call("GET", path, expect=expect)

    def post(self, path: str, body: Any = None, *, expect: int = 200) -> Any:
        return self.call("POST", path, body or {}, expect=expect)
