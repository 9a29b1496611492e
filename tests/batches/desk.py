"""What a test does with batches: agents made through the API, a job, polls, answers of the provider."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.management import call_command

from agents.models import Agent, Message
from tests import rest
from tests.scripted.answers import Answer, Block, answer, text, tool_use
from tests.scripted.conversation import Conversation
from tests.scripted.log import Received
from tests.scripted.server import ScriptedProvider

Json = Any
MODELS = {
    "sonnet": "anthropic/claude-3-5-sonnet-20241022",
    "haiku": "anthropic/claude-3-5-haiku-20241022",
    "opus": "anthropic/claude-3-opus-20240229",
}
WEATHER = '''
def get_weather(location: str) -> str:
    """
    Tells the weather of a place.

    Args:
        location (str): The place.
    """
    return "The weather in " + location + " is sunny."
'''
RETHINK = '''
def rethink_memory(agent_state: "AgentState", new_memory: str, target_block_label: str) -> str:
    """
    Writes a block of memory anew.

    Args:
        new_memory (str): The new memory.
        target_block_label (str): The block.
    """
    agent_state.memory.update_block_value(label=target_block_label, value=new_memory)
    return None
'''
INIT = {"type": "run_first", "tool_name": "get_weather"}


@dataclass
class Desk:
    """The API, the poll and the provider."""

    provider: ScriptedProvider

    # --- agents ---

    def tool(self, source: str = WEATHER, **fields: Json) -> dict[str, Json]:
        return dict(rest.new_tool(source, **fields))

    def agent(self, *tools: Mapping[str, Json], **fields: Json) -> str:
        """An agent that answers in text or calls its tools; a memgpt_v2_agent unless told otherwise."""
        body = {
            "name": f"agent {uuid.uuid4().hex[:8]}",
            "agent_type": "memgpt_v2_agent",
            "model": MODELS["sonnet"],
            "include_base_tools": False,
            "tool_ids": [tool["id"] for tool in tools],
            **fields,
        }
        return str(rest.new_agent(**body)["id"])

    def three(self) -> list[str]:
        """The three agents of the first table: with heartbeats, one tool, and the rule to call it first."""
        tool = self.tool()
        return [self.agent(tool, model=model, tool_rules=[INIT]) for model in MODELS.values()]

    def plain(self, count: int = 1, **fields: Json) -> list[str]:
        """Agents that call nothing."""
        return [self.agent(agent_type="letta_v1_agent", **fields) for _ in range(count)]

    def state(self, agent: str) -> dict[str, Json]:
        return dict(rest.get(f"agents/{agent}"))

    def context(self, agent: str) -> int:
        """How many messages stand in the agent's context."""
        return len(self.state(agent)["message_ids"])

    def stored(self, agent: str) -> int:
        return Message.objects.filter(agent__uuid=agent.removeprefix("agent-")).count()

    def state_messages(self, agent: str) -> list[dict[str, Json]]:
        return list(rest.get(f"agents/{agent}/messages", limit=100))

    def roles_stored(self, agent: str) -> list[str]:
        rows = Message.objects.filter(agent__uuid=agent.removeprefix("agent-")).order_by("id")
        return list(rows.values_list("role", flat=True))

    def row(self, agent: str) -> Agent:
        return Agent.objects.get(uuid=agent.removeprefix("agent-"))

    # --- jobs ---

    def create(self, *agents: str, expect: int = 200, text: str = "Hi there", **fields: Json) -> dict[str, Json]:
        """A job that says something to each agent."""
        requests = [{"agent_id": agent, "messages": [{"role": "user", "content": text}]} for agent in agents]
        return dict(rest.post("messages/batches", {"requests": requests, **fields}, expect=expect))

    def submitted(self, *agents: str, **fields: Json) -> str:
        """The id of a job whose first wave is at the provider."""
        job = self.create(*agents, **fields)
        self.poll()
        return str(job["id"])

    def job(self, job: str) -> dict[str, Json]:
        return dict(rest.get(f"messages/batches/{job}"))

    def more(self, job: str, what: str = "", *, method: str = "GET", expect: int = 200, **params: Json) -> Json:
        """What /api/batches says of a job."""
        return api(method, f"batches/{job}{what}", expect=expect, **params)

    def detail(self, job: str) -> dict[str, Json]:
        return dict(self.more(job))

    def waves(self, job: str) -> list[dict[str, Json]]:
        """The LLM batches, oldest first."""
        return list(self.more(job, "/llm-batches", order="asc"))

    def items(self, job: str, **params: Json) -> list[dict[str, Json]]:
        """The items, oldest first."""
        return list(self.more(job, "/items", order="asc", **params))

    def messages(self, job: str, **params: Json) -> list[dict[str, Json]]:
        return list(rest.get(f"messages/batches/{job}/messages", **{"limit": 200, **params})["messages"])

    def poll(self, times: int = 1) -> None:
        for _ in range(times):
            call_command("poll_batches", verbosity=0, stdout=_Nowhere())

    # --- the provider ---

    def answers(self, *blocks: Block, marker: str = "", times: int = 0, **options: Json) -> None:
        """What the model says to requests that hold ``marker``, for ever unless ``times``."""
        self.provider.script(marker, answer(*blocks, times=times, **options))

    def end(self, outcomes: Mapping[str, str] | None = None, *, number: int = -1, **options: Json) -> str:
        """End the newest batch of the provider; ``outcomes`` by agent."""
        batch = self.provider.batches[number]
        by_id = {self.custom_id(agent): outcome for agent, outcome in (outcomes or {}).items()}
        self.provider.end_batch(batch.id, by_id, **options)
        return batch.id

    def custom_id(self, agent: str) -> str:
        """Under which id the newest request of an agent is known at the provider."""
        from batches.models import BatchItem

        found = BatchItem.objects.filter(agent_uuid=agent.removeprefix("agent-")).exclude(llm_batch=None)
        newest = found.order_by("-id").first()
        assert newest is not None
        return newest.wire_id

    def round(self, *args: Json, **options: Json) -> None:
        """The provider ends its batch, and a poll reads it."""
        self.end(*args, **options)
        self.poll()

    @property
    def submits(self) -> list[Received]:
        """Every request that would make a batch."""
        paths = ("/v1/messages/batches", "/v1/batches")
        return [entry for entry in self.provider.requests if entry.method == "POST" and entry.path in paths]

    def rule(self, rule: Callable[[Conversation], Answer | None]) -> None:
        self.provider.rule(rule)


def api(method: str, path: str, *, body: Json = None, expect: int = 200, **params: Json) -> Json:
    """The JSON of the answer to ``method /api/path``; the test fails unless its status is ``expect``."""
    where, data = f"/api/{path}?{urlencode(params)}", "" if body is None else json.dumps(body)
    response = rest.CLIENT.generic(method, where, data, content_type="application/json")
    assert response.status_code == expect, (response.status_code, response.content)
    return response.json() if response.content else None


class _Nowhere:
    def write(self, text: str) -> None:
        """Nobody reads it."""


def weather(*, heartbeat: bool) -> Sequence[Block]:
    """The answer of the first table: a text and a call, under an id that repeats across agents."""
    given = {"location": "Las Vegas", "inner_thoughts": "I should get the weather", "request_heartbeat": heartbeat}
    said = "Let me check the current weather in San Francisco for you."
    return text(said), tool_use("get_weather", given, "tu_01234567890123456789012345")


def roles(messages: Sequence[Mapping[str, Json]], agent: str) -> list[str]:
    """The roles of one agent's messages, as listed."""
    return [message["role"] for message in messages if message["agent_id"] == agent]
