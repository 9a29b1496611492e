"""Several processes on one PostgreSQL: streams across them, takeovers, wake-ups, few connections."""

from __future__ import annotations

import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests import databases
from tests.scripted.answers import answer, text, tokens, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client, Json
from tests.survival.kit import WAIT, Faults, check_whole, follow, replayed, signal_to, stopped, wait_until
from tests.survival.workers import Worker, start_worker

pytestmark = [pytest.mark.server, pytest.mark.postgresql]
MakeServer = Callable[..., ServerProcess]
LEASE = 4.0
STREAMS, MOST_CONNECTIONS = 500, 12
ECHO = '''
def NAME(text: str) -> str:
    """
    Gives the text back.

    Args:
        text (str): Any text.
    """
    return "echo " + text
'''


@dataclass
class Town:
    """Two web processes on one database, and what starts more."""

    database: str
    make: Callable[..., ServerProcess]
    first: ServerProcess
    second: ServerProcess

    def connections(self, name: str) -> int:
        sql = f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{name}'"
        return len(databases.say(sql))


@pytest.fixture(scope="module")
def town(make_server: MakeServer, make_database: Callable[[], str], redis_url: str) -> Iterator[Town]:
    database = make_database()

    def make(name: str, **environment: str) -> ServerProcess:
        shared = {"DATABASE_URL": database, "REDIS_URL": redis_url, "LETTAWEB_SECRET_KEY": "one for all of them"}
        given = {"LETTAWEB_LEASE_SECONDS": str(LEASE), "PGAPPNAME": name, **shared, **environment}
        return make_server(command="web", **given)

    made = Town(database, make, make("first"), make("second"))
    yield made
    made.first.stop()
    made.second.stop()


@pytest.fixture
def clients(town: Town, provider: ScriptedProvider) -> Iterator[tuple[Client, Client]]:
    for server in (town.first, town.second):
        if not server.healthy():
            server.kill()
            server.start()
    with Client(town.first.url, provider) as first, Client(town.second.url, provider) as second:
        yield first, second


def timed(api: Client, run: str, times: dict[int, float]) -> None:
    """Read a run's stream and note when each number came."""
    with api.open_stream(f"/v1/runs/{run}/stream", {}) as frames:
        for chunk in frames:
            if chunk.get("seq_id"):
                times.setdefault(chunk["seq_id"], time.monotonic())


def test_it_follows_a_run_of_another_process(clients: tuple[Client, Client]) -> None:
    here, there = clients
    agent = there.agent()
    there.provider.script("", answer(tokens(60), delay=25, hold="gate", hold_at=3))
    follower = follow(there, agent, "go")
    there.provider.await_held("gate", WAIT)
    run = wait_until(lambda: there.runs(agent))[0]["id"]
    times: tuple[dict[int, float], dict[int, float]] = ({}, {})
    readers = [
        threading.Thread(target=timed, args=(api, run, seen)) for api, seen in zip((here, there), times, strict=True)
    ]
    for reader in readers:
        reader.start()
    time.sleep(0.3)
    there.provider.release("gate")
    for reader in readers:
        reader.join(WAIT)
    follower.join()
    assert times[0].keys() == times[1].keys()
    later = [times[0][number] - times[1][number] for number in times[0]]
    assert statistics.median(later) <= 0.05, f"median {statistics.median(later):.3f} s later"
    assert replayed(here, run) == replayed(there, run)


def test_it_takes_over_from_a_killed_process_at_once(town: Town, clients: tuple[Client, Client]) -> None:
    here, there = clients
    agent = there.agent()
    there.provider.script(
        "", answer(text("Once upon a time there was"), hold="gate", hold_at=5), answer(text("The end."))
    )
    follow(there, agent, "go")
    there.provider.await_held("gate", WAIT)
    run = here.runs(agent)[0]["id"]
    town.second.kill()
    begun = time.monotonic()
    wait_until(lambda: here.get(f"/v1/runs/{run}")["status"] == "completed", "the takeover")
    assert time.monotonic() - begun < LEASE + 2
    follower = follow(here, agent, "next")
    follower.join()
    check_whole(here, agent, follower)
    assert here.provider.refused == []


def test_it_takes_over_from_a_process_that_stands_still(town: Town, clients: tuple[Client, Client]) -> None:
    here, there = clients
    agent = there.agent()
    there.provider.script("", answer(text("Once upon a time"), hold="gate", hold_at=5), answer(text("The end.")))
    follow(there, agent, "go")
    there.provider.await_held("gate", WAIT)
    run = here.runs(agent)[0]["id"]
    with stopped(town.second):
        begun = time.monotonic()
        wait_until(lambda: here.get(f"/v1/runs/{run}")["status"] == "completed", "the takeover")
        assert LEASE * 0.5 < time.monotonic() - begun < LEASE + 5
    wait_until(town.second.healthy)
    assert [m["content"] for m in there.history(agent) if m["message_type"] == "assistant_message"] == ["The end."]
    assert there.send(agent, "next").stop == "end_turn"
    assert here.provider.refused == []


def test_a_process_that_stands_still_in_a_transaction_gives_its_locks_back(
    town: Town, clients: tuple[Client, Client], faults: Faults
) -> None:
    here, _ = clients
    frozen = town.make("frozen", LETTAWEB_FAULTS=str(faults.directory))
    with Client(frozen.url, here.provider) as there:
        agent = there.agent()
        there.provider.script("", answer(text("Once upon a time"), hold="gate", hold_at=5), answer(text("The end.")))
        faults.arm("flush", "stop")  # with the row of its run in its hands
        follow(there, agent, "go")
        faults.await_hit("flush")
        run = here.runs(agent)[0]["id"]
        wait_until(lambda: here.get(f"/v1/runs/{run}")["status"] == "completed", "the takeover")
        signal_to(frozen, signal.SIGCONT)
        wait_until(frozen.healthy)
        assert [m["content"] for m in there.history(agent) if m["message_type"] == "assistant_message"] == ["The end."]
        assert there.send(agent, "next").stop == "end_turn"
    assert here.provider.refused == []
    assert frozen.terminate() == 0


def desk_decision(api: Client, agent: str, place: int = 0) -> Json:
    """Approve one waiting call the way the desk does."""
    call = api.get("/api/approvals/", agent_id=agent)["items"][place]
    body = {"decision": "approve", "version": call["version"], "digest": call["digest"]}
    return api.call("POST", f"/api/approvals/{call['id']}/decide", body)


def test_it_wakes_a_worker_for_a_decision(town: Town, clients: tuple[Client, Client]) -> None:
    """Web processes that are full leave a decision's run to a worker, which hears of it at once."""
    here, _ = clients
    worker = start_worker(town.first)
    full = town.make("full", LETTAWEB_MAX_RUNS="1")
    try:
        took = [decided_elsewhere(here, full, worker) for _ in range(5)]
    finally:
        full.stop()
        assert worker.terminate() == 0
    assert statistics.median(took) < 0.5, took
    assert here.provider.refused == []


def decided_elsewhere(here: Client, full: ServerProcess, worker: Worker) -> float:
    """Seconds from a decision at a process without a free slot to the next request at the model."""
    with Client(full.url, here.provider) as api:
        tool = api.gated(ECHO)
        agent = api.agent(tool)
        here.provider.script("", answer(tool_use(tool["name"], {"text": "x"})), answer(text("done")))
        api.send(agent, "go")
        count = len(here.provider.generations)
        begun = time.monotonic()
        assert desk_decision(api, agent).status == 200
        here.provider.await_requests(count + 1, WAIT)
        return time.monotonic() - begun


def test_it_never_leaves_a_set_stuck(town: Town, clients: tuple[Client, Client]) -> None:
    """Two people decide the two calls of a set at the same moment, at two processes."""
    here, there = clients
    tool = here.gated(ECHO)
    agent = here.agent(tool, parallel=True)
    calls = [tool_use(tool["name"], {"text": text_}) for text_ in ("one", "two")]
    for attempt in range(TRIES):
        here.provider.script("", answer(*calls), answer(text(f"done {attempt}")))
        assert here.send(agent, f"go {attempt}").stop == "requires_approval"
        waiting = here.get("/api/approvals/", agent_id=agent)["items"]
        assert len(waiting) == 2
        decide_at_once([here, there], waiting)
        wait_until(lambda: not here.get("/v1/runs/", agent_id=agent, active=True), "the end")
    runs = here.runs(agent)
    assert len(runs) == 2 * TRIES
    assert {run["stop_reason"] for run in runs} == {"requires_approval", "end_turn"}
    assert sum(run["stop_reason"] == "end_turn" for run in runs) == TRIES
    assert here.provider.refused == []


TRIES = 40


def decide_at_once(apis: list[Client], waiting: list[Json]) -> None:
    ready, answers = threading.Barrier(2), []

    def decide(api: Client, call: Json) -> None:
        body = {"decision": "approve", "version": call["version"], "digest": call["digest"]}
        ready.wait(10)
        answers.append(api.call("POST", f"/api/approvals/{call['id']}/decide", body).status)

    people = [threading.Thread(target=decide, args=pair) for pair in zip(apis, waiting, strict=True)]
    for person in people:
        person.start()
    for person in people:
        person.join(WAIT)
    assert answers == [200, 200]


def open_streams(server: ServerProcess, run: str, count: int) -> list[socket.socket]:
    """Readers of a run whose answers have begun."""
    head = f"POST /v1/runs/{run}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    made = [socket.create_connection(("127.0.0.1", server.port), timeout=WAIT) for _ in range(count)]
    for connection in made:
        connection.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
    for connection in made:
        assert connection.recv(64).startswith(b"HTTP/1.1 200 OK")
    return made


def test_it_needs_few_connections_for_many_streams(town: Town, clients: tuple[Client, Client]) -> None:
    here, there = clients
    here.provider.script("", answer(tokens(5), hold="gate", hold_at=5, times=0))
    followers = [follow(api, api.agent(), "go") for api in (here, there) for _ in range(5)]
    wait_until(lambda: all(one.run for one in followers), "streams")
    readers = open_streams(town.first, followers[0].run, STREAMS // 2)  # of a run that this process drives
    readers += open_streams(town.first, followers[-1].run, STREAMS // 2)  # and of one that it does not
    most = 0
    with ThreadPoolExecutor(20) as people:
        asked = [people.submit(here.get, "/v1/agents/", limit=5) for _ in range(200)]
        while not all(one.done() for one in asked):
            most = max(most, town.connections("first"))
        assert [one.exception() for one in asked] == [None] * len(asked)
    here.provider.release("gate")
    for follower in followers:
        follower.join()
    for reader in readers:
        reader.close()
    assert 1 < most <= MOST_CONNECTIONS
