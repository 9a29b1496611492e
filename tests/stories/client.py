"""A small client over the wire: what a test does with agents, messages and approvals, and the frames it gets."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.scripted.server import ScriptedProvider

Json = Any
MODEL = "anthropic/claude-sonnet-4-5-20250929"
WAIT = 20.0


@dataclass
class Answer:
    """A response: its status, its body, and the messages in it."""

    status: int
    body: Json
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[dict[str, Json]]:
        return list(self.body["messages"])

    @property
    def types(self) -> list[str]:
        return [message["message_type"] for message in self.messages]

    @property
    def stop(self) -> str:
        return str(self.body["stop_reason"]["stop_reason"])

    def only(self, kind: str) -> dict[str, Json]:
        found = [message for message in self.messages if message["message_type"] == kind]
        assert len(found) == 1, self.types
        return found[0]

    @property
    def waiting(self) -> list[str]:
        """The ids of the calls that wait for a decision."""
        return [call["tool_call_id"] for call in self.only("approval_request_message")["tool_calls"]]


class Doors(httpx.BaseTransport):
    """Sends one request after the other to the next of several servers, as a proxy in front of them does."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._inner = httpx.HTTPTransport()
        self._turns = itertools.cycle([httpx.URL(url) for url in urls])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        door = next(self._turns)
        request.url = request.url.copy_with(host=door.host, port=door.port)
        request.headers["Host"] = f"{door.host}:{door.port}"
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


@dataclass
class Client:
    """Calls of the API. Everything it makes has a name of its own, so tests do not meet.

    ``doors``: the URLs of several web processes of one service; the calls go to them in turn.
    """

    url: str
    provider: ScriptedProvider
    token: str = ""
    doors: Sequence[str] = ()
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        transport = Doors(self.doors) if self.doors else None
        self.http = httpx.Client(base_url=self.url, timeout=60, trust_env=False, headers=headers, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    # --- plain calls ---

    def call(self, method: str, path: str, body: Json = None, **options: Any) -> Answer:
        response = self.http.request(method, path, json=body, **options)
        parsed = response.json() if response.content else None
        return Answer(response.status_code, parsed, response.headers)

    def get(self, path: str, **params: Any) -> Json:
        answer = self.call("GET", path, params=params)
        assert answer.status == 200, answer
        return answer.body

    # --- making things ---

    def tool(self, source: str, **fields: Any) -> dict[str, Json]:
        """A tool from source whose function's name is made unique: NAME stands for it."""
        name = f"tool_{uuid.uuid4().hex[:10]}"
        answer = self.call("PUT", "/v1/tools/", {"source_code": source.replace("NAME", name), **fields})
        assert answer.status == 200, answer
        return dict(answer.body)

    def gated(self, source: str, **fields: Any) -> dict[str, Json]:
        return self.tool(source, default_requires_approval=True, **fields)

    def agent(self, *tools: Mapping[str, Json], parallel: bool = False, **fields: Any) -> str:
        body = {
            "name": f"agent {uuid.uuid4().hex[:8]}",
            "agent_type": "letta_v1_agent",
            "model": MODEL,
            "embedding": None,
            "include_base_tools": False,
            "tool_ids": [tool["id"] for tool in tools],
            "parallel_tool_calls": parallel,
            **fields,
        }
        answer = self.call("POST", "/v1/agents/", body)
        assert answer.status == 200, answer
        return str(answer.body["id"])

    # --- messages ---

    def send(self, agent: str, *messages: Json, path: str = "", **options: Any) -> Answer:
        """POST messages; a text is a user message."""
        items = [{"role": "user", "content": item} if isinstance(item, str) else item for item in messages]
        return self.call("POST", path or f"/v1/agents/{agent}/messages", {"messages": items, **options})

    def decide(self, agent: str, *verdicts: Mapping[str, Json], also: Sequence[Json] = (), **options: Any) -> Answer:
        return self.send(agent, {"type": "approval", "approvals": list(verdicts)}, *also, **options)

    def stream(self, agent: str, *messages: Json, path: str = "", **options: Any) -> list[dict[str, Json]]:
        """POST messages to the streaming route: all chunks, the last one being ``{"done": True}``."""
        items = [{"role": "user", "content": item} if isinstance(item, str) else item for item in messages]
        body = {"messages": items, "stream_tokens": True, **options}
        with self.open_stream(path or f"/v1/agents/{agent}/messages/stream", body) as frames:
            return list(frames)

    def open_stream(self, path: str, body: Json) -> Frames:
        return Frames(self.http, path, body)

    def history(self, agent: str, **params: Any) -> list[dict[str, Json]]:
        return list(self.get(f"/v1/agents/{agent}/messages", limit=1000, **params))

    def runs(self, agent: str) -> list[dict[str, Json]]:
        return list(self.get("/v1/runs/", agent_id=agent, limit=1000))

    def wait_for(self, look: Callable[[], Any], what: str = "a condition") -> Any:
        """What ``look`` returns once it is true; AssertionError when that takes too long."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            if found := look():
                return found
            time.sleep(0.02)
        raise AssertionError(f"{what} did not come true in {WAIT} s")

    def wait_ended(self, run: str) -> dict[str, Json]:
        """The run once it is over."""

        def over() -> dict[str, Json] | None:
            found = self.get(f"/v1/runs/{run}")
            return found if found["status"] not in ("created", "running") else None

        return dict(self.wait_for(over, f"the end of {run}"))


class Frames:
    """An open stream: iterate its chunks; closing it early is a client that leaves."""

    def __init__(self, http: httpx.Client, path: str, body: Json) -> None:
        self._context = http.stream("POST", path, json=body)

    def __enter__(self) -> Iterator[dict[str, Json]]:
        self.response = self._context.__enter__()
        if self.response.status_code != 200:
            raise AssertionError(f"{self.response.status_code}: {self.response.read()!r}")
        return self._chunks()

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)

    def _chunks(self) -> Iterator[dict[str, Json]]:
        event = ""
        for line in self.response.iter_lines():
            if line.startswith("event: "):
                event = line.removeprefix("event: ")
            elif line == "data: [DONE]":
                yield {"done": True, "message_type": "done"}
            elif line.startswith("data: "):
                yield {**json.loads(line.removeprefix("data: ")), **({"event": event} if event else {})}
                event = ""


def approve(call_id: str) -> dict[str, Json]:
    return {"type": "approval", "tool_call_id": call_id, "approve": True}


def deny(call_id: str, reason: str | None = None) -> dict[str, Json]:
    return {"type": "approval", "tool_call_id": call_id, "approve": False, "reason": reason}


def returned(call_id: str, value: Json, status: str = "success") -> dict[str, Json]:
    return {"type": "tool", "tool_call_id": call_id, "tool_return": value, "status": status}


def types_of(chunks: Sequence[Mapping[str, Json]]) -> list[str]:
    """The message types of a stream, each run of one type once."""
    found: list[str] = []
    for chunk in chunks:
        if not found or found[-1] != chunk["message_type"]:
            found.append(chunk["message_type"])
    return found


def text_of(chunks: Sequence[Mapping[str, Json]], kind: str = "assistant_message") -> dict[str, str]:
    """What was said, by message id."""
    field_name = "content" if kind == "assistant_message" else "reasoning"
    said: dict[str, str] = {}
    for chunk in chunks:
        if chunk["message_type"] == kind:
            said[chunk["id"]] = said.get(chunk["id"], "") + chunk[field_name]
    return said
