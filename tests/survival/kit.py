"""What tests of crashes need: faults that are armed from outside, and a client that comes back with its cursor."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx

from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client, Json, text_of

WAIT = 60.0
LEASE = "6"  # seconds; the shortest that a server on SQLite takes
END = ["stop_reason", "usage_statistics", "done"]

MARK = '''
def NAME(path: str, text: str) -> str:
    """
    Leaves a mark.

    Args:
        path (str): The file that gets one line more.
        text (str): What the line says.
    """
    with open(path, "a") as file:
        file.write(text + "\\n")
    return "marked " + text
'''

MARK_AND_WAIT = '''
def NAME(path: str, text: str, until: str) -> str:
    """
    Leaves a mark and waits.

    Args:
        path (str): The file that gets one line more.
        text (str): What the line says.
        until (str): The file that ends the waiting.
    """
    import os
    import time

    with open(path, "a") as file:
        file.write(text + "\\n")
    while not os.path.exists(until):
        time.sleep(0.02)
    return "marked " + text
'''


def wait_until(look: Callable[[], Any], what: str = "a condition", seconds: float = WAIT) -> Any:
    """What ``look`` returns once it is true; failures to reach the server count as false."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if found := look():
                return found
        except httpx.HTTPError:
            pass
        time.sleep(0.03)
    raise AssertionError(f"{what} did not come true in {seconds} s")


def marks(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@dataclass(frozen=True)
class Faults:
    """The directory through which a server is told where to break."""

    directory: Path

    def arm(self, name: str, word: str = "kill") -> None:
        for old in (f"{name}.hit", f"{name}.go"):
            (self.directory / old).unlink(missing_ok=True)
        draft = self.directory / f".{name}"
        draft.write_text(word)
        draft.rename(self.directory / name)

    def await_hit(self, name: str) -> None:
        wait_until((self.directory / f"{name}.hit").exists, f"the point {name}")

    def go_on(self, name: str) -> None:
        (self.directory / f"{name}.go").touch()

    def clear(self) -> None:
        for path in self.directory.iterdir():
            path.unlink()


@dataclass
class World:
    """A server that may be killed, the faults that it knows, and the model that it talks to."""

    server: ServerProcess
    faults: Faults
    provider: ScriptedProvider

    def client(self) -> Client:
        return Client(self.server.url, self.provider)

    def await_death(self) -> None:
        assert self.server.process is not None
        self.server.process.wait(timeout=WAIT)
        self.server.kill()

    def revive(self) -> None:
        """Start the server again; it was killed."""
        self.server.kill()
        self.faults.clear()
        self.server.start()

    def crash(self) -> None:
        """SIGKILL to the whole tree, and a new start."""
        self.revive()


Scenario = Generator[None, None, None]
"""What is done before a crash, a ``yield``, and what is done after it."""


class Mortal(Protocol):
    """What may be killed and started again: ``crash`` does both."""

    def crash(self) -> None: ...


def through_a_crash(mortal: Mortal, *scenarios: Scenario) -> None:
    """Let all of them go through the same crash: a start of the server takes seconds."""
    for scenario in scenarios:
        next(scenario)
    mortal.crash()
    for scenario in scenarios:
        next(scenario, None)


@dataclass
class Follower:
    """A client that streams a request and comes back with its cursor whenever the stream breaks off.

    ``before``: the agent's newest run when it began; a newer one is that of the request.
    """

    url: str
    agent: str
    body: Mapping[str, Json]
    before: str = ""
    chunks: list[dict[str, Json]] = field(default_factory=list)
    breaks: int = 0
    run: str = ""
    error: BaseException | None = None
    give_up: threading.Event = field(default_factory=threading.Event)

    def start(self) -> Follower:
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        return self

    def join(self, seconds: float = WAIT) -> list[dict[str, Json]]:
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.give_up.set()
            raise AssertionError(f"{self.run} of {self.agent} did not end; {self.breaks} breaks; {self.chunks[-3:]}")
        if self.error is not None:
            raise self.error
        return self.chunks

    @property
    def cursor(self) -> int:
        return max((chunk["seq_id"] or 0 for chunk in self.chunks if "seq_id" in chunk), default=0)

    @property
    def done(self) -> bool:
        return bool(self.chunks) and self.chunks[-1]["message_type"] == "done"

    def _follow(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as http:
                self._once(http, f"/v1/agents/{self.agent}/messages/stream", self.body)
                while not self.done and not self.give_up.is_set():
                    self.breaks += 1
                    time.sleep(0.1)
                    self._again(http)
        except BaseException as error:
            self.error = error

    def _again(self, http: httpx.Client) -> None:
        try:
            if not self.run:
                runs = http.get("/v1/runs/", params={"agent_id": self.agent}).json()
                newest = runs[0]["id"] if runs else ""
                self.run = newest if newest != self.before else ""
        except (httpx.HTTPError, ValueError, LookupError):
            return
        if self.run:
            self._once(http, f"/v1/runs/{self.run}/stream", {"starting_after": self.cursor})
        else:
            self._once(http, f"/v1/agents/{self.agent}/messages/stream", self.body)

    def _once(self, http: httpx.Client, path: str, body: Mapping[str, Json]) -> None:
        from tests.stories.client import Frames

        cursor = self.cursor
        try:
            with Frames(http, path, body) as frames:
                for chunk in frames:
                    if chunk["message_type"] in END and (chunk.get("seq_id") or cursor + 1) <= cursor:
                        continue  # the end is told again to whoever comes back for it
                    self.chunks.append(chunk)
                    self.run = chunk.get("run_id") or self.run
        except httpx.HTTPError:
            return
        except AssertionError as refused:
            if not str(refused).startswith("503"):
                raise


def follow(api: Client, agent: str, *messages: Json, **options: Json) -> Follower:
    """Stream a request in a thread of its own."""
    items = [{"role": "user", "content": item} if isinstance(item, str) else item for item in messages]
    body = {"messages": items, "stream_tokens": True, "background": True, **options}
    known = api.runs(agent)
    return Follower(api.url, agent, body, before=known[0]["id"] if known else "").start()


# --- what must hold ---------------------------------------------------------------------------------


def replayed(api: Client, run: str, after: int = 0) -> list[dict[str, Json]]:
    with api.open_stream(f"/v1/runs/{run}/stream", {"starting_after": after}) as frames:
        return list(frames)


def await_end(api: Client, run: str) -> dict[str, Json]:
    """The run once it is over."""

    def over() -> dict[str, Json] | None:
        found = api.get(f"/v1/runs/{run}")
        return found if found["status"] not in ("created", "running") else None

    return dict(wait_until(over, f"the end of {run}"))


def superseded_in(chunks: Sequence[Mapping[str, Json]]) -> set[str]:
    return {old for chunk in chunks for old in chunk.get("superseded_message_ids", ())}


def check_whole(api: Client, agent: str, follower: Follower) -> dict[str, Json]:
    """A reader that came back saw every finished message once; a later reader sees the same. Returns the run."""
    chunks, run = follower.chunks, api.get(f"/v1/runs/{follower.run}")
    check_numbers(chunks)
    assert [chunk["message_type"] for chunk in chunks if chunk["message_type"] in END] == END
    again = replayed(api, follower.run)
    check_numbers(again)
    history = [message for message in api.history(agent) if message["run_id"] == follower.run]
    gone = superseded_in(chunks) | superseded_in(again)
    assert gone.isdisjoint(message["id"] for message in history)
    assert gone.isdisjoint(chunk.get("id") for chunk in again)
    for kind, named in (("assistant_message", "content"), ("reasoning_message", "reasoning")):
        stored = {m["id"]: m[named] for m in history if m["message_type"] == kind}
        seen = {uid: text for uid, text in text_of(chunks, kind).items() if uid not in gone}
        unfinished = set(seen) - set(stored) if run["status"] == "failed" else set()
        assert len(unfinished) <= 1
        for told in (seen, text_of(again, kind)):
            assert {uid: said for uid, said in told.items() if uid not in unfinished} == stored, run["status"]
    for old in gone:
        check_superseded(api, agent, old)
    returns = [m["tool_call_id"] for m in history if m["message_type"] == "tool_return_message"]
    assert len(returns) == len(set(returns))
    return dict(run)


def check_numbers(chunks: Sequence[Mapping[str, Json]]) -> None:
    """Numbers rise, and nothing comes twice; the parts of one stored message share its number."""
    saying = [chunk for chunk in chunks if chunk["message_type"] not in ("ping", "done")]
    numbers = [chunk["seq_id"] for chunk in saying]
    assert numbers == sorted(numbers), [(chunk["seq_id"], chunk["message_type"]) for chunk in saying]
    said = [(chunk["seq_id"], chunk["message_type"]) for chunk in saying]
    assert len(said) == len(set(said)), "a chunk came twice"


def check_superseded(api: Client, agent: str, old: str) -> None:
    """Cursors and links that name a superseded message find what took its place."""
    found = api.call("GET", f"/v1/messages/{old}")
    if found.status == 404:
        return  # its run ended before anything took its place
    new = found.body[0]["id"]
    assert new != old
    after = [message["id"] for message in api.history(agent, after=old, order="asc")]
    assert after == [message["id"] for message in api.history(agent, after=new, order="asc")]


def signal_to(server: ServerProcess, number: signal.Signals) -> None:
    for member in server.everybody():
        os.kill(member.pid, number)


@contextmanager
def stopped(server: ServerProcess) -> Iterator[None]:
    """The server stands still as a machine without time does: every process of it."""
    signal_to(server, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_to(server, signal.SIGCONT)
