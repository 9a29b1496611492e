"""What a step may call: the agent's tools and the client's, as the tool rules of this turn allow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agents.loop.course import Course
from agents.models import CallState, ToolCall
from agents.models.toolcall import Outcome
from agents.providers.base import ToolChoice, ToolSpec
from lettaweb.lib.statements import Prepared
from tools import rules
from tools.models import Tool
from tools.rules import Called

HEARTBEAT_TYPES = ("memgpt_agent", "memgpt_v2_agent")
RULE_OUTCOMES = (Outcome.RAN, Outcome.FAILED, Outcome.ANSWERED, Outcome.INTERRUPTED)

_HEARTBEAT = {
    "type": "boolean",
    "description": "True to act again right after this call, false to wait for the user.",
}
_THINKING = {"type": "string", "description": "Private reasoning about what to do next."}


_tools = Prepared(lambda key: Tool.objects.filter(agents=key).order_by("agenttool__id"))


@dataclass(slots=False)
class Toolbox:
    """The tools of an agent in one request; client tools shadow the server's of the same name."""

    course: Course
    client_tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """The agent's tools by name, in the order in which they were attached."""
        known = self.course.known.tools
        return {row.name: row for row in (_tools(self.course.agent.pk) if known is None else known)}

    @cached_property
    def rules(self) -> tuple[rules.Rule, ...]:
        return rules.parse_rules(self.course.agent.tool_rules or [])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.tools, *self.client_tools]))

    @cached_property
    def _counted(self) -> list[ToolCall]:
        if not self.rules:
            return []
        rows = ToolCall.objects.filter(turn_id=self.course.turn_id, state=CallState.DONE, outcome__in=RULE_OUTCOMES)
        return list(rows.only("name", "result_text", "result_ok", "message_id").order_by("id"))

    @cached_property
    def history(self) -> list[Called]:
        """The calls of this turn that count for the rules, oldest first."""
        return [Called(row.name, row.result_text, bool(row.result_ok)) for row in self._counted]

    def beside(self, message_id: int) -> int:
        """How many of the history belong to the same answer: they did not come before its calls."""
        return sum(row.message_id == message_id for row in self._counted)

    @property
    def heartbeats(self) -> bool:
        return self.course.agent.agent_type in HEARTBEAT_TYPES

    def is_client(self, name: str) -> bool:
        return name in self.client_tools

    def is_gated(self, name: str) -> bool:
        return self.is_client(name) or rules.requires_approval(self.rules, name)

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """The JSON schema of a server tool's arguments; client tools check their own."""
        tool = self.tools.get(name)
        if tool is None or self.is_client(name):
            return None
        found: Mapping[str, Any] = tool.json_schema.get("parameters") or {}
        return found

    def spec(self, name: str) -> ToolSpec:
        client = self.client_tools.get(name)
        if client is not None:
            parameters = client.get("parameters") or {"type": "object", "properties": {}}
            return ToolSpec(name, str(client.get("description") or ""), parameters)
        tool = self.tools[name]
        return ToolSpec(name, tool.json_schema.get("description") or tool.description, self._parameters(tool))

    def _parameters(self, tool: Tool) -> Mapping[str, Any]:
        parameters: dict[str, Any] = tool.json_schema.get("parameters") or {"type": "object", "properties": {}}
        if not self.heartbeats:
            return parameters
        own = parameters.get("properties", {})
        added = {
            key: value for key, value in (("thinking", _THINKING), ("request_heartbeat", _HEARTBEAT)) if key not in own
        }
        required = [*added, *parameters.get("required", [])]
        return {**parameters, "properties": {**own, **added}, "required": required}


@dataclass(frozen=True, slots=True)
class Offered:
    """The tools of one request and whether one of them must be called."""

    specs: Sequence[ToolSpec]
    choice: ToolChoice


def toolbox(course: Course) -> Toolbox:
    """The tools of the course's agent and request."""
    return Toolbox(course, {tool["name"]: tool for tool in course.options.get("client_tools") or ()})


def offered(box: Toolbox, *, must_call: Sequence[str] = ()) -> Offered:
    """What the next request offers. ``must_call``: tools that have to be called before the turn may end."""
    if not box.names:
        return Offered((), ToolChoice())
    offer = rules.offer(box.rules, box.names, box.history)
    names = [name for name in offer.names if name in must_call] if must_call else list(offer.names)
    names = names or list(offer.names)
    forced = offer.forced or bool(must_call)
    return Offered([box.spec(name) for name in names], ToolChoice("any" if forced else "auto"))
