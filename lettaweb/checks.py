"""System checks: what would be unsafe or would not work is said at start, with an id."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

Checks = Sequence[CheckMessage]


@register(Tags.security)
def check_auth_mode(**_kwargs: Any) -> Checks:
    if settings.LETTAWEB_AUTH not in ("open", "token"):
        return [Error(f"LETTAWEB_AUTH is '{settings.LETTAWEB_AUTH}'.", hint="open or token", id="lettaweb.E001")]
    if settings.LETTAWEB_AUTH == "open" and not settings.LETTAWEB_LOOPBACK:
        return [
            Error(
                f"LETTAWEB_AUTH=open on {settings.LETTAWEB_HOST} would let everybody in.",
                hint="Set LETTAWEB_AUTH=token and make tokens with `manage.py create_token`.",
                id="lettaweb.E002",
            )
        ]
    return []


@register(Tags.security)
def check_hosts(**_kwargs: Any) -> Checks:
    if settings.LETTAWEB_LOOPBACK or "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "Set LETTAWEB_ALLOWED_HOSTS to the names that people use."
    return [Warning("Any Host header is accepted.", hint=hint, id="lettaweb.W001")]


@register(Tags.security)
def check_cookies(**_kwargs: Any) -> Checks:
    if settings.LETTAWEB_HTTPS or not settings.LETTAWEB_SECURE_COOKIES:
        return []
    hint = "Put a proxy that speaks HTTPS in front and set LETTAWEB_HTTPS=1, or set LETTAWEB_SECURE_COOKIES=0."
    return [Warning("Cookies travel over HTTPS only: over HTTP nobody can log in.", hint=hint, id="lettaweb.W002")]


def check_server(**_kwargs: Any) -> Checks:
    """The daphne command line: it has no drain and never starts the executor."""
    if Path(sys.argv[0]).name != "daphne":
        return []
    hint = "Use `manage.py serve`, or `manage.py web` for the web process alone."
    return [Error("A plain daphne would accept runs and never work on them.", hint=hint, id="lettaweb.E003")]


@register()
def check_queue(**_kwargs: Any) -> Checks:
    timeout, retry = settings.Q_CLUSTER.get("timeout") or 0, settings.Q_CLUSTER.get("retry", 60)
    if 0 < timeout < retry:
        return []
    hint = "A task that works longer than `retry` is given to a second worker and runs twice."
    return [Error(f"Q_CLUSTER: timeout {timeout} must be below retry {retry}.", hint=hint, id="lettaweb.E004")]


@register(Tags.database)
def check_transactions(**_kwargs: Any) -> Checks:
    database = settings.DATABASES["default"]
    found: list[CheckMessage] = []
    if database.get("ATOMIC_REQUESTS"):
        found.append(Error("ATOMIC_REQUESTS must be off.", hint="It holds a write lock for whole requests.",
                           id="lettaweb.E005"))  # fmt: skip
    mode = database.get("OPTIONS", {}).get("transaction_mode")
    if database["ENGINE"].endswith("sqlite") and mode != "IMMEDIATE":
        found.append(Error("SQLite needs transaction_mode IMMEDIATE.", id="lettaweb.E006"))
    return found


@register(Tags.files)
def check_data_dir(**_kwargs: Any) -> Checks:
    found: list[CheckMessage] = []
    directory = Path(settings.LETTAWEB_DATA_DIR)
    if not os.access(directory, os.W_OK):
        found.append(Error(f"{directory} is not writable.", hint="Set LETTAWEB_DATA_DIR.", id="lettaweb.E007"))
    key = directory / "secret.key"
    if key.exists() and key.stat().st_mode & 0o077:
        found.append(Error(f"{key} can be read by others.", hint=f"chmod 600 {key}", id="lettaweb.E008"))
    return found


@register()
def check_lease(**_kwargs: Any) -> Checks:
    wait = settings.DATABASES["default"].get("OPTIONS", {}).get("timeout", 0)
    if max(wait, 3) < settings.LETTAWEB_LEASE_SECONDS:
        return []
    hint = "A process must be able to wait for the database once without losing its runs."
    return [Error("LETTAWEB_LEASE_SECONDS is too short.", hint=hint, id="lettaweb.E009")]


@register()
def check_sizes(**_kwargs: Any) -> Checks:
    names = ("LETTAWEB_MAX_RUNS", "LETTAWEB_TOOL_SLOTS", "LETTAWEB_MAX_BODY_MB", "LETTAWEB_DB_THREADS")
    return [Error(f"{name} must be at least 1.", id="lettaweb.E010") for name in names if getattr(settings, name) < 1]


_AT_START: tuple[Callable[..., Checks], ...] = (check_server, check_auth_mode, check_queue)


def refuse_unsafe_start() -> None:
    """For servers that run no checks of Django's: raises ImproperlyConfigured with the first error."""
    for message in (message for check in _AT_START for message in check()):
        if message.is_serious():
            raise ImproperlyConfigured(f"{message.id}: {message.msg} {message.hint or ''}")
