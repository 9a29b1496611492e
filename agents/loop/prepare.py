"""Open the next step, or take up the one left open, and say what to ask the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents import context, providers
from agents.events import StepHead, whole
from agents.events.kinds import is_delta
from agents.loop.absorb import fail
from agents.loop.compact import handle, summary_order, window
from agents.loop.course import Course
from agents.loop.offer import Offered, Toolbox, offered, toolbox
from agents.loop.orders import Ask, Summarize
from agents.memory.compile import compiled_prompt
from agents.models import Message, MessageContext, MessageRole, Run, Step, StepStatus
from agents.providers.base import ModelRequest
from agents.wire.messages import date
from lettaweb.lib.statements import PreparedValues
from tools import rules

DEFAULT_MAX_TOKENS = 4096
MOST_ATTEMPTS = 8  # at one answer: whoever asks for it may be what brings the server down
SEEN = ("uuid", "role", "parts", "context", "tokens", "mark", "model")
ROOMY = 0.5  # of the window: below it nothing needs to be shortened


def prepare(course: Course) -> Ask | Summarize | None:
    """The next thing to ask the model; None when the run had to end instead."""
    box = toolbox(course)
    history = in_context(course)
    system = _system_prompt(course, box, history)
    try:
        what = offered(box, must_call=_required(course, box))
        request = _request(course, system, history, what)
    except rules.NoValidToolsError as error:
        fail(course, "no_valid_tools", str(error))
        return None
    except (providers.UnknownProvider, ValueError):
        fail(course, "unknown_model", f"No provider of this server offers the model {handle(course)}")
        return None
    used = context.estimate_tokens(request)
    summary = summary_order(course, history, used)
    if summary is not None:
        return summary
    request = _clipped(request, window(course), used)
    step, shown = _open_step(course)
    if step.attempt > MOST_ATTEMPTS:
        fail(course, "interrupted", f"The server was interrupted {MOST_ATTEMPTS} times while it waited for this answer")
        return None
    known = frozenset(part["id"] for message in history for part in message.parts if part["type"] == "call")
    return replace(_ask(course, box, step, request), known_ids=known, shown=shown)


def _clipped(request: ModelRequest, size: int, used: int) -> ModelRequest:
    """Long tool results shortened where the request fills the window. ``used``: tokens of the whole request."""
    if used + request.max_tokens < size * ROOMY:
        return request
    beside = context.estimate_tokens(replace(request, messages=())) + request.max_tokens
    return replace(request, messages=context.clip_results(request.messages, window=size, reserve=beside))


def _required(course: Course, box: Toolbox) -> Sequence[str]:
    """Tools that a rule wants called before the turn ends, once the model tried to end it."""
    if course.options.get("exit_refused"):
        missing: Sequence[str] = rules.blocks_exit(box.rules, box.history, tool_names=box.names)
        return missing
    return ()


def _request(course: Course, system: str, history: Sequence[context.HistoryMessage], what: Offered) -> ModelRequest:
    agent, config = course.agent, course.agent.llm_config
    settings = course.conversation.model_settings or agent.model_settings or {}
    temperature = config.get("temperature")
    _, model = providers.for_handle(handle(course))
    return ModelRequest(
        model=model,
        system=course.options.get("override_system") or system,
        messages=context.chat_messages(history),
        tools=tuple(what.specs),
        tool_choice=what.choice,
        parallel_tool_calls=bool(config.get("parallel_tool_calls")),
        max_tokens=config.get("max_tokens") or settings.get("max_output_tokens") or DEFAULT_MAX_TOKENS,
        temperature=temperature if temperature not in (None, 1.0) else None,
        reasoning=None if config.get("enable_reasoner", True) else False,
        reasoning_tokens=config.get("max_reasoning_tokens") or 0,
        reasoning_effort=config.get("reasoning_effort") or config.get("effort") or "",
        response_format=agent.response_format or config.get("response_format"),
    )


def in_context(course: Course) -> list[context.HistoryMessage]:
    """What the model sees, oldest first."""
    if course.known.history is not None:
        return course.known.history
    return [seen_message(*row) for row in _seen(course.conversation.pk)]


_seen = PreparedValues(
    lambda key: (
        Message.objects.filter(conversation=key, context__gt=MessageContext.OUT).order_by("id").values_list(*SEEN)
    )
)


def seen_message(*row: Any) -> context.HistoryMessage:
    """A message in context from its columns ``SEEN``."""
    uid, role, parts, seen, tokens, mark, model = row
    return context.HistoryMessage(str(uid), role, parts, context=seen, tokens=tokens, mark=mark, model=model or "")


def _system_prompt(course: Course, box: Toolbox, history: Sequence[context.HistoryMessage]) -> str:
    """The compiled prompt; the stored system message follows it, so that both show the same."""
    text = compiled_prompt(course.agent, rules_text=rules.describe(box.rules), blocks=course.known.blocks)
    parts = [{"type": "text", "text": text}]
    stored = history[0] if history and history[0].role == MessageRole.SYSTEM else None
    if stored is not None and stored.parts != parts:
        tokens = context.estimate_tokens(text)
        Message.objects.filter(uuid=stored.uuid).update(parts=parts, tokens=tokens, updated_at=course.now)
    return text


def _open_step(course: Course) -> tuple[Step, tuple[tuple[str, str], ...]]:
    """The step to ask for, and what readers saw of its earlier attempt."""
    run = course.run
    # Only an earlier owner, an earlier try of this, and a request that was too long leave a step open.
    may_be_left = course.again or run.epoch > 1 or "compacted" in course.options or "overflow" in course.options
    left = Step.objects.filter(run=run, status=StepStatus.PENDING).first() if may_be_left else None
    if left is None:
        return _new_step(course), ()
    shown = shown_of(run, left)
    left.attempt += 1
    left.save(update_fields=["attempt", "updated_at"])
    if shown:
        course.say(["ping", {}])
    return left, shown


def shown_of(run: Run, step: Step) -> tuple[tuple[str, str], ...]:
    """The deltas of an open step that the log holds, as (kind, text)."""
    batches = whole(run.pk, step.first_seq - 1)
    mine = [batch for batch in batches if batch.head and batch.head.message == str(step.message_uuid)]
    deltas = [event for batch in mine for event in batch.events if is_delta(event)]
    return tuple((event[0], _shown_text(event)) for event in deltas)


def _shown_text(event: Sequence[object]) -> str:
    return str(event[2]) if event[0] != "c" else "\0".join(str(part) for part in event[1:])


def _new_step(course: Course) -> Step:
    provider, model = providers.for_handle(handle(course))
    run = course.run
    number = run.steps_count
    step = Step(
        run_id=run.pk,
        agent_id=course.agent.pk,
        number=number,
        provider=provider.name,
        model=model,
        context_window=window(course),
        asked_at=course.now,
        first_seq=course.last_seq() + len(course.events) + 1,
    )
    course.later.insert(step)
    if number == 0:
        course.first_step = step
    return step


def _ask(course: Course, box: Toolbox, step: Step, request: ModelRequest) -> Ask:
    speech = str(course.options.get("assistant_message_tool_name") or "send_message")
    silent = {name for name in box.names if box.is_gated(name)} | {speech}
    return Ask(
        step=step,
        message=step.message_uuid,
        head=StepHead(str(step.message_uuid), step.wire_id, date(step.asked_at or course.now)),
        provider=step.provider,
        request=request,
        stream=bool(course.options.get("stream_tokens")),
        silent=frozenset(silent),
        one_call=not request.parallel_tool_calls,
        last_seq=course.last_seq() + len(course.events),
    )
