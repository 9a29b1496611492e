"""Store the model's answer: its message, its calls and its usage; end the run where it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agents.loop.course import EVERYONE, NOT_TOKENS, ONLY_TOKENS, Course, add_message, message_row
from agents.loop.ending import end, fail_open_step
from agents.loop.offer import Toolbox, toolbox
from agents.loop.orders import Answered, AskFailed
from agents.loop.propose import proposals, store_calls
from agents.models import Message, MessageContext, MessageRole, Step, StepStatus
from agents.providers.base import (
    CallPart,
    ImagePart,
    ModelResponse,
    Part,
    ReasoningPart,
    RedactedReasoningPart,
    TextPart,
    Usage,
)
from agents.wire.messages import answer_messages, head_of
from lettaweb.lib.statements import Prepared
from lettaweb.lib.text import clean_text
from tools import rules

ANSWERED = (
    "status", "stop_reason", "superseded", "message_uuid", "input_tokens", "output_tokens", "cached_tokens",
    "cache_write_tokens", "reasoning_tokens", "request_id", "answered_at", "finished_at", "updated_at",
)  # fmt: skip
MAX_EMPTY = 2  # an empty answer to a user is asked for once more
TYPES_OF_KIND = {"r": "reasoning_message", "a": "assistant_message"}

REASON_OF = {
    "bad_request": "llm_api_error",
    "authentication": "llm_api_error",
    "insufficient_credits": "insufficient_credits",
    "rate_limit": "llm_api_error",
    "timeout": "llm_api_error",
    "overloaded": "llm_api_error",
    "server": "llm_api_error",
    "connection": "llm_api_error",
    "not_configured": "llm_api_error",
    "unknown_model": "llm_api_error",
    "invalid_response": "invalid_llm_response",
    "no_tool_call": "no_tool_call",
    "context_overflow": "context_window_overflow_in_system_prompt",
    "interrupted": "error",
}
TYPE_OF = {
    "bad_request": "llm_bad_request",
    "authentication": "llm_authentication",
    "insufficient_credits": "llm_insufficient_credits",
    "rate_limit": "llm_rate_limit",
    "timeout": "llm_timeout",
    "interrupted": "internal_error",
    "context_overflow": "context_window_overflow_in_system_prompt",
}


_steps = Prepared(lambda key: Step.objects.filter(pk=key))


def absorb(course: Course, answer: Answered) -> None:
    """Apply an answer to the course."""
    step = _asked(course, answer.step_id)
    if step.status != StepStatus.PENDING:
        return  # this very answer came before: a driver that reads twice changes nothing
    course.streamed = answer.streamed
    response = answer.response
    _count(course, step, response)
    box = toolbox(course)
    calls = _calls_that_count(course, response)
    said = [part for part in map(stored_part, response.parts) if part is not None]
    made = proposals(course, box, calls)
    if not said and not made:
        _empty(course, step, response)
        return
    row = _store(course, step, answer, [*said, *(read.part for read in made)])
    if made:
        course.write()
        store_calls(course, box, row, made)
    _show(course, row, answer)
    if not made:
        _finish_text(course, box, response)


def _asked(course: Course, step_id: int) -> Step:
    known, course.known.step = course.known.step, None
    if known is not None and known.pk == step_id:
        return known
    (step,) = _steps(step_id)
    return step


def _calls_that_count(course: Course, response: ModelResponse) -> list[CallPart]:
    calls = [part for part in response.parts if isinstance(part, CallPart)]
    if response.stop == "max_tokens":
        return []
    return calls if parallel(course) else calls[:1]


def parallel(course: Course) -> bool:
    return bool(course.agent.llm_config.get("parallel_tool_calls"))


def stored_part(part: Part) -> dict[str, Any] | None:
    """What of an answer is stored beside its calls; None for what says nothing."""
    match part:
        case TextPart(text):
            return {"type": "text", "text": clean_text(text)} if text.strip() else None
        case ReasoningPart(text, signature, provider):
            if not text.strip() and not signature:
                return None
            # The signature covers the text byte for byte: text that had to be cleaned is unsigned.
            kept = clean_text(text)
            return {
                "type": "reasoning",
                "text": kept,
                "signature": signature if kept == text else "",
                "provider": provider,
            }
        case RedactedReasoningPart(data, provider):
            return {"type": "redacted", "data": data, "provider": provider}
        case ImagePart(media_type, data, url):
            return {"type": "image", "media_type": media_type, "data": data, "url": url}
    return None


def _count(course: Course, step: Step, response: ModelResponse) -> None:
    usage, run = response.usage, course.run
    run.steps_count += 1
    run.input_tokens += usage.input
    run.output_tokens += usage.output
    run.cached_tokens += usage.cached
    run.cache_write_tokens += usage.cache_write
    run.reasoning_tokens += usage.reasoning
    run.context_tokens = usage.input + usage.output
    _count_step(step, usage)
    step.status = StepStatus.SUCCESS
    step.request_id = response.request_id[:200]
    step.answered_at = course.now
    if not any(isinstance(part, CallPart) for part in response.parts):
        step.finished_at = course.now


def _count_step(step: Step, usage: Usage) -> None:
    step.input_tokens = usage.input
    step.output_tokens = usage.output
    step.cached_tokens = usage.cached
    step.cache_write_tokens = usage.cache_write
    step.reasoning_tokens = usage.reasoning


def _store(course: Course, step: Step, answer: Answered, parts: Sequence[Mapping[str, Any]]) -> Message:
    if answer.new_message is not None:
        step.superseded = [*step.superseded, str(step.message_uuid)]
        step.message_uuid = answer.new_message
    run = course.run
    if run.ttft_ns is None:
        run.ttft_ns = answer.first_token_ns
    step.stop_reason = _reason_so_far(answer.response, parts)
    course.later.update(step, *ANSWERED)
    course.touch()
    row = message_row(
        course,
        MessageRole.ASSISTANT,
        parts,
        step=step,
        uid=step.message_uuid,
        model=step.model,
        superseded=step.superseded,
        created_at=_said_at(course, step),
    )
    course.later.insert(row)
    course.known.history = None
    return row


def _said_at(course: Course, step: Step) -> datetime:
    """When the answer counts as said; in a batch, when it was read: its messages never go back in time."""
    return course.now if "batch_item" in course.options else step.asked_at or course.now


def _reason_so_far(response: ModelResponse, parts: Sequence[Mapping[str, Any]]) -> str:
    calls = [part for part in parts if part["type"] == "call"]
    if any(part["gated"] for part in calls):
        return "requires_approval"
    return "max_tokens_exceeded" if response.stop == "max_tokens" else "end_turn"


def _show(course: Course, row: Message, answer: Answered) -> None:
    """Log the whole messages; readers of tokens are spared what the deltas said already."""
    streamed = {TYPES_OF_KIND[kind] for kind in answer.kinds if kind in TYPES_OF_KIND}
    unseen = [part for part in row.parts if part["type"] == "call" and part["id"] not in answer.streamed_calls]
    for message in answer_messages(head_of(row), row.parts):
        if message["message_type"] == "tool_call_message" and answer.streamed_calls:
            course.say(["m", message, NOT_TOKENS])
            rest = [call for call in message["tool_calls"] if any(call["tool_call_id"] == p["id"] for p in unseen)]
            if rest:
                course.say(["m", {**message, "tool_call": rest[0], "tool_calls": rest}, ONLY_TOKENS])
        else:
            course.say(["m", message, NOT_TOKENS if message["message_type"] in streamed else EVERYONE])


def _empty(course: Course, step: Step, response: ModelResponse) -> None:
    """Nothing was said: ordinary after tool results, asked once more else, then a failure."""
    step.save()
    course.options["empty"] = course.options.get("empty", 0) + 1
    course.touch()
    if response.stop == "max_tokens":
        end(course, "max_tokens_exceeded", _max_tokens_error())
    elif _follows_results(course):
        end(course, "end_turn")
    elif course.options["empty"] >= MAX_EMPTY:
        fail(course, "invalid_response", "The model gave an empty answer twice")


def _follows_results(course: Course) -> bool:
    last = Message.objects.filter(conversation=course.conversation, context__gt=MessageContext.OUT).order_by("-id")
    return last.values_list("role", flat=True).first() == MessageRole.TOOL


def _finish_text(course: Course, box: Toolbox, response: ModelResponse) -> None:
    """A text answer ends the run, unless the model paused or a rule wants a tool called first."""
    if response.stop == "max_tokens":
        end(course, "max_tokens_exceeded", _max_tokens_error())
    elif response.stop == "pause":
        return
    elif box.rules and (missing := rules.blocks_exit(box.rules, box.history, tool_names=box.names)):
        note = rules.exit_note(missing)
        course.options["exit_refused"] = True
        course.touch()
        add_message(course, MessageRole.SYSTEM, [{"type": "text", "text": note}])
    else:
        end(course, "end_turn")


def _max_tokens_error() -> dict[str, str]:
    return {
        "type": "max_tokens_exceeded",
        "message": "The model's answer was cut off at the limit of its length.",
        "detail": "Raise max_tokens of the agent, or ask for less.",
    }


def absorb_failure(course: Course, failed: AskFailed) -> None:
    """The model could not be asked: the run ends with the provider's error."""
    course.streamed = failed.streamed
    error = failed.error
    if error.kind == "context_overflow" and not failed.streamed.written and _may_be_cut(course, failed.step_id):
        return
    fail(course, error.kind, error.message, detail=error.detail)


def _may_be_cut(course: Course, step_id: int) -> bool:
    """Whether the next look makes a summary first; without one this error comes again and ends the run."""
    (step,) = _steps(step_id)
    refused = course.options.setdefault("overflow", step.attempt)
    course.touch()
    return bool(refused == step.attempt)


def fail(course: Course, kind: str, message: str, *, detail: str = "") -> None:
    error = {"type": TYPE_OF.get(kind, "llm_error"), "message": message, "detail": detail, "kind": kind}
    course.run.stop_reason = REASON_OF.get(kind, "error")
    fail_open_step(course, StepStatus.FAILED, error)
    end(course, course.run.stop_reason, error)
