"""The same desk whose jobs are made and read by letta-client 0.1.324, in an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.batches.desk import Desk

Json = Any
PROGRAM = """
import json, sys
from letta_client import Letta, LettaBatchRequest, MessageCreate, TextContent

def create(client, agents, text):
    said = [MessageCreate(role="user", content=[TextContent(text=text)])]
    return client.batches.create(requests=[LettaBatchRequest(agent_id=agent, messages=said) for agent in agents])

CALLS = {
    "create": create,
    "retrieve": lambda client, **given: client.batches.retrieve(**given),
    "list": lambda client, **given: client.batches.list(**given),
    "cancel": lambda client, **given: client.batches.cancel(**given),
    "messages": lambda client, **given: client.batches.messages.list(**given).messages,
}

def plain(found):
    if isinstance(found, list):
        return [plain(one) for one in found]
    return found if found is None else json.loads(found.json())

for line in sys.stdin:
    url, call, given = json.loads(line)
    print(json.dumps(plain(CALLS[call](Letta(base_url=url), **given))), flush=True)
"""


class Sdk:
    """The client's interpreter: one for all tests, for the client takes seconds to be imported."""

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [str(python), "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def call(self, url: str, name: str, **given: Json) -> Json:
        """What ``client.batches`` answers, as JSON."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([url, name, given]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client failed at {name}; its error is on stderr"
        return json.loads(line)

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


@dataclass
class SdkDesk(Desk):
    """Jobs by ``client.batches``; what Letta has no word for (waves, items) by /api."""

    sdk: Sdk
    url: str

    def create(self, *agents: str, expect: int = 200, text: str = "Hi there", **fields: Json) -> dict[str, Json]:
        return dict(self.sdk.call(self.url, "create", agents=agents, text=text))

    def job(self, job: str) -> dict[str, Json]:
        return dict(self.sdk.call(self.url, "retrieve", batch_id=job))

    def jobs(self) -> list[dict[str, Json]]:
        return list(self.sdk.call(self.url, "list"))

    def cancel(self, job: str) -> None:
        assert self.sdk.call(self.url, "cancel", batch_id=job) is None

    def messages(self, job: str, **params: Json) -> list[dict[str, Json]]:
        return list(self.sdk.call(self.url, "messages", batch_id=job, **{"limit": 200, **params}))
