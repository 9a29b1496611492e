"""Which steps a list shows."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from django.db.models import Prefetch, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import QueryDict
from django.utils.dateparse import parse_date, parse_datetime

from agents.models import Agent, Run, Step
from agents.policies.rows import keys
from lettaweb.lib.bodies import flag, words
from lettaweb.lib.paging import choice, word
from lettaweb.lib.problems import Problem

_LOST_PLUS = re.compile(r"(T.*) (\d\d:?\d\d)$")
FEEDBACK = ("positive", "negative")


def steps_of(query: QueryDict, run: Run | None = None) -> QuerySet[Step]:
    """The steps that ``query`` asks for (of ``run`` only), with what their wire form reads."""
    rows = readable(Step.objects.all())
    if run is not None:
        return rows.filter(run=run)
    return _by_feedback(query, _by_date(query, _by_owner(query, rows)))


def readable(rows: QuerySet[Step]) -> QuerySet[Step]:
    """``rows`` with what their wire form reads: two more queries for any number of rows."""
    runs = Prefetch("run", Run.objects.only("id", "uuid"))
    agents = Prefetch("agent", Agent.objects.only("id", "uuid", "project_id"))
    return rows.prefetch_related(runs, agents)


def moment_in(query: QueryDict, name: str) -> datetime | None:
    """The parameter ``name`` as a moment (a date is its first one, no zone is UTC); 422 for anything else."""
    text = query.get(name)
    if not text:
        return None
    return moment_of(text, name)


def moment_of(text: str, name: str) -> datetime:
    """``text`` in ISO 8601 as a moment; a blank that was a plus in the URL is read as one."""
    text = _LOST_PLUS.sub(r"\1+\2", text.strip())
    try:
        found = parse_datetime(text)
        day = parse_date(text) if found is None else None
    except ValueError:
        found = day = None
    if found is None and day is not None:
        found = datetime(day.year, day.month, day.day, tzinfo=UTC)
    if found is None:
        raise Problem(422, f"{name}: expected a date or a time in ISO 8601")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _by_owner(query: QueryDict, rows: QuerySet[Step]) -> QuerySet[Step]:
    if agent := word(query, "agent_id"):
        rows = rows.filter(agent__in=keys(Agent, [agent])[:1])
    model = word(query, "model")
    if model:
        rows = rows.filter(model=model.partition("/")[2] if "/" in model else model)
    project = word(query, "project_id")
    if project:
        rows = rows.filter(agent__project_id=project)
    # Nothing here gives out trace ids, so no step has one.
    return rows.none() if words(query, "trace_ids") else rows


def _by_date(query: QueryDict, rows: QuerySet[Step]) -> QuerySet[Step]:
    if start := moment_in(query, "start_date"):
        rows = rows.filter(created_at__gte=start)
    if end := moment_in(query, "end_date"):
        rows = rows.filter(created_at__lt=end)
    return rows


def _by_feedback(query: QueryDict, rows: QuerySet[Step]) -> QuerySet[Step]:
    if "feedback" in query:
        rows = rows.filter(feedback=choice(query, "feedback", FEEDBACK, ""))
    given = flag(query, "has_feedback")
    if given is not None:
        rows = rows.filter(feedback__isnull=not given)
    tags = words(query, "tags")
    if not tags:
        return rows
    # SQLite has no containment of JSON: a tag is looked for as it is written.
    any_of = Q()
    for tag in tags:
        any_of |= Q(written__contains=json.dumps(tag)) | Q(written__contains=json.dumps(tag, ensure_ascii=False))
    return rows.annotate(written=Cast("tags", TextField())).filter(any_of)
