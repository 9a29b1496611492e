"""Messages, conversations, runs, steps and models with letta-client 1.12.1: ``history_1.py URL`` ends with 0."""

from __future__ import annotations

import sys
from typing import Any

from letta_client import Letta, NotFoundError, UnprocessableEntityError

ASK = [{"role": "user", "content": "Say something about needles."}]


def messages_story(client: Any, agent: Any) -> Any:
    newest = client.agents.messages.list(agent.id, limit=1).items[0]
    answer = client.agents.messages.create(agent.id, messages=ASK)
    after = client.agents.messages.list(agent.id, after=newest.id).items
    assert after[0].message_type == "user_message", after
    assert [message.id for message in after[1:]] == [message.id for message in answer.messages]
    walked = list(client.agents.messages.list(agent.id, limit=1, order="asc"))
    assert [message.id for message in walked] == [newest.id, *(message.id for message in after)]
    shown = client.messages.retrieve(answer.messages[-1].id)
    assert {message.id for message in shown} == {answer.messages[-1].id}
    assert client.messages.list(limit=1)[-1].id == answer.messages[-1].id
    only = client.agents.messages.list(agent.id, include_return_message_types=["user_message"]).items
    assert {message.message_type for message in only} == {"user_message"}
    found = client.messages.search(query="needles", agent_id=agent.id)
    assert found[-1].message_id == after[0].id
    assert (found[-1].message_type, found[-1].agent_id) == ("user_message", agent.id)
    try:
        client.agents.messages.list(agent.id, after="message-00000000-0000-4000-8000-000000000000")
        raise AssertionError("an unknown cursor was accepted")
    except NotFoundError:
        pass
    return answer


def runs_story(client: Any, agent: Any, answer: Any) -> None:
    run = client.runs.list(agent_id=agent.id).items[0]
    assert (run.id, run.status, run.conversation_id) == (answer.usage.run_ids[0], "completed", None)
    assert client.runs.list(agent_ids=[agent.id], statuses=["completed"], stop_reason="end_turn").items[0].id == run.id
    assert client.runs.list(agent_id=agent.id, active=True).items == []
    assert client.runs.retrieve(run.id).agent_id == agent.id
    said = [message.id for message in client.runs.messages.list(run.id)]
    assert said[-1] == answer.messages[-1].id
    usage = client.runs.usage.retrieve(run.id)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens == answer.usage.total_tokens
    assert client.runs.trace.retrieve(run.id)[-1]["type"] == "usage"
    step = client.runs.steps.list(run.id).items[0]
    assert [found.id for found in client.steps.list(agent_id=agent.id)] == [step.id]
    assert client.steps.retrieve(step.id).run_id == run.id
    assert client.steps.feedback.create(step.id, feedback="positive", tags=["good"]).feedback == "positive"
    assert [found.id for found in client.steps.list(agent_id=agent.id, has_feedback=True, tags=["good"])] == [step.id]
    assert client.steps.metrics.retrieve(step.id).llm_request_ns > 0
    assert client.steps.trace.retrieve(step.id) is None
    assert client.steps.messages.list(step.id).items[-1].id == answer.messages[-1].id


def conversations_story(client: Any, agent: Any) -> None:
    made = client.conversations.create(agent_id=agent.id, summary="about needles")
    assert [row.id for row in client.conversations.list(agent_id=agent.id, summary_search="needle")] == [made.id]
    chunks = list(client.conversations.messages.create(made.id, messages=ASK))
    said = [chunk for chunk in chunks if chunk.message_type == "assistant_message"]
    listed = client.conversations.messages.list(made.id).items
    assert listed[0].message_type == "system_message"
    assert listed[-1].id == said[-1].id
    runs = client.runs.list(conversation_id=made.id).items
    assert [run.conversation_id for run in runs] == [made.id]
    fork = client.conversations.fork(made.id)
    assert len(client.conversations.messages.list(fork.id).items) == len(listed)
    assert len(client.conversations.retrieve(fork.id).in_context_message_ids) == len({m.id for m in listed})
    latest = client.conversations.list(agent_id=agent.id, order_by="last_message_at")
    assert {row.id for row in latest} == {made.id, fork.id}
    assert client.conversations.update(made.id, archived=True).archived is True
    assert [row.id for row in client.conversations.list(agent_id=agent.id, archive_status="archived")] == [made.id]
    assert isinstance(client.conversations.recompile(made.id), str)
    assert client.conversations.cancel(made.id) == {}
    assert client.agents.messages.cancel(agent.id) == {}
    default = client.conversations.messages.list("default", agent_id=agent.id).items
    assert default
    assert {message.id for message in default}.isdisjoint(message.id for message in listed)
    client.conversations.delete(made.id)
    try:
        client.conversations.retrieve(made.id)
        raise AssertionError("a deleted conversation was found")
    except NotFoundError:
        pass
    try:
        client.conversations.retrieve("nonsense")
        raise AssertionError("a malformed id was accepted")
    except UnprocessableEntityError:
        pass


def models_story(client: Any) -> None:
    models = {model.handle: model for model in client.models.list()}
    assert models["demo/demo"].max_context_window > 0
    assert all(model.api_model_type == "embedding" for model in client.models.embeddings.list())


def main(url: str) -> None:
    client = Letta(base_url=url, max_retries=0, _strict_response_validation=True)
    agent = client.agents.create(name="history1", model="demo/demo", include_base_tools=False)
    answer = messages_story(client, agent)
    runs_story(client, agent, answer)
    conversations_story(client, agent)
    models_story(client)
    client.agents.delete(agent.id)


main(sys.argv[1])
