"""Batches as clients meet them: a served instance, mostly with default settings; nobody polls by hand."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeServer
from tests.scripted.answers import answer, text, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client, approve
from tests.survival.kit import Faults, wait_until

GATED = '''
def NAME(n: int) -> str:
    """
    Gated.

    Args:
        n (int): A number.
    """
    return f"gated {n}"
'''
PROGRAM = """
import json, sys
from letta_client import Letta, MessageCreate, TextContent, LettaBatchRequest
client = Letta(base_url=sys.argv[1])
agents = sys.argv[2:]
ask = [LettaBatchRequest(agent_id=a, messages=[MessageCreate(role="user", content=[TextContent(text="Hi " + a)])])
       for a in agents]
job = client.batches.create(requests=ask)
assert job.status == "running" and job.job_type == "batch" and job.callback_url is None, job
import time
for _ in range(1500):
    job = client.batches.retrieve(job.id)
    if job.status not in ("created", "running"):
        break
    time.sleep(0.1)
assert job.status == "completed", job
assert job.id in [found.id for found in client.batches.list()]
found = client.batches.messages.list(batch_id=job.id, limit=200).messages
one = client.batches.messages.list(batch_id=job.id, agent_id=agents[0]).messages
assert client.batches.cancel(batch_id=job.id) is None
assert client.jobs.retrieve(job_id=job.id).status == "completed"
assert job.id in [found.id for found in client.jobs.list()]
assert job.id not in [found.id for found in client.jobs.list_active()]
said = [m.content[-1].text for m in found if m.role == "assistant"]
print(json.dumps({"roles": [m.role for m in found], "one": [m.agent_id for m in one], "said": said}))
client.jobs.delete(job_id=job.id)
assert job.id not in [found.id for found in client.batches.list()]
"""


@pytest.fixture(scope="module")
def quick(make_server: MakeServer) -> ServerProcess:
    """A server that polls every second: the scripted provider ends a batch with its second look."""
    return make_server(LETTAWEB_BATCH_POLL_SECONDS="1")


@pytest.fixture
def api(quick: ServerProcess, provider: ScriptedProvider) -> Client:
    return Client(quick.url, provider)


def create(client: Client, *agents: str, **fields: Any) -> str:
    requests = [{"agent_id": agent, "messages": [{"role": "user", "content": "Hello"}]} for agent in agents]
    made = client.call("POST", "/v1/messages/batches", {"requests": requests, **fields})
    assert made.status == 200, made
    return str(made.body["id"])


def eventually(client: Client, look: Callable[[], Any]) -> Any:
    """What ``look`` returns once it is true; a poll a minute is the slowest that a served instance may be."""
    for patience in range(5):
        try:
            return client.wait_for(look)
        except AssertionError:
            if patience == 4:
                raise
    return None


def ended(client: Client, job: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        found = client.get(f"/v1/messages/batches/{job}")
        return found if found["status"] not in ("created", "running") else None

    return dict(eventually(client, over))


@pytest.mark.server
def test_the_sdk_makes_a_batch_and_reads_it(
    server: ServerProcess, provider: ScriptedProvider, letta0_python: Path
) -> None:
    provider.settings.batch_polls = 0
    provider.script("Hi agent-", answer(text("Hello yourself."), times=0))
    with Client(server.url, provider) as client:
        agents = [client.agent() for _ in range(2)]
        local = client.agent(model="demo/demo", name=f"demo {uuid.uuid4().hex[:6]}")
    done = subprocess.run(
        [str(letta0_python), "-c", PROGRAM, server.url, *agents, local],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert sorted(found["roles"]) == ["assistant"] * 3 + ["user"] * 3
    assert set(found["one"]) == {agents[0]}
    assert found["said"].count("Hello yourself.") == 2
    assert provider.refused == []


@pytest.mark.server
def test_a_parked_call_is_decided_by_the_normal_route_and_goes_on(api: Client) -> None:
    gated = api.gated(GATED)
    agent, other = api.agent(gated), api.agent()
    api.provider.script(gated["name"], answer(tool_use(gated["name"], {"n": 1}, "call_1")), answer(text("Done.")))
    api.provider.script("Hello", answer(text("Hello yourself."), times=0))
    api.provider.settings.batch_polls = None
    job = create(api, agent, other)
    api.provider.await_batches(timeout=20)
    busy = api.send(other, "Are you there?")
    assert (busy.status, busy.body["batch_id"]) == (409, job)
    api.provider.settings.batch_polls = 0
    parked = {"parked": 1, "done": 1}
    eventually(api, lambda: api.get(f"/api/batches/{job}")["counts"] == parked)
    answered = api.decide(agent, approve("call_1"))
    assert (answered.status, answered.messages, answered.stop) == (200, [], "end_turn")
    assert answered.headers["x-lettaweb-continues"] == "batch"
    assert ended(api, job)["status"] == "completed"
    assert api.send(other, "And live?").stop == "end_turn"
    said = [message["content"] for message in api.provider.generations[-1].body["messages"]]
    assert [str(content).count("Hello") for content in said] == [1, 1, 0]  # question, answer, the new question


@pytest.mark.server
def test_a_stop_in_the_middle_of_a_submit_sends_nothing_twice(
    make_server: MakeServer, provider: ScriptedProvider, tmp_path: Path
) -> None:
    faults = Faults(tmp_path)
    server = make_server(LETTAWEB_FAULTS=str(tmp_path))
    provider.script("Hello", answer(text("Hello yourself."), times=0))
    provider.settings.batch_polls = None
    with Client(server.url, provider) as client:
        faults.arm("batch_submitted", "wait")
        job = create(client, client.agent(), client.agent())
        faults.await_hit("batch_submitted")
        stop_at(server, faults, "batch_submitted")
        (batch,) = provider.await_batches()
        server.start()
        provider.end_batch(batch)
        server.manage("poll_batches")
        assert client.get(f"/v1/messages/batches/{job}")["status"] == "completed"
        assert client.get(f"/api/batches/{job}")["counts"] == {"done": 2}
    assert len(provider.batches) == 1
    assert provider.refused == []


def stop_at(server: ServerProcess, faults: Faults, point: str) -> None:
    """SIGTERM while the poller stands at a point; it goes on there once the stop is under way."""
    assert server.process is not None
    server.process.terminate()
    wait_until(lambda: not server.healthy(), "the stop")
    faults.go_on(point)
    assert server.process.wait(timeout=90) == 0


@pytest.mark.server
def test_a_batch_of_a_model_without_a_batch_api_ends_by_itself(
    server: ServerProcess, provider: ScriptedProvider
) -> None:
    with Client(server.url, provider) as client:
        gated = client.gated(GATED)
        agents = [client.agent(model="demo/demo", name=f"demo {uuid.uuid4().hex[:6]}") for _ in range(3)]
        asks = client.agent(gated, model="demo/demo")
        requests = [{"agent_id": agent, "messages": [{"role": "user", "content": "Hello"}]} for agent in agents]
        call = {"role": "user", "content": f'Please call {gated["name"]} with {{"n": 5}}'}
        requests.append({"agent_id": asks, "messages": [call]})
        made = client.call("POST", "/v1/messages/batches", {"requests": requests})
        job = made.body["id"]
        client.wait_for(lambda: client.get(f"/api/batches/{job}")["counts"].get("done") == 3, "three answers")
        client.wait_for(lambda: client.get(f"/api/batches/{job}/approvals"), "the parked call")
        (waiting,) = client.get(f"/api/batches/{job}/approvals")
        (wave,) = client.get(f"/api/batches/{job}/llm-batches")
        assert (wave["local"], wave["llm_provider"], wave["agent_count"]) == (True, "demo", 4)
        assert client.decide(asks, approve(waiting["tool_call_id"])).status == 200
        assert ended(client, job)["status"] == "completed"
        assert client.get(f"/api/batches/{job}")["counts"] == {"done": 4}
        messages = client.get(f"/v1/messages/batches/{job}/messages")["messages"]
        assert {message["agent_id"] for message in messages} == {*agents, asks}
        # Live answers carry the time at which they were asked for: only within an agent it follows their order.
        for agent in (*agents, asks):
            times = [message["created_at"] for message in messages if message["agent_id"] == agent]
            assert times == sorted(times, reverse=True)
