"""The administration: the same queue through the same action, everything else to look at."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib import admin as site
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import CallState, Decision, OutboxItem, ToolCall
from agents.models.toolcall import Outcome
from agents.policies import tokens
from batches.models import BatchItem, BatchJob, BatchMember, LLMBatch
from tests.agents.factories import make_agent, make_message, make_run, make_step
from tests.agents.test_list_plans import plan
from tests.pages.conftest import person_named
from tests.pages.rows import make_tool, settled_call, text_of, waiting_call

pytestmark = pytest.mark.django_db
CALLS = "/admin/agents/toolcall/"
OURS = [model for model in site.site._registry if model._meta.app_label in ("agents", "tools")]
BATCHES = ("batchjob", "llmbatch", "batchmember", "batchitem")


def many() -> None:
    tool = make_tool()
    for number in range(100):
        call = waiting_call(agent=make_agent(f"agent {number}"), tool=tool)
        make_message(call.conversation)
        Decision.objects.create(call=call, kind="extend", actor_name="olga", via="desk", digest=call.digest)
        OutboxItem.objects.create(kind="webhook", url="https://example.org", payload="{}", next_at=timezone.now())
        job = BatchJob.objects.create()
        own = {"agent_uuid": call.agent.uuid, "job": job}
        member = BatchMember.objects.create(agent=call.agent, position=0, since=timezone.now(), **own)
        sent = LLMBatch.objects.create(job=job, provider="demo", model="demo")
        BatchItem.objects.create(member=member, llm_batch=sent, **own)


def test_it_lists_a_hundred_rows_of_anything_with_few_queries(
    admin: Client, django_assert_max_num_queries: Any
) -> None:
    many()
    lists = [f"/admin/{model._meta.app_label}/{model._meta.model_name}/" for model in OURS]
    batches = [f"/admin/batches/{name}/" for name in BATCHES]
    for path in [*lists, *batches, f"{CALLS}?shown=all", f"{CALLS}?risk=medium&gated__exact=1"]:
        with django_assert_max_num_queries(12):
            assert admin.get(path).status_code == 200, path


def test_it_shows_the_details_of_anything(admin: Client) -> None:
    call = waiting_call()
    make_step(make_run(call.conversation), 0)
    call.agent.tools.add(make_tool())
    for model in OURS:
        row = model._default_manager.first()
        if row is not None:
            path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/{row.pk}/change/"
            assert admin.get(path).status_code == 200, model


def test_it_lists_what_waits_with_counts(admin: Client) -> None:
    waiting_call(risk="high", agent_name="billing")
    settled_call(Outcome.DENIED, ok=False, agent_name="settled one")
    page = text_of(admin.get(CALLS))
    assert "billing" in page
    assert "settled one" not in page
    assert "High (1)" in page
    assert "Denied" in text_of(admin.get(f"{CALLS}?shown=decided"))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the plans of SQLite")
def test_it_finds_what_waits_by_its_index_and_reads_no_other_call(admin: Client) -> None:
    waiting_call()
    for query in ("", "?shown=unknown", "?risk=high", "?q=refund"):
        with CaptureQueriesContext(connection) as asked:
            admin.get(CALLS + query)
        counted = [entry["sql"] for entry in asked if 'FROM "agents_toolcall"' in entry["sql"]]
        assert len(counted) > 4
        for sql in counted:
            assert any("call_waiting" in step for step in plan(sql)), sql


def selected(*calls: ToolCall, action: str) -> dict[str, Any]:
    return {"action": action, "_selected_action": [call.pk for call in calls]}


def sure(*calls: ToolCall, action: str) -> dict[str, Any]:
    items = [f"{call.uuid}:{call.version}:{call.digest}" for call in calls]
    return {**selected(*calls, action=action), "sure": "yes", "item": items}


def test_it_shows_the_calls_once_more_and_then_approves_them(admin: Client) -> None:
    calls = [waiting_call(), waiting_call(risk="high")]
    page = text_of(admin.post(CALLS, selected(*calls, action="approve_selected")))
    assert "Approve 2" in page
    assert all(f"{call.uuid}:{call.version}:{call.digest}" in page for call in calls)
    assert not Decision.objects.exists()
    page = text_of(admin.post(CALLS, sure(*calls, action="approve_selected"), follow=True))
    assert "2 approved" in page
    assert set(Decision.objects.values_list("via", "kind")) == {("admin", "approve")}


def test_it_denies_with_a_reason_and_reports_what_others_decided(admin: Client, operator: Client) -> None:
    first, second = waiting_call(), waiting_call()
    form = sure(first, second, action="deny_selected") | {"preset": "not_needed"}
    from tests.pages.rows import decide

    decide(operator, second, "approve")
    page = text_of(admin.post(CALLS, form | {"select_across": "1"}, follow=True))
    assert "1 denied, 1 already decided" in page
    assert ToolCall.objects.get(pk=first.pk).reason == "This is not needed."


def test_it_offers_decisions_to_those_who_may(call: ToolCall) -> None:
    staff = Client()
    user = person_named("vera", "viewer")
    user.is_staff = True
    user.save()
    staff.force_login(user)
    assert "approve_selected" not in text_of(staff.get(CALLS))
    staff.post(CALLS, sure(call, action="approve_selected"))
    assert ToolCall.objects.get(pk=call.pk).state == CallState.PENDING


def test_it_changes_nothing_by_hand(admin: Client, call: ToolCall) -> None:
    Decision.objects.create(call=call, kind="extend", actor_name="olga", via="desk", digest=call.digest)
    for model in OURS:
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}"
        row = model._default_manager.first()
        assert admin.get(f"{path}/add/").status_code == 403
        if row is not None:
            assert admin.post(f"{path}/{row.pk}/change/", {"name": "x", "kind": "deny"}).status_code == 403
            assert admin.post(f"{path}/{row.pk}/delete/", {"post": "yes"}).status_code == 403


def test_it_masks_secrets(admin: Client) -> None:
    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    call = waiting_call({"token": "s3cr3t-value"}, tool=make_tool("secretive", schema, secret_fields=["token"]))
    seen = Decision.objects.create(
        call=call,
        kind="edit",
        actor_name="olga",
        via="desk",
        digest=call.digest,
        before=call.arguments,
        after=call.arguments,
    )
    paths = [
        CALLS,
        f"{CALLS}{call.pk}/change/",
        f"/admin/agents/decision/{seen.pk}/change/",
        f"/admin/agents/message/{call.message_id}/change/",
    ]
    for path in paths:
        assert "s3cr3t-value" not in text_of(admin.get(path)), path


def test_it_shows_hostile_names_as_texts(admin: Client) -> None:
    from tests.pages.test_safety import Tags, evil_call

    call = evil_call(decided_by=User.objects.create(username="x"))
    for model in OURS:
        row = model._default_manager.first()
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for page in (path, f"{path}{row.pk}/change/") if row else (path,):
            wrong = [tag for tag in Tags(text_of(admin.get(page))).wrong if not tag.startswith(("img", "script"))]
            assert not [tag for tag in wrong if "alert" in tag or " on" in tag], page
    assert "&lt;img src=x" in text_of(admin.get(f"{CALLS}{call.pk}/change/"))


def test_it_shows_the_sandbox(admin: Client) -> None:
    assert "andbox tier" in text_of(admin.get("/admin/tools/tool/"))


# --- tokens ------------------------------------------------------------------------------------------

TOKENS = "/admin/knox/authtoken/"


def test_it_makes_a_token_with_a_name_and_shows_its_text_once(admin: Client, operator: Client) -> None:
    owner = User.objects.get(username="olga")
    form = {"name": "ci <b>", "user": owner.pk, "expiry_0": "2099-01-02", "expiry_1": "03:04:05"}
    page = text_of(admin.post(f"{TOKENS}add/", form, follow=True))
    shown = re.search(r"TOKEN (lw_\w+)", page)
    assert shown is not None
    found = tokens.find(shown[1])
    assert found is not None
    assert (found.user, found.named.name) == (owner, "ci <b>")
    listed = text_of(admin.get(TOKENS))
    assert "ci &lt;b&gt;" in listed
    assert "olga" in listed
    assert shown[1] not in listed
    details = text_of(admin.get(f"{TOKENS}{found.pk}/change/"))
    assert "ci &lt;b&gt;" in details
    assert shown[1] not in details
    assert admin.post(f"{TOKENS}{found.pk}/change/", {"name": "other"}).status_code == 403
    admin.post(f"{TOKENS}{found.pk}/delete/", {"post": "yes"})
    assert tokens.find(shown[1]) is None
    assert operator.get(TOKENS).status_code == 302


def test_it_lists_a_hundred_tokens_with_few_queries(admin: Client, django_assert_max_num_queries: Any) -> None:
    owner = User.objects.create(username="many")
    for number in range(100):
        tokens.make(owner, 1, f"token {number:03}")
    with django_assert_max_num_queries(12):
        page = text_of(admin.get(TOKENS))
    assert all(f"token {number:03}" in page for number in range(100))


@pytest.mark.parametrize(
    ("options", "days"), [([], 365), (["--days", "7", "--name", "ci"], 7), (["--days", "0"], None)]
)
def test_it_makes_tokens_on_the_command_line(options: list[str], days: int | None) -> None:
    User.objects.create(username="olga")
    said = StringIO()
    call_command("create_token", "olga", *options, stdout=said)
    found = tokens.find(said.getvalue().strip())
    assert found is not None
    assert found.named.name == ("ci" if options[2:] else found.token_key)
    assert (found.expiry and round((found.expiry - timezone.now()) / timedelta(days=1))) == days
