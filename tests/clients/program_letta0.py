"""The whole story of an approval with letta-client 0.1.324. Runs in that client's environment."""

# Written as users write it, for another environment's interpreter and SDK.
# mypy: ignore-errors

import json
import os
import uuid

import pytest
import requests
from letta_client import ApprovalCreate, Letta, MessageCreate
from letta_client.core.api_error import ApiError

URL = os.environ["LETTA_SERVER_URL"]
SCRIPTED = os.environ["SCRIPTED_URL"]
NOT_IT = str(uuid.uuid4())
CODE = "740845635798344975"
ASK = [
    MessageCreate(
        role="user", otid=NOT_IT, content="Please call the secret_code_of tool to get the code for text 'hello world'."
    )
]
MANY = [
    MessageCreate(
        role="user",
        otid=NOT_IT,
        content="Call the secret_code_of tool 3 times in parallel for the following inputs: 'hello world', "
        "'hello letta', 'hello test', and also call the throw_die tool once with a 16-sided die.",
    )
]
THANKS = [MessageCreate(role="user", content="Thank you for the code.")]


def secret_code_of(input_text: str) -> str:
    """
    Gives the secret code of a text. A person has to agree before it runs.
    Args:
        input_text (str): The text.
    Returns:
        str: Its code.
    """
    return str(abs(hash(input_text)))


def throw_die(num_sides: int) -> str:
    """
    Throws a die.
    Args:
        num_sides (int): How many sides it has.
    Returns:
        str: The side on top.
    """
    import random

    return str(random.randint(1, num_sides))


def types(messages):
    """The message types, each run of one type once."""
    found = []
    for message in messages:
        if not found or found[-1] != message.message_type:
            found.append(message.message_type)
    return found


def firsts(stream):
    """The first chunk of each run of chunks of one type."""
    found = []
    for chunk in stream:
        if not found or found[-1].message_type != chunk.message_type:
            found.append(chunk)
    return found


def script(*answers):
    requests.post(SCRIPTED + "/_control/script", json={"answers": list(answers)}, timeout=10).raise_for_status()


@pytest.fixture(scope="module")
def client():
    return Letta(base_url=URL)


@pytest.fixture
def code_tool(client):
    client.tools.upsert_base_tools()
    tool = client.tools.upsert_from_function(func=secret_code_of, default_requires_approval=True)
    yield tool
    client.tools.delete(tool_id=tool.id)


@pytest.fixture
def die_tool(client):
    tool = client.tools.upsert_from_function(func=throw_die)
    yield tool
    client.tools.delete(tool_id=tool.id)


@pytest.fixture
def agent(client, code_tool, die_tool):
    made = client.agents.create(
        name="approvals",
        agent_type="letta_v1_agent",
        include_base_tools=False,
        tool_ids=[code_tool.id, die_tool.id],
        include_base_tool_rules=False,
        tool_rules=[],
        model="anthropic/claude-sonnet-4-5-20250929",
        embedding="openai/text-embedding-3-small",
        tags=["approvals"],
    )
    config = dict(made.llm_config.model_dump(), parallel_tool_calls=True)
    yield client.agents.modify(agent_id=made.id, llm_config=config)
    client.agents.delete(agent_id=made.id)


def asks(client, agent):
    answer = client.agents.messages.create(agent_id=agent.id, messages=ASK)
    return answer.messages[0].id, answer.messages[2].tool_call.tool_call_id


def verdict(kind, call):
    if kind == "answer":
        return {"type": "tool", "tool_call_id": call, "tool_return": CODE, "status": "success"}
    reason = {"reason": f"not needed, the code is {CODE}"} if kind == "deny" else {}
    return {"type": "approval", "tool_call_id": call, "approve": kind == "approve", **reason}


def approval(*verdicts, approve=False):
    """The old fields say something else on purpose: the list counts."""
    return [ApprovalCreate(approve=approve, approval_request_id=NOT_IT, approvals=list(verdicts))]


def test_the_tool_has_the_schema_of_its_function(code_tool):
    assert code_tool.json_schema["name"] == "secret_code_of"
    assert code_tool.json_schema["parameters"]["required"] == ["input_text"]


def test_an_approval_needs_something_that_waits(client, agent):
    with pytest.raises(ApiError, match="No tool call is currently awaiting approval"):
        client.agents.messages.create(agent_id=agent.id, messages=approval(verdict("approve", NOT_IT)))


def test_an_old_style_approval_needs_something_that_waits(client, agent):
    with pytest.raises(ApiError, match="No tool call is currently awaiting approval"):
        client.agents.messages.create(
            agent_id=agent.id, messages=[ApprovalCreate(approve=True, approval_request_id=NOT_IT)]
        )


def test_a_message_does_not_pass_a_waiting_call(client, agent):
    _, call = asks(client, agent)
    with pytest.raises(ApiError, match="Please approve or deny the pending request before continuing"):
        client.agents.messages.create(agent_id=agent.id, messages=[MessageCreate(role="user", content="hi")])
    client.agents.messages.create(agent_id=agent.id, messages=approval(verdict("approve", call)))


def test_wrong_ids_are_refused(client, agent):
    request, call = asks(client, agent)
    with pytest.raises(ApiError, match="Invalid tool call IDs"):
        client.agents.messages.create(agent_id=agent.id, messages=approval(verdict("approve", NOT_IT)))
    with pytest.raises(ApiError, match="Invalid approval request ID"):
        client.agents.messages.create(
            agent_id=agent.id, messages=[ApprovalCreate(approve=True, approval_request_id=NOT_IT)]
        )
    done = client.agents.messages.create(
        agent_id=agent.id, messages=[ApprovalCreate(approve=True, approval_request_id=request)]
    )
    assert done.messages[0].tool_call_id == call


def test_a_request_shows_the_call(client, agent):
    messages = client.agents.messages.create(agent_id=agent.id, messages=ASK).messages
    assert [m.message_type for m in messages] == [
        "reasoning_message", "assistant_message", "approval_request_message",
    ]  # fmt: skip
    assert messages[2].tool_call.name == "secret_code_of"
    assert [call["name"] for call in messages[2].tool_calls] == ["secret_code_of"]
    assert "request_heartbeat" not in json.loads(messages[2].tool_call.arguments)
    client.agents.context.retrieve(agent_id=agent.id)


def test_a_streamed_request_shows_the_call(client, agent):
    chunks = firsts(client.agents.messages.create_stream(agent_id=agent.id, messages=ASK, stream_tokens=True))
    assert types(chunks) == [
        "reasoning_message", "assistant_message", "approval_request_message", "stop_reason", "usage_statistics",
    ]  # fmt: skip
    assert json.loads(chunks[2].tool_call.arguments) == {"input_text": "hello world"}


@pytest.mark.parametrize("tokens", [True, False])
@pytest.mark.parametrize("kind", ["approve", "deny", "answer"])
def test_a_decision_is_carried_out_and_answered(client, agent, kind, tokens):
    _, call = asks(client, agent)
    stream = client.agents.messages.create_stream(
        agent_id=agent.id, messages=approval(verdict(kind, call), approve=kind != "approve"), stream_tokens=tokens
    )
    chunks = firsts(stream)
    assert types(chunks) == [
        "tool_return_message", "reasoning_message", "assistant_message", "stop_reason", "usage_statistics",
    ]  # fmt: skip
    assert chunks[0].tool_call_id == call
    assert chunks[0].status == ("error" if kind == "deny" else "success")
    if kind == "answer":
        assert chunks[0].tool_return == CODE
    client.agents.context.retrieve(agent_id=agent.id)
    follow = firsts(client.agents.messages.create_stream(agent_id=agent.id, messages=THANKS, stream_tokens=True))
    assert types(follow) == ["reasoning_message", "assistant_message", "stop_reason", "usage_statistics"]


@pytest.mark.parametrize("kind", ["deny", "answer"])
def test_the_model_knows_what_it_was_told(client, agent, kind):
    _, call = asks(client, agent)
    done = client.agents.messages.create(agent_id=agent.id, messages=approval(verdict(kind, call)))
    assert CODE in done.messages[2].content


@pytest.mark.parametrize("kind", ["approve", "deny", "answer"])
def test_a_cursor_finds_what_came_after_it(client, agent, kind):
    newest = client.agents.messages.list(agent_id=agent.id, limit=1)[0].id
    request, call = asks(client, agent)
    listed = client.agents.messages.list(agent_id=agent.id, after=newest)
    assert [m.message_type for m in listed] == [
        "user_message", "reasoning_message", "assistant_message", "approval_request_message",
    ]  # fmt: skip
    assert listed[3].id == request
    client.agents.messages.create(agent_id=agent.id, messages=approval(verdict(kind, call)))
    listed = client.agents.messages.list(agent_id=agent.id, after=request)
    assert [m.message_type for m in listed] == [
        "approval_response_message", "tool_return_message", "reasoning_message", "assistant_message",
    ]  # fmt: skip
    sent = listed[0].approvals[0]
    assert sent["tool_call_id"] == call
    if kind == "answer":
        assert (sent["type"], sent["tool_return"], sent["status"]) == ("tool", CODE, "success")
        assert listed[1].tool_return == CODE
    else:
        assert listed[0].approval_request_id == call
        assert listed[0].approve is sent["approve"] is (kind == "approve")
        assert sent["reason"] == verdict(kind, call).get("reason")


def test_an_old_style_approval_is_listed_under_its_request(client, agent):
    request, _ = asks(client, agent)
    client.agents.messages.create(
        agent_id=agent.id, messages=[ApprovalCreate(approve=True, approval_request_id=request)]
    )
    response, result = client.agents.messages.list(agent_id=agent.id, after=request)[:2]
    assert (response.approval_request_id, response.approve) == (request, True)
    assert (result.message_type, result.status) == ("tool_return_message", "success")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"raw": "bm90IGFuIGFuc3dlcg==", "content_type": "text/event-stream"}, "invalid_llm_response"),
        ({"blocks": [{"type": "text", "text": "I call"}], "stop_reason": "tool_use"}, "no_tool_call"),
    ],
)
@pytest.mark.parametrize("kind", ["approve", "deny", "answer"])
def test_a_failing_model_does_not_brick_the_agent(client, agent, kind, broken, reason):
    _, call = asks(client, agent)
    script(broken)
    stream = client.agents.messages.create_stream(
        agent_id=agent.id, messages=approval(verdict(kind, call)), stream_tokens=True
    )
    stops = [chunk.stop_reason for chunk in stream if chunk.message_type == "stop_reason"]
    assert stops == [reason]
    follow = firsts(client.agents.messages.create_stream(agent_id=agent.id, messages=THANKS))
    assert types(follow) == ["reasoning_message", "assistant_message", "stop_reason", "usage_statistics"]


def test_approval_can_be_switched_off(client, agent, code_tool):
    _, call = asks(client, agent)
    client.agents.messages.create(agent_id=agent.id, messages=approval(verdict("approve", call)))
    client.agents.tools.modify_approval(agent_id=agent.id, tool_name=code_tool.name, requires_approval=False)
    chunks = firsts(client.agents.messages.create_stream(agent_id=agent.id, messages=ASK, stream_tokens=True))
    assert types(chunks) == [
        "reasoning_message", "assistant_message", "tool_call_message", "tool_return_message",
        "reasoning_message", "assistant_message", "stop_reason", "usage_statistics",
    ]  # fmt: skip


def test_parallel_calls_are_decided_each_in_its_way(client, agent):
    newest = client.agents.messages.list(agent_id=agent.id, limit=1)[0].id
    messages = client.agents.messages.create(agent_id=agent.id, messages=MANY).messages
    assert [m.message_type for m in messages] == [
        "reasoning_message", "assistant_message", "tool_call_message", "approval_request_message",
    ]  # fmt: skip
    (die,) = messages[2].tool_calls
    assert die["name"] == "throw_die"
    assert "16" in die["arguments"]
    yes, no, mine = messages[3].tool_calls
    assert [json.loads(c["arguments"])["input_text"] for c in (yes, no, mine)] == [
        "hello world", "hello letta", "hello test",
    ]  # fmt: skip
    client.agents.context.retrieve(agent_id=agent.id)
    decided = approval(
        verdict("approve", yes["tool_call_id"]),
        {"type": "approval", "approve": False, "tool_call_id": no["tool_call_id"]},
        verdict("answer", mine["tool_call_id"]),
    )
    done = client.agents.messages.create(agent_id=agent.id, messages=decided).messages
    assert types(done) == ["tool_return_message", "reasoning_message", "assistant_message"]
    status = {r["tool_call_id"]: r["status"] for r in done[0].tool_returns}
    assert status == {
        yes["tool_call_id"]: "success", no["tool_call_id"]: "error",
        mine["tool_call_id"]: "success", die["tool_call_id"]: "success",
    }  # fmt: skip
    client.agents.context.retrieve(agent_id=agent.id)
    listed = client.agents.messages.list(agent_id=agent.id, after=newest)
    assert [m.message_type for m in listed][:7] == [
        "user_message", "reasoning_message", "assistant_message", "tool_call_message",
        "approval_request_message", "approval_response_message", "tool_return_message",
    ]  # fmt: skip


def test_an_agent_of_the_first_story_has_send_message(client, code_tool):
    send_message = client.tools.list(name="send_message")[0]
    made = client.agents.create(
        name="first story",
        agent_type="letta_v1_agent",
        include_base_tools=False,
        tool_ids=[send_message.id, code_tool.id],
        model="anthropic/claude-sonnet-4-20250514",
        embedding="openai/text-embedding-3-small",
    )
    request, _ = asks(client, made)
    chunks = firsts(
        client.agents.messages.create_stream(
            agent_id=made.id, messages=[ApprovalCreate(approve=False, approval_request_id=request, reason=CODE)]
        )
    )
    assert types(chunks)[:3] == ["tool_return_message", "reasoning_message", "assistant_message"]
    assert chunks[0].status == "error"
    assert CODE in chunks[2].content
    client.agents.delete(agent_id=made.id)
    with pytest.raises(ApiError) as gone:
        client.agents.retrieve(agent_id=made.id)
    assert gone.value.status_code == 404
