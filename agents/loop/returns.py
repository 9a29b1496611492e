"""Results enter the history: one tool message for a whole set, then what the user sent along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.loop.course import Course, add_message
from agents.models import Message, MessageRole, Step, ToolCall
from lettaweb.lib.statements import PreparedValues


def open_calls(conversation_id: int) -> list[ToolCall]:
    """The calls of a conversation whose results are not in its history yet, in emission order."""
    # Most requests find none: the cheap question comes first.
    if not any_open(conversation_id):
        return []
    rows = ToolCall.objects.filter(conversation_id=conversation_id, returned=False)
    return list(rows.select_related("step", "message", "tool").order_by("id"))


def any_open(conversation_id: int) -> bool:
    """Whether a conversation has calls whose results are not in its history yet."""
    return bool(_some_open(conversation_id))


_some_open = PreparedValues(
    lambda key: ToolCall.objects.filter(conversation=key, returned=False).order_by().values_list("pk")[:1]
)


def return_results(course: Course, calls: Sequence[ToolCall]) -> Message:
    """Store the results of a whole set as one tool message, and show it."""
    step = calls[0].step
    row = add_message(course, MessageRole.TOOL, [result_part(call) for call in calls], step=step, name=calls[0].name)
    ToolCall.objects.filter(pk__in=[call.pk for call in calls]).update(returned=True)
    Step.objects.filter(pk=step.pk, finished_at=None).update(finished_at=course.now)
    course.show(row)
    store_inputs(course)
    return row


def result_part(call: ToolCall) -> dict[str, Any]:
    part = {
        "type": "result",
        "id": call.call_id,
        "name": call.name,
        "status": "success" if call.result_ok else "error",
        "text": call.result_text,
        "stdout": call.stdout,
        "stderr": call.stderr,
        "gated": call.gated,
    }
    if call.result_content is not None:
        part["content"] = call.result_content
    return part


def store_inputs(course: Course) -> None:
    """Store what the user sent along with a decision, once its results are in the history."""
    later = course.options.pop("then", None)
    for given in later or ():
        add_message(course, MessageRole(given["role"]), given["parts"], **given.get("fields", {}))
    if later:
        course.touch()
