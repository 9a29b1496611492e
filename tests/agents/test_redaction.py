"""Secrets in arguments: masked wherever people or other systems look, whole only for the tool itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.loop.settle import _told_of_edit
from agents.models import CallKind, ToolCall
from agents.wire import redact
from agents.wire.approvals import approval_row, fields_of
from agents.wire.redact import MASK, Secrets
from agents.wire.sentences import human, sentence, title
from tests.agents.desk import refund_tool, waiting

PASSWORD = {"type": "string", "format": "password"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def referring(target: dict[str, Any]) -> dict[str, Any]:
    return {**schema(o={"$ref": "#/$defs/O"}), "$defs": {"O": target}}


@pytest.mark.parametrize(
    ("secrets", "given", "shown"),
    [
        (Secrets(schema(p=PASSWORD)), {"p": "x", "q": 1}, {"p": MASK, "q": 1}),
        (Secrets(schema(p={"type": "string", "writeOnly": True})), {"p": "x"}, {"p": MASK}),
        (Secrets(schema(p=PASSWORD)), {"p": None}, {"p": None}),
        (Secrets(schema(p=PASSWORD)), {"p": {"deep": 1}}, {"p": MASK}),
        (Secrets(schema(p={"anyOf": [PASSWORD, {"type": "null"}]})), {"p": "x"}, {"p": MASK}),
        (Secrets(schema(o=schema(p=PASSWORD))), {"o": {"p": "x", "q": 2}}, {"o": {"p": MASK, "q": 2}}),
        (Secrets(schema(l=listed(schema(p=PASSWORD)))), {"l": [{"p": 1}, {"q": 2}]}, {"l": [{"p": MASK}, {"q": 2}]}),
        (Secrets(schema(l=listed(PASSWORD))), {"l": ["x", "y"]}, {"l": [MASK, MASK]}),
        (Secrets(referring(schema(p=PASSWORD))), {"o": {"p": "x"}}, {"o": {"p": MASK}}),
        (Secrets(referring(PASSWORD)), {"o": "x"}, {"o": MASK}),
        (Secrets({}, frozenset({"token"})), {"token": 7, "a": {"token": "x"}}, {"token": MASK, "a": {"token": MASK}}),
        (Secrets({}, frozenset({"c.no"})), {"c": {"no": 1, "of": 3}, "no": 2}, {"c": {"no": MASK, "of": 3}, "no": 2}),
        (Secrets({}, frozenset({"cards.number"})), {"cards": [{"number": 1}]}, {"cards": [{"number": MASK}]}),
        (Secrets({}, everything=True), {"a": 1, "b": None, "c": [1]}, {"a": MASK, "b": None, "c": MASK}),
        (Secrets({"properties": []}), {"a": 1}, {"a": 1}),
        (Secrets(schema(a=7, b={"anyOf": 5}, c={"$ref": "#/x"})), {"a": 1, "b": 2, "c": []}, {"a": 1, "b": 2, "c": []}),
    ],
)  # fmt: skip
def test_it_masks_what_is_declared_secret(secrets: Secrets, given: Any, shown: Any) -> None:
    assert secrets.mask(given) == shown
    assert json.loads(secrets.mask_text(json.dumps(given))) == shown


def test_it_names_the_texts_that_it_masks() -> None:
    secrets = Secrets(schema(p=PASSWORD, l=listed(schema(p=PASSWORD)), n=PASSWORD), frozenset({"pin"}))
    given = {"p": {"deep": ["x", 7, True]}, "l": [{"p": "y"}, {"q": "z"}], "n": None, "pin": 4711, "q": 1}
    assert sorted(secrets.texts(given)) == ["4711", "7", "x", "y"]
    assert Secrets(schema(q={"type": "string"})).texts({"q": "x"}) == ()


def test_it_masks_a_text_that_it_cannot_read() -> None:
    assert Secrets(schema(p=PASSWORD)).mask_text('{"p": "hunt') == MASK
    assert Secrets(schema(p=PASSWORD)).mask_text("[1]") == MASK
    assert Secrets(schema(p={"type": "string"})).mask_text('{"p": "hunt') == '{"p": "hunt'


def test_it_ends_with_a_schema_that_refers_to_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "p": PASSWORD}}
    given: Any = {"p": "x"}
    for _ in range(200):
        given = {"next": given, "p": "x"}
    shown = json.dumps(Secrets({**node, "$defs": {"N": node}}).mask(given), ensure_ascii=False)
    assert '"x"' not in shown
    assert MASK in shown


def test_it_masks_calls_inside_messages() -> None:
    call = {"name": "refund", "arguments": '{"p": "hunter2"}', "tool_call_id": "c1"}
    other = {**call, "name": "other"}
    message = {"message_type": "approval_request_message", "tool_call": call, "tool_calls": [call, other]}
    shown = redact.message(message, {"refund": Secrets(schema(p=PASSWORD))})
    assert [json.loads(one["arguments"])["p"] for one in shown["tool_calls"]] == [MASK, "hunter2"]
    assert "hunter2" not in str(shown["tool_call"])
    assert message["tool_call"] == call
    assert redact.message(message, {}) is message


@pytest.mark.django_db
def test_it_masks_every_value_of_a_tool_that_is_gone() -> None:
    call = waiting({"order": 7, "password": "hunter2"})[0]
    assert redact.arguments_of(call) == {"order": 7, "password": MASK}
    ToolCall.objects.filter(pk=call.pk).update(tool=None)
    gone = ToolCall.objects.get(pk=call.pk)
    assert redact.arguments_of(gone) == {"order": MASK, "password": MASK}


@pytest.mark.django_db
def test_it_knows_what_is_secret_of_a_clients_tool() -> None:
    call = waiting({"p": "hunter2", "q": 1}, kind=CallKind.CLIENT)[0]
    run = call.step.run
    run.options = {"client_tools": [{"name": "refund", "parameters": schema(p=PASSWORD)}]}
    assert redact.arguments_of(call) == {"p": MASK, "q": 1}


@pytest.mark.django_db
def test_it_keeps_secrets_out_of_rows_sentences_and_the_note_of_an_edit() -> None:
    tool = refund_tool(secret_fields=["note"])
    call = waiting({"order": 7, "note": "s3cret", "password": "hunter2"}, tool=tool)[0]
    call.edited_arguments = '{"order": 7, "note": "s3cret too", "password": "hunter3"}'
    shown = str([approval_row(call), fields_of(call), title(call), sentence(call), _told_of_edit(call, "done")])
    assert "s3cret" not in shown
    assert "hunter" not in shown
    assert redact.masks(call)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("refund_order", "refund order"),
        ("refundOrder", "refund order"),
        ("sendHTTP-request", "send HTTP request"),
        ("HTTPGetWithAVeryLongName", "HTTP get with a very long name"),
        ("_x_", "x"),
        ("", ""),
    ],
)
def test_it_reads_names_as_words(name: str, words: str) -> None:
    assert human(name) == words
