"""Webhooks and callbacks: signed, retried, and never sent where they could do harm."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ
from standardwebhooks import Webhook

from agents import outbox, tasks
from agents.models import OutboxItem, Run
from agents.outbox import post as posting
from agents.outbox.address import Blocked, check_url, resolve
from agents.outbox.delivery import Delivered, deliver_due
from agents.outbox.post import post
from agents.outbox.signing import webhook_secret
from agents.serializers.requests import message_request
from lettaweb.lib.problems import Problem
from tests.agents import factories as make
from tests.agents.desk import waiting
from tests.agents.receivers import Receiver, receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


@pytest.fixture
def private(settings: Any) -> None:
    settings.LETTAWEB_WEBHOOK_PRIVATE = True


def ended(url: str) -> Run:
    """A run that ended with a callback stored."""
    run = make.make_run(make.default_of(make.make_agent()), callback_url=url)
    outbox.run_ended(run)
    return run


def deliver() -> Delivered:
    return deliver_due(seconds=10, linger=0)


@pytest.mark.usefixtures("private")
def test_it_delivers_once_and_signed(hook: Receiver) -> None:
    run = ended(hook.url)
    assert deliver() == Delivered(sent=1)
    assert deliver() == Delivered()
    ((path, headers, body),) = hook.came
    assert path == "/hook?x=1"
    assert Webhook(webhook_secret()).verify(body, headers)["run_id"] == run.wire_id
    assert headers["webhook-id"] == OutboxItem.objects.get().wire_id
    run.refresh_from_db()
    assert (run.callback_status_code, run.callback_error) == (200, None)
    assert run.callback_sent_at is not None


@pytest.mark.usefixtures("private")
def test_it_tries_again_later_and_less_and_less_often(hook: Receiver) -> None:
    hook.status = 500
    run = ended(hook.url)
    pauses = []
    for _ in range(3):
        OutboxItem.objects.update(next_at=timezone.now())
        assert deliver() == Delivered(failed=1)
        item = OutboxItem.objects.get()
        pauses.append((item.next_at - timezone.now()).total_seconds())
    assert deliver() == Delivered()
    assert pauses == pytest.approx([5, 30, 120], abs=3)
    run.refresh_from_db()
    assert (run.callback_status_code, run.callback_sent_at) == (500, None)
    assert "500" in str(run.callback_error)
    hook.status = 204
    OutboxItem.objects.update(next_at=timezone.now())
    assert deliver() == Delivered(sent=1)
    assert len({headers["webhook-id"] for _, headers, _ in hook.came}) == 1


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize(
    ("status", "age", "gives_up"), [(500, 0, False), (500, 24.1, True), (410, 0, True), (302, 0, False)]
)
def test_it_gives_up_after_a_day_or_when_told_so(hook: Receiver, status: int, age: float, gives_up: bool) -> None:
    hook.status, hook.headers = status, {"Location": f"http://127.0.0.1:{hook.port}/elsewhere"}
    ended(hook.url)
    OutboxItem.objects.update(created_at=timezone.now() - timedelta(hours=age))
    assert deliver() == Delivered(failed=1)
    assert (OutboxItem.objects.get().failed_at is not None) == gives_up
    assert [path for path, _, _ in hook.came] == ["/hook?x=1"]


@pytest.mark.usefixtures("private")
def test_it_does_not_wait_for_receivers_without_end(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    hook.drip = 0.02
    began = time.monotonic()
    assert post(hook.url, "{}", {}, seconds=0.3).status == 200
    assert time.monotonic() - began < 3
    hook.drip, hook.size = 0, 10_000_000
    assert post(hook.url, "{}", {}).delivered
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(posting, "CONNECT_SECONDS", 0.2)
        answer = post(f"http://127.0.0.1:{silent.getsockname()[1]}/", "{}", {})
    assert (answer.status, answer.final) == (0, False)


def test_it_goes_to_no_private_address(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended(hook.url)
    assert deliver() == Delivered(failed=1)
    assert (hook.came, OutboxItem.objects.get().failed_at is not None) == ([], True)
    run.refresh_from_db()
    assert "not allowed" in str(run.callback_error)
    answers: list[list[Any]] = [
        [("10.0.0.8", 80)],
        [("93.184.215.14", 80), ("169.254.169.254", 80)],
        [("::ffff:127.0.0.1", 80, 0, 0)],
    ]
    for addresses in answers:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, found=found, **__: found)
        with pytest.raises(Blocked):
            resolve("http://rebinding.example.com/")


def test_it_calls_the_address_that_it_checked(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver is asked once: what it says afterwards changes nothing."""
    asked: list[str] = []

    def lookup(host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", hook.port))]

    monkeypatch.setattr("agents.outbox.address._check", lambda address: None)
    monkeypatch.setattr("agents.outbox.address.socket.getaddrinfo", lookup)
    assert post(f"http://receiver.example.com:{hook.port}/hook", "{}", {}).delivered
    assert asked[0] == "receiver.example.com"
    assert [host for host in asked if host != "127.0.0.1"] == ["receiver.example.com"]
    assert hook.came[0][1]["host"] == f"receiver.example.com:{hook.port}"


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://example.com/hook", True),
        ("http://example.com:8080/hook?x=1", True),
        ("http://8.8.8.8/", True),
        ("", True),
        ("file:///etc/passwd", False),
        ("ftp://example.com/", False),
        ("gopher://example.com/", False),
        ("//example.com/", False),
        ("example.com", False),
        ("http://", False),
        ("http://user:pass@example.com/", False),
        ("http://localhost:8283/", False),
        ("http://LOCALHOST./", False),
        ("http://x.localhost/", False),
        ("http://127.0.0.1:1/", False),
        ("http://127.1/", False),
        ("http://2130706433/", False),
        ("http://0x7f.0.0.1/", False),
        ("http://0/", False),
        ("http://10.1.2.3/", False),
        ("http://172.16.0.1/", False),
        ("http://192.168.1.1/", False),
        ("http://100.64.0.1/", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("http://224.0.0.1/", False),
        ("http://[::1]/", False),
        ("http://[fe80::1]/", False),
        ("http://[fd00::1]/", False),
        ("http://[::ffff:10.0.0.1]/", False),
        ("http://[64:ff9b::a00:1]/", False),
        ("http://[2002:7f00:1::]/", False),
        ("http://example.com/\r\nX: y", False),
        ("http://example.com:99999/", False),
        ("http://exämple.com/", False),
        ("http://example.com/" + "x" * 2000, False),
    ],
)
def test_it_refuses_addresses_at_once_that_it_would_never_call(url: str, fits: bool) -> None:
    if fits:
        assert check_url(url) == (url or None)
        return
    with pytest.raises(Problem) as caught:
        check_url(url)
    assert caught.value.status == 422
    assert str(caught.value.detail).startswith("callback_url: ")


def test_it_refuses_such_a_callback_when_the_message_comes() -> None:
    with pytest.raises(Problem) as caught:
        message_request({"input": "hi", "callback_url": "http://169.254.169.254/"})
    assert caught.value.status == 422
    asked = message_request({"input": "hi", "callback_url": "https://example.com/done"})
    assert asked.callback_url == "https://example.com/done"


@pytest.mark.usefixtures("private")
def test_it_lets_an_installation_allow_its_own_network() -> None:
    for url in ("http://127.0.0.1:1/", "http://localhost/", "http://10.0.0.1/"):
        assert check_url(url) == url
    with pytest.raises(Problem):
        check_url("file:///etc/passwd")


def test_it_tells_of_calls_that_wait_without_their_arguments(settings: Any) -> None:
    call = waiting({"order": 7, "password": "hunter2"})[0]
    outbox.approvals_wait(call.step.run, [call])
    assert not OutboxItem.objects.exists()
    settings.LETTAWEB_WEBHOOK_URL = "https://hooks.example.com/"
    outbox.approvals_wait(call.step.run, [call])
    item = OutboxItem.objects.get()
    payload = json.loads(item.payload)
    assert (item.url, payload["type"]) == ("https://hooks.example.com/", "approval.waiting")
    assert [(one["id"], one["tool"]) for one in payload["data"]["calls"]] == [(call.wire_id, "refund")]
    assert "hunter2" not in item.payload
    assert "order" not in item.payload


def test_it_takes_the_secret_that_is_set(settings: Any) -> None:
    derived = webhook_secret()
    assert derived.startswith("whsec_")
    settings.SECRET_KEY = "another"
    assert webhook_secret() != derived
    settings.LETTAWEB_WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert webhook_secret() == "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.usefixtures("private")
def test_it_delivers_each_item_once_though_two_deliver(hook: Receiver) -> None:
    from agents.outbox import delivery

    for _ in range(5):
        ended(hook.url)
    found = list(OutboxItem.objects.order_by("pk"))
    mine, theirs = delivery._claim(), delivery._claim()
    assert (len(mine), theirs) == (5, [])
    assert not delivery._take(found[0], timezone.now())


def test_it_wakes_the_queue_once_for_a_burst(
    django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_woken", float("-inf"))
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(3):
            ended("https://example.com/")
    (task,) = OrmQ.objects.all()
    assert task.func() == "agents.tasks.deliver_outbox"


def test_it_ticks(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.outbox.delivery.LINGER", 0)
    ended("http://127.0.0.1:1/")
    assert tasks.deliver_outbox()["failed"] == 1
