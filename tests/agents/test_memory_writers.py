"""Memory with more than one writer: nothing is lost, and what an uploaded tool changed is saved whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from agents.memory import edit
from agents.memory.blocks import block_views
from agents.memory.builtins import BuiltinResult, run
from agents.memory.edit import apply_block_values
from agents.memory.state import agent_state, block_versions
from agents.models import Agent, AgentBlock, Block
from tests.agents.factories import default_of, make_agent
from tests.agents.memory import NOW, attach, call, value_of


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
