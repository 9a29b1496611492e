"""Memory blocks through the REST API: fields, limits, labels, renaming, attaching, lists."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from agents.memory.edit import EditRefused, edit_block
from agents.models import Agent, Block
from tests.rest import UNKNOWN, delete, get, new_agent, new_block, patch, post

pytestmark = pytest.mark.django_db

FIELDS = {
    *("value", "limit", "project_id", "template_name", "is_template", "template_id", "base_template_id"),
    *("deployment_id", "entity_id", "preserve_on_migration", "label", "read_only", "description", "metadata"),
    *("hidden", "id", "created_by_id", "last_updated_by_id", "tags", "name"),
}
SENT: dict[str, Any] = {
    "label": "persona",
    "value": "  I am calm.\n",
    "limit": 5000,
    "project_id": "p",
    "template_name": "tn",
    "is_template": True,
    "template_id": "ti",
    "base_template_id": "bt",
    "deployment_id": "d",
    "entity_id": "e",
    "preserve_on_migration": True,
    "read_only": True,
    "description": "Who I am.",
    "metadata": {"a": 1},
    "hidden": True,
    "tags": ["x"],
    "name": "n",
}


def test_it_answers_with_every_field() -> None:
    block = post("blocks/", SENT)
    assert block.keys() == FIELDS
    assert {name: block[name] for name in SENT} == SENT
    assert get(f"blocks/{block['id']}") == block
    assert new_block("other", "v").keys() == FIELDS


def test_it_describes_well_known_labels() -> None:
    assert new_block("human")["description"]
    assert new_block("other")["description"] is None
    assert new_block()["limit"] == 100_000


@pytest.mark.parametrize("name", sorted(SENT))
def test_it_changes_one_field(name: str) -> None:
    block = new_block("before", "v")
    after = patch(f"blocks/{block['id']}", {name: SENT[name]})
    assert after == {**block, name: SENT[name]}
    assert patch(f"blocks/{block['id']}", {name: None}) == after


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"value": "x"}, "label"),
    ({"label": "a"}, "value"),
    ({"label": "a", "value": None}, "value"),
    ({"label": "a", "value": "x" * 101, "limit": 100}, "100"),
    ({"label": "a", "value": "x", "limit": 0}, "limit"),
    ({"label": "a", "value": "x", "limit": 10**12}, "limit"),
    ({"label": "a", "value": "x", "metadata": []}, "metadata"),
    *(({"label": label, "value": "x"}, "label") for label in ("", " ", "/a", "a/", "a//b", ".", "..", "a/../b")),
    *(({"label": label, "value": "x"}, "label") for label in ("a\nb", "attach/a", "detach/a", "x" * 201)),
]


@pytest.mark.parametrize(("body", "text"), REFUSED)
def test_it_refuses_what_does_not_fit(body: dict[str, Any], text: str) -> None:
    assert text in post("blocks/", body, expect=422)["detail"]
    assert not Block.objects.exists()


@pytest.mark.parametrize("path", ["blocks/{id}", "agents/{agent}/core-memory/blocks/small"])
def test_it_checks_the_limit_on_every_path(path: str) -> None:
    agent = new_agent(memory_blocks=[{"label": "small", "value": "old", "limit": 100}])
    block = agent["blocks"][0]
    where = path.format(id=block["id"], agent=agent["id"])
    for body in ({"value": "x" * 101}, {"limit": 2}, {"value": "x" * 5, "limit": 4}):
        assert "holds at most" in patch(where, body, expect=422)["detail"]
    assert get(f"blocks/{block['id']}") == block
    assert patch(where, {"value": "😀" * 100})["value"] == "😀" * 100
    assert patch(where, {"value": "x" * 101, "limit": 101})["limit"] == 101


LABELS = ["system/persona", "a b", "what?", "a#b", "näm€", "100%", "a%20b", "a+b", "deep/er/still", "quote'\"", "count"]


@pytest.mark.parametrize("label", LABELS)
def test_it_reaches_a_label_by_its_url(label: str) -> None:
    agent = new_agent(memory_blocks=[{"label": label, "value": "v"}, {"label": "other", "value": ""}])["id"]
    where = f"agents/{agent}/core-memory/blocks/{quote(label, safe='')}"
    assert get(where)["label"] == label
    assert get(where + "/")["label"] == label
    assert patch(where, {"value": "new"})["value"] == "new"
    if "/" in label:
        assert get(f"agents/{agent}/core-memory/blocks/{label}")["value"] == "new"


def test_it_renames_for_all_agents() -> None:
    block = new_block("human", "x")
    one, two = (new_agent(block_ids=[block["id"]])["id"] for _ in range(2))
    patch(f"blocks/{block['id']}", {"label": "person"})
    for agent in (one, two):
        assert get(f"agents/{agent}/core-memory/blocks/person")["id"] == block["id"]
        assert "human" in get(f"agents/{agent}/core-memory/blocks/human", expect=404)["detail"]
        assert [found["label"] for found in get(f"agents/{agent}")["blocks"]] == ["person"]
    row = Agent.objects.first()
    assert row is not None
    assert edit_block(row, "person", lambda value: value + "y").value == "xy"
    with pytest.raises(EditRefused, match="person"):
        edit_block(row, "human", str.upper)


def test_it_refuses_a_label_that_an_agent_has_already() -> None:
    one, two = new_block("one"), new_block("two")
    agent = new_agent(block_ids=[one["id"], two["id"]])["id"]
    assert "'two'" in patch(f"agents/{agent}/core-memory/blocks/one", {"label": "two"}, expect=409)["detail"]
    assert get(f"blocks/{one['id']}") == one
    third = new_block("two")
    patch(f"agents/{agent}/core-memory/blocks/attach/{third['id']}", expect=409)


def test_it_attaches_and_detaches() -> None:
    agent, block = new_agent()["id"], new_block("human", "x")
    where = f"agents/{agent}/core-memory/blocks"
    for _ in range(2):
        assert patch(f"{where}/attach/{block['id']}")["blocks"] == [block]
    assert get(f"agents/{agent}/core-memory")["blocks"] == [block]
    assert patch(f"{where}/detach/{block['id']}")["blocks"] == []
    patch(f"{where}/detach/{block['id']}", expect=404)
    patch(f"{where}/attach/block-{UNKNOWN}", expect=404)
    patch(f"{where}/attach/block-1", expect=422)
    get(f"{where}/human", expect=404)


def test_it_deletes_a_block_in_use() -> None:
    block = new_block("human", "x")
    agent = new_agent(block_ids=[block["id"]])["id"]
    assert delete(f"blocks/{block['id']}") is None
    assert get(f"agents/{agent}")["blocks"] == []
    get(f"blocks/{block['id']}", expect=404)
    delete(f"blocks/{block['id']}", expect=404)
    get("blocks/block-1", expect=422)


@pytest.fixture
def three() -> list[str]:
    """The ids of the blocks b0 (two agents), b1 (one), b2 (none)."""
    made = [
        new_block(f"b{n}", f"value {n}", description=f"Text {n}", tags=["all", f"t{n}"], name=f"n{n}") for n in range(3)
    ]
    ids = [str(block["id"]) for block in made]
    new_agent(block_ids=ids[:1])
    new_agent(block_ids=ids[:2])
    patch(f"blocks/{ids[2]}", {"is_template": True, "project_id": "p"})
    return ids


LISTS: list[tuple[dict[str, Any], str]] = [
    ({}, "012"),
    ({"order": "desc"}, "210"),
    ({"limit": 1}, "0"),
    ({"after": 0}, "12"),
    ({"before": 2}, "01"),
    ({"after": 2, "order": "desc"}, "10"),
    ({"label": "b1"}, "1"),
    ({"label": "b"}, ""),
    ({"name": "n2"}, "2"),
    ({"project_id": "p"}, "2"),
    ({"templates_only": "true"}, "2"),
    ({"label_search": "B"}, "012"),
    ({"value_search": "VALUE 1"}, "1"),
    ({"description_search": "text 0"}, "0"),
    ({"tags": ["t0", "t2"]}, "02"),
    ({"tags": ["all", "t1"], "match_all_tags": "true"}, "1"),
    ({"connected_to_agents_count_gt": 0}, "01"),
    ({"connected_to_agents_count_lt": 2}, "12"),
    ({"connected_to_agents_count_eq": [0, 2]}, "02"),
    ({"identity_id": "identity-1"}, ""),
    ({"after": "block-" + UNKNOWN}, "012"),
]


@pytest.mark.parametrize(("params", "shown"), LISTS)
def test_it_lists(three: list[str], params: dict[str, Any], shown: str) -> None:
    for cursor in params.keys() & {"after", "before"}:
        if isinstance(params[cursor], int):
            params = {**params, cursor: three[params[cursor]]}
    assert [block["label"] for block in get("blocks/", **params)] == [f"b{n}" for n in shown]


@pytest.mark.parametrize("params", [{"limit": "x"}, {"connected_to_agents_count_gt": "x"}, {"templates_only": "x"}])
def test_it_refuses_bad_parameters(params: dict[str, Any]) -> None:
    get("blocks/", expect=422, **params)


def test_it_counts_and_lists_an_agents_blocks(three: list[str]) -> None:
    assert get("blocks/count") == 3
    agent = new_agent(block_ids=three[:2])["id"]
    assert [block["label"] for block in get(f"agents/{agent}/core-memory/blocks")] == ["b1", "b0"]
    assert [block["label"] for block in get(f"agents/{agent}/core-memory/blocks", order="asc", limit=1)] == ["b0"]
