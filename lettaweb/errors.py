"""Errors as the wire has them: ``{"detail": …}``. The one place that turns an exception into a response."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from lettaweb.lib.json import dumps
from lettaweb.lib.problems import Problem
from lettaweb.lib.transient import passes

log = structlog.get_logger(__name__)

UNKNOWN = "An unknown error occurred"
NOT_FOUND = "Not Found"
API_PREFIXES = ("/v1/", "/latest/", "/api/")
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
_BUSY = "The database is busy or not reachable; please try again."
_FULL = "The server has no space left."


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER: every exception of a view becomes a response; a bug is logged and a 500."""
    set_rollback()
    problem = problem_of(error)
    request = context.get("request")
    report(error, problem, path=getattr(request, "path", ""))
    return Response(problem.body, status=problem.status, headers=problem.headers)


def problem_of(error: BaseException) -> Problem:
    """``error`` as a status, a body and headers. Nothing of an unexpected error's text goes out."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, exceptions.APIException):
        return _of_api_exception(error)
    if isinstance(error, DatabaseError | InterfaceError):
        return _of_database(error)
    for kind, status, detail in _PLAIN:
        if isinstance(error, kind):
            return Problem(status, detail)
    if isinstance(error, DjangoValidationError):
        return validation_problem("; ".join(sentences(getattr(error, "message_dict", error.messages))))
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return _try_again(_FULL)
    return Problem(500, UNKNOWN)


_PLAIN: tuple[tuple[type[BaseException], int, str], ...] = (
    (Http404, 404, NOT_FOUND),
    (PermissionDenied, 403, "Forbidden"),
    (RequestDataTooBig, 413, "The body is too large."),
    (SuspiciousOperation, 400, "Bad Request"),
    (OverflowError, 422, "A number is out of range."),
)


def _of_api_exception(error: exceptions.APIException) -> Problem:
    if isinstance(error, exceptions.ValidationError):
        return validation_problem("; ".join(sentences(error.detail)))
    headers = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = str(error.auth_header)  # type: ignore[attr-defined]
    if getattr(error, "wait", None):
        headers["Retry-After"] = str(int(error.wait))  # type: ignore[attr-defined]
    return Problem(error.status_code, _API_DETAILS.get(type(error)) or str(error.detail), headers=headers)


_API_DETAILS: dict[type[exceptions.APIException], str] = {
    exceptions.NotFound: NOT_FOUND,
    exceptions.MethodNotAllowed: "Method Not Allowed",
    exceptions.NotAuthenticated: "Unauthorized",
    exceptions.AuthenticationFailed: "Unauthorized",
    exceptions.PermissionDenied: "Forbidden: your role does not allow this.",
}


def _of_database(error: Exception) -> Problem:
    if isinstance(error, IntegrityError):
        return Problem(409, "CONFLICT: This contradicts something that is stored already.")
    text = str(error).lower()
    if "disk is full" in text or "no space left" in text or "disk full" in text:
        return _try_again(_FULL)
    if isinstance(error, OperationalError | InterfaceError) or passes(error):
        return _try_again(_BUSY)
    if "nul (0x00)" in text:
        return Problem(422, "A text holds a NUL, which cannot be stored.")
    if "out of range" in text or "too large" in text or "numeric field overflow" in text:
        return Problem(422, "A number is out of range.")
    return Problem(500, UNKNOWN)


def _try_again(detail: str) -> Problem:
    return Problem(503, detail, headers={"Retry-After": "1"})


def validation_problem(detail: str) -> Problem:
    return Problem(422, detail, extra={"trace_id": "", "examples": []})


def sentences(errors: Any, path: str = "") -> Iterator[str]:
    """``path.to.field: what is wrong``, for every error in a tree of mappings and lists."""
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            plain = name in ("non_field_errors", "__all__")
            yield from sentences(inner, path if plain else f"{path}.{name}".lstrip("."))
    elif isinstance(errors, list | tuple):
        for position, inner in enumerate(errors):
            nested = isinstance(inner, Mapping | list | tuple)
            yield from sentences(inner, f"{path}.{position}".lstrip(".") if nested else path)
    else:
        yield f"{path}: {errors}" if path else str(errors)


def report(error: BaseException, problem: Problem, *, path: str) -> None:
    """Log an error that is ours: a bug with its traceback, a database that is busy in one line."""
    if problem.status == 503:
        log.warning("request_refused", error=type(error).__name__, status=503, path=path)
    elif problem.status >= 500 and not isinstance(error, Problem):
        log.error("request_failed", exc_info=error, status=problem.status, path=path)


# --- what Django itself answers -------------------------------------------------------------------


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, Problem(400, "Bad Request"))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, Problem(403, "Forbidden"))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _answer(request, Problem(404, NOT_FOUND))


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, Problem(500, UNKNOWN))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _answer(request, Problem(403, "The form is too old or came from another site; please reload the page."))


def _answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    if request.path.startswith(API_PREFIXES):
        return HttpResponse(dumps(problem.body), status=problem.status, content_type="application/json")
    page = render_to_string("error.html", {"status": problem.status, "detail": problem.detail})
    return HttpResponse(page, status=problem.status)
