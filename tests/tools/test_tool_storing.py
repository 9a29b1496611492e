"""Tools stored, stored again, changed, renamed and deleted through the REST API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest import UNKNOWN, delete, get, new_tool, patch, post, put
from tests.tools.sources import FAILS, ROLL_DICE, SECRET_CODE, tool_named

pytestmark = pytest.mark.django_db

FIELDS = {
    *("id", "tool_type", "description", "source_type", "name", "tags", "source_code", "json_schema"),
    *("args_json_schema", "return_char_limit", "pip_requirements", "npm_requirements"),
    *("default_requires_approval", "enable_parallel_execution", "created_by_id", "last_updated_by_id"),
    *("metadata_", "metadata", "project_id"),
}


def test_it_answers_with_every_field() -> None:
    tool = new_tool(SECRET_CODE, default_requires_approval=True)
    assert tool.keys() >= FIELDS
    assert tool["name"] == "get_secret_code_tool"
    assert tool["tool_type"] == "custom"
    assert tool["source_type"] == "python"
    assert tool["description"] == "Gives the code of a text."
    assert tool["default_requires_approval"] is True
    assert tool["args_json_schema"] == {}
    assert tool["return_char_limit"] == 50_000
    assert len(tool["metadata_"]["tool_hash"]) == 12
    assert tool["json_schema"]["parameters"]["required"] == ["input_text"]


@pytest.mark.parametrize("send", [put, post])
def test_it_keeps_what_is_not_sent_again(send: Any) -> None:
    first = new_tool(SECRET_CODE, default_requires_approval=True, tags=["a"], return_char_limit=99)
    body = {"source_code": SECRET_CODE, "args_json_schema": None, "default_requires_approval": None}
    again = send("tools/", body)
    assert again["id"] == first["id"]
    assert (again["default_requires_approval"], again["tags"], again["return_char_limit"]) == (True, ["a"], 99)
    assert send("tools/", {**body, "default_requires_approval": False})["default_requires_approval"] is False
    assert get("tools/count") == len(get("tools/", limit=1000))


SOURCES = [
    ("def x(:\n  pass", 400, "Failed to parse source code"),
    ("def no_doc(a: str) -> str:\n    return a", 400, "Function no_doc missing docstring"),
    ('def no_types(a):\n    """Does x.\n\n    Args:\n        a: some\n    """\n', 400, "'a' in function 'no_types'"),
    ("x = 1", 400, "No functions found in source code"),
    ("", 400, "No functions found in source code"),
    (tool_named("n" * 65), 400, "not valid"),
    (tool_named("näm"), 400, "not valid"),
    (tool_named("send_message"), 400, "built-in"),
    (None, 422, "source_code"),
    (7 * [1], 422, "source_code"),
]


@pytest.mark.parametrize(("source", "status", "text"), SOURCES)
@pytest.mark.parametrize("send", [put, post])
def test_it_refuses_a_source_that_makes_no_tool(send: Any, source: Any, status: int, text: str) -> None:
    answer = send("tools/", {"source_code": source}, expect=status)
    assert text in answer["detail"]
    assert isinstance(answer["detail"], str)


def test_it_refuses_a_body_without_source() -> None:
    assert "source_code" in put("tools/", {}, expect=422)["detail"]
    put("tools/", [1], expect=422)


def test_it_takes_a_schema_that_comes_along() -> None:
    schema = {"name": "bare", "description": "d", "parameters": {"type": "object", "properties": {}}}
    tool = new_tool("def bare():\n    return 1\n", json_schema=schema)
    assert (tool["name"], tool["description"], tool["json_schema"]) == ("bare", "d", schema)


def test_it_takes_the_schema_of_pydantic_arguments() -> None:
    given = {"type": "object", "properties": {"a": {"type": "integer", "title": "A"}}, "required": ["a"]}
    tool = new_tool('def f(a):\n    """Adds."""\n    return a\n', args_json_schema=given)
    assert tool["json_schema"]["parameters"]["properties"] == {"a": {"type": "integer"}}


def test_it_cleans_texts_that_databases_refuse() -> None:
    tool = new_tool(tool_named("cleaned"), tags=["a\x00b"], description="x\ud83dy")
    assert (tool["tags"], tool["description"]) == (["ab"], "x\ufffdy")


MODIFICATIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"default_requires_approval": False}, {"default_requires_approval": False}),
    ({"default_requires_approval": None}, {"default_requires_approval": True}),
    ({"tags": ["x", "y"]}, {"tags": ["x", "y"]}),
    ({"return_char_limit": 5}, {"return_char_limit": 5}),
    ({"description": "New."}, {"description": "New."}),
    ({"enable_parallel_execution": True}, {"enable_parallel_execution": True}),
    ({"pip_requirements": [{"name": "httpx"}]}, {"pip_requirements": [{"name": "httpx"}]}),
    ({"nonsense": 1}, {"name": "get_secret_code_tool"}),
]


@pytest.mark.parametrize(("sent", "shown"), MODIFICATIONS)
def test_it_changes_what_is_sent(sent: dict[str, Any], shown: dict[str, Any]) -> None:
    tool = new_tool(SECRET_CODE, default_requires_approval=True)
    changed = patch(f"tools/{tool['id']}", sent)
    assert {name: changed[name] for name in shown} == shown
    assert get(f"tools/{tool['id']}") == changed


@pytest.mark.parametrize("by_put", [True, False])
def test_a_description_that_was_given_outlives_the_next_source(by_put: bool) -> None:
    tool = new_tool(SECRET_CODE, **({"description": "By hand."} if by_put else {}))
    patch(f"tools/{tool['id']}", {} if by_put else {"description": "By hand."})
    source = SECRET_CODE.replace("Gives the", "Has a")
    for again in (new_tool(source), patch(f"tools/{tool['id']}", {"source_code": source})):
        assert again["description"] == "By hand."
        assert again["json_schema"]["description"] == ("Has a code of a text." if by_put else "By hand.")
    assert new_tool(SECRET_CODE, description="New.")["description"] == "New."


def test_a_description_from_the_source_follows_it() -> None:
    new_tool(SECRET_CODE)
    assert new_tool(SECRET_CODE.replace("Gives", "Has"))["description"] == "Has the code of a text."


def test_it_tells_the_model_a_new_description() -> None:
    tool = new_tool(SECRET_CODE)
    changed = patch(f"tools/{tool['id']}", {"description": "Other words."})
    assert changed["json_schema"]["description"] == "Other words."


@pytest.mark.parametrize(
    "body", [{"return_char_limit": 0}, {"return_char_limit": 10**9}, {"tags": "x"}, {"tags": [{}]}]
)
def test_it_refuses_values_out_of_range(body: dict[str, Any]) -> None:
    patch(f"tools/{new_tool(SECRET_CODE)['id']}", body, expect=422)


def test_it_renames_with_the_function() -> None:
    tool = new_tool(SECRET_CODE)
    renamed = patch(f"tools/{tool['id']}", {"source_code": tool_named("other")})
    assert (renamed["id"], renamed["name"], renamed["json_schema"]["name"]) == (tool["id"], "other", "other")


def test_it_refuses_names_that_do_not_fit() -> None:
    tool, _ = new_tool(SECRET_CODE), new_tool(ROLL_DICE)
    mismatch = {"json_schema": {"name": "elsewhere", "parameters": {"type": "object", "properties": {}}}}
    assert "does not match" in patch(f"tools/{tool['id']}", mismatch, expect=400)["detail"]
    assert "exists" in patch(f"tools/{tool['id']}", {"source_code": ROLL_DICE}, expect=400)["detail"]
    assert get(f"tools/{tool['id']}")["name"] == "get_secret_code_tool"


def test_it_deletes() -> None:
    tool = new_tool(FAILS)
    assert delete(f"tools/{tool['id']}") is None
    assert get(f"tools/{tool['id']}", expect=404) == {"detail": f"Tool with ID {tool['id']} not found"}
    delete(f"tools/{tool['id']}", expect=404)


@pytest.mark.parametrize("wire", ["tool-1", "x", "agent-" + UNKNOWN, "TOOL-" + UNKNOWN])
def test_it_refuses_malformed_ids(wire: str) -> None:
    get(f"tools/{wire}", expect=422)
    delete(f"tools/{wire}", expect=422)
    patch(f"tools/{wire}", {}, expect=422)


def test_it_gives_a_schema_without_storing() -> None:
    before = get("tools/count")
    schema = post("tools/generate-schema", {"code": SECRET_CODE})
    assert schema["name"] == "get_secret_code_tool"
    assert "missing docstring" in post("tools/generate-schema", {"code": "def f(): pass"}, expect=400)["detail"]
    assert get("tools/count") == before
