"""The same stories another way: without scripts, on a small screen, with assistive technology in mind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page, expect

from tests.browser.conftest import missing
from tests.browser.desk import REFUND, People, Story, button, heading, item

MAIL = '''
def NAME(to: str, subject: str) -> str:
    """
    Send an e-mail.

    Args:
        to (str): Who gets it.
        subject (str): What it is about.
    """
    return "sent"
'''
AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
SMALL = (360, 740)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
EVERYTHING = ("wcag2a", "wcag2aa", "wcag21aa", "best-practice")
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><svg onload=alert(3)>"


def test_it_tells_the_whole_story_without_scripts(people: People, story: Story) -> None:
    first, second, third = story.ask(), story.ask(), story.ask()
    page = people(java_script_enabled=False)
    expect(heading(page)).to_contain_text(first.name)
    button(page, "Approve").click()
    expect(heading(page)).to_contain_text(second.name)
    expect(page.get_by_role("status").first).to_contain_text("Approved")
    button(page, "Edit").click()
    page.get_by_label("Order", exact=True).fill("x")
    button(page, "Approve").click()
    expect(page.get_by_text("A whole number is expected.")).to_be_visible()
    page.get_by_label("Order", exact=True).fill("99")
    button(page, "Approve").click()
    expect(heading(page)).to_contain_text(third.name)
    button(page, "Deny").click()
    page.get_by_label("Reason in your words").fill("Not today.")
    button(page, "Deny").click()
    expect(page.locator("main")).to_contain_text("All clear")
    assert "of 20418" in story.wait_result(first)["tool_return"]
    assert "of 99" in story.wait_result(second)["tool_return"]
    assert "Not today." in story.wait_result(third)["tool_return"]


def test_it_decides_many_without_scripts(people: People, story: Story) -> None:
    asking = [story.ask(), story.ask()]
    page = people(java_script_enabled=False)
    for one in asking:
        page.get_by_label(f"Select the call of {one.name}").check()
    page.get_by_role("button", name="Decide what is selected").click()
    page.get_by_role("button", name="Approve 2").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 approved")
    for one in asking:
        story.wait_result(one)


def test_it_decides_many_at_once_in_the_list(people: People, story: Story) -> None:
    asking = [story.ask() for _ in range(3)]
    page = people()
    for one in asking[:2]:
        page.get_by_label(f"Select the call of {one.name}").check()
    page.get_by_role("button", name="Approve 2").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 approved")
    page.get_by_role("link", name="Back to the list").click()
    expect(item(page, asking[2])).to_be_visible()
    for one in asking[:2]:
        story.wait_result(one)
    assert story.results(asking[2]) == []


def test_it_works_on_a_small_screen(people: People, story: Story, screens: Path) -> None:
    first, second = story.ask(), story.ask()
    page = people(size=SMALL)
    fits(page)
    page.screenshot(path=screens / "queue-mobile.png")
    item(page, first).click()
    expect(heading(page)).to_contain_text(first.name)
    expect(button(page, "Approve")).to_be_in_viewport()
    fits(page)
    page.screenshot(path=screens / "call-mobile.png")
    button(page, "Approve").click()
    expect(heading(page)).to_contain_text(second.name)
    button(page, "Edit").click()
    page.get_by_label("Order", exact=True).fill("5")
    fits(page)
    button(page, "Approve").click()
    expect(page.locator("main")).to_contain_text("All clear")
    assert "of 5 " in story.wait_result(second)["tool_return"]
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Agents").click()
    agent = page.get_by_role("link", name=first.name)
    address = agent.get_attribute("href") or ""
    agent.click()
    page.wait_for_url(f"**{address}")
    fits(page)


def fits(page: Page) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, page.url


def test_it_is_usable_by_everybody(people: People, story: Story) -> None:
    if not AXE.exists():
        missing("axe-core is not installed; `make axe` fetches it")
    asking = story.ask({"order": 1, "amount": 2.0, "reason": "long " * 2_000})
    story.ask()
    page = people()
    address = item(page, asking).get_attribute("href") or ""
    both = ["/approvals/", f"{address}?panel=edit", asking.path]
    light = [f"{address}?panel=deny", "/", "/agents/", "/runs/", f"/tools/{asking.tool_id}/", "/approvals/?view=mine"]
    for path in [*both, *light]:
        page.goto(path)
        assert violations(page, *EVERYTHING) == [], path
    page.emulate_media(color_scheme="dark")  # there only the colours are others
    for path in both:
        page.goto(path)
        assert violations(page, "color-contrast") == [], path


def violations(page: Page, *rules: str) -> list[str]:
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"], "runOnly": list(rules)}
    found: dict[str, Any] = page.evaluate("options => axe.run(document, options)", options)
    serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in serious]


def test_it_keeps_hostile_texts_texts(people: People, story: Story) -> None:
    asking = story.ask({"order": 1, "amount": 2.0, "reason": EVIL}, then=EVIL, name=f"evil {EVIL}")
    outside: list[str] = []
    page = people()
    page.on("request", lambda request: outside.append(request.url) if "/x" in request.url.rsplit("?")[0][-2:] else None)
    expect(page.locator(".fields")).to_contain_text(EVIL)
    page.get_by_text("JSON", exact=True).click()
    button(page, "Edit").click()
    expect(page.get_by_label("Reason")).to_have_value(EVIL)
    button(page, "Approve").click()
    expect(page.locator("main")).to_contain_text("All clear")
    story.wait_result(asking)
    page.goto(asking.path)
    expect(page.get_by_role("log")).to_contain_text(EVIL)
    assert page.locator("main img, main script, main svg[onload]").count() == 0
    assert outside == []


def test_it_survives_huge_texts(people: People, story: Story) -> None:
    story.ask({"order": 1, "amount": 2.0, "reason": "long " * 100_000})
    page = people()
    expect(page.locator(".fields")).to_contain_text("more characters")
    fits(page)
    page.set_viewport_size({"width": 360, "height": 740})
    fits(page)


def test_it_draws_the_desk(people: People, story: Story, screens: Path) -> None:
    page = people()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("main")).to_contain_text("All clear")
        page.screenshot(path=screens / f"empty-{scheme}.png")
    busy(people, story)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.goto("/approvals/")
        page.screenshot(path=screens / f"queue-{scheme}.png")
        for name, key in (("edit", "e"), ("deny", "d"), ("answer", "r")):
            page.keyboard.press(key)
            page.locator("[data-close]").wait_for()
            page.screenshot(path=screens / f"{name}-{scheme}.png")
            page.keyboard.press("Escape")
            expect(page.locator("[data-close]")).to_have_count(0)
        page.goto("/approvals/?view=history")
        page.screenshot(path=screens / f"history-{scheme}.png")


def busy(people: People, story: Story) -> None:
    """Calls of every kind in the queue."""
    refunds = story.agent(name="billing", source=REFUND.replace("NAME", "refund_order"))
    story.high_risk(refunds, people("ada"))
    story.ask_again(refunds, {"order": 20418, "amount": 480.0, "reason": "Arrived damaged; photo in ticket 8812."})
    mails = MAIL.replace("NAME", "send_mail")
    for name, subject in (
        ("support", "Delay of order 20377"),
        ("status page", "Search is slow"),
        ("planner", "Friday"),
    ):
        story.ask({"to": "team@example.org", "subject": subject}, name=name, source=mails)
