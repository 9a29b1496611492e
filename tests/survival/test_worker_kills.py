"""SIGKILL of workers at every phase of a run, under a web process that lives on: its readers notice nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scripted.answers import answer, text, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client, Json, approve
from tests.survival.conftest import mortal
from tests.survival.kit import MARK, WAIT, Faults, World, await_end, check_whole, follow, marks, through_a_crash
from tests.survival.test_interrupted_tools import asked, set_of_three
from tests.survival.test_kills import AFTER_KILL, DONE, SAID, contents, scripted, told
from tests.survival.test_takeover import SECOND, asked_again
from tests.survival.workers import Worker, start_worker

pytestmark = pytest.mark.server
MakeServer = Callable[..., ServerProcess]

POINTS = ("ask", "flush", "acted")


@dataclass
class Front:
    """A web process whose one slot is taken for good, and the workers that come and go behind it."""

    world: World
    worker: Worker | None = None

    def hire(self) -> None:
        self.worker = start_worker(self.world.server, LETTAWEB_MAX_RUNS="10")

    def fire(self) -> None:
        """SIGKILL to the worker."""
        if self.worker is not None:
            self.worker.kill()

    def crash(self) -> None:
        """SIGKILL to the worker, and another one in its place."""
        self.fire()
        self.hire()

    def await_death(self) -> None:
        assert self.worker is not None
        self.worker.process.wait(WAIT)

    def fill(self) -> None:
        """Take the slot: the model never answers this run."""
        with self.world.client() as api:
            api.provider.script("[fill]", answer(text("never"), hold="fill", times=0))
            agent = api.agent()
            api.send(agent, "[fill]", path=f"/v1/agents/{agent}/messages/async")
            api.provider.await_held("fill", WAIT)


@pytest.fixture
def front(make_server: MakeServer, faults: Faults, provider: ScriptedProvider) -> Iterator[Front]:
    server = mortal(make_server, faults.directory, LETTAWEB_MAX_RUNS="1")
    made = Front(World(server, faults, provider))
    yield made
    made.fire()
    provider.release("fill")
    server.stop()


def test_it_goes_on_whenever_workers_die(front: Front, tmp_path: Path) -> None:
    front.fill()
    front.hire()
    with front.world.client() as api:
        for point in POINTS:
            killed_at(front, api, point, tmp_path / point)
        scenarios = [
            asked_again(api, "the same", *SECOND["the same"]),
            asked_again(api, "something else", *SECOND["something else"]),
            set_of_three(api, tmp_path),
            asked(api, tmp_path, "it did not happen"),
        ]
        through_a_crash(front, *scenarios)
        decided_while_nobody_works(front, api, tmp_path / "decided")
    assert front.world.provider.refused == []


def killed_at(front: Front, api: Client, point: str, path: Path) -> None:
    asked, times, status = AFTER_KILL[point]
    agent = scripted(api, path, asked=asked, marker=f"[{point}]", delay=20)
    front.world.faults.arm(point)
    follower = follow(api, agent, f"go [{point}]")
    front.await_death()
    front.hire()
    follower.join()
    run = check_whole(api, agent, follower)
    assert (run["status"], run["stop_reason"]) == ("completed", "end_turn")
    assert [result for result, _ in told(api, agent)] == [status]
    assert contents(api, agent) == [SAID, DONE]
    assert marks(path) == ["one"] * times
    assert follower.breaks == 0, "a reader elsewhere need not notice"


def decided_while_nobody_works(front: Front, api: Client, path: Path) -> None:
    """Everything dies after the decision and before anybody has claimed its run."""
    tool = api.gated(MARK)
    agent = api.agent(tool)
    api.provider.script("[ask]", answer(tool_use(tool["name"], {"path": str(path), "text": "one"})), answer(text(DONE)))
    (call_id,) = api.send(agent, "[ask]").waiting
    front.fire()
    run = decided(api, agent, call_id)
    assert (run["status"], marks(path)) == ("created", [])
    front.world.crash()
    assert api.get(f"/v1/runs/{run['id']}")["status"] == "created"
    front.hire()
    assert await_end(api, run["id"])["stop_reason"] == "end_turn"
    assert marks(path) == ["one"]
    assert [status for status, _ in told(api, agent)] == ["success"]


def decided(api: Client, agent: str, call_id: str) -> dict[str, Json]:
    """Approve without waiting for the run that follows."""
    body = {"messages": [{"type": "approval", "approvals": [approve(call_id)]}]}
    answered = api.call("POST", f"/v1/agents/{agent}/messages/async", body)
    assert answered.status == 200, answered
    return dict(answered.body)
