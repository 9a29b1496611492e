"""The same story with letta-client 1.12.1, sync and async. Runs in that client's environment."""

# Written as users write it, for another environment's interpreter and SDK.
# mypy: ignore-errors

import asyncio
import os
import textwrap

import pytest
from letta_client import APIStatusError, AsyncLetta, BadRequestError, ConflictError, Letta, NotFoundError

URL = os.environ["LETTA_SERVER_URL"]
ASK = [{"role": "user", "content": "Please call the look_up tool with key 'hello world'."}]
SOURCE = textwrap.dedent(
    '''
    def look_up(key: str) -> str:
        """
        Looks a key up.

        Args:
            key (str): The key.
        """
        return "value of " + key
    '''
)


def types(messages):
    found = []
    for message in messages:
        if not found or found[-1] != message.message_type:
            found.append(message.message_type)
    return found


@pytest.fixture(scope="module")
def client():
    return Letta(base_url=URL, api_key="anything")


@pytest.fixture
def agent(client):
    tool = client.tools.upsert(source_code=SOURCE, default_requires_approval=True)
    made = client.agents.create(
        name="second generation", model="anthropic/claude-sonnet-4-5-20250929", tool_ids=[tool.id],
        include_base_tools=False, parallel_tool_calls=True, memory_blocks=[{"label": "human", "value": "Ada"}],
    )  # fmt: skip
    yield made
    client.agents.delete(made.id)
    client.tools.delete(tool.id)


def decision(call, approve, reason=None):
    verdict = {"type": "approval", "tool_call_id": call, "approve": approve, "reason": reason}
    return [{"type": "approval", "approvals": [verdict]}]


def asks(client, agent):
    answer = client.agents.messages.create(agent.id, messages=ASK)
    assert types(answer.messages) == ["reasoning_message", "assistant_message", "approval_request_message"]
    assert answer.stop_reason.stop_reason == "requires_approval"
    request = answer.messages[2]
    assert type(request).__name__ == "ApprovalRequestMessage"
    assert request.tool_calls[0].name == "look_up"
    return request.tool_calls[0].tool_call_id


def test_an_agent_has_all_that_was_given(client, agent):
    found = client.agents.retrieve(agent.id, include=["agent.blocks", "agent.tools", "agent.tags"])
    assert found.blocks[0].value == "Ada"
    assert found.tools[0].name == "look_up"
    assert found.model == "anthropic/claude-sonnet-4-5-20250929"
    assert found.model_settings["parallel_tool_calls"] is True
    updated = client.agents.update(
        agent.id, tags=["a", "b"], model_settings={"provider_type": "anthropic", "parallel_tool_calls": False}
    )
    assert sorted(updated.tags) == ["a", "b"]
    assert updated.llm_config.parallel_tool_calls is False


def test_a_call_is_approved(client, agent):
    call = asks(client, agent)
    assert (
        client.agents.retrieve(agent.id, include=["agent.pending_approval"]).pending_approval.tool_calls[0].tool_call_id
        == call
    )
    done = client.agents.messages.create(agent.id, messages=decision(call, True))
    assert types(done.messages) == ["tool_return_message", "reasoning_message", "assistant_message"]
    assert done.messages[0].tool_returns[0].tool_return == "value of hello world"
    assert done.usage.total_tokens > 0


def test_a_call_is_denied_in_a_stream(client, agent):
    call = asks(client, agent)
    stream = client.agents.messages.create(
        agent.id, messages=decision(call, False, "not now"), streaming=True, stream_tokens=True
    )
    chunks = list(stream)
    assert types(chunks) == [
        "tool_return_message", "reasoning_message", "assistant_message", "stop_reason", "usage_statistics",
    ]  # fmt: skip
    assert chunks[0].status == "error"
    assert "not now" in "".join(c.content for c in chunks if c.message_type == "assistant_message")


def test_a_call_is_answered_by_the_client(client, agent):
    call = asks(client, agent)
    result = {"type": "tool", "tool_call_id": call, "tool_return": "mine", "status": "success"}
    done = client.agents.messages.create(agent.id, messages=[{"type": "tool_return", "tool_returns": [result]}])
    assert done.messages[0].tool_returns[0].tool_return == "mine"


def test_errors_have_their_classes(client, agent):
    with pytest.raises(BadRequestError, match="No tool call is currently awaiting approval"):
        client.agents.messages.create(agent.id, messages=decision("nothing", True))
    call = asks(client, agent)
    with pytest.raises(ConflictError, match="PENDING_APPROVAL"):
        client.agents.messages.create(agent.id, messages=[{"role": "user", "content": "hi"}])
    with pytest.raises(BadRequestError, match="Invalid tool call IDs"):
        client.agents.messages.create(agent.id, messages=decision("other", True), streaming=True)
    client.agents.messages.create(agent.id, messages=decision(call, True))
    with pytest.raises(NotFoundError):
        client.agents.retrieve("agent-00000000-0000-4000-8000-000000000000")


def test_a_background_run_is_resumed(client, agent):
    body = {
        "messages": [{"role": "user", "content": "hello"}],
        "streaming": True,
        "background": True,
        "stream_tokens": True,
    }
    seen = []
    # Closed here: a stream that is left to the garbage collector may be closed inside its own pool's lock.
    with client.agents.messages.create(agent.id, **body) as stream:
        for chunk in stream:
            seen.append(chunk)
            if len(seen) == 4:
                break
    assert seen[0].message_type == "ping"
    run, last = seen[-1].run_id, seen[-1].seq_id
    rest = list(client.runs.messages.stream(run, starting_after=last))
    assert types(rest)[-2:] == ["stop_reason", "usage_statistics"]
    numbers = [chunk.seq_id for chunk in [*seen[1:], *rest]]
    assert numbers == sorted(set(numbers))
    assert client.runs.retrieve(run).status == "completed"
    assert client.runs.usage.retrieve(run).total_tokens > 0
    assert [step.status for step in client.runs.steps.list(run)] == ["success"]


def test_conversations_are_apart(client, agent):
    talk = client.conversations.create(agent_id=agent.id, summary="aside")
    chunks = list(client.conversations.messages.create(talk.id, messages=[{"role": "user", "content": "hello there"}]))
    assert types(chunks) == ["reasoning_message", "assistant_message", "stop_reason", "usage_statistics"]
    listed = client.conversations.messages.list(talk.id).items
    assert types(listed) == ["system_message", "user_message", "reasoning_message", "assistant_message"]
    own = client.agents.messages.list(agent.id, conversation_id="default").items
    assert types(own) == ["system_message"]
    client.conversations.delete(talk.id)


def test_lists_walk_page_by_page(client, agent):
    for number in range(4):
        client.agents.messages.create(agent.id, messages=[{"role": "user", "content": f"message {number}"}])
    walked = list(client.agents.messages.list(agent.id, limit=3, order="asc"))
    assert len([m for m in walked if m.message_type == "user_message"]) == 4
    assert agent.id in [found.id for found in client.agents.list(limit=2)]
    assert any(model.handle for model in client.models.list())


def test_a_failed_stream_raises(client):
    made = client.agents.create(name="fails", model="anthropic/claude-sonnet-4-5-20250929", include_base_tools=False)
    import json
    import urllib.request

    script = json.dumps({"answers": [{"fault": "bad_request"}]}).encode()
    urllib.request.urlopen(urllib.request.Request(os.environ["SCRIPTED_URL"] + "/_control/script", script))
    seen = []

    def read():
        said = [{"role": "user", "content": "x"}]
        for chunk in client.agents.messages.create(made.id, messages=said, streaming=True):
            seen.append(chunk)

    with pytest.raises(APIStatusError):
        read()
    assert types(seen) == ["stop_reason"]
    assert seen[0].stop_reason == "llm_api_error"
    client.agents.delete(made.id)


def test_it_works_without_waiting_in_line(agent):
    async def story():
        async with AsyncLetta(base_url=URL) as client:
            answer = await client.agents.messages.create(agent.id, messages=ASK)
            call = answer.messages[2].tool_calls[0].tool_call_id
            stream = await client.agents.messages.create(
                agent.id, messages=decision(call, True), streaming=True, stream_tokens=True
            )
            return [chunk async for chunk in stream]

    chunks = asyncio.run(story())
    assert types(chunks) == [
        "tool_return_message", "reasoning_message", "assistant_message", "stop_reason", "usage_statistics",
    ]  # fmt: skip
