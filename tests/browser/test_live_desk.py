"""The desk in a browser: what waits appears by itself, and one decision is one decision."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect

from tests.browser.desk import Asking, People, Story, button, heading, item
from tests.servers import ServerProcess


def test_it_shows_a_call_within_a_second_without_reloading(people: People, story: Story) -> None:
    page = people()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.locator("main")).to_contain_text("All clear")
    page.evaluate("window.same = true")
    took = []
    for _ in range(3):  # the machine may be busy with something else just now
        asking = story.agent()
        thread = story.ask_later(asking)
        story.wait_asked(asking)
        began = time.monotonic()
        item(page, asking).wait_for()
        took.append(time.monotonic() - began)
        thread.join()
    assert min(took) < 1.0, took
    assert page.evaluate("window.same") is True
    expect(page).to_have_title(re.compile(r"^\(3\) Waiting"))
    expect(page.get_by_role("button", name="2 new")).to_be_visible()
    page.get_by_role("button", name="2 new").click()
    expect(page.get_by_role("button", name="2 new")).to_be_hidden()
    assert page.locator("#rows .row").count() == 3


NOBODY_LOOKS = """
window.told = [];
window.Notification = class { constructor(title, more) { told.push(`${title}: ${more.body}`) } };
Notification.permission = "granted";
Object.defineProperty(document, "hidden", { get: () => true });
"""


def test_it_tells_outside_the_page_when_nobody_looks(people: People, story: Story) -> None:
    page = people()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.evaluate(NOBODY_LOOKS)
    story.ask()
    told = story.api.wait_for(lambda: page.evaluate("told"), "a notification")
    assert told == ["1 call waiting: An agent asks for a decision."]


def test_it_approves_by_click_and_the_next_call_opens(people: People, story: Story) -> None:
    first, second = story.ask(), story.ask()
    page = people()
    expect(heading(page)).to_contain_text(first.name)
    expect(page.locator("#next")).to_contain_text("Next: ")
    button(page, "Approve").click()
    expect(heading(page)).to_contain_text(second.name)
    expect(heading(page)).to_be_focused()
    expect(page.locator("#next")).to_be_empty()
    page.mouse.down(click_count=2)  # of a double click, on the button that stands there now
    page.mouse.up(click_count=2)
    expect(item(page, first)).to_contain_text(re.compile("Approved.*by olga", re.DOTALL))
    assert story.wait_result(first)["tool_return"] == "refunded 480.0 of 20418 notify False"
    button(page, "Deny").click()
    expect(page.get_by_label("Reason in your words")).to_be_focused()
    page.get_by_label("Not now; wait until you are asked again.").check()
    page.get_by_label("Reason in your words").fill("Tomorrow.")
    button(page, "Deny").click()
    expect(page.locator("main")).to_contain_text("All clear")
    assert "Not now; wait until you are asked again. Tomorrow." in story.wait_result(second)["tool_return"]


def test_it_is_driven_by_keys_alone(people: People, story: Story) -> None:
    one, two, three, four = (story.ask() for _ in range(4))
    page = people()
    expect(heading(page)).to_contain_text(one.name)
    press(page, "j", two)
    press(page, "j", three)
    press(page, "k", two)
    page.keyboard.press("a")
    expect(heading(page)).to_contain_text(three.name)
    page.keyboard.press("d")
    expect(page.get_by_label("Reason in your words")).to_be_focused()
    page.keyboard.type("a dear question")  # letters in a field are no commands
    page.keyboard.press("Control+Enter")
    expect(heading(page)).to_contain_text(four.name)
    result = page.locator("#result-text")
    for last in ("Escape", "Control+Enter"):
        page.keyboard.press("r")
        page.keyboard.type("done by hand")  # faster than the field comes
        expect(result).to_have_value("done by hand")
        page.keyboard.press(last)
        expect(result).to_have_count(0)
    expect(heading(page)).to_contain_text(one.name)
    page.keyboard.press("e")
    expect(page.get_by_label("Order", exact=True)).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("All clear")
    assert "of 20418" in story.wait_result(two)["tool_return"]
    assert "a dear question" in story.wait_result(three)["tool_return"]
    assert story.wait_result(four)["tool_return"] == "done by hand"
    assert "of 7 " in story.wait_result(one)["tool_return"]


def press(page: Page, key: str, expected: Asking) -> None:
    page.keyboard.press(key)
    expect(heading(page)).to_contain_text(expected.name)


def test_its_keys_can_be_switched_off(people: People, story: Story) -> None:
    asking = story.ask()
    page = people()
    expect(heading(page)).to_contain_text(asking.name)
    page.keyboard.press("?")
    page.get_by_label("Use these keys").uncheck()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.keyboard.press("a")
    page.keyboard.press("d")
    page.reload()
    page.keyboard.press("a")
    expect(button(page, "Approve")).to_be_visible()
    assert story.results(asking) == []


def test_it_asks_twice_before_high_risk(people: People, story: Story) -> None:
    asking = story.agent()
    story.high_risk(asking, people("ada"))
    story.ask_again(asking)
    page = people()
    expect(item(page, asking)).to_contain_text("High")
    page.keyboard.press("a")
    expect(page.locator("main")).to_contain_text("This cannot be taken back")
    assert story.results(asking) == []
    expect(button(page, "Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("All clear")
    assert "refunded" in story.wait_result(asking)["tool_return"]


def test_two_people_decide_once(people: People, story: Story) -> None:
    asking = story.ask()
    olga, otto = people("olga"), people("otto")
    for page in (olga, otto):
        expect(heading(page)).to_contain_text(asking.name)
    otto.context.set_offline(True)  # otto's page hears nothing of it
    button(olga, "Approve").click()
    expect(olga.locator("main")).to_contain_text("All clear")
    otto.context.set_offline(False)
    if button(otto, "Approve").is_visible():
        otto.evaluate("document.querySelector('[data-key=a]')?.click()")
    expect(otto.locator("main")).to_contain_text(re.compile("by olga"))
    expect(button(otto, "Approve")).to_have_count(0)
    expect(item(otto, asking)).to_contain_text("by olga")
    assert story.wait_result(asking)["status"] == "success"


def test_it_greys_out_what_others_decide_and_names_them(people: People, story: Story) -> None:
    first, second = story.ask(), story.ask()
    olga, otto = people("olga"), people("otto")
    expect(heading(otto)).to_contain_text(first.name)
    olga.goto(item(olga, second).get_attribute("href") or "")
    expect(item(otto, second)).to_contain_text("olga is looking at this")
    button(olga, "Approve").click()
    expect(item(otto, second)).to_contain_text(re.compile("Approved.*by olga", re.DOTALL))
    expect(heading(otto)).to_contain_text(first.name)  # what is being read stays


def test_it_hands_over_changed_arguments_with_their_types(people: People, story: Story) -> None:
    asking = story.ask({"order": 2**53 + 1, "amount": 1.0, "reason": "a\nb"})
    page = people()
    button(page, "Edit").click()
    page.get_by_label("Amount").fill("12,5")
    button(page, "Approve").click()
    expect(page.get_by_text("A number is expected")).to_be_visible()
    expect(page.get_by_label("Amount")).to_be_focused()
    page.get_by_label("Amount").fill("12.5")
    page.get_by_label("Notify").select_option(label="Yes")
    button(page, "Approve").click()
    expect(page.locator("main")).to_contain_text("All clear")
    told = story.wait_result(asking)["tool_return"]
    assert f"refunded 12.5 of {2**53 + 1} notify True" in told
    assert "A person changed the arguments" in told


def test_it_shows_the_truth_after_every_reload(people: People, story: Story) -> None:
    asking = story.ask()
    page = people(path="/approvals/")
    address = item(page, asking).get_attribute("href") or ""
    page.goto(address)
    expect(button(page, "Approve")).to_be_visible()
    page.reload()
    expect(button(page, "Approve")).to_be_visible()
    button(page, "Approve").click()
    expect(page.locator("main")).to_contain_text("All clear")
    page.goto(address)
    expect(page.locator("main")).to_contain_text(re.compile("Approved.*by olga", re.DOTALL))
    expect(button(page, "Approve")).to_have_count(0)
    page.goto("/approvals/")
    page.go_back()
    expect(button(page, "Approve")).to_have_count(0)
    page.goto("/approvals/?view=history")
    expect(item(page, asking)).to_contain_text("Approved, done")


def test_it_comes_back_after_the_server_was_killed(people: People, story: Story, desk_server: ServerProcess) -> None:
    asking = story.ask()
    page = people()
    expect(heading(page)).to_contain_text(asking.name)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    desk_server.kill()
    expect(page.get_by_text("The live connection is lost")).to_be_visible()
    desk_server.start()
    expect(page.get_by_text("The live connection is lost")).to_be_hidden(timeout=30_000)
    later = story.ask()
    expect(item(page, later)).to_be_visible()
    button(page, "Approve").click()
    assert "refunded" in story.wait_result(asking)["tool_return"]
