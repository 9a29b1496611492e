"""/batches/ and /batches/<id>/: what runs, what waits for people, what it cost so far; and how to stop it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from agents.policies.rights import SEND, can
from agents.views.pages.access import page, say, wants_fragment
from batches import actions, filters
from batches.models import OPEN_JOBS, BatchItem, BatchJob, BatchMember, LLMBatch, MemberState
from batches.poll.close import members_by_state
from batches.wire.jobs import finished

JOBS, ITEMS, WAVES = 50, 50, 50
WORDS: dict[str, str] = {
    MemberState.WAITING: "Not begun",
    MemberState.READY: "Ready to be sent",
    MemberState.IN_FLIGHT: "At the provider",
    MemberState.ACTING: "Tools to run",
    MemberState.PARKED: "Waiting for a person",
    MemberState.DONE: "Done",
    MemberState.FAILED: "Failed",
    MemberState.EXPIRED: "Expired",
    MemberState.CANCELLED: "Cancelled",
}
PHASES = {
    "preparing": "Preparing requests",
    "waiting_provider": "Waiting for the provider",
    "ingesting": "Reading results",
    "stepping": "Stepping agents",
    "awaiting_approval": "Waiting for people",
    "paused": "Paused",
    "cancelling": "Being cancelled",
}


@page()
def batches(request: HttpRequest) -> HttpResponse:
    """/batches/"""
    rows = filters.jobs()
    below = request.GET.get("below", "")
    if below.isascii() and below.isdigit() and len(below) < 19:
        rows = rows.filter(pk__lt=int(below))
    found = list(rows.order_by("-pk")[: JOBS + 1])
    shown = found[:JOBS]
    counts = _counts(shown)
    stand = _stand([(job.pk, *_spent(job), sorted(counts.get(job.pk, {}).items())) for job in shown])
    if _unchanged(request, stand):
        return HttpResponse(status=204)
    context = {
        "here": "batches",
        "again": _again(request, stand),
        "jobs": [_line(job, counts.get(job.pk, {})) for job in shown],
        "below": shown[-1].pk if len(found) > JOBS else 0,
        "live": any(job.status in OPEN_JOBS for job in shown),
    }
    return render(request, "batches/_batches.html" if wants_fragment(request) else "batches/batches.html", context)


def _counts(jobs: list[BatchJob]) -> dict[int, dict[str, int]]:
    """The members of each job by state."""
    found: dict[int, dict[str, int]] = {}
    rows = BatchMember.objects.filter(job__in=jobs).order_by().values_list("job", "state").annotate(count=Count("id"))
    for job, state, count in rows:
        found.setdefault(job, {})[state] = count
    return found


def _line(job: BatchJob, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "job": job,
        "over": finished(counts),
        "parked": counts.get(MemberState.PARKED, 0),
        "phase": PHASES.get(job.phase, ""),
        "open": job.status in OPEN_JOBS,
    }


@page()
def batch(request: HttpRequest, batch_id: str) -> HttpResponse:
    """/batches/<id>/"""
    job = filters.job(batch_id)
    counts = members_by_state(job)
    rows = filters.items_of(request.GET, job)
    waves, items = list(job.llm_batches.order_by("-pk")[:WAVES]), list(rows.order_by("-pk")[:ITEMS])
    approvals = _approvals(job)
    stand = _stand([_spent(job), sorted(counts.items()), approvals, _facts(waves), _facts(items)])
    if _unchanged(request, stand):
        return HttpResponse(status=204)
    chosen = request.GET.get("state", "")
    context = {
        "here": "batches",
        "again": _again(request, stand),
        **_line(job, counts),
        "states": [(state, label, counts[state]) for state, label in WORDS.items() if counts.get(state)],
        "chosen": chosen if chosen in WORDS else "",
        "chosen_label": WORDS.get(chosen, ""),
        "failed": counts.get(MemberState.FAILED, 0) + counts.get(MemberState.EXPIRED, 0),
        "approvals": approvals,
        "waves": waves,
        "items": [(item, WORDS[item.member.state]) for item in items],
        "may_send": can(request.user, SEND),
    }
    return render(request, "batches/_batch.html" if wants_fragment(request) else "batches/batch.html", context)


# --- pages that ask again ----------------------------------------------------------------------------


def _stand(facts: object) -> str:
    """What a page shows, in a few characters."""
    return f"{crc32(repr(facts).encode()):x}"


def _spent(job: BatchJob) -> tuple[object, ...]:
    return job.status, job.phase, job.paused_at, job.input_tokens, job.output_tokens, job.cost


def _facts(rows: Sequence[LLMBatch | BatchItem]) -> list[object]:
    return [(row.pk, row.updated_at) for row in rows]


def _unchanged(request: HttpRequest, stand: str) -> bool:
    """Whether the page shows this already: then it is left alone, and with it the focus and a click under way."""
    return wants_fragment(request) and request.GET.get("seen") == stand


def _again(request: HttpRequest, stand: str) -> str:
    """Where the page asks again."""
    query = request.GET.copy()
    query["seen"] = stand
    return f"{request.path}?{query.urlencode()}"


def _approvals(job: BatchJob) -> list[tuple[str, int]]:
    """The tools whose calls wait, and how many of each."""
    rows = filters.waiting_calls(job).order_by().values_list("name")
    return sorted(rows.annotate(count=Count("id")), key=lambda row: (-row[1], row[0]))


Act = Callable[[BatchJob, HttpRequest], str]


def _cancel(job: BatchJob, request: HttpRequest) -> str:
    actions.cancel(job)
    return "The batch is being cancelled: nothing new is sent, and what was paid for is kept."


def _pause(job: BatchJob, request: HttpRequest) -> str:
    actions.pause(job, request.user)
    return "The batch is paused: nothing new is sent until you resume it."


def _resume(job: BatchJob, request: HttpRequest) -> str:
    actions.resume(job)
    return "The batch goes on."


def _retry(job: BatchJob, request: HttpRequest) -> str:
    count = actions.retry_failed(job)
    return f"{count} agent{' is' if count == 1 else 's are'} asked again." if count else "Nothing has failed."


ACTS: dict[str, Act] = {"cancel": _cancel, "pause": _pause, "resume": _resume, "retry": _retry}


@page(SEND, methods=("POST",))
def act(request: HttpRequest, batch_id: str, what: str) -> HttpResponse:
    """/batches/<id>/cancel/, pause/, resume/, retry/"""
    say(request, ACTS[what](filters.job(batch_id), request))
    return redirect(reverse("batch", args=[batch_id]))
