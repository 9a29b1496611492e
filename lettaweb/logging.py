"""The log: one structured line per event on stderr, without tokens, passwords and query strings."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

import structlog

Event = MutableMapping[str, Any]

_SECRET_NAME = re.compile(r"(?i)password|passwd|authorization|api[_-]?key|secret|token$|cookie")
_SECRET_TEXT = re.compile(
    r"(?i)\b(bearer|password)\s+[^\s'\",;]+|\b(lw_[0-9a-f]{8,}|sk-[A-Za-z0-9_-]{8,})|([?&](?:token|key|secret)=)[^&\s]+"
)
MASK = "[hidden]"


def redact(_logger: Any, _method: str, event: Event) -> Event:
    """A structlog processor: masks values of secret names, and secrets that stand inside texts."""
    for name, value in event.items():
        if _SECRET_NAME.search(name) and value:
            event[name] = MASK
        elif isinstance(value, str):
            event[name] = redact_text(value)
    return event


def redact_text(text: str) -> str:
    return _SECRET_TEXT.sub(_mask, text)


def _mask(match: re.Match[str]) -> str:
    kept = match[1] or match[3] or ""
    return f"{kept} {MASK}" if match[1] else f"{kept}{MASK}"


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def configure() -> None:
    """Send structlog's loggers through the standard library's, where ``logging_config`` formats them."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *[processor for processor in SHARED if not isinstance(processor, structlog.stdlib.ExtraAdder)],
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def logging_config(*, level: str, form: str) -> dict[str, Any]:
    """Django's LOGGING. ``form`` is json or console."""
    configure()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_ending(form),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {name: {"level": quiet, "propagate": True} for name, quiet in _quiet(level).items()},
    }


def _ending(form: str) -> list[Any]:
    # Plain tracebacks: a pretty one prints local variables, and with them whatever secret they hold.
    last = (
        structlog.dev.ConsoleRenderer(colors=False)
        if form == "console"
        else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    return [structlog.processors.format_exc_info, redact, last]


def _quiet(level: str) -> dict[str, str]:
    """Loggers that say too much at the chosen level."""
    noisy = ("django", "django-q", "daphne", "httpx", "httpx2", "httpcore", "axes", "asyncio", "psycopg")
    if level == "DEBUG":
        return {}
    # Refusals are answers, not events; a wrong Host header would log a traceback each.
    silent = {"django.request": "ERROR", "django.security": "ERROR", "django.security.DisallowedHost": "CRITICAL"}
    return dict.fromkeys(noisy, "WARNING") | silent
