"""What requests about calls that wait may hold. Unknown fields are ignored; a missing decision is never a yes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from agents.actions import desk
from lettaweb.lib import ids
from lettaweb.lib.json import dumps
from lettaweb.lib.problems import Problem

DECISIONS = {
    "approve": "approve",
    "rerun": "approve",
    "deny": "deny",
    "tell": "deny",
    "answer": "answer",
    "happened": "answer",
}
MOST = 2000


class _Decision(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(choices=list(DECISIONS))
    reason = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=4000, trim_whitespace=False
    )
    result = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=1_000_000, trim_whitespace=False
    )
    ok = serializers.BooleanField(required=False, default=True)


class Decide(_Decision):
    """The body of POST /api/approvals/{id}/decide. ``arguments``: all of them, when a person changed some;
    an object, or its JSON text where numbers must keep their spelling."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    digest = serializers.CharField(max_length=64)
    arguments = serializers.JSONField(required=False, allow_null=True)


class _Shown(serializers.Serializer[Any]):
    id = serializers.CharField(max_length=100)
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    digest = serializers.CharField(max_length=64)


class Bulk(_Decision):
    """The body of POST /api/approvals/bulk: the calls as they were shown, and one decision for all."""

    items = serializers.ListField(child=_Shown(), min_length=1, max_length=MOST)


class Claim(serializers.Serializer[Any]):
    seconds = serializers.IntegerField(required=False, min_value=1, max_value=3600, default=120)


class Comment(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=10_000)


class Extend(serializers.Serializer[Any]):
    minutes = serializers.IntegerField(min_value=1, max_value=7 * 24 * 60)


class Undo(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class Unstick(serializers.Serializer[Any]):
    """The body of POST /api/approvals/unstick: one conversation, or all of an agent."""

    conversation_id = serializers.CharField(required=False, allow_null=True, max_length=100)
    agent_id = serializers.CharField(required=False, allow_null=True, max_length=100)
    reason = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=4000)


def verdict_of(given: Mapping[str, Any]) -> desk.Verdict:
    """The verdict in a checked body. Raises a :class:`Problem` 422 for an answer without a result."""
    kind = DECISIONS[given["decision"]]
    if kind == "deny":
        return desk.deny(given.get("reason"))
    if kind == "approve":
        return desk.approve(_text_of(given.get("arguments")), note=given.get("reason"))
    if given.get("result") is None:
        raise Problem(422, "result: an answer needs the result of the tool")
    return desk.answer(given["result"], ok=given["ok"])


def items_of(given: Mapping[str, Any]) -> list[desk.Item]:
    return [desk.Item(ids.parse("call", one["id"]), one["version"], one["digest"]) for one in given["items"]]


def _text_of(arguments: Any) -> str | None:
    if arguments is None or isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        raise Problem(422, "arguments: a JSON object is expected")
    return dumps(arguments)
