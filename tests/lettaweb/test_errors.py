"""Errors on the wire: always JSON with ``detail``, never a word of what went wrong inside."""

from __future__ import annotations

import errno
from typing import Any

import pytest
import structlog
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as ModelError
from django.db import DataError, IntegrityError, OperationalError
from django.http import Http404
from django.test import Client
from rest_framework import exceptions, serializers

from lettaweb.errors import exception_handler, problem_of
from lettaweb.lib.problems import Problem
from lettaweb.logging import redact

CASES: dict[str, tuple[BaseException, int, Any]] = {
    "problem": (Problem(409, {"code": "BUSY"}, extra={"run_id": "run-1"}), 409, {"code": "BUSY"}),
    "django 404": (Http404("No Agent matches the given query."), 404, "Not Found"),
    "rest 404": (exceptions.NotFound(), 404, "Not Found"),
    "method": (exceptions.MethodNotAllowed("PUT"), 405, "Method Not Allowed"),
    "no credentials": (exceptions.NotAuthenticated(), 401, "Unauthorized"),
    "bad credentials": (exceptions.AuthenticationFailed("why"), 401, "Unauthorized"),
    "permission": (PermissionDenied("secret reason"), 403, "Forbidden"),
    "field": (exceptions.ValidationError({"name": ["This field is required."]}), 422, "name: This field is required."),
    "nested": (
        exceptions.ValidationError({"tools": [{}, {"source": ["Too long."]}]}), 422, "tools.1.source: Too long."
    ),
    "no field": (exceptions.ValidationError({"non_field_errors": ["Odd."]}), 422, "Odd."),
    "list": (exceptions.ValidationError(["Odd.", "Very odd."]), 422, "Odd.; Very odd."),
    "model": (ModelError({"label": ["Too long."]}), 422, "label: Too long."),
    "big number": (OverflowError("Python int too large"), 422, "A number is out of range."),
    "nul": (DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), 422, None),
    "numeric": (DataError("integer out of range"), 422, "A number is out of range."),
    "unique": (IntegrityError("UNIQUE constraint failed: agents_block.label"), 409, None),
    "locked": (OperationalError("database is locked"), 503, None),
    "gone": (OperationalError("server closed the connection unexpectedly"), 503, None),
    "full": (OperationalError("database or disk is full"), 503, "The server has no space left."),
    "no space": (OSError(errno.ENOSPC, "No space left on device"), 503, "The server has no space left."),
    "bug": (KeyError("/srv/secret/path"), 500, "An unknown error occurred"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "status", "detail"), CASES.values(), ids=CASES)
def test_it_turns_every_error_into_its_answer(error: BaseException, status: int, detail: Any) -> None:
    problem = problem_of(error)
    assert problem.status == status
    if detail is not None:
        assert problem.detail == detail
    for word in ("secret", "agents_block", "UNIQUE", "/srv", "why"):
        assert word not in str(problem.body)


def test_it_asks_to_come_back_when_the_database_is_busy() -> None:
    assert problem_of(OperationalError("database is locked")).headers["Retry-After"] == "1"


def test_it_logs_a_bug_and_answers_500() -> None:
    with structlog.testing.capture_logs() as lines:
        response = exception_handler(ZeroDivisionError("inside"), {})
    assert response.status_code == 500
    assert response.data == {"detail": "An unknown error occurred"}
    assert [line["event"] for line in lines] == ["request_failed"]


NOTHING = ["/v1/nothing", "/v1/nothing/", "/api/nothing", "/v1/agents/agent-1/nothing/at/all", "/v1/blocks/%00"]


@pytest.mark.parametrize("path", NOTHING)
def test_it_answers_unknown_routes_in_json(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


def test_it_answers_an_unknown_page_with_a_page(client: Client) -> None:
    answer = client.get("/no/such/page")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_it_answers_a_wrong_method_in_json(client: Client, method: str) -> None:
    for path in ("/v1/health/", "/v1/tools/count"):
        answer = getattr(client, method)(path)
        assert (answer.status_code, answer.json()) == (405, {"detail": "Method Not Allowed"}), path


BODIES = {
    "nan": b'{"source_code": NaN}',
    "infinity": b'{"source_code": 1e999}',
    "huge": b'{"source_code": 1' + b"0" * 400 + b"}",
    "deep": b"[" * 5000 + b"]" * 5000,
    "twice": b'{"source_code": "a", "source_code": "b"}',
    "not utf-8": b'{"source_code": "\xff\xfe"}',
    "no json": b"hello",
}


@pytest.mark.django_db
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_it_refuses_bodies_that_are_no_plain_json(client: Client, body: bytes) -> None:
    answer = client.post("/v1/tools/", data=body, content_type="application/json")
    assert answer.status_code in (400, 422)
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_it_takes_no_form_for_json(client: Client, kind: str) -> None:
    answer = client.generic("POST", "/v1/tools/", b"{}", content_type=kind)
    assert (answer.status_code, list(answer.json())) == (415, ["detail"])


@pytest.mark.django_db
def test_it_answers_json_whatever_a_client_accepts(client: Client) -> None:
    for accepted in ("text/event-stream", "text/html", "application/xml;q=0.9", "nonsense"):
        answer = client.get("/v1/tools/", HTTP_ACCEPT=accepted)
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/json"), accepted


@pytest.mark.django_db
def test_it_refuses_a_body_above_the_cap(client: Client, settings: Any) -> None:
    settings.LETTAWEB_MAX_BODY = 1000
    answer = client.post("/v1/tools/", data={"source_code": "x" * 2000}, content_type="application/json")
    assert answer.status_code == 413


class Sample(serializers.Serializer[Any]):
    limit = serializers.IntegerField(max_value=10)


def test_it_names_the_field_in_a_serializers_error() -> None:
    serializer = Sample(data={"limit": 11})
    with pytest.raises(exceptions.ValidationError) as caught:
        serializer.is_valid(raise_exception=True)
    assert problem_of(caught.value).detail == "limit: Ensure this value is less than or equal to 10."


SECRETS: dict[str, tuple[dict[str, Any], str]] = {
    "by name": ({"authorization": "Bearer abc"}, "abc"),
    "password": ({"admin_password": "hunter2"}, "hunter2"),
    "in a text": ({"event": "sent Authorization: Bearer lw_0123456789abcdef"}, "0123456789abcdef"),
    "key": ({"event": "key sk-ant-api03-verysecret refused"}, "verysecret"),
    "query": ({"path": "/v1/x?token=abcdef&y=1"}, "abcdef"),
    "bare password": ({"event": "X-BARE-PASSWORD: password hunter2"}, "hunter2"),
}


@pytest.mark.parametrize(("event", "secret"), SECRETS.values(), ids=SECRETS)
def test_it_keeps_secrets_out_of_the_log(event: dict[str, Any], secret: str) -> None:
    assert secret not in str(redact(None, "info", event))
