"""Who may open and do what, and that texts from agents, tools and models stay texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver

from agents.models import Agent, Block, CallState, ToolCall
from agents.models.agent import AgentBlock
from tests.agents.factories import make_message
from tests.pages.rows import decide, item, make_tool, settled_call, shown, text_of, waiting_call

pytestmark = pytest.mark.django_db
PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "[click](javascript:alert(1))",
    "{{ 7|add:7 }}{% debug %}",
    "`\\`<b>\n    ```\n<i>",
    "data:text/html,<script>alert(1)</script>",
]
EVIL = " ".join(PAYLOADS)


class Tags(HTMLParser):
    """The tags of a page and what could run in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("img", "iframe", "object", "b>", "i") or (tag == "script" and "src" not in given):
            self.wrong.append(tag)
        self.wrong += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        self.wrong += [
            f"{tag} {value}" for value in given.values() if value and value.startswith(("javascript:", "data:"))
        ]


def evil_call(**fields: Any) -> ToolCall:
    agent = Agent.objects.create(name=EVIL[:200], model="demo/demo", description=EVIL)
    schema = {"type": "object", "properties": {EVIL[:60]: {"type": "string", "description": EVIL, "title": EVIL}}}
    tool = make_tool(PAYLOADS[0], schema, description=EVIL, source_code=EVIL)
    agent.tools.add(tool)
    block = Block.objects.create(label=EVIL[:100], value=EVIL, description=EVIL)
    AgentBlock.objects.create(agent=agent, block=block, label=block.label)
    call = waiting_call({EVIL[:60]: EVIL, "other": [EVIL]}, agent=agent, tool=tool, **fields)
    for role, kind in (("user", "text"), ("assistant", "text"), ("assistant", "reasoning")):
        make_message(call.conversation, role=role, parts=[{"type": kind, "text": EVIL}])
    ToolCall.objects.filter(pk=call.pk).update(message=call.conversation.messages.order_by("-pk")[0])
    return call


def paths_of(call: ToolCall) -> list[str]:
    agent, block = call.agent, call.agent.blocks.get()
    tool = call.tool
    assert tool is not None
    return [
        "/",
        "/approvals/",
        f"/approvals/{call.wire_id}/",
        f"/approvals/{call.wire_id}/?panel=edit",
        "/agents/",
        f"/agents/{agent.wire_id}/?conversation={call.conversation.wire_id}",
        f"/agents/{agent.wire_id}/blocks/{block.wire_id}/",
        "/runs/",
        f"/runs/{call.turn.wire_id}/",
        "/tools/",
        f"/tools/{tool.wire_id}/",
        f"/approvals/?view=history&tool={PAYLOADS[1]}",
        "/agents/?q=%22%3E%3Cscript%3E",
        "/approvals/?risk=%22onx=1",
    ]


def test_it_shows_hostile_texts_as_texts(admin: Client) -> None:
    call = evil_call()
    for path in paths_of(call):
        response = admin.get(path)
        assert response.status_code == 200, path
        assert Tags(text_of(response)).wrong == [], path
    assert "&lt;img src=x onerror" in text_of(admin.get(f"/approvals/{call.wire_id}/"))


def test_it_shows_hostile_results_and_reasons_as_texts(admin: Client) -> None:
    call = settled_call(result_text=EVIL, reason=EVIL)
    admin.post(f"/approvals/{call.wire_id}/comment/", {"text": EVIL})
    for path in (f"/approvals/{call.wire_id}/", "/approvals/?view=history"):
        assert Tags(text_of(admin.get(path))).wrong == []


def test_it_makes_characters_visible_that_turn_texts_round(operator: Client) -> None:
    call = waiting_call({"order": 1, "amount": 2, "reason": "pay \u202eBob"})
    page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
    assert "\u202e" not in page
    assert "⟨U+202E⟩" in page


def test_it_cuts_huge_texts(operator: Client) -> None:
    call = waiting_call({"order": 1, "amount": 2, "reason": "x" * 900_000})
    page = text_of(operator.get(f"/approvals/{call.wire_id}/"))
    assert len(page) < 200_000
    assert "880,000 more characters" in page


def test_it_names_no_inline_script_or_style_in_its_policy(operator: Client) -> None:
    policy = operator.get("/approvals/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "no-store" in operator.get("/approvals/")["Cache-Control"]


# --- who may -----------------------------------------------------------------------------------------


def every_page() -> list[str]:
    """A path for every page of ours, whatever its parameters."""
    found = []
    for pattern in get_resolver().url_patterns:
        inner = getattr(pattern, "url_patterns", None)
        if inner is None or str(pattern.pattern) != "":
            continue
        found += ["/" + _filled(str(one.pattern)) for one in inner]
    return found


def _filled(pattern: str) -> str:
    """A path that ``pattern`` (of ``path`` or ``re_path``) fits."""
    plain = pattern.removeprefix("^").removesuffix("$").removesuffix("?")
    plain = re.sub(r"\(\?P<\w+>(\w+)(?:\|\w+)*\)", r"\1", plain)  # one of several words: the first
    plain = re.sub(r"\(\?P<\w+>[^)]*\)", "x", plain)
    return re.sub(r"<[^>]+>", "x", plain)


def test_it_sends_strangers_to_the_login_everywhere(client: Client) -> None:
    assert len(every_page()) > 20
    for path in every_page():
        for response in (client.get(path), client.post(path)):
            assert response.status_code == 302, path
            assert response["Location"].startswith("/login/?next="), path


def test_it_sends_scripts_of_strangers_to_the_login(client: Client) -> None:
    response = client.get("/approvals/", headers={"HX-Request": "true"})
    assert response["HX-Redirect"].startswith("/login/")


def test_it_lets_viewers_look_and_not_decide(viewer: Client, call: ToolCall) -> None:
    page = text_of(viewer.get(f"/approvals/{call.wire_id}/"))
    assert "Your role can look at this call, not decide it." in page
    assert "data-key=" not in page
    assert decide(viewer, call, "approve").status_code == 403
    chosen = {"item": item(call), "action": "approve", "confirm": "yes"}
    assert viewer.post("/approvals/bulk/", chosen).status_code == 403
    for act in ("claim", "extend", "undo", "release", "reveal"):
        assert viewer.post(f"/approvals/{call.wire_id}/{act}/", shown(call)).status_code == 403
    assert viewer.post(f"/conversations/{call.conversation.wire_id}/unstick/").status_code == 403
    assert ToolCall.objects.get(pk=call.pk).state == CallState.PENDING


def test_it_lets_builders_build_and_not_decide(builder: Client, call: ToolCall) -> None:
    assert decide(builder, call, "approve").status_code == 403
    assert (
        builder.post(f"/agents/{call.agent.wire_id}/approval/", {"tool": call.name, "required": "yes"}).status_code
        == 302
    )


def test_it_wants_a_token_of_the_form(call: ToolCall) -> None:
    from tests.pages.conftest import person_named

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person_named("olga", "operator"))
    assert decide(strict, call, "approve").status_code == 403
    assert ToolCall.objects.get(pk=call.pk).state == CallState.PENDING


SECRET_TOOL: dict[str, Any] = {
    "type": "object",
    "properties": {"token": {"type": "string"}, "user": {"type": "string"}},
}


def test_it_masks_secrets_and_reveals_them_to_those_who_may(admin: Client, operator: Client) -> None:
    tool = make_tool("secretive", SECRET_TOOL, secret_fields=["token"])
    call = waiting_call({"token": "s3cr3t-value", "user": "bob"}, tool=tool)
    for client in (admin, operator):
        for path in ("/", "/approvals/", f"/approvals/{call.wire_id}/", f"/agents/{call.agent.wire_id}/"):
            assert "s3cr3t-value" not in text_of(client.get(path))
    assert "Show what is hidden" not in text_of(operator.get(f"/approvals/{call.wire_id}/"))
    assert operator.post(f"/approvals/{call.wire_id}/reveal/", shown(call)).status_code == 403
    assert "s3cr3t-value" in text_of(admin.post(f"/approvals/{call.wire_id}/reveal/", shown(call)))
    assert "looked at what is masked" in text_of(operator.get(f"/approvals/{call.wire_id}/"))


@pytest.mark.parametrize(
    "path",
    ["/approvals/x/", "/approvals/call-1/", "/agents/x/", "/runs/run-0/", "/tools/%00/", "/agents/agent-0/blocks/b/"],
)
def test_it_has_a_page_for_what_is_not_there(operator: Client, path: str) -> None:
    response = operator.get(path)
    assert response.status_code in (404, 422)
    assert "Back to the start" in text_of(response)
