"""What templates of the desk need: times in words, calls in words, and the frame of every page."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.filters.counts import counts_once
from agents.filters.queue import VIEWS
from agents.models import Run, ToolCall
from agents.models.run import ACTIVE
from agents.wire import fields, sentences

register = template.Library()

# Characters that make a text look like another one: controls, and those that turn its direction round.
_TRICKS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
STEPS = ((60, "s"), (3600, "min"), (86_400, "h"), (float("inf"), "d"))


@register.filter
def plain(text: Any) -> str:
    """A text from an agent or a tool with its invisible characters made visible; the template escapes it."""
    return _TRICKS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", str(text))


_ENDINGS = {
    "end_turn": "done",
    "requires_approval": "asked a person",
    "max_steps": "out of steps",
    "tool_rule": "done, by a rule",
    "llm_api_error": "the model's vendor failed",
    "invalid_llm_response": "an answer of no use",
    "max_tokens_exceeded": "out of tokens",
}


@register.filter
def ending(reason: str) -> str:
    """Why a run stopped, in words."""
    return _ENDINGS.get(reason, plain(reason.replace("_", " ")))


@register.filter
def outgrows(text: str) -> bool:
    """Whether a text may be longer than its box: what scrolls must be in reach of the keyboard."""
    return len(text) > 500 or text.count("\n") > 14


@register.filter
def ago(at: datetime | None) -> str:
    """A moment as a span from now: "just now", "9 min ago", "in 6 min"."""
    if at is None:
        return "never"
    seconds = (timezone.now() - at).total_seconds()
    if abs(seconds) < 10:
        return "just now"
    return f"in {span(-seconds)}" if seconds < 0 else f"{span(seconds)} ago"


@register.filter
def left(at: datetime | None) -> str:
    """How long until a moment: "6 min left", or "overdue"."""
    if at is None:
        return ""
    seconds = (at - timezone.now()).total_seconds()
    return f"{span(seconds)} left" if seconds > 0 else "overdue"


@register.filter
def span(seconds: float) -> str:
    """Seconds as "40 s", "9 min", "3 h" or "2 d"."""
    unit = 1
    for limit, word in STEPS:
        if seconds < limit:
            return f"{max(1, int(seconds // unit))} {word}"
        unit = int(limit) if limit != float("inf") else unit
    return ""


@register.filter
def milliseconds(nanoseconds: int | None) -> str:
    """A duration in nanoseconds as "340 ms", "4.2 s" or "3 min"."""
    if nanoseconds is None:
        return ""
    if nanoseconds < 1_000_000_000:
        return f"{nanoseconds // 1_000_000} ms"
    seconds = nanoseconds / 1e9
    return f"{seconds:.1f} s" if seconds < 60 else span(seconds)


@register.simple_tag
def moment(at: datetime | None, form: str = "ago", css: str = "") -> SafeString:
    """A ``<time>``: words now, the absolute time on hover; the page's script keeps the words fresh."""
    if at is None:
        return format_html('<span class="{}">never</span>', css)
    said = left(at) if form == "left" else ago(at)
    exact = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" title="{}" data-form="{}" class="{}">{}</time>',
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S %Z"),
        form,
        css,
        said,
    )


_MARKS = {"high": '<path d="M6 1 11.5 11H.5z"/>', "medium": '<path d="M6 1 11 6 6 11 1 6z"/>'}
_LOW = '<circle cx="6" cy="6" r="3.5"/>'


@register.simple_tag
@cache
def risk_of(risk: str, after: str = "") -> SafeString:
    """A risk as a mark and a word."""
    mark = mark_safe(_MARKS.get(risk, _LOW))  # noqa: S308 - one of three drawings from this file
    drawn = format_html('<svg viewBox="0 0 12 12" aria-hidden="true" fill="currentColor">{}</svg>', mark)
    return format_html('<span class="risk">{}{}{}</span>', drawn, risk.capitalize(), after)


# --- calls -------------------------------------------------------------------------------------------


@register.filter
def headline(call: ToolCall) -> str:
    return plain(sentences.title(call))


@register.filter
def sentence(call: ToolCall) -> str:
    said = sentences.sentence(call)
    name = call.agent.name
    return plain(said if call.waiting else said.replace(f"{name} wants to", f"{name} wanted to", 1))


@register.filter
def outcome(call: ToolCall) -> str:
    return fields.state_words(call)[0]


@register.filter
def verdict(call: ToolCall) -> str:
    """What a person said about a call, without what became of it: "Approved with changes", "Denied"."""
    return fields.state_words(call)[0].partition(",")[0]


@register.filter
def tone(call: ToolCall) -> str:
    return fields.state_words(call)[1]


@register.filter
def cut_text(text: str) -> str:
    """A long text as a screen shows it."""
    return fields.shown_text(text)


@register.simple_tag(takes_context=True)
def but(context: template.Context, **changes: str) -> str:
    """The query string of this page's filters with other values."""
    return str(context["wish"].but(**changes))


@register.filter
def held(call: ToolCall, user: Any) -> str:
    """Who else is at a call just now, "" when nobody is."""
    if call.held_by_id is None or call.held_until is None or call.held_until <= timezone.now():
        return ""
    return "" if call.held_by_id == user.pk else str(call.held_by)


@register.filter
def stamp(call: ToolCall) -> str:
    """A short text that changes with everything that a row of the queue shows of a call."""
    now = timezone.now()
    holder = call.held_by_id if call.held_until is not None and call.held_until > now else ""
    due = int(call.expires_at.timestamp()) if call.expires_at else ""
    return f"{call.version}-{call.state[0]}{call.outcome[:2]}-{holder or 0}-{due or 0}"


# --- the frame ---------------------------------------------------------------------------------------


@register.inclusion_tag("_side.html", takes_context=True)
def side(context: template.Context) -> dict[str, Any]:
    """The navigation at the side of every page, with its counts."""
    request = context["request"]
    found = counts_once(request)
    current = context.get("view_name", "")
    return {
        "request": request,
        "user": request.user,
        "csrf_token": context.get("csrf_token"),
        "views": [(name, label, found.get(name), name == current) for name, label in VIEWS.items()],
        "waiting": found["waiting"],
        "here": context.get("here", ""),
        "running": Run.objects.filter(status__in=ACTIVE).count(),
        "last": ToolCall.objects.filter(decided_at__isnull=False).order_by("-decided_at").only("decided_at").first(),
        "batches": _if_there("/batches/"),
    }


def _if_there(path: str) -> str:
    """``path`` where a page stands behind it, else ""."""
    try:
        resolve(path)
    except Resolver404:
        return ""
    return path
