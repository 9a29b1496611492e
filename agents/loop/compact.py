"""Keep a request within the model's window: the oldest whole turns become one summary message."""

from __future__ import annotations

from collections.abc import Sequence

from agents import context, providers
from agents.loop.absorb import fail
from agents.loop.course import Course, add_message
from agents.loop.orders import Summarize, Summarized
from agents.models import Message, MessageContext, MessageRole
from agents.providers.base import ModelRequest

FULL = 0.9  # of the window: what is left is for the answer's own estimate error


def summary_order(
    course: Course, request: ModelRequest, history: Sequence[context.HistoryMessage], *, trigger: str = "automatic"
) -> Summarize | None:
    """The summary that must be made before ``request`` can go out; None when it fits or nothing can be cut."""
    from agents.loop.prepare import handle, window

    size = window(course)
    forced = course.options.pop("overflow", False)
    if not forced and context.estimate_request(request) <= size * FULL:
        return None
    if course.options.get("compacted", 0) >= 2:
        return None
    plan = context.plan_cut(history, window=size, settings=course.agent.compaction_settings)
    if plan is None:
        return None
    folded = history[plan.start : plan.stop]
    provider, model = providers.for_handle(handle(course))
    ids = Message.objects.filter(uuid__in=[message.uuid for message in folded]).values_list("pk", flat=True)
    asked = context.summary_request(plan, history, model=model, settings=course.agent.compaction_settings)
    return Summarize(provider.name, asked, tuple(ids), trigger)


def apply_summary(course: Course, done: Summarized) -> None:
    """Replace the folded messages by their summary; without one the history stays and the run ends."""
    if not done.text:
        fail(course, "context_overflow", "The conversation is too long and could not be summarized", detail=done.reason)
        return
    store_summary(course, done)
    course.options["compacted"] = course.options.get("compacted", 0) + 1
    course.run.save(update_fields=["options", "updated_at"])


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
