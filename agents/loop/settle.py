"""Settle the open calls of a course: claim what may run, store results, or find out that people must decide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents import outbox
from agents.events.wake import tell_approvals
from agents.loop.course import EVERYONE, Course, add_message
from agents.loop.ending import end
from agents.loop.offer import Toolbox, toolbox
from agents.loop.orders import Act, CallToRun, Ran
from agents.loop.returns import return_results
from agents.memory import builtins
from agents.memory.blocks import BlockView, block_views
from agents.memory.boot import heartbeat_text
from agents.memory.edit import apply_block_values
from agents.memory.secrets import secrets_of
from agents.memory.state import agent_state, block_versions
from agents.models import CallKind, CallState, MessageRole, ToolCall
from agents.models.toolcall import WAITING, Outcome
from agents.wire import redact
from agents.wire.messages import request_for
from tools import arguments, rules, runner
from tools.models import OnInterrupt

INTERRUPTED = "The server was interrupted while this call ran. Its outcome is unknown: it may have taken effect or not."
UNDONE_SETTINGS = "The arguments of this call changed after they were shown; it was not run."
MOST_RERUNS = 8  # in one run
TOOL_GONE = "Tool {name} does not exist any more; it was not run."


def settle(course: Course, calls: Sequence[ToolCall]) -> Act | None:
    """Bring the open calls forward. None: the loop looks again (results were stored, or the run ended)."""
    for call in calls:
        if call.state == CallState.STARTED and call.started_epoch != course.run.epoch:
            _interrupted(course, call)
    if any(call.state in WAITING for call in calls):
        ask_people(course, calls)
        return None
    claimed = [call for call in calls if call.state == CallState.STARTED]
    if claimed:
        # Claimed by this very owner, who looks again: the commit counted, its answer was lost, nothing ran yet.
        return Act(_to_run_all(course, claimed))
    ready = [call for call in calls if call.state == CallState.READY]
    if ready:
        return _go(course, ready)
    if all(call.state == CallState.DONE for call in calls):
        _after_results(course, calls)
    return None


def will_act(calls: Sequence[ToolCall]) -> bool:
    """Whether calls of this set would run now: none of them waits for people, and some have not run yet."""
    undone = [call for call in calls if call.state != CallState.DONE]
    return bool(undone) and not any(call.state in WAITING for call in undone)


def ask_people(course: Course, calls: Sequence[ToolCall]) -> None:
    """The run ends where people must decide. Calls that nobody was shown in this run are shown now."""
    shown = {event[1]["id"] for event in course.events if event[0] == "m" and _is_request(event)}
    waiting = [call for call in calls if call.state in WAITING]
    if waiting[0].message.wire_id not in shown:
        course.say(["m", request_for(waiting[0].message, waiting), EVERYONE])
    end(course, "requires_approval")
    outbox.approvals_wait(course.run, waiting)
    tell_approvals(course.conversation.pk)


def _is_request(event: Sequence[Any]) -> bool:
    return bool(event[1]["message_type"] == "approval_request_message")


# --- running ---------------------------------------------------------------------------------------


def _go(course: Course, ready: Sequence[ToolCall]) -> Act | None:
    """Run built-in calls at once; claim the next uploaded ones that may run beside each other."""
    box = toolbox(course)
    claimed: list[ToolCall] = []
    for call in ready:
        why = _must_not_run(box, call)
        if why:
            finish(course, call, ok=False, text=why, outcome=Outcome.REFUSED)
        elif call.kind == CallKind.BUILTIN:
            if claimed:
                break
            _run_builtin(course, call)
        elif not claimed or _parallel(call):
            claimed.append(call)
            if not _parallel(call):
                break
    return Act(_claim(course, claimed)) if claimed else None


def _parallel(call: ToolCall) -> bool:
    return bool(call.tool and call.tool.enable_parallel_execution and not _takes_agent_state(call))


def _takes_agent_state(call: ToolCall) -> bool:
    return bool(call.tool and "agent_state" in call.tool.source_code)


def _must_not_run(box: Toolbox, call: ToolCall) -> str:
    """The last look before a call runs: its arguments are those that were shown, and the rules still hold."""
    if arguments.digest(json.loads(call.arguments)) != call.digest or not _edit_was_decided(call):
        return UNDONE_SETTINGS
    if call.tool is None:
        return TOOL_GONE.format(name=call.name)
    names = [*box.names, call.name] if call.name not in box.names else box.names
    return rules.violation(box.rules, names, call.name, box.history, beside=box.beside(call.message_id)) or ""


def _edit_was_decided(call: ToolCall) -> bool:
    """Whether the changed arguments, where there are any, are those of the person's decision."""
    if call.edited_arguments is None:
        return True
    last = call.decisions.filter(after__isnull=False, sent__isnull=False).order_by("-id").first()
    return last is not None and last.after == call.edited_arguments


def _run_builtin(course: Course, call: ToolCall) -> None:
    given = json.loads(call.runs_with)
    result = builtins.run(call.name, given, course.agent, course.conversation, now=course.now)
    finish(course, call, ok=result.ok, text=result.text)


def _claim(course: Course, calls: Sequence[ToolCall]) -> tuple[CallToRun, ...]:
    """Mark calls as started, which is stored before they run, and gather what they need."""
    for call in calls:
        call.state, call.started_at, call.started_epoch = CallState.STARTED, course.now, course.run.epoch
        call.save(update_fields=["state", "started_at", "started_epoch", "updated_at"])
    return _to_run_all(course, calls)


def _to_run_all(course: Course, calls: Sequence[ToolCall]) -> tuple[CallToRun, ...]:
    secrets = secrets_of(course.agent)
    return tuple(_to_run(course, call, secrets) for call in calls)


def _to_run(course: Course, call: ToolCall, secrets: Mapping[str, str]) -> CallToRun:
    assert call.tool is not None
    given = json.loads(call.runs_with)
    blocks: Sequence[BlockView] = block_views(course.agent) if _takes_agent_state(call) else ()
    state = agent_state(course.agent, blocks) if _takes_agent_state(call) else None
    return CallToRun(
        pk=call.pk,
        call_id=call.call_id,
        code=runner.code_of(call.tool),
        arguments=given,
        secrets=secrets,
        hidden=redact.of_tool(call.tool).texts(given),
        agent_id=course.agent.wire_id,
        agent_state=state,
        block_versions=block_versions(blocks),
    )


def store_result(course: Course, ran: Ran) -> None:
    """Store the result of a call that this run had started."""
    call = ToolCall.objects.select_related("tool").get(pk=ran.pk)
    if call.state != CallState.STARTED or call.started_epoch != course.run.epoch:
        return
    result = ran.result
    ok, text = result.ok, result.text
    if ok and result.block_values:
        refused = apply_block_values(course.agent, result.block_values, ran.block_versions)
        if refused:
            ok, text = False, refused
    finish(course, call, ok=ok, text=_told_of_edit(call, text), stdout=result.stdout, stderr=result.stderr)


def _told_of_edit(call: ToolCall, text: str) -> str:
    if call.edited_arguments is None:
        return text
    # The result is shown to everybody who may read the conversation: what is secret stays masked.
    changed = redact.of_call(call).mask_text(call.edited_arguments)
    return f"A person changed the arguments before this call ran: {changed}\n{text}"


def finish(course: Course, call: ToolCall, *, ok: bool, text: str, **fields: Any) -> None:
    """Store how a call ended."""
    call.state, call.result_ok, call.result_text = CallState.DONE, ok, text
    call.outcome = fields.pop("outcome", Outcome.RAN if ok else Outcome.FAILED)
    call.finished_at = course.now
    for name, value in fields.items():
        setattr(call, name, value)
    call.version += 1
    call.save()


# --- interruption ----------------------------------------------------------------------------------


def _interrupted(course: Course, call: ToolCall) -> None:
    """A call had started when its process died: as its tool says, ask a person, tell the model, or run again."""
    wish = call.tool.on_interrupt if call.tool else OnInterrupt.DEFAULT
    if wish == OnInterrupt.DEFAULT:
        wish = OnInterrupt.ASK if call.gated else OnInterrupt.TELL
    if wish == OnInterrupt.RERUN and _may_rerun(course):
        call.state = CallState.READY
        call.save(update_fields=["state", "updated_at"])
    elif wish == OnInterrupt.ASK:
        call.state, call.asked_at, call.expires_at = CallState.UNKNOWN, course.now, None
        call.version += 1
        call.save()
    else:
        finish(course, call, ok=False, text=INTERRUPTED, outcome=Outcome.INTERRUPTED)


def _may_rerun(course: Course) -> bool:
    """Whether a call may run once more: one that brings the server down each time must end at last."""
    reruns = course.options["reruns"] = course.options.get("reruns", 0) + 1
    course.touch()
    return bool(reruns <= MOST_RERUNS)


# --- after the results -----------------------------------------------------------------------------


def _after_results(course: Course, calls: Sequence[ToolCall]) -> None:
    """All results are here: they enter the history, and the rules say whether the turn goes on."""
    return_results(course, calls)
    box = toolbox(course)
    if _exits(box, calls):
        end(course, "tool_rule")
    elif not _goes_on(course, box, calls):
        end(course, "end_turn")
    elif _used_steps(course) >= int(course.options.get("max_steps") or 50):
        end(course, "max_steps")
    elif box.heartbeats:
        failed = any(not call.result_ok for call in calls)
        reason = "A call failed; see its result." if failed else "You asked to act again."
        text = heartbeat_text(reason, now=course.now, timezone=course.agent.timezone)
        add_message(course, MessageRole.USER, [{"type": "text", "text": text}])


def _used_steps(course: Course) -> int:
    """Model calls of this request; running what was approved counts as one step."""
    return course.run.steps_count + bool(course.options.get("resumes"))


def _exits(box: Toolbox, calls: Sequence[ToolCall]) -> bool:
    """Whether an exit rule ends the turn: its tool ran (a denied one does not), and nothing else is required."""
    ran = [call.name for call in calls if call.outcome in (Outcome.RAN, Outcome.ANSWERED)]
    if not any(rules.is_terminal(box.rules, name) for name in ran):
        return False
    return not rules.blocks_exit(box.rules, box.history, tool_names=box.names)


def _goes_on(course: Course, box: Toolbox, calls: Sequence[ToolCall]) -> bool:
    if not box.heartbeats:
        return True
    if any(call.heartbeat or not call.result_ok for call in calls):
        return True
    return any(rules.must_continue(box.rules, call.name) for call in calls) or bool(
        rules.blocks_exit(box.rules, box.history, tool_names=box.names)
    )
