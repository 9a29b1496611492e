"""An agent's page while the agent speaks: it grows, survives a reload, and ends as what was stored."""

from __future__ import annotations

import uuid

from playwright.sync_api import Page, expect

from tests.browser.desk import Asking, People, Story, button
from tests.scripted.answers import Answer, answer, text

FIRST, SECOND = "The first half, ", "and the second."
AFTER_FIRST = 5  # events of the first block


def halves(hold: str) -> Answer:
    """An answer that stops between its two blocks until it is let go on."""
    pieces = text(FIRST, pieces=["The first ", "half, "])
    return answer(pieces, text(SECOND), hold=hold, hold_at=AFTER_FIRST)


def say(page: Page, asking: Asking) -> None:
    page.get_by_label(f"Message to {asking.name}").fill(f"Tell me. {asking.marker}")
    page.get_by_role("button", name="Send").click()


def test_it_grows_while_the_agent_speaks_and_survives_a_reload(people: People, story: Story) -> None:
    asking, hold = story.agent(), uuid.uuid4().hex
    story.api.provider.script(asking.marker, halves(hold))
    page = people(path=asking.path)
    said = page.get_by_role("log")
    say(page, asking)
    expect(said).to_contain_text(f"Tell me. {asking.marker}")
    expect(said).to_contain_text(FIRST)
    page.reload()
    expect(said).to_contain_text(FIRST)
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    runs = page.get_by_role("region", name="Runs")
    expect(runs).to_contain_text("Running")
    story.api.provider.release(hold)
    expect(said).to_contain_text(SECOND)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    expect(runs).to_contain_text("Done")
    expect(page.get_by_text("0 runs under way")).to_be_visible()
    assert said.inner_text().count(FIRST.strip()) == 1
    assert said.inner_text().count(SECOND) == 1


def test_it_shows_what_follows_a_decision(people: People, story: Story) -> None:
    asking = story.ask(then="The money is on its way.")
    page, desk = people(path=asking.path), people()
    expect(page.get_by_text("1 call waits for a person")).to_be_visible()
    button(desk, "Approve").click()
    expect(page.get_by_role("log")).to_contain_text("refunded 480.0 of 20418")
    expect(page.get_by_role("log")).to_contain_text("The money is on its way.")
    expect(page.get_by_text("1 call waits for a person")).to_be_hidden()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_it_follows_a_run_to_its_end(people: People, story: Story) -> None:
    asking, hold = story.agent(), uuid.uuid4().hex
    story.api.provider.script(asking.marker, halves(hold))
    page = people(path=asking.path)
    say(page, asking)
    run = str(story.api.wait_for(lambda: story.api.runs(asking.agent), "a run")[0]["id"])
    page.goto(f"/runs/{run}/")
    expect(page.get_by_role("log")).to_contain_text(FIRST)
    story.api.provider.release(hold)
    expect(page.get_by_role("log")).to_contain_text(SECOND)
    expect(page.locator(".headline").get_by_text("Done", exact=True)).to_be_visible()
    assert page.get_by_role("log").inner_text().count(FIRST.strip()) == 1
