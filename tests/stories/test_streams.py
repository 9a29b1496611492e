"""Streams: what comes in which order, errors, pings, clients that leave and come back."""

from __future__ import annotations

import json
import time

import pytest

from tests.scripted.answers import answer, fault, text, thinking, tokens, tool_use
from tests.stories.client import Client, Json, approve, text_of, types_of
from tests.stories.sources import ECHO, SQUARE

END = ["stop_reason", "usage_statistics", "done"]


def resumed(api: Client, run: str, after: int | None = 0, **body: Json) -> list[dict[str, Json]]:
    given = {"starting_after": after, **body} if after is not None else body
    with api.open_stream(f"/v1/runs/{run}/stream", given) as frames:
        return list(frames)


def test_it_streams_tokens_then_stop_usage_done(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(thinking("Let me think."), text("Hello there, user.")))
    chunks = api.stream(agent, "hi")
    assert types_of(chunks) == ["reasoning_message", "assistant_message", *END]
    assert list(text_of(chunks).values()) == ["Hello there, user."]
    assert list(text_of(chunks, "reasoning_message").values()) == ["Let me think."]
    assert sum(chunk["message_type"] == "assistant_message" for chunk in chunks) > 1
    numbers = [chunk["seq_id"] for chunk in chunks[:-1]]
    assert numbers == sorted(set(numbers))
    assert numbers[0] >= 1
    assert len({chunk["run_id"] for chunk in chunks[:-1]}) == 1


def test_it_streams_whole_messages_by_step(api: Client) -> None:
    tool = api.tool(SQUARE)
    agent = api.agent(tool)
    api.provider.script(
        "", answer(thinking("hm"), text("I square"), tool_use(tool["name"], {"number": 4})), answer(text("16"))
    )
    chunks = api.stream(agent, "go", stream_tokens=False)
    assert [chunk["message_type"] for chunk in chunks] == [
        "reasoning_message", "assistant_message", "tool_call_message", "tool_return_message", "assistant_message", *END,
    ]  # fmt: skip


@pytest.mark.parametrize("by_tokens", [True, False])
def test_it_shows_the_same_in_streams_lists_and_single_messages(api: Client, by_tokens: bool) -> None:
    tool = api.tool(SQUARE)
    agent = api.agent(tool)
    api.provider.script(
        "", answer(thinking("hm"), text("I square"), tool_use(tool["name"], {"number": 4})), answer(text("16"))
    )
    chunks = api.stream(agent, "go", stream_tokens=by_tokens)
    listed = [
        message for message in api.history(agent) if message["message_type"] not in ("system_message", "user_message")
    ]
    assert types_of(chunks)[:-3] == [message["message_type"] for message in listed]
    streamed = list(dict.fromkeys((c["id"], c["message_type"], c["otid"]) for c in chunks if "id" in c))
    assert streamed == [(m["id"], m["message_type"], m["otid"]) for m in listed]
    single = [message for ref in dict.fromkeys(m["id"] for m in listed) for message in api.get(f"/v1/messages/{ref}")]
    assert single == listed


def test_it_sends_an_approval_request_whole_and_last(api: Client) -> None:
    gated, free = api.gated(ECHO), api.tool(SQUARE)
    agent = api.agent(gated, free, parallel=True)
    calls = [tool_use(gated["name"], {"text": "x" * 100}), tool_use(free["name"], {"number": 2})]
    api.provider.script("", answer(text("both"), *calls))
    chunks = api.stream(agent, "go")
    assert types_of(chunks) == ["assistant_message", "tool_call_message", "approval_request_message", *END]
    requests = [chunk for chunk in chunks if chunk["message_type"] == "approval_request_message"]
    assert len(requests) == 1
    assert json.loads(requests[0]["tool_call"]["arguments"]) == {"text": "x" * 100}
    deltas = [chunk["tool_call"] for chunk in chunks if chunk["message_type"] == "tool_call_message"]
    assert json.loads("".join(delta["arguments"] for delta in deltas)) == {"number": 2}
    assert deltas[0]["name"] == free["name"]


def test_it_keeps_line_ends_of_every_kind_inside_one_frame(api: Client) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    said = "a\u2028b\u2029c\u0085d\r\ne"
    api.provider.script("", answer(text(said, pieces=[said]), tool_use(tool["name"], {"text": said})))
    path = f"/v1/agents/{agent}/messages/stream"
    body = {"messages": [{"role": "user", "content": "go"}], "stream_tokens": True}
    raw = api.http.post(path, json=body).content.decode()
    frames = [json.loads(line.removeprefix("data: ")) for line in raw.splitlines() if line.startswith("data: {")]
    assert "".join(f["content"] for f in frames if f["message_type"] == "assistant_message") == said
    (asked,) = [f["tool_call"]["arguments"] for f in frames if f["message_type"] == "approval_request_message"]
    assert json.loads(asked) == {"text": said}


def test_it_spreads_tokens_over_time(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tokens(6), delay=150))
    came: list[float] = []
    body = {"messages": [{"role": "user", "content": "go"}], "stream_tokens": True}
    with api.open_stream(f"/v1/agents/{agent}/messages/stream", body) as frames:
        came = [time.monotonic() for chunk in frames if chunk["message_type"] == "assistant_message"]
    assert came[-1] - came[0] > 0.5


def test_it_sets_the_headers_that_proxies_need(api: Client) -> None:
    agent = api.agent()
    response = api.http.post(
        f"/v1/agents/{agent}/messages/stream",
        json={"messages": [{"role": "user", "content": "hi"}]},
        headers={"Accept-Encoding": "gzip"},
    )
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["x-accel-buffering"] == "no"
    assert "no-cache" in response.headers["cache-control"]
    assert response.headers.get("content-encoding", "identity") == "identity"
    assert response.content.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/agents/agent-00000000-0000-4000-8000-000000000000/messages/stream", None, 404),
        ("/v1/agents/nonsense/messages/stream", None, 422),
        ("/v1/agents/AGENT/messages/stream", {"messages": []}, 422),
        ("/v1/agents/AGENT/messages/stream", {}, 422),
        ("/v1/agents/AGENT/messages/stream", {"messages": [{"role": "robot", "content": "x"}]}, 422),
        ("/v1/agents/AGENT/messages/stream", {"messages": [{"role": "user", "content": " \n"}]}, 422),
        ("/v1/conversations/conv-00000000-0000-4000-8000-000000000000/messages", None, 404),
        ("/v1/runs/run-00000000-0000-4000-8000-000000000000/stream", {}, 404),
    ],
)
def test_it_answers_an_error_before_the_stream_with_its_status(api: Client, path: str, body: Json, status: int) -> None:
    agent = api.agent() if "AGENT" in path else ""
    given = body if body is not None else {"messages": [{"role": "user", "content": "x"}]}
    answer_ = api.call("POST", path.replace("AGENT", agent), given, headers={"Accept": "text/event-stream"})
    assert answer_.status == status
    assert isinstance(answer_.body["detail"], str)
    assert answer_.headers["content-type"] == "application/json"


def test_it_ends_a_failed_stream_with_stop_error_usage_done(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", fault("bad_request", "no such thing"))
    begun = time.monotonic()
    chunks = api.stream(agent, "go")
    assert [chunk["message_type"] for chunk in chunks] == ["stop_reason", "error_message", "usage_statistics", "done"]
    assert chunks[0]["stop_reason"] == "llm_api_error"
    assert (chunks[1]["event"], chunks[1]["error_type"]) == ("error", "llm_bad_request")
    assert time.monotonic() - begun < 5
    run = api.get(f"/v1/runs/{chunks[0]['run_id']}")
    assert (run["status"], run["stop_reason"]) == ("failed", "llm_api_error")
    assert run["completed_at"]
    assert api.get("/v1/runs/", agent_id=agent, active=True) == []
    assert types_of(api.stream(agent, "again")) == ["reasoning_message", "assistant_message", *END]


def test_it_goes_on_without_its_reader(api: Client) -> None:
    agent = api.agent()
    api.provider.script("", answer(tokens(40), delay=10))
    body = {"messages": [{"role": "user", "content": "go"}], "stream_tokens": True, "background": True}
    with api.open_stream(f"/v1/agents/{agent}/messages/stream", body) as frames:
        seen = [next(frames) for _ in range(3)]
    run = seen[0]["run_id"]
    rest = resumed(api, run, seen[-1]["seq_id"])
    numbers = [chunk["seq_id"] for chunk in [*seen, *rest[:-1]]]
    assert numbers == list(range(1, len(numbers) + 1)) or numbers == sorted(set(numbers))
    assert "".join(text_of([*seen, *rest]).values()) == "tok " * 40
    assert types_of(rest)[-3:] == END
    assert api.wait_ended(run)["status"] == "completed"


@pytest.mark.parametrize("by_tokens", [True, False])
def test_it_replays_the_same_events_from_the_start(api: Client, by_tokens: bool) -> None:
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(thinking("hm"), text("I ask"), tool_use(tool["name"], {"text": "x"})))
    first = api.stream(agent, "go", stream_tokens=by_tokens)
    assert resumed(api, first[0]["run_id"]) == first
    waiting = next(c for c in first if c["message_type"] == "approval_request_message")
    decision = {"type": "approval", "approvals": [approve(waiting["tool_call"]["tool_call_id"])]}
    second = api.stream(agent, decision, stream_tokens=by_tokens)
    assert resumed(api, second[0]["run_id"]) == second
    for cut in range(len(second) - 1):
        assert resumed(api, second[0]["run_id"], second[cut]["seq_id"]) == second[cut + 1 :] or cut >= len(second) - 3


def test_it_ends_at_once_for_a_cursor_at_or_beyond_the_end(api: Client) -> None:
    agent = api.agent()
    chunks = api.stream(agent, "hi")
    run, last = chunks[0]["run_id"], chunks[-2]["seq_id"]
    for after in (last, last + 1000):
        assert types_of(resumed(api, run, after)) == END


@pytest.mark.parametrize("cursor", [-1, "abc", 1.5, True])
def test_it_refuses_a_bad_cursor(api: Client, cursor: Json) -> None:
    agent = api.agent()
    run = api.send(agent, "hi").messages[0]["run_id"]
    assert api.call("POST", f"/v1/runs/{run}/stream", {"starting_after": cursor}).status == 422


def test_it_takes_the_last_event_id(api: Client) -> None:
    agent = api.agent()
    chunks = api.stream(agent, "hi")
    path = f"/v1/runs/{chunks[0]['run_id']}/stream"
    raw = api.http.post(path, json={}, headers={"Last-Event-ID": str(chunks[1]["seq_id"])}).text
    assert raw.count("data: {") == len(chunks) - 3


def test_it_resumes_a_run_that_was_not_streamed(api: Client) -> None:
    agent = api.agent()
    whole = api.send(agent, "hi")
    replayed = resumed(api, whole.messages[0]["run_id"])
    assert [c["message_type"] for c in replayed] == [*whole.types, *END]


def test_it_finds_the_run_of_a_conversation(api: Client) -> None:
    agent = api.agent()
    other = api.call("POST", f"/v1/conversations/?agent_id={agent}", {}).body["id"]
    api.provider.script("", answer(tokens(5), hold="gate", hold_at=4))
    body = {"messages": [{"role": "user", "content": "go", "otid": "mine"}], "background": True, "stream_tokens": True}
    with api.open_stream(f"/v1/conversations/{other}/messages", body) as frames:
        first = next(frames)
    with api.open_stream(f"/v1/conversations/{other}/messages", body) as frames:
        assert next(frames) == first, "the same request once more attaches to the run"
    found = api.get("/v1/runs/", conversation_id=other, statuses="running")
    assert len(found) == 1
    again = api.call(
        "POST",
        f"/v1/conversations/{other}/messages",
        {**body, "background": False, "streaming": False, "stream_tokens": False},
    )
    assert again.status == 409
    assert again.body["run_id"] == found[0]["id"]
    api.provider.release("gate")
    with api.open_stream(f"/v1/conversations/{other}/stream", {"otid": "mine"}) as frames:
        chunks = list(frames)
    assert "".join(text_of(chunks).values()) == "tok " * 5
    users = [m for m in api.get(f"/v1/conversations/{other}/messages") if m["message_type"] == "user_message"]
    assert len(users) == 1


def test_it_pings_first_only_where_clients_expect_it(api: Client) -> None:
    agent = api.agent()
    body = {"messages": [{"role": "user", "content": "hi"}], "streaming": True, "background": True}
    path = f"/v1/agents/{agent}/messages"
    for headers, first in (({}, "reasoning_message"), ({"X-Stainless-Package-Version": "1.12.1"}, "ping")):
        raw = api.http.post(path, json=body, headers=headers).text
        frame = next(line for line in raw.splitlines() if line.startswith("data: "))
        assert json.loads(frame.removeprefix("data: "))["message_type"] == first


def test_it_returns_only_the_types_that_were_asked_for(api: Client) -> None:
    agent = api.agent()
    wanted: dict[str, Json] = {"include_return_message_types": ["assistant_message"]}
    assert api.send(agent, "hi", **wanted).types == ["assistant_message"]
    chunks = api.stream(agent, "hi", **wanted)
    assert types_of(chunks) == ["assistant_message", *END]
    assert types_of(resumed(api, chunks[0]["run_id"])) == ["assistant_message", *END]
