"""Decisions about waiting calls: by the API a whole set at once, by the desk one by one.

One transaction under the conversation's lock: the rows change once, the decision is written beside them,
and the decision that completes a set creates the run that goes on.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from agents.actions.already import already
from agents.actions.begin import Started, Wanted, active_run, busy, create_run, waiting_calls
from agents.actions.repeat import already_answered
from agents.actions.requests import Approval, MessageRequest, Verdict
from agents.actions.verdicts import record
from agents.loop.course import Course, message_row
from agents.models import CallKind, Conversation, Decision, Message, MessageRole, Run, RunStatus, ToolCall
from agents.policies.rights import DECIDE, can
from lettaweb.lib.ids import wire_id
from lettaweb.lib.problems import Problem

NONE_PENDING = (
    "Cannot process approval response: No tool call is currently awaiting approval. "
    "Please send a regular message to interact with the agent."
)


@dataclass(frozen=True, slots=True)
class Sender:
    """Who acts (``name`` when it is nobody), from where, and the process that has a slot for a run (None: any)."""

    user: Any
    owner: uuid.UUID | None = None
    via: str = "api"
    name: str = "system"


def answer(conversation: Conversation, request: MessageRequest, sender: Sender) -> Started:
    """Apply an approval that came over the wire; the lock is held. Raises a :class:`Problem` 400 or 409."""
    assert request.approval is not None
    waiting = waiting_calls(conversation)
    found = already_answered(conversation, request, sender, waiting)
    if found is not None:
        return found
    if not waiting:
        running = active_run(conversation)
        if running is not None and running.driver == "batch":
            raise busy(running)
        raise Problem(400, NONE_PENDING)
    pairs = matched(waiting, request.approval)
    _check_right(pairs, sender)
    for call, verdict in pairs:
        record(call, verdict, sender)
    return go_on(conversation, waiting, request, sender)


def _check_right(pairs: Sequence[tuple[ToolCall, Verdict]], sender: Sender) -> None:
    """Results of a client's own tools are part of a conversation; everything else is a decision."""
    if any(call.kind != CallKind.CLIENT for call, _ in pairs) and not can(sender.user, DECIDE):
        raise Problem(403, "You may not decide tool calls")


def matched(waiting: Sequence[ToolCall], approval: Approval) -> list[tuple[ToolCall, Verdict]]:
    """Each waiting call with its verdict. A :class:`Problem` 400 unless all of them are meant, and only they."""
    if approval.legacy:
        return _matched_legacy(waiting, approval.verdicts[0])
    given = [_by_request_id(verdict, waiting) for verdict in approval.verdicts]
    counted = Counter(given)
    repeated = [call_id for call_id, count in counted.items() if count > 1]
    if repeated:
        raise Problem(400, f"Invalid tool call IDs. '{repeated[0]}' was given {counted[repeated[0]]} times.")
    calls = {call.call_id: call for call in waiting}
    if set(given) - _agreed(waiting, approval, given) != set(calls):
        raise wrong_ids(list(calls), given)
    verdicts = dict(zip(given, approval.verdicts, strict=True))
    pairs = [(call, verdicts[call_id]) for call_id, call in calls.items()]
    for call, verdict in pairs:
        _check_fit(call, verdict)
    return pairs


def _agreed(waiting: Sequence[ToolCall], approval: Approval, given: Sequence[str]) -> set[str]:
    """Ids of the same set that people decided before, the way the client says; the 409 for another way."""
    beside = ToolCall.objects.filter(message_id=waiting[0].message_id, gated=True, call_id__in=given)
    settled = {call.call_id: call for call in beside if not call.waiting}
    for call_id, verdict in zip(given, approval.verdicts, strict=True):
        if call_id in settled and not same_decision(settled[call_id], verdict):
            raise already(settled[call_id])
    return set(settled)


def same_decision(call: ToolCall, verdict: Verdict) -> bool:
    last = Decision.objects.filter(call=call, sent__isnull=False).order_by("-id").first()
    if last is None or last.sent is None:
        return False
    kind = {"approve": "approve", "edit": "approve", "rerun": "approve", "deny": "deny", "tell": "deny"}.get(
        last.kind, "answer"
    )
    if kind != verdict.kind:
        return False
    return kind != "answer" or last.sent.get("tool_return") == verdict.sent.get("tool_return")


def _by_request_id(verdict: Verdict, waiting: Sequence[ToolCall]) -> str:
    """The call meant: some clients name the request's message where the call belongs; one call makes it clear."""
    if len(waiting) == 1 and verdict.call_id == waiting[0].message.wire_id:
        return waiting[0].call_id
    return verdict.call_id


def _matched_legacy(waiting: Sequence[ToolCall], verdict: Verdict) -> list[tuple[ToolCall, Verdict]]:
    request_id = waiting[0].message.wire_id
    if len(waiting) > 1 and verdict.call_id == request_id:
        raise wrong_ids([call.call_id for call in waiting], [verdict.call_id])
    if verdict.call_id not in (request_id, waiting[0].call_id) or len(waiting) > 1:
        raise Problem(
            400, f"Invalid approval request ID. Expected '{request_id}' but received '{verdict.call_id[:200]}'."
        )
    _check_fit(waiting[0], verdict)
    return [(waiting[0], verdict)]


def wrong_ids(expected: Sequence[str], received: Sequence[str]) -> Problem:
    shown = [text[:200] for text in received][:50]
    return Problem(400, f"Invalid tool call IDs. Expected '{list(expected)}', but received '{shown}'.")


def _check_fit(call: ToolCall, verdict: Verdict) -> None:
    if call.kind == CallKind.CLIENT and verdict.kind == "approve":
        raise Problem(
            400, f"Tool call '{call.call_id}' runs on the client: send its result as type 'tool', or deny it."
        )


def go_on(
    conversation: Conversation, decided: Sequence[ToolCall], request: MessageRequest | None, sender: Sender
) -> Started:
    """All calls of the set are decided: one approval response, and the run that goes on."""
    first = decided[0]
    run = create_run(conversation, continuing(first, request, sender))
    response_row(run, first, set_decisions(first), request.approval if request else None).save(force_insert=True)
    return Started(run, mine=run.owner_id is not None)


def continuing(first: ToolCall, request: MessageRequest | None, sender: Sender) -> Wanted:
    """What the run is made of that goes on with the set of ``first``."""
    asked: Run = first.step.run
    options = {**_kept(asked), **(request.options if request else {})}
    later = [_later(given) for given in request.inputs] if request else []
    options |= {"resumes": True, "then": later}
    return Wanted(
        options=options,
        background=request.background if request else True,
        callback_url=request.callback_url if request else None,
        owner=sender.owner,
        actor=sender.user,
        driver=asked.driver,
        turn_id=first.turn_id,
        metadata=asked.metadata,
    )


def _kept(asked: Run) -> dict[str, Any]:
    """Options of the request that asked which hold for what follows, unless the decision brings its own."""
    names = ("client_tools", "override_model", "override_system", "stream_tokens", "assistant_message_tool_name",
             "batch_item")  # fmt: skip
    return {name: asked.options[name] for name in names if name in asked.options}


def _later(given: Any) -> dict[str, Any]:
    return {"role": given.role, "parts": [dict(part) for part in given.parts], "fields": dict(given.fields)}


def response_row(
    run: Run, first: ToolCall, sent: Sequence[dict[str, Any]], approval: Approval | None = None
) -> Message:
    """The approval response for the set of ``first`` as a message of ``run``, not stored yet. ``sent``: see
    :func:`set_decisions`."""
    course = Course(run=run, conversation=run.conversation, agent=run.agent, now=timezone.now())
    request_id = first.message.wire_id if approval and approval.legacy else str(sent[0]["tool_call_id"])
    parts = [{"type": "decision", "sent": item} for item in sent]
    otid = approval.otid if approval else None
    return message_row(course, MessageRole.APPROVAL, parts, otid=otid, approval_request_id=request_id)


def set_decisions(first: ToolCall) -> list[dict[str, Any]]:
    """What was decided about each gated call of the set of ``first``, as the wire writes it."""
    calls = ToolCall.objects.filter(message_id=first.message_id, gated=True).order_by("id")
    rows = Decision.objects.filter(call__in=calls, sent__isnull=False).order_by("call_id", "id")
    last = {row.call_id: row.sent for row in rows}
    return [sent for call in calls if (sent := last.get(call.pk)) is not None]


def request_id_of(call: ToolCall) -> str:
    return wire_id("message", call.message.uuid)


def finished(run: Run) -> bool:
    return run.status not in (RunStatus.CREATED, RunStatus.RUNNING)
