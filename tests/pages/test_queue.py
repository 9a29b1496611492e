"""The queue: order, views, filters, pages, words for every outcome."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.filters.queue import page_of, wish_of
from agents.models import CallState, Run, ToolCall
from agents.models.toolcall import Outcome
from tests.pages.rows import fill, make_tool, settled_call, text_of, waiting_call

ROW = re.compile(r'id="row-(\d+)"')


def keys(response: Any) -> list[int]:
    return [int(pk) for pk in ROW.findall(text_of(response))]


def test_it_puts_what_expires_first_then_high_risk_then_the_oldest(operator: Client) -> None:
    now = timezone.now()
    low = waiting_call(risk="low")
    high = waiting_call(risk="high")
    younger = waiting_call(risk="high")
    soon = waiting_call(risk="low", expires_at=now + timedelta(minutes=5))
    sooner = waiting_call(risk="low", expires_at=now + timedelta(minutes=2))
    later = waiting_call(risk="medium", expires_at=now + timedelta(days=2))
    expected = [sooner, soon, high, younger, later, low]
    assert keys(operator.get("/approvals/")) == [call.pk for call in expected]


def test_it_opens_the_first_call_and_says_who_wants_what(operator: Client, call: ToolCall) -> None:
    page = text_of(operator.get("/approvals/"))
    assert f"{call.agent.name} wants to refund order" in page
    assert "The order to refund." in page
    assert "My vase came in pieces." in page
    assert "(1) Waiting" in page


def test_it_says_all_clear_when_nothing_waits(operator: Client) -> None:
    settled_call(Outcome.DENIED, ok=False, decided_by=User.objects.create(username="nina"))
    page = text_of(operator.get("/approvals/"))
    assert "All clear" in page
    assert "by nina" in page


def test_it_pages_through_everything_once(operator: Client, django_user_model: Any) -> None:
    fill(137, 20)
    user = django_user_model.objects.get(username="olga")
    for view, total in (("waiting", 137), ("history", 20)):
        seen: list[int] = []
        wish = wish_of({"view": view})
        while True:
            page = page_of(wish, user, size=10)
            seen += [call.pk for call in page.rows]
            if not page.more:
                break
            wish = wish_of({"view": view, "after": page.more})
        assert len(seen) == len(set(seen)) == total


def test_it_shows_each_view_its_own_calls(operator: Client, django_user_model: Any) -> None:
    user, now = django_user_model.objects.get(username="olga"), timezone.now()
    plain = waiting_call()
    mine = waiting_call(held_by=user, held_until=now + timedelta(minutes=20))
    soon = waiting_call(expires_at=now + timedelta(minutes=1))
    unknown = waiting_call(state=CallState.UNKNOWN)
    done = settled_call()
    assert set(keys(operator.get("/approvals/"))) == {plain.pk, mine.pk, soon.pk, unknown.pk}
    assert keys(operator.get("/approvals/?view=mine")) == [mine.pk]
    assert keys(operator.get("/approvals/?view=expiring")) == [soon.pk]
    assert keys(operator.get("/approvals/?view=unknown")) == [unknown.pk]
    assert keys(operator.get("/approvals/?view=history")) == [done.pk]


def test_it_filters_by_what_stands_in_the_address(operator: Client) -> None:
    refund = waiting_call(risk="high")
    mail = waiting_call(
        {"to": "x"}, tool=make_tool("send_mail", {"type": "object", "properties": {"to": {"type": "string"}}})
    )
    Run.objects.filter(pk=mail.step.run_id).update(driver="batch")
    assert keys(operator.get("/approvals/?risk=high")) == [refund.pk]
    assert keys(operator.get("/approvals/?tool=send_mail")) == [mail.pk]
    assert keys(operator.get(f"/approvals/?agent={refund.agent.wire_id}")) == [refund.pk]
    assert keys(operator.get("/approvals/?source=batch")) == [mail.pk]
    assert "Nothing matches" in text_of(operator.get("/approvals/?tool=none"))


def test_it_finds_what_is_mentioned(operator: Client) -> None:
    otto = User.objects.create(username="otto")
    order = waiting_call({"order": 20418, "amount": 1}, agent_name="billing")
    denied = settled_call(Outcome.DENIED, ok=False, decided_by=otto, reason="Ask Legal first.", agent_name="clerk")
    schema = {"type": "object", "properties": {"pin": {"type": "string", "format": "password"}}}
    secret = settled_call(given={"pin": "hunter2"}, tool=make_tool("open_vault", schema))
    wanted = {
        "q=20418&tool=refund_order": [order],
        "q=BILLING": [order],
        "view=history&q=otto": [denied],
        "view=history&q=legal": [denied],
        "view=history&q=clerk&outcome=denied": [denied],
        "view=history&q=clerk&outcome=ran": [],
        "view=history&q=open+vault": [secret],
        "view=history&q=hunter2": [],  # or one could find a secret out letter by letter
    }
    for query, calls in wanted.items():
        page = operator.get(f"/approvals/?{query}")
        assert keys(page) == [call.pk for call in calls], query
        assert calls or "Nothing matches" in text_of(page), query
    assert 'value="clerk"' in text_of(operator.get("/approvals/?view=history&q=clerk"))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("waiting", "No call is waiting"),
        ("mine", "You keep no call"),
        ("expiring", "Nothing expires soon"),
        ("unknown", "No outcome is unknown"),
        ("history", "Nothing here yet"),
    ],
)
def test_it_says_why_a_view_is_empty(operator: Client, view: str, words: str) -> None:
    assert words in text_of(operator.get(f"/approvals/?view={view}"))


def test_it_names_the_call_that_comes_next(operator: Client, viewer: Client) -> None:
    first, second = waiting_call(risk="high"), waiting_call({"order": 7, "amount": 1}, risk="low")
    for call, following in ((first, "order 7"), (second, "order 20418")):
        page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
        assert re.search(rf'id="next">Next: Refund order: {following}', page)
        assert 'id="next"' not in text_of(viewer.get(f"/approvals/{call.wire_id}/"))
    second.delete()
    assert 'id="next"></p>' in text_of(operator.get(f"/approvals/{first.wire_id}/"))


@pytest.mark.parametrize(
    "query",
    [
        "view=x",
        "q=%00",
        "tool=%00&after=%00",
        "q=%25_%27",
        "q=" + "x" * 5000,
        "risk=1",
        "after=1~2",
        "after=a~b~c~d",
        "after=1e99~high~~1",
        "agent=zzz",
        "call=%00",
    ],
)
def test_it_survives_addresses_that_make_no_sense(operator: Client, call: ToolCall, query: str) -> None:
    assert operator.get(f"/approvals/?{query}").status_code == 200


WORDS = [
    ({"outcome": Outcome.RAN}, "Approved, done"),
    ({"outcome": Outcome.FAILED, "ok": False}, "Approved, but it failed"),
    ({"outcome": Outcome.RAN, "edited_arguments": "{}"}, "Approved with changes, done"),
    ({"outcome": Outcome.DENIED, "ok": False}, "Denied"),
    ({"outcome": Outcome.EXPIRED, "ok": False}, "Expired"),
    ({"outcome": Outcome.CANCELLED, "ok": False}, "Cancelled"),
    ({"outcome": Outcome.ANSWERED}, "Answered"),
    ({"outcome": Outcome.ANSWERED, "ok": False}, "Answered with an error"),
    ({"outcome": Outcome.INTERRUPTED, "ok": False}, "Interrupted, outcome unknown"),
    ({"state": CallState.READY, "result_ok": None, "outcome": ""}, "Approved, not run yet"),
    ({"state": CallState.STARTED, "result_ok": None, "outcome": ""}, "Approved, running"),
]


@pytest.mark.parametrize(("fields", "words"), WORDS, ids=[words for _, words in WORDS])
def test_it_has_words_of_its_own_for_every_outcome(operator: Client, fields: dict[str, Any], words: str) -> None:
    call = settled_call(**fields)
    for path in ("/approvals/?view=history", f"/approvals/{call.wire_id}/"):
        assert re.search(rf">{re.escape(words)}</span>", text_of(operator.get(path)))
    assert len({said for _, said in WORDS}) == len(WORDS)


def test_it_keeps_its_number_of_queries_whatever_waits(operator: Client, django_assert_max_num_queries: Any) -> None:
    for _ in range(30):
        waiting_call()
    with django_assert_max_num_queries(40):
        operator.get("/approvals/")
