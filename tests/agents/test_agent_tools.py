"""The tools of an agent: attached, detached, under approval; what follows when a tool ends or is renamed."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Agent, ToolCall
from tests.agents import factories as make
from tests.rest import UNKNOWN, delete, get, names, new_agent, new_tool, patch, put
from tests.tools.sources import ROLL_DICE, SECRET_CODE, tool_named
from tools.models import Tool

pytestmark = pytest.mark.django_db

CODE, DICE = "get_secret_code_tool", "roll_dice_tool"


def approval(name: str = CODE) -> dict[str, Any]:
    return {"tool_name": name, "type": "requires_approval", "prompt_template": None}


@pytest.fixture
def code() -> str:
    """The id of a tool that asks by default."""
    return str(new_tool(SECRET_CODE, default_requires_approval=True)["id"])


@pytest.fixture
def dice() -> str:
    """The id of a tool that does not ask."""
    return str(new_tool(ROLL_DICE)["id"])


def test_it_attaches_with_the_approval_rule(code: str, dice: str) -> None:
    agent = new_agent()["id"]
    after = patch(f"agents/{agent}/tools/attach/{code}")
    assert (names(after["tools"]), after["tool_rules"]) == ([CODE], [approval()])
    after = patch(f"agents/{agent}/tools/attach/{dice}/")
    assert (names(after["tools"]), after["tool_rules"]) == ([CODE, DICE], [approval()])
    assert patch(f"agents/{agent}/tools/attach/{code}")["tool_rules"] == [approval()]


def test_it_does_not_gate_again_what_a_person_freed(code: str) -> None:
    agent = new_agent(tool_ids=[code])["id"]
    patch(f"agents/{agent}/tools/approval/{CODE}", requires_approval=False)
    assert patch(f"agents/{agent}/tools/attach/{code}")["tool_rules"] == []
    put("tools/", {"source_code": SECRET_CODE, "default_requires_approval": True})
    assert get(f"agents/{agent}")["tool_rules"] == []


def test_it_detaches_with_all_rules_that_name_the_tool(code: str, dice: str) -> None:
    rules = [
        {"tool_name": CODE, "type": "run_first"},
        {"tool_name": DICE, "type": "constrain_child_tools", "children": [CODE, DICE]},
        {"tool_name": DICE, "type": "parent_last_tool", "children": [CODE]},
    ]
    agent = new_agent(tool_ids=[code, dice], tool_rules=rules)["id"]
    after = patch(f"agents/{agent}/tools/detach/{code}")
    assert names(after["tools"]) == [DICE]
    assert [(rule["type"], rule.get("children")) for rule in after["tool_rules"]] == [("constrain_child_tools", [DICE])]
    assert patch(f"agents/{agent}/tools/detach/{code}") == {**after, "updated_at": after["updated_at"]}


@pytest.mark.parametrize(
    ("body", "params", "gated"),
    [
        (None, {"requires_approval": True}, True),
        (None, {"requires_approval": "false"}, False),
        ({"requires_approval": True}, {}, True),
        ({"requires_approval": False}, {}, False),
        ({"requires_approval": True}, {"requires_approval": False}, True),
        ({"requires_approval": None}, {"requires_approval": True}, True),
        ({}, {"requires_approval": True}, True),
    ],
)
def test_it_toggles_approval(code: str, body: Any, params: dict[str, Any], gated: bool) -> None:
    agent = new_agent(tool_ids=[code])["id"]
    for name in (CODE, "not_attached"):
        after = patch(f"agents/{agent}/tools/approval/{name}", body, **params)
        assert (approval(name) in after["tool_rules"]) is gated
    assert len(after["tools"]) == 1


@pytest.mark.parametrize("body", [None, {}, {"requires_approval": None}, {"requires_approval": "perhaps"}])
def test_it_wants_a_value_for_approval(code: str, body: Any) -> None:
    agent = new_agent(tool_ids=[code])["id"]
    assert "requires_approval" in patch(f"agents/{agent}/tools/approval/{CODE}", body, expect=422)["detail"]


def test_it_lists_ten_tools_by_default() -> None:
    made = [new_tool(tool_named(f"t{n:02}"))["id"] for n in range(12)]
    agent = new_agent(tool_ids=made)["id"]
    assert names(get(f"agents/{agent}/tools")) == [f"t{n:02}" for n in range(11, 1, -1)]
    assert len(get(f"agents/{agent}/tools", limit=50)) == 12
    assert names(get(f"agents/{agent}/tools", order="asc", after=made[1], limit=2)) == ["t02", "t03"]


@pytest.mark.parametrize("action", ["attach", "detach"])
def test_it_refuses_unknown_rows(code: str, action: str) -> None:
    agent = new_agent()["id"]
    patch(f"agents/{agent}/tools/{action}/tool-{UNKNOWN}", expect=404)
    patch(f"agents/{agent}/tools/{action}/x", expect=422)
    patch(f"agents/agent-{UNKNOWN}/tools/{action}/{code}", expect=404)


def test_it_forgets_a_deleted_tool_everywhere(code: str, dice: str) -> None:
    child = {"tool_name": DICE, "type": "constrain_child_tools", "children": [CODE]}
    one = new_agent(tool_ids=[code, dice], tool_rules=[child])["id"]
    two = new_agent(tool_ids=[code])["id"]
    delete(f"tools/{code}")
    for agent, left in ((one, [DICE]), (two, [])):
        shown = get(f"agents/{agent}")
        assert (names(shown["tools"]), shown["tool_rules"]) == (left, [])


def test_it_follows_a_renamed_tool(code: str) -> None:
    agent = new_agent(tool_ids=[code], tool_rules=[{"tool_name": CODE, "type": "run_first"}])["id"]
    patch(f"tools/{code}", {"source_code": tool_named("new_name")})
    shown = get(f"agents/{agent}")
    assert names(shown["tools"]) == ["new_name"]
    assert {rule["tool_name"] for rule in shown["tool_rules"]} == {"new_name"}
    assert patch(f"agents/{agent}/tools/detach/{code}")["tool_rules"] == []


def waiting_call(agent_id: str, tool_id: str) -> ToolCall:
    """A call of the agent's tool that waits for a person."""
    agent = Agent.objects.get(uuid=agent_id.removeprefix("agent-"))
    run = make.make_run(make.default_of(agent), stop_reason="requires_approval")
    message = make.make_answer(run, [make.call_part("call_1", CODE, gated=True)])
    return make.make_call(message, "call_1", tool=Tool.objects.get(uuid=tool_id.removeprefix("tool-")))


@pytest.mark.parametrize("event", ["approval off", "detached", "rules changed", "tool deleted", "tool renamed"])
def test_it_never_strands_a_pending_call(code: str, event: str) -> None:
    agent = new_agent(tool_ids=[code])["id"]
    call = waiting_call(agent, code)
    shown = get(f"agents/{agent}")["pending_approval"]
    assert shown["message_type"] == "approval_request_message"
    assert [pending["tool_call_id"] for pending in shown["tool_calls"]] == ["call_1"]
    match event:
        case "approval off":
            patch(f"agents/{agent}/tools/approval/{CODE}", requires_approval=False)
        case "detached":
            patch(f"agents/{agent}/tools/detach/{code}")
        case "rules changed":
            patch(f"agents/{agent}", {"tool_rules": [], "tool_ids": []})
        case "tool deleted":
            delete(f"tools/{code}")
        case "tool renamed":
            patch(f"tools/{code}", {"source_code": tool_named("new_name")})
    call.refresh_from_db()
    assert call.waiting
    assert get(f"agents/{agent}")["pending_approval"] == shown
