"""Tools tried out by hand: a source that is not stored, and a tool of an agent."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from knox.models import AuthToken
from rest_framework.test import APIClient

from tests.rest import get, new_agent, new_tool, post
from tests.tools.sources import FAILS, ROLL_DICE, SECRET_CODE
from tools.actions import trial
from tools.models import Tool

pytestmark = pytest.mark.django_db

READS_ENVIRONMENT = '''def reads(name: str) -> str:
    """Reads.

    Args:
        name (str): Which.
    """
    import os

    return "<" + os.environ.get(name, "none") + ">"
'''
KEEPS_NOTE = '''def keeps(agent_state: "AgentState", text: str) -> str:
    """Keeps.

    Args:
        text (str): What.
    """
    agent_state.memory.update_block_value("note", text)
    return "kept"
'''


def test_it_runs_a_source() -> None:
    before = Tool.objects.count()
    shown = post("tools/run", {"source_code": ROLL_DICE, "args": {"num_sides": 4}})
    assert (shown["status"], shown["tool_return"], shown["id"], shown["tool_call_id"]) == (
        "success",
        "4",
        "null",
        "null",
    )
    assert shown["message_type"] == "tool_return_message"
    assert shown["tool_returns"][0]["tool_return"] == "4"
    assert Tool.objects.count() == before


def test_it_tells_how_a_source_failed() -> None:
    shown = post("tools/run", {"source_code": FAILS, "args": {"text": "x"}})
    assert shown["status"] == "error"
    assert shown["tool_return"] == "Error executing function always_fails: RuntimeError: boom: x"
    assert "boom" in "".join(shown["stderr"])


def test_it_gives_a_source_its_variables() -> None:
    body = {"source_code": READS_ENVIRONMENT, "args": {"name": "PLACE"}, "env_vars": {"PLACE": "here"}}
    assert post("tools/run", body)["tool_return"] == "<here>"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"source_code": ROLL_DICE}, 422),
        ({"args": {}}, 422),
        ({"source_code": "x = 1", "args": {}}, 400),
        ({"source_code": ROLL_DICE, "args": []}, 422),
    ],
)
def test_it_refuses_a_run_that_cannot_be(body: dict[str, Any], status: int) -> None:
    post("tools/run", body, expect=status)


@pytest.mark.parametrize("args", [{}, {"num_sides": "many"}, {"num_sides": 4, "more": 1}])
def test_it_tells_which_arguments_do_not_fit(args: dict[str, Any]) -> None:
    agent = new_agent(tool_ids=[new_tool(ROLL_DICE)["id"]])["id"]
    source = post("tools/run", {"source_code": ROLL_DICE, "args": args})
    shown = post(f"agents/{agent}/tools/roll_dice_tool/run", {"args": args})
    for status, text in ((source["status"], source["tool_return"]), (shown["status"], shown["func_return"])):
        assert status == "error"
        assert text.startswith("Error executing function roll_dice_tool: ")


def test_it_runs_a_tool_of_an_agent() -> None:
    agent = new_agent(tool_ids=[new_tool(READS_ENVIRONMENT)["id"]], secrets={"KEY": "s3cret-value"})["id"]
    shown = post(f"agents/{agent}/tools/reads/run", {"args": {"name": "KEY"}})
    assert shown["status"] == "success"
    assert "s3cret-value" not in str(shown)
    assert shown.keys() == {"status", "func_return", "agent_state", "stdout", "stderr", "sandbox_config_fingerprint"}
    assert post(f"agents/{agent}/tools/other/run", {"args": {}}, expect=404)


def test_it_saves_what_a_tool_makes_of_its_memory() -> None:
    blocks = [{"label": "note", "value": "old", "limit": 10}]
    agent = new_agent(tool_ids=[new_tool(KEEPS_NOTE)["id"]], memory_blocks=blocks)["id"]
    assert post(f"agents/{agent}/tools/keeps/run", {"args": {"text": "new"}})["status"] == "success"
    assert get(f"agents/{agent}/core-memory/blocks/note")["value"] == "new"
    refused = post(f"agents/{agent}/tools/keeps/run", {"args": {"text": "x" * 11}})
    assert (refused["status"], "holds at most 10" in refused["func_return"]) == ("error", True)
    assert get(f"agents/{agent}/core-memory/blocks/note")["value"] == "new"


def test_it_runs_a_built_in_tool() -> None:
    agent = new_agent(tools=["memory_insert"], memory_blocks=[{"label": "note", "value": "a"}])["id"]
    given = {"label": "note", "new_string": "b"}
    assert post(f"agents/{agent}/tools/memory_insert/run", {"args": given})["status"] == "success"
    assert get(f"agents/{agent}/core-memory/blocks/note")["value"] == "a\nb"


PATHS = [
    ("POST", "tools/", {"source_code": SECRET_CODE}),
    ("PUT", "tools/", {"source_code": SECRET_CODE}),
    ("PATCH", "tools/{tool}", {"description": "x"}),
    ("DELETE", "tools/{tool}", None),
    ("POST", "tools/add-base-tools", None),
    ("POST", "tools/run", {"source_code": SECRET_CODE, "args": {"input_text": "x"}}),
    ("POST", "agents/{agent}/tools/get_secret_code_tool/run", {"args": {"input_text": "x"}}),
]


@pytest.mark.parametrize("role", ["viewer", "operator"])
@pytest.mark.parametrize(("method", "path", "body"), PATHS)
def test_it_lets_only_builders_store_and_run(role: str, method: str, path: str, body: Any, settings: Any) -> None:
    tool = new_tool(SECRET_CODE)
    agent = new_agent(tool_ids=[tool["id"]])
    settings.LETTAWEB_AUTH = "token"
    user = User.objects.create_user("somebody")
    user.groups.add(Group.objects.get(name=role))
    _, token = AuthToken.objects.create(user)
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")
    where = "/v1/" + path.format(tool=tool["id"], agent=agent["id"])
    data = "" if body is None else json.dumps(body)
    assert client.generic(method, where, data, "application/json").status_code == 403
    assert client.get(f"/v1/tools/{tool['id']}").status_code == 200


def test_it_bounds_how_many_wait_for_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.actions._trials", threading.BoundedSemaphore(1))
    body = {"source_code": ROLL_DICE, "args": {"num_sides": 4}}
    with trial():
        assert "try again" in post("tools/run", body, expect=429)["detail"]
    assert post("tools/run", body)["status"] == "success"
