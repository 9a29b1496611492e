"""An agent's system prompt put together. The same agent gives the same text, so that prompt caches hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape

from agents.memory.blocks import BlockView, block_views
from agents.models import Agent
from lettaweb.lib.text import clean_text

PLACEHOLDER = "{CORE_MEMORY}"  # where a custom prompt wants its blocks
_FRAME = ("memory_blocks", "block", "value", "tool_usage_rules", "memory_metadata")


def system_prompt(
    agent_system: str,
    blocks: Sequence[BlockView],
    rules_text: str = "",
    *,
    metadata: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> str:
    """The agent's own prompt, its memory blocks, its tool rules, then facts about itself.

    ``metadata`` are facts by name (agent id, conversation id). ``now``, in the agent's time zone, adds the
    date, never the time: the text may change once a day.
    """
    memory = memory_text(blocks)
    system = agent_system.strip()
    sections = [system, memory]
    if PLACEHOLDER in system:
        sections = [system.replace(PLACEHOLDER, memory)]
    if rules_text.strip():
        sections.append(f"<tool_usage_rules>\n{rules_text.strip()}\n</tool_usage_rules>")
    facts = dict(metadata or {}) | ({"today": now.date().isoformat()} if now else {})
    if facts:
        lines = [f"- {name}: {value}" for name, value in sorted(facts.items())]
        sections.append("\n".join(["<memory_metadata>", *lines, "</memory_metadata>"]))
    return clean_text("\n\n".join(filter(None, sections)))


def memory_text(blocks: Sequence[BlockView]) -> str:
    """The blocks in their frame, "" without blocks."""
    if not blocks:
        return ""
    return "\n".join(["<memory_blocks>", *map(_block_text, blocks), "</memory_blocks>"])


def _block_text(block: BlockView) -> str:
    attributes = f'label="{escape(block.label)}" characters="{len(block.value)}" limit="{block.limit}"'
    if block.read_only:
        attributes += ' read_only="true"'
    lines = [f"<block {attributes}>"]
    if block.description.strip():
        lines.append(f"<description>{_inside(block.description.strip())}</description>")
    lines += ["<value>", _inside(block.value), "</value>", "</block>"]
    return "\n".join(lines)


def _inside(text: str) -> str:
    """``text`` that cannot end our frame: a closing tag of ours in a block's value loses its meaning."""
    for tag in (*_FRAME, "description"):
        text = text.replace(f"</{tag}>", f"<\\/{tag}>")
    return text


def compiled_prompt(agent: Agent, *, rules_text: str = "", blocks: Sequence[BlockView] | None = None) -> str:
    """The system prompt of ``agent`` with its blocks as they are now (``blocks``: as they were read already)."""
    views = block_views(agent) if blocks is None else blocks
    return system_prompt(agent.system, views, rules_text, metadata={"agent id": agent.wire_id})
