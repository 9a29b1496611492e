"""Keep a request within the model's window: the oldest whole turns become one summary message."""

from __future__ import annotations

from collections.abc import Sequence

from agents import context, providers
from agents.loop.absorb import fail
from agents.loop.course import Course, add_message
from agents.loop.orders import Summarize, Summarized
from agents.models import Message, MessageContext, MessageRole, ToolCall

MOST = 3  # compactions in one request


def summary_order(course: Course, history: Sequence[context.HistoryMessage], used: int) -> Summarize | None:
    """The summary that must be made before a request of ``used`` tokens can go out; None when it fits or
    nothing can be cut."""
    size = window(course)
    forced = "overflow" in course.options
    if not forced and not context.needs_compaction(used, size):
        return None
    if course.options.get("compacted", 0) >= MOST:
        return None
    return order_for(course, history, (size, used), trigger="overflow" if forced else "automatic")


def order_for(
    course: Course, history: Sequence[context.HistoryMessage], sizes: tuple[int, int], *, trigger: str
) -> Summarize | None:
    """A summary of the oldest turns of ``history``. ``sizes``: the window, and what the request takes."""
    size, used = sizes
    settings = context.compaction_settings(course.agent.compaction_settings)
    summaries, body = context.split_prompt(history)
    reserve = max(used - sum(message.tokens for message in body), 0)
    pending = waiting_ids(course)
    for steps in (False, True):
        count = context.plan_cut(
            history,
            window=size,
            reserve=reserve,
            keep_fraction=settings.keep_fraction,
            pending_ids=pending,
            steps=steps,
        )
        if count:
            return _order(course, body[:count], summaries, trigger=trigger)
    return None


def _order(
    course: Course,
    folded: Sequence[context.HistoryMessage],
    summaries: Sequence[context.HistoryMessage],
    *,
    trigger: str,
) -> Summarize:
    settings = context.compaction_settings(course.agent.compaction_settings)
    provider, model = providers.for_handle(settings.model or handle(course))
    earlier = "\n".join(part["text"] for message in summaries for part in message.parts if part["type"] == "text")
    request = context.summary_request(folded, earlier, model=model, window=window(course), settings=settings)
    ids = Message.objects.filter(uuid__in=[message.uuid for message in folded]).values_list("pk", flat=True)
    return Summarize(provider.name, request, tuple(ids), trigger, settings.clip_chars)


def waiting_ids(course: Course) -> list[str]:
    calls = ToolCall.objects.filter(conversation=course.conversation, returned=False)
    return list(calls.values_list("call_id", flat=True))


def handle(course: Course) -> str:
    """The model of this request: provider/name."""
    override: str = course.options.get("override_model") or course.conversation.model or course.agent.model
    return override


def window(course: Course) -> int:
    """The context window in tokens."""
    return int(course.conversation.context_window_limit or course.agent.llm_config.get("context_window") or 128_000)


def apply_summary(course: Course, done: Summarized) -> None:
    """Replace the folded messages by their summary; without one the history stays and the run ends."""
    if not done.text:
        fail(course, "context_overflow", "The conversation is too long and could not be summarized", detail=done.reason)
        return
    if (
        course.again
        and not Message.objects.filter(pk__in=done.order.message_ids, context__gt=MessageContext.OUT).exists()
    ):
        return  # this very summary counted before
    store_summary(course, done)
    course.options.pop("overflow", None)
    course.options["compacted"] = course.options.get("compacted", 0) + 1
    course.touch()


def store_summary(course: Course, done: Summarized) -> Message:
    """The summary as a message in place of what it folds, with its statistics."""
    in_context = Message.objects.filter(conversation=course.conversation, context__gt=MessageContext.OUT)
    before = in_context.count()
    stats = {
        "trigger": done.order.trigger,
        "context_tokens_before": sum(in_context.values_list("tokens", flat=True)),
        "context_window": course.agent.llm_config.get("context_window") or 0,
        "messages_count_before": before,
    }
    in_context.filter(role=MessageRole.SUMMARY).update(context=MessageContext.OUT)
    Message.objects.filter(pk__in=done.order.message_ids).update(context=MessageContext.OUT)
    stats["messages_count_after"] = in_context.count() + 1
    part = {"type": "text", "text": done.text}
    row = add_message(course, MessageRole.SUMMARY, [part])
    stats["context_tokens_after"] = sum(in_context.values_list("tokens", flat=True))
    row.parts = [{**part, "stats": stats}]
    row.save(update_fields=["parts"])
    return row
