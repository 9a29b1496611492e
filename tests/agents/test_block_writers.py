"""Many writers at once: on one block, on one agent's tools, on one tool name. Nothing is lost, nothing is a 500."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from agents.memory.edit import edit_block
from agents.models import Agent, Block
from tests.rest import CLIENT, get, new_agent, new_block, new_tool, patch
from tests.tools.sources import SECRET_CODE, tool_named
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 8


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each job gave, all of them started together in threads of their own."""

    def run(job: Callable[[], Any]) -> Any:
        try:
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def send(method: str, path: str, body: Any = None) -> Callable[[], int]:
    """A job that sends a request and gives its status."""

    def job() -> int:
        data = "" if body is None else json.dumps(body)
        return int(CLIENT.generic(method, f"/v1/{path}", data, content_type="application/json").status_code)

    return job


def test_it_never_loses_an_edit_of_a_shared_block() -> None:
    block = new_block("shared", "start")
    for _ in range(3):
        new_agent(block_ids=[block["id"]])
    agents = list(Agent.objects.all())

    def append(number: int) -> Callable[[], Any]:
        return lambda: edit_block(agents[number % 3], "shared", lambda value: f"{value}\nline {number}.")

    describe = [send("PATCH", f"blocks/{block['id']}", {"description": f"d{n}"}) for n in range(WRITERS)]
    answers = at_once([*describe, *map(append, range(WRITERS))])
    assert set(answers[:WRITERS]) == {200}
    row = Block.objects.get()
    assert sorted(row.value.split("\n")) == sorted(["start", *(f"line {n}." for n in range(WRITERS))])
    assert row.version == 1 + 2 * WRITERS


def test_it_applies_every_patch_of_a_value() -> None:
    block = new_block("shared", "start")
    where = f"blocks/{block['id']}"
    assert set(at_once([send("PATCH", where, {"value": f"v{n}"}) for n in range(WRITERS)])) == {200}
    assert get(where)["value"] in {f"v{n}" for n in range(WRITERS)}
    assert Block.objects.get().version == 1 + WRITERS


def test_it_keeps_every_rule_of_an_agent() -> None:
    tools = [new_tool(tool_named(f"t{n}"), default_requires_approval=True)["id"] for n in range(4)]
    agent = new_agent()["id"]
    attach = [send("PATCH", f"agents/{agent}/tools/attach/{tool}") for tool in [*tools, *tools]]
    toggle = [send("PATCH", f"agents/{agent}/tools/approval/x{n}", {"requires_approval": True}) for n in range(4)]
    assert set(at_once([*attach, *toggle])) == {200}
    shown = get(f"agents/{agent}")
    assert len(shown["tools"]) == 4
    assert len(shown["tool_rules"]) == 8


def test_it_attaches_a_label_once() -> None:
    agent = new_agent()["id"]
    blocks = [new_block("same")["id"] for _ in range(4)]
    jobs = [send("PATCH", f"agents/{agent}/core-memory/blocks/attach/{block}") for block in blocks]
    assert sorted(at_once(jobs)) == [200, 409, 409, 409]
    assert len(get(f"agents/{agent}")["blocks"]) == 1


def test_it_stores_a_tool_name_once() -> None:
    body = {"source_code": SECRET_CODE}
    assert set(at_once([send("PUT", "tools/", body) for _ in range(WRITERS)])) == {200}
    assert Tool.objects.filter(name="get_secret_code_tool").count() == 1


def test_it_forgets_a_tool_that_is_attached_meanwhile() -> None:
    tool = new_tool(SECRET_CODE, default_requires_approval=True)["id"]
    agents = [new_agent()["id"] for _ in range(4)]
    attach = [send("PATCH", f"agents/{agent}/tools/attach/{tool}") for agent in agents]
    answers = at_once([*attach[:2], send("DELETE", f"tools/{tool}"), *attach[2:]])
    assert set(answers) <= {200, 404, 409}
    for agent in agents:
        assert get(f"agents/{agent}")["tools"] == []
        assert get(f"agents/{agent}")["tool_rules"] == []


def test_it_renames_while_others_attach() -> None:
    one = new_block("one")["id"]
    agents = [new_agent(memory_blocks=[{"label": "two", "value": ""}])["id"] for _ in range(4)]
    attach = [send("PATCH", f"agents/{agent}/core-memory/blocks/attach/{one}") for agent in agents]
    answers = at_once([*attach, send("PATCH", f"blocks/{one}", {"label": "two"})])
    assert set(answers) <= {200, 409}
    label = Block.objects.get(uuid=one.removeprefix("block-")).label
    for agent in agents:
        labels = [block["label"] for block in get(f"agents/{agent}")["blocks"]]
        assert len(labels) == len(set(labels))
        for found in labels:
            assert get(f"agents/{agent}/core-memory/blocks/{found}")["label"] == found
    assert patch(f"blocks/{one}", {"description": "x"})["label"] == label
