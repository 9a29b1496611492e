"""The desk of a server on PostgreSQL with webhooks: what another process decides is told, and what waits is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.agents.receivers import Receiver, receiver
from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess
from tests.stories.client import Client
from tests.stories.test_desk import asked, listening, results, until

pytestmark = [pytest.mark.postgresql, pytest.mark.server]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DECIDE = """
from django.contrib.auth.models import User
from agents.actions import desk
from agents.models import ToolCall
call = ToolCall.objects.get(uuid="{uuid}")
user = User.objects.get(username="admin")
desk.decide(call.uuid, desk.approve(), version=call.version, digest=call.digest, user=user)
"""


@pytest.fixture(scope="module")
def hook() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture(scope="module")
def elsewhere(
    make_server: Callable[..., ServerProcess], make_database: Callable[[], str], hook: Receiver
) -> Iterator[ServerProcess]:
    hooks = {"LETTAWEB_WEBHOOK_URL": hook.url, "LETTAWEB_WEBHOOK_PRIVATE": "1", "LETTAWEB_WEBHOOK_SECRET": SECRET}
    server = make_server(DATABASE_URL=make_database(), **hooks)
    yield server
    server.stop()


@pytest.fixture
def far(elsewhere: ServerProcess, provider: ScriptedProvider) -> Iterator[Client]:
    with Client(elsewhere.url, provider) as client:
        yield client


def sent(client: Client, hook: Receiver, holds: Callable[[Any], bool]) -> Any:
    """The body of the delivery that ``holds``, once it came; its signature is checked."""

    def look() -> Any:
        for _, headers, body in hook.came:
            if holds(json.loads(body)):
                return Webhook(SECRET).verify(body, headers)
        return None

    return client.wait_for(look, "a delivery")


def test_it_tells_what_another_process_decided(far: Client, elsewhere: ServerProcess) -> None:
    token = elsewhere.manage("create_token", "admin")
    agent, (call,) = asked(far)
    with listening(elsewhere, "/ws/approvals/", token) as queue:
        assert until(queue, "hello")["waiting"] == 1
        elsewhere.manage("shell", "-c", DECIDE.format(uuid=call["id"].removeprefix("call-")))
        change = until(queue, "changes")["changes"][0]
    assert (change["type"], change["call"]["id"], change["call"]["by"]) == ("decided", call["id"], "admin")
    (result,) = far.wait_for(lambda: results(far, agent), "the result")
    assert result["tool_return"] == "echo hello 0"


def test_it_sends_what_waits_and_what_ended(far: Client, hook: Receiver) -> None:
    _, (call,) = asked(far)
    waits = sent(far, hook, lambda body: body.get("type") == "approval.waiting" and call["id"] in str(body))
    assert "hello" not in str(waits)
    agent = far.agent()
    body = {"messages": [{"role": "user", "content": "go"}], "callback_url": hook.url}
    run = far.call("POST", f"/v1/agents/{agent}/messages/async", body).body["id"]
    ended = sent(far, hook, lambda body: body.get("run_id") == run)
    assert (ended["status"], ended["stop_reason"]) == ("completed", "end_turn")
    state = far.wait_for(lambda: (found := far.get(f"/v1/runs/{run}"))["callback_sent_at"] and found, "the callback")
    assert (state["callback_status_code"], state["callback_error"]) == (200, None)
