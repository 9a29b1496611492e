"""A real browser against a real server: people with sessions, and agents whose answers the test scripts."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.desk import People, Story
from tests.scripted.server import ScriptedProvider
from tests.servers import PASSWORD, ServerProcess
from tests.stories.client import Client

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
SCREENS = Path(__file__).resolve().parents[1] / "screens"
MAKE_PEOPLE = """
from django.contrib.auth.models import Group, User
for name, role in (("olga", "operator"), ("otto", "operator"), ("vera", "viewer"), ("ada", "admin")):
    user, _ = User.objects.get_or_create(username=name, defaults={"is_staff": role == "admin"})
    user.set_password("%s")
    user.save()
    user.groups.add(Group.objects.get(name=role))
"""
expect.set_options(timeout=15_000)


def missing(what: str) -> None:
    """Skip with a reason; on the machine that decides, nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        missing("no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="package")
def desk_server(make_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server whose queue belongs to these tests alone."""
    made = make_server(command="web")
    made.manage("shell", "-c", MAKE_PEOPLE % PASSWORD)
    return made


@pytest.fixture
def api(desk_server: ServerProcess, provider: ScriptedProvider) -> Iterator[Client]:
    with Client(desk_server.url, provider) as client:
        yield client


@pytest.fixture
def story(api: Client) -> Iterator[Story]:
    """Agents of this test; they go with it, and what waits for them too."""
    made = Story(api)
    yield made
    made.end()


@pytest.fixture(scope="package")
def sessions(desk_server: ServerProcess) -> dict[str, str]:
    """A session cookie for everybody, got by the form as a browser does."""
    return {name: log_in(desk_server.url, name) for name in ("olga", "otto", "vera", "ada")}


def log_in(url: str, name: str) -> str:
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        form = client.get("/login/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert token is not None
        sent = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token[1], "next": "/"}
        answered = client.post("/login/", data=sent)
        assert answered.status_code == 302, answered.text
        return client.cookies["lettaweb_session"]


@pytest.fixture
def people(browser: Browser, desk_server: ServerProcess, sessions: dict[str, str], story: Story) -> Iterator[People]:
    """``people("olga", **context)`` opens a page of the desk; nothing in it may go wrong unnoticed.

    Pages close before the agents of the test go: hence ``story``.
    """
    opened: list[tuple[BrowserContext, list[str]]] = []

    def open_page(name: str = "olga", *, path: str = "/approvals/", **options: Any) -> Page:
        size = options.pop("size", (1280, 800))
        options.setdefault("viewport", {"width": size[0], "height": size[1]})
        context = browser.new_context(base_url=desk_server.url, **options)
        context.add_cookies([{"name": "lettaweb_session", "value": sessions[name], "url": desk_server.url}])
        wrong: list[str] = []
        page = context.new_page()
        page.on("console", lambda said: wrong.append(f"{said.text} {said.location}") if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: refuse(dialog, wrong))
        opened.append((context, wrong))
        page.goto(path)
        return page

    yield open_page
    for context, wrong in opened:
        context.close()
        assert [line for line in wrong if not EXPECTED.search(line)] == []


# A refused decision and a server that is away are part of stories; the console names both.
EXPECTED = re.compile(
    r"status of 4(09|22)|WebSocket|ERR_CONNECTION|ERR_EMPTY|ERR_INTERNET_DISCONNECTED|Failed to fetch|status of 503"
)


def refuse(dialog: Any, wrong: list[str]) -> None:
    wrong.append(f"dialog: {dialog.message}")
    dialog.dismiss()


@pytest.fixture
def screens() -> Path:
    SCREENS.mkdir(exist_ok=True)
    return SCREENS
