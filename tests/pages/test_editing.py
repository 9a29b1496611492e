"""Approve with changes: nothing that nobody touched may change, and nothing that does not fit may run."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from agents.models import CallState, Decision, DecisionKind, ToolCall
from tests.pages.rows import decide, make_tool, text_of, waiting_call

pytestmark = pytest.mark.django_db

EVERYTHING: dict[str, Any] = {
    "whole": 3,
    "real": 1.0,
    "big": 2**53 + 1,
    "tiny": 1e-7,
    "yes": True,
    "no": False,
    "nothing": None,
    "empty": "",
    "blank": "  ",
    "lines": "\n first\r\nsecond\rthird\n",
    "unicode": "Zoë — 漢字 🦊 \u202eevil",
    "markup": "</textarea><script>alert(1)</script>&amp;",
    "colour": "red",
    "level": 2,
    "list": [1, 1.0, [None, {"a": []}], "x"],
    "object": {"b": 1, "a": {"c": 2**60, "d": 0.1}},
    "anything": {"z": [True]},
    "either": 5,
    "extra_name": "not in the schema",
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": True,
    "properties": {
        "whole": {"type": "integer"},
        "real": {"type": "number"},
        "big": {"type": "integer"},
        "tiny": {"type": "number"},
        "yes": {"type": "boolean"},
        "no": {"type": "boolean"},
        "nothing": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "empty": {"type": "string"},
        "blank": {"type": "string"},
        "lines": {"type": "string"},
        "unicode": {"type": "string"},
        "markup": {"type": "string"},
        "colour": {"enum": ["red", "blue"]},
        "level": {"enum": [1, 2, 3], "type": "integer"},
        "list": {"type": "array"},
        "object": {"$ref": "#/$defs/Thing"},
        "anything": {},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "absent_text": {"type": "string"},
        "absent_number": {"type": "integer"},
        "absent_flag": {"type": "boolean"},
        "absent_nullable": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    },
    "required": ["whole", "real"],
    "$defs": {"Thing": {"type": "object", "properties": {"b": {"type": "integer"}}}},
}


class Form(HTMLParser):
    """What a browser would send of the edit form, untouched."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.sent: dict[str, str] = {}
        self.inside, self.area, self.choice = False, "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.inside = given.get("id") == "edit-form"
        elif not self.inside:
            return
        elif tag == "input" and given.get("name"):
            self.sent[given["name"]] = given.get("value", "")
        elif tag == "textarea":
            self.area, self.sent[given["name"]] = given["name"], ""
        elif tag == "select":
            self.choice = given["name"]
        elif tag == "option" and ("selected" in given or self.choice not in self.sent):
            self.sent[self.choice] = given["value"]

    def handle_data(self, data: str) -> None:
        if self.area:
            self.sent[self.area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            text = self.sent[self.area].removeprefix("\n")  # browsers drop one line end after the tag
            self.sent[self.area] = re.sub(r"\r\n|\r|\n", "\r\n", text)
            self.area = ""


def form_of(client: Client, call: ToolCall) -> dict[str, str]:
    return Form(text_of(client.get(f"/approvals/{call.wire_id}/?panel=edit"))).sent


def everything() -> ToolCall:
    return waiting_call(EVERYTHING, tool=make_tool("everything", SCHEMA))


def fresh(call: ToolCall) -> ToolCall:
    return ToolCall.objects.get(pk=call.pk)


def test_it_runs_identical_json_when_nothing_was_touched(operator: Client) -> None:
    call = everything()
    sent = form_of(operator, call)
    response = operator.post(f"/approvals/{call.wire_id}/decide/", sent)
    assert response.status_code == 302, text_of(response)
    assert fresh(call).edited_arguments is None
    assert fresh(call).runs_with == call.arguments
    assert Decision.objects.get(call=call).kind == DecisionKind.APPROVE


CHANGES: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"arg:whole": "4"}, {"whole": 4}),
    ({"arg:real": "2"}, {"real": 2}),
    ({"arg:real": "2.50"}, {"real": 2.5}),
    ({"arg:big": str(2**70)}, {"big": 2**70}),
    ({"arg:yes": "false"}, {"yes": False}),
    ({"arg:nothing": "now a text"}, {"nothing": "now a text"}),
    ({"arg:nothing": "now a text", "how:nothing": "null"}, {"nothing": "now a text"}),
    ({"how:nothing": "value", "arg:nothing": ""}, {"nothing": ""}),
    ({"arg:empty": "a\r\nb"}, {"empty": "a\nb"}),
    ({"arg:colour": '"blue"'}, {"colour": "blue"}),
    ({"arg:level": "3"}, {"level": 3}),
    ({"arg:list": "[1, 2.0]"}, {"list": [1, 2.0]}),
    ({"arg:object": '{"b": 7}'}, {"object": {"b": 7}}),
    ({"arg:either": '"text"'}, {"either": "text"}),
    ({"how:absent_text": "value"}, {"absent_text": ""}),
    ({"arg:absent_number": "9"}, {"absent_number": 9}),
    ({"arg:absent_flag": "true"}, {"absent_flag": True}),
    ({"arg:absent_nullable": "null"}, {"absent_nullable": None}),
]


@pytest.mark.parametrize(("typed", "expected"), CHANGES, ids=[str(typed) for typed, _ in CHANGES])
def test_it_changes_only_what_was_changed(
    operator: Client, typed: Mapping[str, str], expected: Mapping[str, Any]
) -> None:
    call = everything()
    response = operator.post(f"/approvals/{call.wire_id}/decide/", {**form_of(operator, call), **typed})
    assert response.status_code == 302, text_of(response)
    ran = json.loads(fresh(call).runs_with)
    assert json.dumps(ran, sort_keys=True) == json.dumps({**EVERYTHING, **expected}, sort_keys=True)
    decision = Decision.objects.get(call=call)
    assert (decision.kind, decision.before) == (DecisionKind.EDIT, call.arguments)


def test_it_leaves_out_what_is_left_out(operator: Client) -> None:
    call = everything()
    operator.post(
        f"/approvals/{call.wire_id}/decide/", {**form_of(operator, call), "how:empty": "absent", "arg:yes": "absent"}
    )
    assert json.loads(fresh(call).runs_with).keys() == EVERYTHING.keys() - {"empty", "yes"}


WRONG = [
    ("arg:whole", "four", "A whole number is expected."),
    ("arg:whole", "4.5", "A whole number is expected."),
    ("arg:whole", "", "A whole number is expected."),
    ("arg:real", "1e999", "A number is expected"),
    ("arg:real", "true", "A number is expected"),
    ("arg:list", "[1,", "This is not JSON"),
    ("arg:list", '{"a": 1}', "must be a list"),
    ("arg:object", '{"b": "x"}', "must be an integer"),
    ("arg:colour", '"green"', "must be one of"),
    ("how:whole", "absent", "This argument is required."),
]


@pytest.mark.parametrize(("field", "typed", "told"), WRONG, ids=[f"{field}={typed}" for field, typed, _ in WRONG])
def test_it_refuses_beside_the_field_what_does_not_fit(operator: Client, field: str, typed: str, told: str) -> None:
    call = everything()
    response = operator.post(f"/approvals/{call.wire_id}/decide/", {**form_of(operator, call), field: typed})
    page = text_of(response)
    assert response.status_code == 422
    name = re.escape(field.partition(":")[2])
    beside = re.search(rf'name="arg:{name}".*?</div>\s*</div>', page, re.DOTALL)
    assert beside is not None
    assert told in html.unescape(beside[0])
    assert 'aria-invalid="true"' in beside[0]
    assert fresh(call).state == CallState.PENDING
    assert Decision.objects.count() == 0


def test_it_keeps_what_was_typed_when_a_field_is_wrong(operator: Client) -> None:
    call = everything()
    typed = {**form_of(operator, call), "arg:empty": "my text", "arg:whole": "four"}
    page = text_of(operator.post(f"/approvals/{call.wire_id}/decide/", typed))
    assert "my text" in page
    assert 'value="four"' in page


def test_it_keeps_hidden_values_that_nobody_replaced(operator: Client) -> None:
    tool = make_tool(
        "login",
        {"type": "object", "properties": {"password": {"type": "string"}, "user": {"type": "string"}}},
        secret_fields=["password"],
    )
    call = waiting_call({"password": "hunter2", "user": "bob"}, tool=tool)
    page = text_of(operator.get(f"/approvals/{call.wire_id}/?panel=edit"))
    assert "hunter2" not in page
    operator.post(f"/approvals/{call.wire_id}/decide/", {**form_of(operator, call), "arg:user": "ann"})
    assert json.loads(fresh(call).runs_with) == {"password": "hunter2", "user": "ann"}


def test_it_replaces_hidden_values(operator: Client) -> None:
    tool = make_tool(
        "login", {"type": "object", "properties": {"password": {"type": "string"}}}, secret_fields=["password"]
    )
    call = waiting_call({"password": "hunter2"}, tool=tool)
    operator.post(f"/approvals/{call.wire_id}/decide/", {**form_of(operator, call), "arg:password": "new one"})
    assert json.loads(fresh(call).runs_with) == {"password": "new one"}


def test_it_shows_what_was_before_and_after(operator: Client, call: ToolCall) -> None:
    decide(operator, call, "edit", {"arg:amount": "12.5"})
    page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
    assert "<del>480.0</del>" in page
    assert "12.5" in page
    assert "Approved with changes" in page or "approved with changes" in page
