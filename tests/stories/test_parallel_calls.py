"""Several calls in one answer: gated and free ones, results in call order, each run once."""

from __future__ import annotations

import time

from tests.scripted.answers import answer, text, tool_use
from tests.stories.client import Client, approve, deny, returned
from tests.stories.sources import BOOM, ECHO, SLOW, SQUARE


def results_of(message: dict[str, object]) -> dict[str, tuple[str, object]]:
    returns = message["tool_returns"]
    assert isinstance(returns, list)
    return {found["tool_call_id"]: (found["status"], found["tool_return"]) for found in returns}


def test_it_runs_free_calls_with_the_approved_ones_after_the_decision(api: Client) -> None:
    gated, free = api.gated(ECHO), api.tool(SQUARE)
    agent = api.agent(gated, free, parallel=True)
    calls = [
        tool_use(gated["name"], {"text": "yes"}),
        tool_use(free["name"], {"number": 3}),
        tool_use(gated["name"], {"text": "no"}),
        tool_use(gated["name"], {"text": "mine"}),
    ]
    api.provider.script("", answer(text("four"), *calls))
    asks = api.send(agent, "go")
    assert asks.types == ["assistant_message", "tool_call_message", "approval_request_message"]
    free_id = asks.only("tool_call_message")["tool_call"]["tool_call_id"]
    yes, no, mine = asks.waiting
    missing = api.decide(agent, approve(yes), deny(no))
    assert missing.status == 400
    assert mine in missing.body["detail"]
    done = api.decide(agent, approve(yes), deny(no, "no"), returned(mine, "by hand"))
    result = done.only("tool_return_message")
    assert results_of(result) == {
        yes: ("success", "echo yes"),
        free_id: ("success", "9"),
        no: ("error", "Error: request to call tool denied. User reason: no"),
        mine: ("success", "by hand"),
    }
    assert [found["tool_call_id"] for found in result["tool_returns"]] == [yes, free_id, no, mine]
    assert result["tool_call_id"] == yes
    assert api.provider.refused == []


def test_it_does_not_take_decisions_of_an_earlier_round_for_the_next(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, parallel=True)
    rounds = [answer(*[tool_use(tool["name"], {"text": word}) for word in pair]) for pair in ("ab", "cd")]
    api.provider.script("", *rounds, answer(text("all done")))
    a, b = api.send(agent, "go").waiting
    c, d = api.decide(agent, approve(a), deny(b, "no")).waiting
    for stale in ([approve(a), deny(b, "no")], [approve(a), approve(c)], [approve(c), approve(d), approve(a)]):
        api.decide(agent, *stale)
        pending = api.get(f"/v1/agents/{agent}")["pending_approval"]["tool_calls"]
        assert [call["tool_call_id"] for call in pending] == [c, d]
    done = api.decide(agent, approve(c), approve(d))
    assert [found["tool_return"] for found in done.only("tool_return_message")["tool_returns"]] == ["echo c", "echo d"]
    said = [r["tool_return"] for m in api.history(agent) for r in m.get("tool_returns") or ()]
    assert said.count("echo a") == 1
    assert api.provider.refused == []


def test_it_refuses_a_result_for_a_call_that_the_server_runs_itself(api: Client) -> None:
    gated, free = api.gated(ECHO), api.tool(SQUARE)
    agent = api.agent(gated, free, parallel=True)
    calls = [tool_use(gated["name"], {"text": "x"}), tool_use(free["name"], {"number": 2})]
    api.provider.script("", answer(*calls))
    asks = api.send(agent, "go")
    free_id = asks.only("tool_call_message")["tool_call"]["tool_call_id"]
    refused = api.decide(agent, approve(asks.waiting[0]), returned(free_id, "5"))
    assert refused.status == 400
    assert free_id in refused.body["detail"]
    done = api.decide(agent, approve(asks.waiting[0]))
    assert results_of(done.only("tool_return_message"))[free_id] == ("success", "4")


def test_it_gives_each_call_of_the_same_tool_its_own_result(api: Client) -> None:
    tool = api.tool(SQUARE, enable_parallel_execution=True)
    agent = api.agent(tool, parallel=True)
    api.provider.script("", answer(*[tool_use(tool["name"], {"number": n}) for n in (2, 3, 4)]))
    done = api.send(agent, "go")
    assert [found["tool_return"] for found in done.only("tool_return_message")["tool_returns"]] == ["4", "9", "16"]
    assert api.provider.refused == []


def test_it_runs_calls_beside_each_other_and_returns_them_in_call_order(api: Client) -> None:
    tool = api.tool(SLOW, enable_parallel_execution=True)
    agent = api.agent(tool, parallel=True)
    api.provider.script("", answer(*[tool_use(tool["name"], {"seconds": s}) for s in (1.5, 1.4, 0.0)]))
    begun = time.monotonic()
    done = api.send(agent, "go")
    took = time.monotonic() - begun
    assert [found["tool_return"] for found in done.only("tool_return_message")["tool_returns"]] == [
        "slept 1.5", "slept 1.4", "slept 0.0",
    ]  # fmt: skip
    assert took < 2.9, "the sum of the waits: they did not run beside each other"


def test_it_goes_on_when_one_of_them_fails(api: Client) -> None:
    ok, boom = api.tool(ECHO), api.tool(BOOM)
    agent = api.agent(ok, boom, parallel=True)
    calls = [
        tool_use(ok["name"], {"text": "a"}),
        tool_use(boom["name"], {"text": "b"}),
        tool_use("no_such_tool", {"c": 1}),
    ]
    api.provider.script("", answer(*calls), answer(text("I saw")))
    done = api.send(agent, "go")
    returns = done.only("tool_return_message")["tool_returns"]
    assert [found["status"] for found in returns] == ["success", "error", "error"]
    assert returns[1]["tool_return"] == f"Error executing function {boom['name']}: RuntimeError: boom b"
    assert returns[2]["tool_return"].startswith(
        "[ToolConstraintError] Cannot call no_such_tool, valid tools include: ["
    )
    assert done.stop == "end_turn"
    assert api.provider.refused == []


def test_it_keeps_only_the_first_call_without_parallel_calls(api: Client) -> None:
    tool = api.tool(SQUARE)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"number": 5}), tool_use(tool["name"], {"number": 6})))
    done = api.send(agent, "go")
    assert [c["arguments"] for c in done.only("tool_call_message")["tool_calls"]] == ['{"number": 5}']
    assert [found["tool_return"] for found in done.only("tool_return_message")["tool_returns"]] == ["25"]


def test_it_makes_repeated_and_blank_ids_unique(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool, parallel=True)
    calls = [tool_use(tool["name"], {"text": t}, id=i) for t, i in (("a", "same"), ("b", "same"), ("c", ""))]
    api.provider.script(
        "", answer(*calls), answer(text("done")), answer(tool_use(tool["name"], {"text": "d"}, id="same"))
    )
    asks = api.send(agent, "go")
    assert len(set(asks.waiting)) == 3
    assert all(asks.waiting)
    done = api.decide(agent, *[approve(call) for call in asks.waiting])
    assert [found["tool_return"] for found in done.only("tool_return_message")["tool_returns"]] == [
        "echo a", "echo b", "echo c",
    ]  # fmt: skip
    again = api.send(agent, "once more")
    assert again.waiting[0] not in asks.waiting
    assert api.decide(agent, approve(again.waiting[0])).stop == "end_turn"
    assert api.provider.refused == []
