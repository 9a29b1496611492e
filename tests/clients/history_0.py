"""Messages, runs, steps and models with letta-client 0.1.324: ``history_0.py URL`` ends with 0 when all is well."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from letta_client import Letta
from letta_client.core.api_error import ApiError

ASK = [{"role": "user", "content": "Say something about needles."}]


def messages_story(client: Any, agent: Any) -> Any:
    newest = client.agents.messages.list(agent_id=agent.id, limit=1)[0]
    answer = client.agents.messages.create(agent_id=agent.id, messages=ASK)
    after = client.agents.messages.list(agent_id=agent.id, after=newest.id)
    assert after[0].message_type == "user_message", after
    assert [message.id for message in after[1:]] == [message.id for message in answer.messages]
    assert client.agents.messages.list(agent_id=agent.id, before=newest.id) == []
    found = client.agents.messages.search(query="needles", search_mode="fts", limit=5)
    assert found[-1].message.id == after[0].id
    assert found[-1].message.role == "user"
    assert refused(client.agents.messages.list, agent_id=agent.id, limit=-1) == 422
    assert refused(client.runs.retrieve, run_id="run-00000000-0000-4000-8000-000000000000") == 404
    return answer


def refused(call: Callable[..., Any], **arguments: Any) -> int | None:
    """The status of a call's error, None when it went through."""
    try:
        call(**arguments)
    except ApiError as error:
        status: int | None = error.status_code
        return status
    return None


def runs_story(client: Any, agent: Any, answer: Any) -> None:
    run = client.runs.list(agent_ids=[agent.id])[0]
    assert (run.status, run.stop_reason, run.agent_id) == ("completed", "end_turn", agent.id)
    assert client.runs.list_active(agent_id=agent.id) == []
    assert client.runs.retrieve(run_id=run.id).id == run.id
    assert client.runs.messages.list(run_id=run.id)[-1].id == answer.messages[-1].id
    assert client.runs.usage.retrieve(run_id=run.id).total_tokens == answer.usage.total_tokens
    step = client.runs.steps.list(run_id=run.id)[0]
    assert [found.id for found in client.steps.list(agent_id=agent.id)] == [step.id]
    assert client.steps.feedback.create(step_id=step.id, feedback="negative").feedback == "negative"
    assert [found.id for found in client.steps.list(agent_id=agent.id, feedback="negative")] == [step.id]
    assert client.steps.metrics.retrieve(step_id=step.id).id == step.id
    assert client.steps.messages.list(step_id=step.id)[-1].id == answer.messages[-1].id
    assert client.telemetry.retrieve_provider_trace(step_id=step.id) is None
    assert client.agents.messages.cancel(agent_id=agent.id) == {}
    assert client.runs.delete(run_id=run.id).id == run.id
    assert client.runs.list(agent_id=agent.id) == []


def models_story(client: Any) -> None:
    models = {model.handle: model for model in client.models.list()}
    assert models["demo/demo"].model == "demo"
    assert models["demo/demo"].context_window > 0
    assert client.models.embeddings.list()
    assert "demo" in {provider.name for provider in client.providers.list()}


def main(url: str) -> None:
    client = Letta(base_url=url)
    agent = client.agents.create(name="history0", model="demo/demo", include_base_tools=False)
    answer = messages_story(client, agent)
    runs_story(client, agent, answer)
    models_story(client)
    client.agents.delete(agent_id=agent.id)


main(sys.argv[1])
