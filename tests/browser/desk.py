"""What a browser test does and looks at: an agent that asks, and the desk that shows it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from playwright.sync_api import Locator, Page, expect

from tests.scripted.answers import answer, text, tool_use
from tests.stories.client import Answer, Client

REFUND = '''
def NAME(order: int, amount: float, reason: str = "", notify: bool = False) -> str:
    """
    Refund an order.

    Args:
        order (int): The order to refund.
        amount (float): In the order's currency.
        reason (str): Why.
        notify (bool): Tell the customer.
    """
    return f"refunded {amount!r} of {order!r} notify {notify!r}"
'''
GIVEN: dict[str, Any] = {"order": 20418, "amount": 480.0, "reason": "It broke."}


class People(Protocol):
    def __call__(self, name: str = "olga", *, path: str = "/approvals/", **options: Any) -> Page: ...


@dataclass
class Asking:
    """An agent whose call waits."""

    agent: str
    name: str
    tool: str
    marker: str
    tool_id: str

    @property
    def path(self) -> str:
        return f"/agents/{self.agent}/"


@dataclass
class Story:
    """Agents of one test."""

    api: Client
    agents: list[str] = field(default_factory=list)

    def agent(self, *, source: str = REFUND, gated: bool = True, **fields: Any) -> Asking:
        marker = f"story-{uuid.uuid4().hex[:8]}"
        tool = self.api.tool(source, default_requires_approval=gated)
        name = fields.pop("name", f"clerk {marker[-8:]}")
        agent = self.api.agent(tool, name=name, **fields)
        self.agents.append(agent)
        return Asking(agent, name, tool["name"], marker, tool["id"])

    def ask(self, given: Mapping[str, Any] | None = None, *, then: str = "All done.", **fields: Any) -> Asking:
        """An agent that asks for a refund, and says ``then`` when it knows the result."""
        asking = self.agent(**fields)
        self.ask_again(asking, given, then=then)
        return asking

    def ask_again(self, asking: Asking, given: Mapping[str, Any] | None = None, *, then: str = "All done.") -> Answer:
        call = answer(tool_use(asking.tool, GIVEN if given is None else given))
        self.api.provider.script(asking.marker, call, answer(text(then)))
        sent = self.api.send(asking.agent, f"Please refund it. {asking.marker}")
        assert sent.status == 200, sent
        assert sent.stop == "requires_approval", sent
        return sent

    def wait_asked(self, asking: Asking) -> None:
        """Until the call stands in the queue."""
        self.api.wait_for(lambda: self.api.get("/api/approvals/", agent_id=asking.agent), "the call")

    def ask_later(self, asking: Asking) -> threading.Thread:
        thread = threading.Thread(target=self.ask_again, args=(asking,))
        thread.start()
        return thread

    def results(self, asking: Asking) -> list[dict[str, Any]]:
        return [one for one in self.api.history(asking.agent) if one["message_type"] == "tool_return_message"]

    def wait_result(self, asking: Asking) -> dict[str, Any]:
        found = self.api.wait_for(lambda: self.results(asking), "a result")
        assert len(found) == 1, found
        return dict(found[0])

    def high_risk(self, asking: Asking, page: Page) -> None:
        page.goto(f"/tools/{asking.tool_id}/")
        page.get_by_label("Risk").select_option("high")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("was saved")

    def end(self) -> None:
        for agent in self.agents:
            self.api.call("DELETE", f"/v1/agents/{agent}")


def item(page: Page, asking: Asking) -> Locator:
    """The call of this agent in the list."""
    return page.locator("#rows").get_by_role("link", name=asking.name)


def heading(page: Page) -> Locator:
    return page.locator("main").get_by_role("heading", level=2)


def button(page: Page, name: str) -> Locator:
    return page.locator("main").get_by_role("button", name=name)
