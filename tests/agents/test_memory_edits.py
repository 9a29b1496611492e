"""Memory changed by tools: limits, read-only blocks, labels, and two writers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection, transaction

from agents.memory import edit
from agents.memory.blocks import BlockView, block_views, check_value
from agents.memory.builtins import BUILTINS, BuiltinResult, run
from agents.memory.edit import EditRefused, appended, apply_block_values, inserted, replaced_all, replaced_once
from agents.memory.state import agent_state, block_versions
from agents.models import Agent, AgentBlock, Block
from tests.agents.factories import default_of, make_agent

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_insert", {"label": "human", "new_string": "{}"}),
    ("memory_replace", {"label": "human", "old_string": "old", "new_string": "{}"}),
    ("core_memory_append", {"label": "human", "content": "{}"}),
    ("core_memory_replace", {"label": "human", "old_content": "old", "new_content": "{}"}),
]


def attach(agent: Agent, label: str = "human", value: str = "old", **fields: Any) -> Block:
    block = Block.objects.create(label=label, value=value, **fields)
    AgentBlock.objects.create(agent=agent, block=block, label=label)
    return block


def call(agent: Agent, name: str, **arguments: Any) -> BuiltinResult:
    with transaction.atomic():
        return run(name, arguments, agent, default_of(agent), now=NOW)


def value_of(block: Block) -> tuple[str, int]:
    block.refresh_from_db()
    return block.value, block.version


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


# --- two writers ----------------------------------------------------------------------------------


def write_between(monkeypatch: pytest.MonkeyPatch, block: Block, times: int) -> None:
    """Let somebody else write just before the edit is saved, ``times`` times."""
    save, left = edit.save_value, iter(range(times))

    def late(read: Block, value: str) -> bool:
        if (number := next(left, None)) is not None:
            other = Block.objects.get(pk=block.pk)
            assert save(other, f"{other.value}\nother {number}")
        return save(read, value)

    monkeypatch.setattr(edit, "save_value", late)


@pytest.mark.django_db
def test_it_edits_what_somebody_else_just_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make_agent()
    block = attach(agent)
    write_between(monkeypatch, block, 2)
    assert call(agent, "core_memory_append", label="human", content="mine").ok
    assert value_of(block) == ("old\nother 0\nother 1\nmine", 4)


@pytest.mark.django_db
def test_it_saves_nothing_when_others_keep_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make_agent()
    block = attach(agent)
    write_between(monkeypatch, block, 3)
    result = call(agent, "core_memory_append", label="human", content="mine")
    assert not result.ok
    assert "Nothing was saved" in result.text
    assert "mine" not in value_of(block)[0]


@pytest.mark.django_db(transaction=True)
def test_it_loses_no_append_of_many_writers() -> None:
    agent = make_agent()
    block = attach(agent, value="")
    conversation = default_of(agent)
    results: list[BuiltinResult] = []

    def append(number: int) -> None:
        try:
            with transaction.atomic():
                given = {"label": "human", "content": f"line {number}"}
                results.append(run("core_memory_append", given, agent, conversation, now=NOW))
        finally:
            connection.close()

    threads = [threading.Thread(target=append, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.ok for result in results] == [True] * 6
    assert sorted(value_of(block)[0].split("\n")) == [f"line {number}" for number in range(6)]


# --- uploaded tools -------------------------------------------------------------------------------


@pytest.mark.django_db
def test_it_saves_what_a_tool_changed() -> None:
    agent = make_agent()
    human, persona = attach(agent), attach(agent, "persona", "kind")
    versions = block_versions(block_views(agent))
    assert apply_block_values(agent, {"human": "banana", "persona": "kind"}, versions) is None
    assert value_of(human) == ("banana", 2)
    assert value_of(persona) == ("kind", 1)
    assert apply_block_values(agent, {}, {}) is None


def _too_long(agent: Agent) -> dict[str, str]:
    Block.objects.filter(label="persona").update(limit=3)
    return {"human": "banana", "persona": "long"}


def _read_only(agent: Agent) -> dict[str, str]:
    Block.objects.filter(label="persona").update(read_only=True)
    return {"human": "banana", "persona": "new"}


def _changed_since(agent: Agent) -> dict[str, str]:
    assert call(agent, "core_memory_append", label="persona", content="by another").ok
    return {"human": "banana", "persona": "new"}


def _detached(agent: Agent) -> dict[str, str]:
    AgentBlock.objects.filter(label="persona").delete()
    return {"human": "banana", "persona": "new"}


def _never_had(agent: Agent) -> dict[str, str]:
    attach(make_agent("other"), "secret")
    return {"human": "banana", "secret": "new"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (_too_long, "at most 3 characters"), (_read_only, "read-only"), (_changed_since, "changed by somebody else"),
        (_detached, "No memory block is labelled 'persona'"), (_never_had, "No memory block is labelled 'secret'"),
    ],
)  # fmt: skip
def test_it_saves_all_of_it_or_nothing(prepare: Callable[[Agent], dict[str, str]], said: str) -> None:
    agent = make_agent()
    human = attach(agent)
    attach(agent, "persona", "kind")
    versions = block_versions(block_views(agent))
    refusal = apply_block_values(agent, prepare(agent), versions)
    assert refusal is not None
    assert said in refusal
    assert value_of(human) == ("old", 1)


@pytest.mark.django_db
def test_it_refuses_a_block_that_the_tool_did_not_get() -> None:
    agent = make_agent()
    human = attach(agent)
    assert apply_block_values(agent, {"human": "x"}, {}) is not None
    assert value_of(human) == ("old", 1)


@pytest.mark.django_db
def test_it_gives_tools_the_agent_without_secrets() -> None:
    agent = make_agent(timezone=None)
    block = attach(agent, description="who")
    state = agent_state(agent, block_views(agent))
    assert state["id"] == agent.wire_id
    assert state["timezone"] == "UTC"
    assert state["memory"]["blocks"] == [
        {
            "id": block.wire_id,
            "label": "human",
            "value": "old",
            "limit": 100_000,
            "description": "who",
            "read_only": False,
        }
    ]
