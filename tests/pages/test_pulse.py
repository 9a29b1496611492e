"""The pulse that keeps an open page true: what changed, what is new, what is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.models import CallState, ToolCall
from agents.templatetags.desk import stamp
from agents.views.pages.detail import detail_stamp
from tests.pages.rows import decide, shown, waiting_call

pytestmark = pytest.mark.django_db


def ask(client: Client, *have: ToolCall, newest: int = 0, query: str = "", **params: Any) -> dict[str, Any]:
    given = {
        "have": ",".join(f"{call.pk}.{stamp(call)}" for call in have),
        "newest": newest,
        "since": moment(),
        **params,
    }
    response = client.get(
        f"/approvals/pulse/?{query}", given | dict(pair.split("=") for pair in query.split("&") if pair)
    )
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def moment(seconds: float = 5) -> str:
    return (timezone.now() - timedelta(seconds=seconds)).isoformat()


def test_it_has_nothing_to_say_when_nothing_changed(operator: Client, call: ToolCall) -> None:
    news = ask(operator, call, newest=call.pk, detail=call.wire_id)
    assert (news["rows"], news["gone"], news["new"], news["arrived"]) == ({}, [], 0, [])
    assert news["counts"] == {"waiting": 1, "mine": 0, "expiring": 0, "unknown": 0}
    assert news["detail"] == detail_stamp(call.wire_id)


def test_it_gives_rows_that_others_decided_or_hold(operator: Client, other: Client) -> None:
    decided, held, same = waiting_call(), waiting_call(), waiting_call()
    have = (decided, held, same)
    stamps = ",".join(f"{call.pk}.{stamp(call)}" for call in have)
    decide(other, decided, "deny")
    other.post(f"/approvals/{held.wire_id}/claim/", shown(held))
    news = operator.get("/approvals/pulse/", {"have": stamps}).json()
    assert set(news["rows"]) == {str(decided.pk), str(held.pk)}
    assert "by otto" in news["rows"][str(decided.pk)]
    assert "otto is looking at this" in news["rows"][str(held.pk)]


def test_it_gives_what_is_new_and_fits_the_filters(operator: Client, call: ToolCall) -> None:
    new = waiting_call(risk="high")
    assert ask(operator, call, newest=call.pk)["new"] == 1
    assert f'id="row-{new.pk}"' in ask(operator, call, newest=call.pk)["arrived"][0]
    assert ask(operator, call, newest=call.pk, query="risk=low")["new"] == 0
    assert ask(operator, call, new, newest=call.pk)["new"] == 0
    assert ask(operator, call, newest=call.pk, query="view=history")["new"] == 0


def test_it_takes_old_calls_for_new_when_their_outcome_became_unknown(operator: Client) -> None:
    call = waiting_call(state=CallState.UNKNOWN, asked_at=timezone.now())
    assert ask(operator, newest=call.pk)["new"] == 1


def test_it_names_what_is_gone(operator: Client, call: ToolCall) -> None:
    pk = call.pk
    have = f"{pk}.{stamp(call)}"
    call.delete()
    assert operator.get("/approvals/pulse/", {"have": have}).json()["gone"] == [pk]


@pytest.mark.parametrize(
    "query",
    ["have=x.y,,.,9e9.z", "newest=-1", "since=yesterday", "since=2026-99-99", "detail=x", "have=" + "1.a," * 900],
)
def test_it_survives_questions_that_make_no_sense(operator: Client, call: ToolCall, query: str) -> None:
    assert operator.get(f"/approvals/pulse/?{query}").status_code == 200


def test_it_stamps_everything_that_a_detail_shows(operator: Client, call: ToolCall) -> None:
    seen = {detail_stamp(call.wire_id)}
    for act, fields in (("comment", {"text": "hm"}), ("claim", {}), ("release", {}), ("reveal", {})):
        operator.post(f"/approvals/{call.wire_id}/{act}/", shown(call, **fields))
        seen.add(detail_stamp(call.wire_id))
    assert len(seen) >= 3


def test_it_holds_a_call_while_a_page_is_open(operator: Client, other: Client, call: ToolCall) -> None:
    stamps = operator.post(f"/approvals/{call.wire_id}/claim/", {"look": "1"}).json()
    call.refresh_from_db()
    assert stamps == {"row": stamp(call), "detail": detail_stamp(call.wire_id)}
    assert other.post(f"/approvals/{call.wire_id}/claim/", {"look": "1"}).status_code == 204
    assert other.post(f"/approvals/{call.wire_id}/release/", {"look": "1"}).status_code == 204
    call.refresh_from_db()
    assert str(call.held_by) == "olga"
    assert operator.post(f"/approvals/{call.wire_id}/release/", {"look": "1"}).status_code == 204
    call.refresh_from_db()
    assert call.held_by is None
