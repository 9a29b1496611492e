"""Finding what was said: how messages are made findable, and the search that agents do themselves."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from django.db.models import QuerySet

from agents.memory.clock import zone
from agents.models import Conversation, Message, MessageRole

ROLES = (MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL)
STORED = 100_000  # characters of a message that can be found
MAX_QUERY = 1_000
MAX_WORDS = 20
MAX_RESULTS = 100
SCANNED = 2_000  # messages: a search runs inside a write transaction, and these (of 1 kB) take it under 20 ms
SHOWN = 600  # characters of a message in a result

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MINUTES = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE)
_SECONDS = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:?\d{2})?", re.IGNORECASE)


class BadSearch(ValueError):
    """A search that cannot be done; the text is for the model."""


# --- what is stored -------------------------------------------------------------------------------


def search_text(role: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """``Message.search_text`` of a message: what was said in it, folded; "" for roles that are not searched."""
    if role not in ROLES:
        return ""
    return fold("\n".join(filter(None, _said(parts))))[:STORED]


def fold(text: str) -> str:
    """``text`` in the form in which texts are compared: the same on every database, for every script."""
    return unicodedata.normalize("NFKC", text).casefold()


def matching(rows: QuerySet[Message], query: str) -> QuerySet[Message]:
    """The rows that hold every word of ``query``; "%", "_" and "\\" stand for themselves."""
    for word in fold(query).split()[:MAX_WORDS]:
        rows = rows.filter(search_text__contains=word)
    return rows


def _said(parts: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            yield str(part.get("text") or "")
        elif kind == "call" and part.get("name") == "send_message":
            yield spoken_argument(str(part.get("arguments") or ""))
        elif kind == "result" and part.get("name") not in ("send_message", "conversation_search"):
            yield str(part.get("text") or "")


def spoken_argument(arguments: str) -> str:
    """The message in the arguments of a send_message call, "" when there is none."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    return str(given.get("message") or "") if isinstance(given, dict) else ""


# --- what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Search:
    """A search read and checked. ``start`` is inclusive, ``end`` is not."""

    query: str
    roles: tuple[str, ...]
    limit: int
    start: datetime | None
    end: datetime | None


def read_search(arguments: Mapping[str, Any], *, timezone: str | None, now: datetime) -> Search:
    """The search that a model asks for, dates in the agent's time zone. Raises BadSearch."""
    query = str(arguments.get("query") or "")
    if not query.strip():
        raise BadSearch("query is empty: give the words to look for")
    if len(query) > MAX_QUERY:
        raise BadSearch(f"query has {len(query)} characters; at most {MAX_QUERY} are allowed")
    limit = arguments.get("limit")
    limit = 10 if limit is None else int(limit)
    if not 1 <= limit <= MAX_RESULTS:
        raise BadSearch(f"limit must be between 1 and {MAX_RESULTS}; it was {str(limit)[:40]}")
    where = zone(timezone)
    start, _ = _moment("start_date", arguments.get("start_date"), where, now)
    _, end = _moment("end_date", arguments.get("end_date"), where, now)
    if start and end and start >= end:
        raise BadSearch("start_date lies after end_date")
    roles = tuple(arguments.get("roles") or ROLES)
    return Search(query, roles, limit, start, end)


def _moment(name: str, text: Any, where: tzinfo, now: datetime) -> tuple[datetime | None, datetime | None]:
    """(its first moment, the first moment after it) of a day, minute, second or instant."""
    if text is None or not str(text).strip():
        return None, None
    given = str(text).strip()
    try:
        first = _parsed(given, where)
        return first.astimezone(UTC), (first + _span(given)).astimezone(UTC)
    except (ValueError, OverflowError):
        today = now.astimezone(where).isoformat(timespec="minutes")
        raise BadSearch(
            f"{name} '{given[:60]}' is not a date. Write YYYY-MM-DD or YYYY-MM-DDTHH:MM; it is now {today}"
        ) from None


def _parsed(given: str, where: tzinfo) -> datetime:
    if _DATE.fullmatch(given):
        moment = datetime.combine(date.fromisoformat(given), time.min)
    else:
        moment = datetime.fromisoformat(given)
    if not 1970 <= moment.year <= 9000:
        raise ValueError("out of range")
    return moment if moment.tzinfo else moment.replace(tzinfo=where)


def _span(given: str) -> timedelta:
    if _DATE.fullmatch(given):
        return timedelta(days=1)
    if _MINUTES.fullmatch(given):
        return timedelta(minutes=1)
    return timedelta(seconds=1) if _SECONDS.fullmatch(given) else timedelta(microseconds=1)


# --- what is found --------------------------------------------------------------------------------


def search_conversation(conversation: Conversation, search: Search, *, timezone: str | None) -> str:
    """The newest matching messages of the conversation, newest first, as text for the model."""
    oldest = _oldest_scanned(conversation, search.end)
    said = Message.objects.filter(conversation=conversation, id__gte=oldest, role__in=search.roles)
    said = said.exclude(mark="aborted")
    if search.start:
        said = said.filter(created_at__gte=search.start)
    if search.end:
        said = said.filter(created_at__lt=search.end)
    found = list(matching(said, search.query).order_by("-id")[: search.limit])
    lines = [_line(row, search.query, zone(timezone)) for row in found] or ["No messages found."]
    if oldest and len(found) < search.limit:
        lines.append(f"(Only {SCANNED} messages were searched. Give an earlier end_date to reach older ones.)")
    return "\n".join(lines)


def _oldest_scanned(conversation: Conversation, end: datetime | None) -> int:
    """The id from which on a search looks: that of the ``SCANNED``-th message before ``end``; 0: at all."""
    rows = Message.objects.filter(conversation=conversation).order_by("-id")
    place = slice(SCANNED - 1, SCANNED + 1)
    ids = list(rows.values_list("id", flat=True)[place])
    if len(ids) == 2 and end:
        last = _last_before(rows, end)
        ids = list(rows.filter(id__lte=last).values_list("id", flat=True)[place])
    return ids[0] if len(ids) == 2 else 0


def _last_before(rows: QuerySet[Message], end: datetime) -> int:
    """The id of the last message before ``end``, 0 when there is none; dates rise with ids. ``rows``: newest first.

    Halves the ids instead of reading dates: no index has them.
    """
    low, high = 0, rows.values_list("id", flat=True)[0]
    while low < high:
        middle = (low + high + 1) // 2
        found = rows.filter(id__gte=low, id__lte=middle).values_list("created_at", flat=True)[:1]
        if all(at < end for at in found):
            low = middle
        else:
            high = middle - 1
    return low


def _line(row: Message, query: str, where: tzinfo) -> str:
    said = "\n".join(filter(None, _said(row.parts)))
    moment = row.created_at.astimezone(where).isoformat(timespec="seconds")
    return f"[{moment}] {row.role}: {_excerpt(said, query)}"


def _excerpt(text: str, query: str) -> str:
    """About 600 characters of ``text`` around the first word of the query."""
    if len(text) <= SHOWN:
        return text
    at = max(text.lower().find(query.split()[0].lower()), 0)
    first = max(min(at - SHOWN // 3, len(text) - SHOWN), 0)
    last = first + SHOWN
    return f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}"
