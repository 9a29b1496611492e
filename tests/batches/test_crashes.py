"""kill -9 at every boundary of a poll: nothing is sent twice, lost or doubled, and no tool runs twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection

from agents.models import Message, Run, ToolCall
from batches.models import BatchItem, StagedResult
from tests.batches.desk import Desk, roles
from tests.scripted.answers import text, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ROOT, clean_environment
from tests.survival.kit import Faults

APPEND = '''
def appends(agent_state: "AgentState", what: str) -> str:
    """
    Writes more into the block human.

    Args:
        what (str): What to add.
    """
    block = agent_state.memory.get_block("human")
    agent_state.memory.update_block_value(label="human", value=block.value + what)
    return "written"
'''


PARENT = """
import json, os, sys
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
import anthropic
import batches.poll
from lettaweb.lib import faults
for line in sys.stdin:
    data_dir, directory = json.loads(line)
    child = os.fork()
    if not child:
        settings.LETTAWEB_DATA_DIR, faults._directory = data_dir, directory
        call_command("poll_batches", stdout=sys.stderr)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def database_url() -> str:
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    return f"postgres://{found['USER']}:{found['PASSWORD']}@{found['HOST']}:{found['PORT'] or 5432}/{found['NAME']}"


class Poller:
    """Processes that poll and are killed: forked from one that has read all code, which takes seconds."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.parent = subprocess.Popen(
            [sys.executable, "-c", PARENT], env={**clean_environment(), **environment}, cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def poll(self, data_dir: Path, faults: Path) -> int:
        """The exit status of one poll as ``os.waitpid`` gives it."""
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write(json.dumps([str(data_dir), str(faults)]) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def terminate(self, data_dir: Path, faults: Faults, point: str) -> int:
        """The exit status of a poll that gets SIGTERM while it stands at a point."""
        faults.arm(point, "wait")
        with ThreadPoolExecutor(1) as thread:
            polled = thread.submit(self.poll, data_dir, faults.directory)
            try:
                faults.await_hit(point)
                (child,) = psutil.Process(self.parent.pid).children()
                child.terminate()
            finally:
                faults.go_on(point)
            return polled.result()

    def stop(self) -> None:
        assert self.parent.stdin is not None
        self.parent.stdin.close()
        self.parent.wait(10)


@pytest.fixture(scope="module")
def poller(django_db_setup: None, scripted_server: ScriptedProvider) -> Iterator[Poller]:
    made = Poller(
        {
            **scripted_server.environment,
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "lettaweb.settings",
            "LETTAWEB_PROVIDER_RETRIES": "0",
            "NO_PROXY": "*",
        }
    )
    yield made
    made.stop()


Die = Callable[[str], None]


@pytest.fixture
def die(poller: Poller, tmp_path: Path) -> Die:
    """A poll in a process of its own that is killed at a point."""

    def poll_and_die(fault: str) -> None:
        faults = tmp_path / "faults"
        faults.mkdir()
        (faults / f"batch_{fault}").write_text("kill")
        status = poller.poll(tmp_path, faults)
        assert os.WIFSIGNALED(status), status
        assert os.WTERMSIG(status) == signal.SIGKILL

    return poll_and_die


@pytest.fixture
def agents(desk: Desk) -> list[str]:
    """Two that answer in text, one whose tool writes its memory."""
    writes = desk.agent(
        desk.tool(APPEND), agent_type="letta_v1_agent", memory_blocks=[{"label": "human", "value": "", "limit": 100}]
    )
    desk.answers(text("Yes."))
    desk.provider.script("appends", *_calls())
    return [*desk.plain(2), writes]


def _calls() -> list[Any]:
    from tests.scripted.answers import answer

    return [answer(tool_use("appends", {"what": "x"})), answer(text("Written."), times=0)]


def finish(desk: Desk) -> None:
    """Polls, and ends at the provider, until nothing is left to do."""
    for _ in range(12):
        desk.poll()
        for number, batch in enumerate(desk.provider.batches):
            if batch.status != "ended":
                desk.end(number=number)
        if not Run.objects.filter(status__in=["created", "running"]).exists():
            break
    desk.poll()


def check(desk: Desk, job: str, agents: list[str], *, submits: int = 2) -> None:
    """What holds after any crash."""
    assert desk.job(job)["status"] == "completed", desk.detail(job)
    assert desk.detail(job)["counts"] == {"done": 3}
    messages = desk.messages(job)
    assert [roles(messages, agent) for agent in agents[:2]] == [["assistant", "user"]] * 2
    assert roles(messages, agents[2]) == ["assistant", "tool", "assistant", "user"]
    assert len({message["id"] for message in messages}) == len(messages) == 8
    assert len(desk.provider.batches) == submits
    assert BatchItem.objects.count() == 4
    assert not StagedResult.objects.exists()
    assert Message.objects.filter(context=2).count() == 3  # the questions, each beside its answer
    assert ToolCall.objects.count() == 1
    assert desk.provider.refused == []


@pytest.mark.parametrize("fault", ["prepared", "spooled", "intended", "submitted"])
def test_a_crash_while_sending(desk: Desk, agents: list[str], die: Die, fault: str) -> None:
    job = str(desk.create(*agents)["id"])
    die(fault)
    desk.poll(4)
    assert len(desk.provider.batches) == 1
    finish(desk)
    check(desk, job, agents)
    assert ToolCall.objects.get().outcome == "ran"


@pytest.mark.parametrize("point", ["batch_intended", "batch_submitted"])
def test_a_poller_that_is_terminated_in_a_submit(
    desk: Desk, agents: list[str], poller: Poller, tmp_path: Path, point: str
) -> None:
    job = str(desk.create(*agents)["id"])
    faults = Faults(tmp_path / "faults")
    faults.directory.mkdir()
    status = poller.terminate(tmp_path, faults, point)
    assert os.WIFSIGNALED(status), status
    assert os.WTERMSIG(status) == signal.SIGTERM
    desk.poll(4)
    assert len(desk.submits) == len(desk.provider.batches) == 1
    finish(desk)
    check(desk, job, agents)


def test_a_chunk_that_could_not_be_stored_is_read_again_one_by_one(
    desk: Desk, agents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = desk.submitted(*agents)
    desk.end()
    monkeypatch.setattr("lettaweb.lib.faults._directory", str(tmp_path))
    Faults(tmp_path).arm("batch_chunk", "fail")
    finish(desk)
    assert (tmp_path / "batch_chunk.hit").exists()
    check(desk, job, agents)


@pytest.mark.parametrize("fault", ["staged", "downloaded", "chunk_stepped", "stepped"])
def test_a_crash_while_reading(desk: Desk, agents: list[str], die: Die, fault: str) -> None:
    job = desk.submitted(*agents)
    desk.end()
    die(fault)
    finish(desk)
    check(desk, job, agents)
    assert ToolCall.objects.get().outcome == "ran"


@pytest.mark.parametrize("fault", ["claimed", "ran"])
def test_a_crash_while_a_tool_runs(desk: Desk, agents: list[str], die: Die, fault: str) -> None:
    job = desk.submitted(*agents)
    desk.end()
    die(fault)
    finish(desk)
    check(desk, job, agents)
    call = ToolCall.objects.get()
    assert (call.outcome, call.result_ok) == ("interrupted", False)
    assert "outcome is unknown" in call.result_text
    assert desk.state(agents[2])["memory"]["blocks"][0]["value"] == ""


def test_a_gated_call_that_was_interrupted_asks_people_again(desk: Desk, die: Die) -> None:
    from tests.batches.test_approvals_inside import GATED, decide

    agent = desk.agent(desk.tool(GATED, default_requires_approval=True), agent_type="letta_v1_agent")
    job = desk.submitted(agent)
    desk.answers(tool_use("gated_tool", {"n": 1}, "call_1"), times=1)
    desk.round()
    decide(desk, agent, "call_1")
    die("claimed")
    desk.poll()
    assert desk.detail(job)["counts"] == {"parked": 1}
    assert ToolCall.objects.get().state == "unknown"
    decide(desk, agent, "call_1")  # it did not happen: run it
    desk.poll()
    assert ToolCall.objects.get().outcome == "ran"
    assert desk.detail(job)["counts"] == {"in_flight": 1}
