"""Kills a server at random moments while clients work with it: ``python -m tests.survival.killer --kills 200``.

Clients stream, come back with their cursors, and decide; the model says something else each time it is asked.
At the end every run must have ended, every reader must have seen every message once, no tool may have run more
often than it was allowed to, and the model must never have been asked anything invalid.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.scripted.answers import Answer, answer, text, thinking, tool_use
from tests.scripted.conversation import Conversation
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess, start_server
from tests.stories.client import Client, Json, approve
from tests.survival.kit import LEASE, MARK, Follower, check_whole, marks, wait_until

WORDS = "the quick brown fox jumps over a lazy dog and then it thinks about what to do next".split()  # noqa: SIM905

PATIENCE = 900.0  # seconds for one run: many kills may hit it


@dataclass
class Town:
    """The server, its clients, and what they know of each other."""

    server: ServerProcess
    provider: ScriptedProvider
    path: Path
    chance: random.Random
    followers: list[tuple[str, Follower]] = field(default_factory=list)
    approvals: Counter[str] = field(default_factory=Counter)
    newest: dict[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    errors: list[str] = field(default_factory=list)

    def await_work(self, chunks: int) -> None:
        """Return when clients got ``chunks`` more chunks, or none came for too long."""
        start, deadline = self.seen(), time.monotonic() + 15
        while self.seen() < start + chunks and time.monotonic() < deadline:
            time.sleep(0.005)

    def seen(self) -> int:
        return sum(len(follower.chunks) for _, follower in list(self.followers))

    def say(self, conversation: Conversation) -> Answer:
        """What the model says: never the same twice; a call or two on the way."""
        said = text(" ".join(self.chance.choices(WORDS, k=self.chance.randint(5, 25))))
        parts = [thinking(" ".join(self.chance.choices(WORDS, k=6))), said]
        names = list(conversation.tools)
        for _ in range(self.chance.choice([0, 0, 1, 1, 2]) if len(conversation.results) < 3 else 0):
            mark = {"path": str(self.path), "text": uuid.uuid4().hex}
            parts.append(tool_use(self.chance.choice(names), mark))
        return answer(*parts, delay=self.chance.choice([0, 2, 8]))


def client(town: Town, number: int, agent: str) -> None:
    """One client with an agent of its own: sends, follows, decides, until it is over."""
    try:
        with Client(town.server.url, town.provider) as api:
            turn = 0
            while not town.over.is_set():
                turn += 1
                message: Json = {"role": "user", "content": f"turn {turn} of client {number}"}
                while message is not None:
                    message = followed(town, api, agent, message)
    except BaseException:
        town.errors.append(f"client {number}: {traceback.format_exc()}")


def followed(town: Town, api: Client, agent: str, message: Json) -> Json:
    """Send a message and follow its run to the end; the decision that it asks for, None when it asks for none."""
    body = {"messages": [message], "stream_tokens": True, "background": True}
    follower = Follower(api.url, agent, body, before=town.newest.get(agent, "")).start()
    town.followers.append((agent, follower))
    follower.join(PATIENCE)
    town.newest[agent] = follower.run
    if not any(chunk.get("stop_reason") == "requires_approval" for chunk in follower.chunks):
        return None
    waiting = wait_until(lambda: api.get(f"/v1/agents/{agent}"), "the agent")["pending_approval"]["tool_calls"]
    ids = [call["tool_call_id"] for call in waiting]
    town.approvals.update(ids)
    return {"type": "approval", "approvals": [approve(call_id) for call_id in ids]}


def run(kills: int, seed: int, clients: int, *, environment: Mapping[str, str] = {}) -> dict[str, Any]:
    """Kill ``kills`` times; what came of it. Raises AssertionError when something was lost, doubled or stuck."""
    with tempfile.TemporaryDirectory(prefix="killer-") as directory:
        provider = ScriptedProvider().start()
        given = {"LETTAWEB_SANDBOX_UNSAFE": "1", "LETTAWEB_DEBUG": "1", "LETTAWEB_LEASE_SECONDS": LEASE, **environment}
        variables = {**provider.environment, **given}
        server = start_server(Path(directory), command="web", environment=variables)
        town = Town(server, provider, Path(directory) / "marks", random.Random(seed))
        provider.rule(town.say)
        try:
            return _run(town, kills, clients)
        finally:
            town.over.set()
            server.stop()
            provider.stop()


def _run(town: Town, kills: int, clients: int) -> dict[str, Any]:
    with Client(town.server.url, town.provider) as api:
        agents = [api.agent(api.tool(MARK), api.gated(MARK), parallel=number % 2 == 0) for number in range(clients)]
    work = [(town, number, agent) for number, agent in enumerate(agents)]
    people = [threading.Thread(target=client, args=given, daemon=True) for given in work]
    for person in people:
        person.start()
    for _ in range(kills):
        town.await_work(town.chance.randint(1, 300))
        town.server.kill()
        town.server.start()
    town.over.set()
    for person in people:
        person.join(PATIENCE)
    assert not any(person.is_alive() for person in people), "a client never came to an end"
    return check(town, kills)


def check(town: Town, kills: int) -> dict[str, Any]:
    assert town.errors == [], town.errors
    assert town.provider.refused == [], town.provider.refused
    with Client(town.server.url, town.provider) as api:
        runs = [check_whole(api, agent, follower) for agent, follower in town.followers]
        assert api.get("/v1/runs/", active=True) == []
        told = check_marks(town, api)
    broken = sum(follower.breaks > 0 for _, follower in town.followers)
    ends = Counter(run["stop_reason"] for run in runs)
    return {"kills": kills, "runs": len(runs), "broken": broken, "ends": dict(ends), "told": told, "lost": 0}


def check_marks(town: Town, api: Client) -> dict[str, int]:
    """Each call left as many marks as it was allowed to, and exactly one where it says that it worked."""
    left, told = Counter(marks(town.path)), Counter[str]()
    for agent in {agent for agent, _ in town.followers}:
        history = api.history(agent)
        calls = {call["tool_call_id"]: call for m in history for call in called(m)}
        for message in history:
            for result in message.get("tool_returns") or ():
                call = calls[result["tool_call_id"]]
                times = left.pop(json.loads(call["arguments"])["text"], 0)
                told[result["status"]] += 1
                most = max(1, town.approvals[call["tool_call_id"]])
                least = 1 if result["status"] == "success" else 0
                assert least <= times <= most, (call, result, times)
    assert not left, "a tool ran of which nobody was told"
    return dict(told)


def called(message: Mapping[str, Json]) -> list[Json]:
    found = message.get("tool_calls") or ()
    return list(found) if message["message_type"] in ("tool_call_message", "approval_request_message") else []


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.killer", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--clients", type=int, default=6)
    options = parser.parse_args()
    begun = time.monotonic()
    result = run(options.kills, options.seed, options.clients)
    print(json.dumps({**result, "seed": options.seed, "seconds": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main()
