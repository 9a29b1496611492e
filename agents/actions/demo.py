"""Demonstration data for an empty database: an agent with tools of every risk, and calls that wait for a person."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from agents.actions.agents import create_agent
from agents.actions.requests import Input, MessageRequest
from agents.actions.send import send
from agents.models import Agent, Conversation
from agents.policies.groups import SYSTEM_USER
from tools.actions import upsert_tool
from tools.models import Risk, Tool

MODEL = "demo/demo"

LOOK_UP = '''
def look_up_order(order: int) -> dict:
    """
    Look up an order.

    Args:
        order (int): The number of the order.
    """
    return {"order": order, "customer": "Ada Byron", "item": "Vase, blue", "price": 480.0, "currency": "EUR"}
'''

REFUND = '''
def refund_order(order: int, amount: float, reason: str, notify_customer: bool = True) -> str:
    """
    Refund money for an order.

    Args:
        order (int): The order to refund.
        amount (float): How much, in the order's currency.
        reason (str): Why; the customer reads it.
        notify_customer (bool): Whether to send the customer an e-mail.
    """
    return f"Refunded {amount:.2f} for order {order}: {reason}"
'''

EMAIL = '''
def send_email(recipient: str, subject: str, body: str) -> str:
    """
    Send an e-mail to a customer.

    Args:
        recipient (str): The address.
        subject (str): The subject line.
        body (str): The text.
    """
    return f"Sent '{subject}' to {recipient}"
'''

TOOLS: tuple[tuple[str, bool, Risk, int | None], ...] = (
    (LOOK_UP, False, Risk.LOW, None),
    (REFUND, True, Risk.HIGH, 240),
    (EMAIL, True, Risk.MEDIUM, None),
)

SYSTEM = "You are the support agent of a small shop. You look orders up, refund them and write to customers."
BLOCKS = (
    {"label": "persona", "value": "Friendly and brief. Never promises what needs a person's yes."},
    {"label": "policy", "value": "Full refund within 30 days when an item arrives damaged.", "read_only": True},
)
AGENTS: tuple[tuple[str, str], ...] = (
    ("billing", "Call the refund_order tool with order 20418, amount 480.0 and reason 'The vase arrived in pieces'."),
    (
        "support",
        (
            "Call the send_email tool with recipient 'ada@example.org', subject 'Your order 20377' "
            "and body 'It leaves tomorrow.'"
        ),
    ),
)


def load() -> None:
    """Make the demonstration data; nothing when there is an agent already."""
    if Agent.objects.exists():
        return
    builder = User.objects.filter(is_superuser=True).order_by("pk").first() or User.objects.get(username=SYSTEM_USER)
    tools = [_tool(builder, entry) for entry in TOOLS]
    for name, says in AGENTS:
        agent = create_agent(_agent(name, tools))
        conversation = Conversation.objects.select_related("agent").get(agent=agent, is_default=True)
        send(conversation, _request(says), actor=builder)


def _tool(builder: User, entry: tuple[str, bool, Risk, int | None]) -> Tool:
    source, gated, risk, minutes = entry
    tool = upsert_tool(builder, {"source_code": source.strip(), "default_requires_approval": gated})
    tool.risk, tool.expires_after = risk, minutes
    tool.save(update_fields=["risk", "expires_after", "updated_at"])
    return tool


def _agent(name: str, tools: list[Tool]) -> dict[str, Any]:
    return {
        "name": name,
        "model": MODEL,
        "system": SYSTEM,
        "description": "A demonstration. Its model only follows rules; give the server an API key for a real one.",
        "tool_ids": [tool.wire_id for tool in tools],
        "memory_blocks": [dict(block) for block in BLOCKS],
        "tags": ["demo"],
    }


def _request(says: str) -> MessageRequest:
    given = Input("user", [{"type": "text", "text": says}])
    return MessageRequest((given,), None, {"stream_tokens": True, "max_steps": 50}, background=True)
