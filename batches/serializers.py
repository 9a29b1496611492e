"""Reads batch requests; raises a :class:`Problem` 422 that names the field. Unknown fields are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents import providers
from agents.models import Agent
from agents.outbox import check_url
from agents.serializers.requests import invalid, message_request
from batches.actions import NewBatch, NewMember
from lettaweb.lib import ids
from lettaweb.lib.problems import Problem
from lettaweb.lib.text import clean

MOST_RETRIES = 10


def new_batch(body: Any) -> NewBatch:
    """The job that ``body`` asks for: ``requests``, ``callback_url``, ``retry`` {"max": n}, ``metadata``."""
    if not isinstance(body, Mapping):
        raise invalid("body", "a JSON object is expected")
    body = clean(dict(body))
    requests = body.get("requests")
    if not isinstance(requests, list) or not requests:
        raise invalid("requests", "a list with at least one request is required")
    return NewBatch(
        members=[_member(given, number) for number, given in enumerate(requests)],
        callback_url=_callback(body.get("callback_url")),
        retry_max=_retries(body.get("retry")),
        metadata=_metadata(body.get("metadata")),
    )


def _member(given: Any, number: int) -> NewMember:
    where = f"requests[{number}]"
    if not isinstance(given, Mapping) or not isinstance(given.get("agent_id"), str):
        raise invalid(f"{where}.agent_id", "the id of an agent is required")
    try:
        request = message_request({**given, "streaming": False}, streaming=False)
    except Problem as problem:
        raise Problem(problem.status, f"{where}.{problem.detail}") from None
    if request.approval is not None:
        raise invalid(where, "approvals do not go in batches; send them on the message routes")
    options = dict(request.options)
    _check_model(options.get("override_model"), where)
    inputs = [{"role": one.role, "parts": list(one.parts), "fields": dict(one.fields)} for one in request.inputs]
    return NewMember(ids.parse(Agent.PREFIX, given["agent_id"]), inputs, options)


def _check_model(handle: Any, where: str) -> None:
    if not handle:
        return
    try:
        providers.for_handle(handle)
    except ValueError:
        raise invalid(f"{where}.override_model", "a handle of the form provider/model is expected") from None
    except providers.UnknownProvider:
        raise Problem(404, f"NOT_FOUND: Handle {handle[:80]} not found") from None


def _callback(url: Any) -> str | None:
    if url is not None and not isinstance(url, str):
        raise invalid("callback_url", "an http or https URL is expected")
    return check_url(url)


def _retries(retry: Any) -> int:
    if retry is None:
        return 0
    most = retry.get("max", 0) if isinstance(retry, Mapping) else None
    if isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= MOST_RETRIES:
        raise invalid("retry.max", f"a whole number from 0 to {MOST_RETRIES} is expected")
    return most


def _metadata(given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise invalid("metadata", "a JSON object is expected")
    return given
