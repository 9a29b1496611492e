"""From the model's calls to ToolCall rows: checked, frozen, and told apart into those that run, ask or fail."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agents.loop.course import Course
from agents.loop.offer import Toolbox
from agents.models import CallKind, CallState, Message, Step, ToolCall
from agents.models.toolcall import Outcome
from agents.providers.base import CallPart
from tools import arguments, rules
from tools.models import Tool, ToolType

NO_RETRY = "This call was denied in this turn already; do not ask for it again."


@dataclass(frozen=True, slots=True)
class Proposal:
    """One call of an answer, read. ``refusal`` says why it will not run and is told to the model."""

    call_id: str
    name: str
    text: str
    digest: str
    kind: CallKind
    gated: bool
    heartbeat: bool | None = None
    refusal: str = ""
    outcome: Outcome = Outcome.NONE

    @property
    def waits(self) -> bool:
        return self.gated and not self.refusal

    @property
    def part(self) -> dict[str, Any]:
        return {"type": "call", "id": self.call_id, "name": self.name, "arguments": self.text, "gated": self.waits}


def proposals(course: Course, box: Toolbox, calls: Sequence[CallPart]) -> list[Proposal]:
    """Read the calls of one answer, in their order."""
    made: list[Proposal] = []
    taken = _taken_ids(course, calls)
    for call in calls:
        call_id = call.id if call.id and call.id not in taken else f"call_{uuid.uuid4().hex[:24]}"
        taken.add(call_id)
        made.append(_proposal(course, box, _Raw(call_id, call.name, call.arguments), made))
    return made


def _taken_ids(course: Course, calls: Sequence[CallPart]) -> set[str]:
    ids = [call.id for call in calls if call.id]
    if not ids:
        return set()
    rows = ToolCall.objects.filter(conversation=course.conversation, call_id__in=ids)
    return set(rows.values_list("call_id", flat=True))


@dataclass(frozen=True, slots=True)
class _Raw:
    call_id: str
    name: str
    text: str


def _proposal(course: Course, box: Toolbox, raw: _Raw, before: Sequence[Proposal]) -> Proposal:
    if raw.name not in box.names:
        return _refused(raw, rules.unknown_tool(box.rules, box.names, raw.name, box.history), Outcome.REFUSED)
    schema = box.schema(raw.name)
    try:
        given = arguments.parse(raw.text, schema=schema)
        given, heartbeat = arguments.strip_internal(given, schema)
        given = {**given, **_prefill(box, raw.name)}
        if schema is not None:
            arguments.check(given, schema)
    except arguments.ArgumentsError as error:
        return _refused(raw, f"Error executing function {raw.name}: {error}", Outcome.FAILED)
    text = json.dumps(given, ensure_ascii=False)
    read = Proposal(
        raw.call_id, raw.name, text, arguments.digest(given), _kind(box, raw.name), box.is_gated(raw.name), heartbeat
    )
    refusal = _refusal(course, box, read, before)
    return read if not refusal else _with_refusal(read, refusal)


def _kind(box: Toolbox, name: str) -> CallKind:
    if box.is_client(name):
        return CallKind.CLIENT
    return CallKind.SERVER if box.tools[name].tool_type == ToolType.CUSTOM else CallKind.BUILTIN


def _prefill(box: Toolbox, name: str) -> Mapping[str, Any]:
    if not box.rules:
        return {}
    try:
        found: Mapping[str, Any] = rules.offer(box.rules, box.names, box.history).prefill.get(name, {})
    except rules.NoValidToolsError:
        return {}
    return found


def _refusal(course: Course, box: Toolbox, read: Proposal, before: Sequence[Proposal]) -> str:
    """Why a well-formed call must not even be asked for; "" when it may."""
    accepted = [rules.Called(p.name, "", True) for p in before if not p.refusal]
    broken = rules.violation(box.rules, box.names, read.name, [*box.history, *accepted], beside=len(accepted))
    if broken:
        return broken
    if read.gated and _denied_before(course, read):
        return NO_RETRY
    return ""


def _denied_before(course: Course, read: Proposal) -> bool:
    rows = ToolCall.objects.filter(turn_id=course.turn_id, name=read.name, digest=read.digest)
    return rows.filter(outcome=Outcome.DENIED).exists()


def _refused(raw: _Raw, why: str, outcome: Outcome) -> Proposal:
    digest = arguments.digest({"unread": raw.text})
    return Proposal(
        raw.call_id, raw.name, raw.text, digest, CallKind.INVALID, gated=False, refusal=why, outcome=outcome
    )


def _with_refusal(read: Proposal, why: str) -> Proposal:
    return Proposal(
        read.call_id, read.name, read.text, read.digest, read.kind,
        gated=read.gated, heartbeat=read.heartbeat, refusal=why, outcome=Outcome.REFUSED,
    )  # fmt: skip


def store_calls(course: Course, box: Toolbox, message: Message, made: Sequence[Proposal]) -> list[ToolCall]:
    """The rows of an answer's calls, in emission order."""
    assert message.step is not None
    rows = [
        _row(course, message, message.step, place=(position, read), tool=box.tools.get(read.name))
        for position, read in enumerate(made)
    ]
    for row in rows:
        row.save(force_insert=True)
        course.known.open_calls = None
    return rows


def _row(course: Course, message: Message, step: Step, *, place: tuple[int, Proposal], tool: Tool | None) -> ToolCall:
    position, read = place
    tool = None if read.kind in (CallKind.CLIENT, CallKind.INVALID) else tool
    row = ToolCall(
        agent=course.agent,
        conversation=course.conversation,
        turn_id=course.turn_id,
        step=step,
        message=message,
        position=position,
        call_id=read.call_id,
        name=read.name[:300],
        tool=tool,
        kind=read.kind,
        gated=read.gated,
        arguments=read.text,
        digest=read.digest,
        heartbeat=read.heartbeat,
        state=CallState.PENDING if read.waits else CallState.READY,
    )
    if read.refusal:
        row.state, row.outcome = CallState.DONE, read.outcome
        row.result_ok, row.result_text, row.finished_at = False, read.refusal, course.now
    if read.waits:
        _ask_for(row, tool, course)
    return row


def _ask_for(row: ToolCall, tool: Tool | None, course: Course) -> None:
    row.asked_at = course.now
    if tool is None:
        return
    row.risk = tool.risk
    row.expire_action = tool.expire_action
    if tool.expires_after:
        row.expires_at = course.now + timedelta(minutes=tool.expires_after)
