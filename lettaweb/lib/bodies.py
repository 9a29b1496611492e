"""What API views do with a body and a query: clean, validate, or say 422 in one readable sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from lettaweb.lib.problems import Problem
from lettaweb.lib.text import clean

_TRUE = frozenset({"true", "1", "yes", "on", "t", "y"})
_FALSE = frozenset({"false", "0", "no", "off", "f", "n"})


def read(serializer: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    """The validated body without the fields that were left out; a ValidationError (422) else.

    Texts come out free of NUL and lone surrogates. Unknown fields are ignored.
    """
    return check(serializer, request.data)


def check(serializer: type[Serializer[Any]], data: object) -> dict[str, Any]:
    """Like :func:`read`, for data that is no request's body."""
    if isinstance(data, QueryDict):
        data = data.dict()
    if not isinstance(data, Mapping):
        raise invalid("the body must be a JSON object")
    checked = serializer(data=clean(dict(data)))
    checked.is_valid(raise_exception=True)
    return dict(checked.validated_data)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` without nulls: a null in a body means "not set"."""
    return {name: value for name, value in values.items() if value is not None}


def invalid(detail: str) -> Problem:
    """The 422 of a body or a query that does not fit, in the shape that clients know."""
    return Problem(422, detail, extra={"trace_id": "", "examples": []})


def flag(query: QueryDict, name: str) -> bool | None:
    """The boolean query parameter ``name``, None when it is absent or empty; 422 when it is neither."""
    text = query.get(name)
    if text is None or text == "":
        return None
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise invalid(f"query parameter '{name}' must be true or false")


def number(query: QueryDict, name: str) -> int | None:
    """The whole-number query parameter ``name``, None when it is absent; 422 when it is none."""
    text = query.get(name)
    if text is None or text == "":
        return None
    try:
        found = int(text)
    except ValueError:
        raise invalid(f"query parameter '{name}' must be a whole number") from None
    if abs(found) > 2**31:
        raise invalid(f"query parameter '{name}' is out of range")
    return found


def words(query: QueryDict, name: str) -> list[str]:
    """All values of the repeated query parameter ``name`` that are not empty."""
    return [word for word in (clean(value) for value in query.getlist(name)) if word]
