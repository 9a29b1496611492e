"""The pages about batches and the administration: what they show, who may press which button."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agents.models import ToolCall
from batches.models import BatchJob
from tests.batches.desk import Desk, weather
from tests.scripted.answers import text


@pytest.fixture
def people(desk: Desk) -> dict[str, Client]:
    """Browsers of people, by their role."""
    found = {}
    for role in ("viewer", "operator", "admin"):
        user = User.objects.create_user(role, password="correct horse", is_staff=role == "admin")
        user.groups.add(Group.objects.get(name=role))
        found[role] = Client()
        found[role].force_login(user)
    return found


def shown(client: Client, path: str, **options: Any) -> str:
    response = client.get(path, **options)
    assert response.status_code == 200, response
    return response.content.decode()


def test_an_empty_list_says_how_batches_are_made(people: dict[str, Client]) -> None:
    assert "There is no batch yet" in shown(people["viewer"], "/batches/")


def test_pages_want_a_login(desk: Desk) -> None:
    job = desk.create(*desk.plain())["id"]
    for path in ("/batches/", f"/batches/{job}/"):
        assert Client().get(path).headers["Location"].startswith("/login/")
    assert Client().post(f"/batches/{job}/cancel/").status_code == 302
    assert BatchJob.objects.get().cancelled_at is None


def test_a_batch_shows_progress_items_and_what_waits(desk: Desk, people: dict[str, Client]) -> None:
    gated = desk.tool(default_requires_approval=True)
    job = desk.submitted(*desk.plain(2), desk.agent(gated))
    page = shown(people["viewer"], f"/batches/{job}/")
    assert 'hx-trigger="every 2s"' in page
    assert "0 of 3 agents are over" in page
    assert "At the provider" in page
    desk.answers(*weather(heartbeat=True), marker="get_weather")
    desk.answers(text("Yes."))
    desk.round()
    page = shown(people["viewer"], f"/batches/{job}/", headers={"HX-Request": "true"})
    assert "<html" not in page
    assert "2 of 3 agents are over" in page
    assert "/approvals/?tool=get_weather&amp;source=batch" in page
    assert "Waiting for a person" in page
    assert "no price" in page
    assert page.count("Waiting for a person") == 2  # the count, and the item of the one that waits
    page = shown(people["viewer"], f"/batches/{job}/?state=parked")
    assert (page.count("/agents/agent-"), page.count('aria-current="true"')) == (1, 1)
    assert f"/batches/{job}/" in shown(people["viewer"], "/batches/")
    assert "Cancel the batch" not in page
    assert "Cancel the batch" in shown(people["operator"], f"/batches/{job}/")
    assert ToolCall.objects.get().name in shown(people["operator"], "/approvals/?tool=get_weather&source=batch")


@pytest.mark.parametrize("path", ["/batches/", "/batches/{job}/", "/batches/{job}/?state=done"])
def test_an_open_page_is_left_alone_until_something_changes(desk: Desk, people: dict[str, Client], path: str) -> None:
    job = desk.submitted(*desk.plain(2))
    again = re.search(r'hx-get="([^"]+)"', shown(people["viewer"], path.format(job=job)))
    assert again is not None
    where, htmx = html.unescape(again[1]), {"HX-Request": "true"}
    assert people["viewer"].get(where, headers=htmx).status_code == 204
    assert "<html" in shown(people["viewer"], where)  # opened as a page it is shown, whatever was seen
    desk.answers(text("Yes."))
    desk.round({desk.items(job)[0]["agent_id"]: "succeeded"}, default="overloaded")
    page = shown(people["viewer"], where, headers=htmx)
    assert ("<html" in page, "hx-get" in page) == (False, False)
    assert 'value="2"' in page


def test_buttons_act_for_those_who_may(desk: Desk, people: dict[str, Client]) -> None:
    job = desk.submitted(*desk.plain())
    for what in ("pause", "resume", "cancel", "retry"):
        assert people["viewer"].post(f"/batches/{job}/{what}/").status_code == 403
        assert people["operator"].get(f"/batches/{job}/{what}/").status_code == 405
    people["operator"].post(f"/batches/{job}/pause/")
    assert "Paused by operator" in shown(people["operator"], f"/batches/{job}/")
    people["operator"].post(f"/batches/{job}/resume/")
    assert BatchJob.objects.get().paused_at is None
    page = people["operator"].post(f"/batches/{job}/cancel/", follow=True).content.decode()
    assert "being cancelled" in page
    assert people["operator"].post(f"/batches/{job}/retry/").status_code == 409


def test_what_ended_does_not_ask_again(desk: Desk, people: dict[str, Client]) -> None:
    job = desk.submitted(*desk.plain())
    desk.round(default="server")
    page = shown(people["operator"], f"/batches/{job}/")
    assert "hx-trigger" not in page
    assert "Ask 1 again" in page
    people["operator"].post(f"/batches/{job}/retry/")
    assert BatchJob.objects.get().status == "running"


def test_unknown_batches_are_not_found(people: dict[str, Client]) -> None:
    assert people["viewer"].get("/batches/job-1/").status_code == 422
    unknown = "job-00000000-0000-4000-8000-000000000000"
    assert people["viewer"].get(f"/batches/{unknown}/").status_code == 404


def test_hostile_names_are_shown_as_text(desk: Desk, people: dict[str, Client]) -> None:
    agent = desk.agent(agent_type="letta_v1_agent", name="<script>alert(1)</script>")
    job = desk.submitted(agent)
    assert "<script>alert" not in shown(people["viewer"], f"/batches/{job}/")


def test_the_administration_shows_and_cancels(desk: Desk, people: dict[str, Client]) -> None:
    desk.submitted(*desk.plain())
    for model in ("batchjob", "llmbatch", "batchmember", "batchitem"):
        page = shown(people["admin"], f"/admin/batches/{model}/")
        assert page.count('class="field-') > 4  # the columns of one row
        assert '<option value="cancel">' in page or model != "batchjob"
    chosen = {"action": "cancel", "_selected_action": [BatchJob.objects.get().pk]}
    people["admin"].post("/admin/batches/batchjob/", chosen)
    assert BatchJob.objects.get().cancelled_at is not None
    assert people["admin"].get("/admin/batches/batchjob/add/").status_code == 403
