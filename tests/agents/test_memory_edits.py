"""Memory changed by the built-in tools: limits, read-only blocks, labels."""

from __future__ import annotations

from typing import Any

import pytest

from agents.memory.blocks import BlockView, check_value
from agents.memory.builtins import BUILTINS, BuiltinResult
from agents.memory.edit import EditRefused, appended, inserted, replaced_all, replaced_once
from agents.models import AgentBlock, Block
from tests.agents.factories import make_agent
from tests.agents.memory import attach, call, value_of

TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_insert", {"label": "human", "new_string": "{}"}),
    ("memory_replace", {"label": "human", "old_string": "old", "new_string": "{}"}),
    ("core_memory_append", {"label": "human", "content": "{}"}),
    ("core_memory_replace", {"label": "human", "old_content": "old", "new_content": "{}"}),
]


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "line", "expected"),
    [
        ("", -1, "new"), ("", 0, "new"), ("a\nb", -1, "a\nb\nnew"), ("a\nb", 0, "new\na\nb"), ("a\nb", 1, "a\nnew\nb"),
        ("a\nb", 2, "a\nb\nnew"), ("a\nb", 3, None), ("a\nb", -2, None), ("", 1, None),
    ],
)  # fmt: skip
def test_it_inserts_after_a_line(value: str, line: int, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(EditRefused, match="insert_line must be between 0 and"):
            inserted(value, "new", line)
    else:
        assert inserted(value, "new", line) == expected


def test_it_appends_on_a_line_of_its_own() -> None:
    assert appended("", "x") == "x"
    assert appended("a", "x") == "a\nx"


@pytest.mark.parametrize(
    ("value", "old", "said"),
    [
        ("abc", "", "is empty"), ("abc", "x", "does not occur"), ("b\na\nb", "b", r"2 times \(lines 1, 3\)"),
        ("a\nb\na\nb", "a\nb", "occurs 2 times. Give"),
    ],
)  # fmt: skip
def test_it_replaces_only_what_is_there_once(value: str, old: str, said: str) -> None:
    with pytest.raises(EditRefused, match=said):
        replaced_once(value, old, "new")


def test_it_replaces() -> None:
    assert replaced_once("Name: Ann.", "Ann", "Bob") == "Name: Bob."
    assert replaced_all("b a b", "b", "") == " a "
    with pytest.raises(EditRefused, match="does not occur"):
        replaced_all("abc", "x", "y")


@pytest.mark.parametrize(
    ("value", "fits"), [("x" * 100, True), ("x" * 101, False), ("\U0001f600" * 100, True), ("\U0001f600" * 101, False)]
)
def test_it_counts_characters_not_bytes(value: str, fits: bool) -> None:
    for block in (Block(label="human", limit=100), BlockView("human", limit=100)):
        assert (check_value(block, value) is None) is fits


# --- tools ----------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "arguments"), TOOLS)
@pytest.mark.parametrize(("count", "fits"), [(90, True), (101, False)])
def test_it_keeps_the_limit_on_every_tool(name: str, arguments: dict[str, Any], count: int, fits: bool) -> None:
    agent = make_agent()
    block = attach(agent, limit=100)
    given = {key: value.replace("{}", "\U0001f600" * count) for key, value in arguments.items()}
    result = call(agent, name, **given)
    assert result.ok is fits
    if fits:
        assert value_of(block)[1] == 2
        assert result.blocks_changed == (block.pk,)
        assert block.value in result.text
    else:
        assert "at most 100 characters" in result.text
        assert result.blocks_changed == ()
        assert value_of(block) == ("old", 1)


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "arguments"), TOOLS)
def test_it_never_writes_a_read_only_block(name: str, arguments: dict[str, Any]) -> None:
    agent = make_agent()
    block = attach(agent, read_only=True)
    result = call(agent, name, **arguments)
    assert not result.ok
    assert "read-only" in result.text
    assert value_of(block) == ("old", 1)


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "arguments"), TOOLS)
def test_it_names_the_blocks_that_there_are(name: str, arguments: dict[str, Any]) -> None:
    agent = make_agent()
    attach(agent, label="persona")
    attach(make_agent("other"), label="human")
    result = call(agent, name, **arguments)
    assert not result.ok
    assert "'human'" in result.text
    assert "The blocks of this agent: 'persona'" in result.text


@pytest.mark.django_db
def test_it_finds_a_renamed_block_under_its_new_label() -> None:
    first, second = make_agent("a"), make_agent("b")
    block = attach(first)
    AgentBlock.objects.create(agent=second, block=block, label="human")
    Block.objects.filter(pk=block.pk).update(label="person")
    for number, agent in enumerate((first, second)):
        assert not call(agent, "core_memory_append", label="human", content="x").ok
        assert call(agent, "core_memory_append", label="person", content=f"by {number}").ok
    assert value_of(block)[0] == "old\nby 0\nby 1"


@pytest.mark.django_db
def test_it_saves_clean_text() -> None:
    agent = make_agent()
    block = attach(agent)
    assert call(agent, "core_memory_append", label="human", content="a\0b\ud83d").ok
    assert value_of(block)[0] == "old\nab\ufffd"


@pytest.mark.django_db
def test_it_takes_no_version_for_an_edit_that_changes_nothing() -> None:
    agent = make_agent()
    block = attach(agent)
    assert call(agent, "memory_replace", label="human", old_string="old", new_string="old").ok
    assert value_of(block) == ("old", 1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_insert", {"label": "human"}), ("memory_insert", {"label": "human", "new_string": 7}),
        ("memory_insert", {"label": "human", "new_string": "x", "insert_line": "top"}), ("send_message", {}),
        ("send_message", {"message": " \n"}),
        ("memory_insert", {"label": "human", "new_string": "x", "insert_line": 9}),
    ],
)  # fmt: skip
def test_it_answers_bad_arguments_with_an_error(name: str, arguments: dict[str, Any]) -> None:
    agent = make_agent()
    block = attach(agent)
    result = call(agent, name, **arguments)
    assert not result.ok
    assert result.text.startswith("Error: ")
    assert value_of(block) == ("old", 1)


@pytest.mark.django_db
def test_it_sends_messages() -> None:
    assert call(make_agent(), "send_message", message="Hello") == BuiltinResult(True, "Message sent.")


def test_it_describes_every_parameter() -> None:
    for name, entry in BUILTINS.items():
        schema = entry.builtin.json_schema
        assert schema["name"] == name
        parameters = schema["parameters"]
        assert all(field["description"] for field in parameters["properties"].values())
        assert set(parameters["required"]) <= set(parameters["properties"])
