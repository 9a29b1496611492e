"""Health, readiness and figures, for machines. Only figures need a login or a token."""

from __future__ import annotations

import importlib
import resource
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from agents.policies.guard import admit, visit_of_meta
from agents.policies.rights import VIEW, can
from lettaweb.errors import problem_of
from lettaweb.lib import drain
from lettaweb.lib.json import dumps
from lettaweb.lib.problems import Problem

STARTED = time.time()

View = Callable[[HttpRequest], HttpResponse]


def reading(view: View) -> View:
    """A view for GET and HEAD whose refusal looks like the API's."""

    @csrf_exempt
    @wraps(view)
    def only_reading(request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request)
        return _json({"detail": "Method Not Allowed"}, status=405)

    return only_reading


@reading
def health(request: HttpRequest) -> HttpResponse:
    """Whether the process answers; asks nobody."""
    return _json({"version": settings.LETTAWEB_VERSION, "status": "ok", "sandbox": sandbox_tier()})


@reading
def ready(request: HttpRequest) -> HttpResponse:
    """Whether new work may be sent here: the database answers and no stop is under way."""
    if drain.draining():
        return _json({"status": "draining"}, status=503)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:
        return _json({"status": "no database", **problem_of(error).body}, status=503)
    return _json({"status": "ready"})


@reading
def metrics(request: HttpRequest) -> HttpResponse:
    """Figures in Prometheus' text form."""
    try:
        user = request.user if request.user.is_authenticated else admit(visit_of_meta(request.META)).user
    except Problem as problem:
        return _json(problem.body, status=problem.status)
    if not can(user, VIEW):
        return _json({"detail": "Forbidden"}, status=403)
    lines = [line for name, help_text, samples in figures() for line in _metric(name, help_text, samples)]
    return HttpResponse("\n".join([*lines, ""]), content_type="text/plain; version=0.0.4; charset=utf-8")


Samples = dict[str, float]


def figures() -> list[tuple[str, str, Samples]]:
    """(name, help, {labels: value}) of every metric."""
    calls = apps.get_model("agents", "ToolCall")._default_manager
    found: list[tuple[str, str, Samples]] = [
        ("lettaweb_runs", "Runs by status.", _by("agents", "Run", "status")),
        ("lettaweb_calls_waiting", "Tool calls that wait for a person.", {"": calls.filter(state="pending").count()}),
        ("lettaweb_calls_unknown", "Tool calls of unknown outcome.", {"": calls.filter(state="unknown").count()}),
        ("process_resident_memory_bytes", "Memory of this process.", {"": _resident_bytes()}),
        ("process_cpu_seconds_total", "CPU time of this process.", {"": _cpu_seconds()}),
        ("process_start_time_seconds", "Start of this process.", {"": STARTED}),
    ]
    if "batch" in apps.all_models["batches"]:
        found.append(("lettaweb_batches", "Batches by status.", _by("batches", "Batch", "status")))
    return found


def sandbox_tier() -> Any:
    """What the sandbox says of itself, None while it has not been looked at."""
    try:
        sandbox = importlib.import_module("tools.sandbox")
    except ImportError:
        return None
    tier = getattr(sandbox, "known_tier", None)
    return tier() if callable(tier) else None


def _by(app: str, model: str, field: str) -> Samples:
    rows = apps.get_model(app, model)._default_manager.order_by().values_list(field).annotate(Count("pk"))
    return {f'{field}="{value}"': float(count) for value, count in rows}


def _metric(name: str, help_text: str, samples: Samples) -> list[str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    values = [f"{name}{f'{{{labels}}}' if labels else ''} {value:.15g}" for labels, value in samples.items()]
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}", *values]


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _json(value: dict[str, Any], status: int = 200) -> HttpResponse:
    return HttpResponse(dumps(value), status=status, content_type="application/json")
