"""Changes of memory by tools: the texts are computed here, and saved only if nobody else wrote meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agents.memory.blocks import check_edit, unknown_label
from agents.models import Agent, Block
from lettaweb.lib.text import clean_text, shorten

ATTEMPTS = 3
CLASH = (
    "Memory block '{label}' was changed by somebody else at the same moment. Nothing was saved; read it and try again"
)


class EditRefused(Exception):
    """An edit that is not made; the text is for the model."""


# --- texts ----------------------------------------------------------------------------------------


def appended(value: str, text: str) -> str:
    """``text`` on a line of its own behind ``value``."""
    return f"{value}\n{text}" if value else text


def inserted(value: str, text: str, line: int) -> str:
    """``text`` after line number ``line`` of ``value``: 0 at the top, -1 at the end. Raises EditRefused."""
    lines = value.split("\n") if value else []
    if not -1 <= line <= len(lines):
        raise EditRefused(f"insert_line must be between 0 and {len(lines)}, or -1 for the end; it was {line}")
    place = len(lines) if line == -1 else line
    return "\n".join([*lines[:place], text, *lines[place:]])


def replaced_once(value: str, old: str, new: str) -> str:
    """``value`` with its only ``old`` replaced by ``new``. Raises EditRefused when it is missing or ambiguous."""
    found = _found(value, old)
    if found > 1:
        lines = [str(number) for number, line in enumerate(value.split("\n"), 1) if old in line]
        where = f" (lines {', '.join(lines[:20])})" if lines else ""
        raise EditRefused(f"The text to replace occurs {found} times{where}. Give more of what stands around it")
    return value.replace(old, new)


def replaced_all(value: str, old: str, new: str) -> str:
    """``value`` with every ``old`` replaced by ``new``. Raises EditRefused when there is none."""
    _found(value, old)
    return value.replace(old, new)


def _found(value: str, old: str) -> int:
    if not old:
        raise EditRefused("The text to replace is empty")
    found = value.count(old)
    if not found:
        raise EditRefused(
            f"The text to replace does not occur in the block: {shorten(old, 200)!r}. "
            "It must match exactly, with blanks and line breaks"
        )
    return found


# --- rows -----------------------------------------------------------------------------------------


@transaction.atomic
def edit_block(agent: Agent, label: str, change: Callable[[str], str]) -> Block:
    """Save ``change(value)`` as the new value of the agent's block ``label``; gives the block as saved.

    The row is locked while the change is computed; where there are no row locks somebody else's write in
    between makes it be computed anew, so no edit is lost. Raises EditRefused; then nothing was saved. One
    block per call: a caller that edits several in one transaction should do so in the order of their keys.
    """
    for _ in range(ATTEMPTS):
        block = attached_block(agent, label)
        value = clean_text(change(block.value))
        if value == block.value:
            return block
        if refusal := check_edit(block, value):
            raise EditRefused(refusal)
        if save_value(block, value):
            return block
    raise EditRefused(CLASH.format(label=label))


def attached_block(agent: Agent, label: str) -> Block:
    """The agent's block of this label, read anew and locked. Raises EditRefused with the labels that there are."""
    found = agent.blocks.select_for_update(no_key=True, of=("self",)).filter(label=label).first()
    if found is None:
        labels = agent.blocks.order_by("agentblock__id").values_list("label", flat=True)
        raise EditRefused(unknown_label(label, list(labels)))
    return found


def save_value(block: Block, value: str) -> bool:
    """Write ``value`` if the row still has ``block.version``; whether it was written."""
    now = timezone.now()
    rows = Block.objects.filter(pk=block.pk, version=block.version)
    if not rows.update(value=value, version=F("version") + 1, updated_at=now):
        return False
    block.value, block.version, block.updated_at = value, block.version + 1, now
    return True


def apply_block_values(agent: Agent, values: Mapping[str, str], versions: Mapping[str, int]) -> str | None:
    """Save what an uploaded tool made of its blocks: all of it, or nothing and the reason for the model.

    ``values``: new value by label, for the blocks that the tool changed. ``versions``: version by label as
    the tool got them (``block_versions``). The blocks must still be the agent's, writable, unchanged since
    and large enough.
    """
    try:
        with transaction.atomic():
            blocks = {block.label: block for block in agent.blocks.all()}
            if missing := sorted(values.keys() - blocks.keys()):
                raise EditRefused(unknown_label(missing[0], sorted(blocks)))
            # In the order of their keys: two transactions that change the same blocks wait, never deadlock.
            for label in sorted(values, key=lambda label: blocks[label].pk):
                _apply(blocks[label], clean_text(values[label]), versions.get(label))
    except EditRefused as refused:
        return str(refused)
    return None


def _apply(block: Block, value: str, version: int | None) -> None:
    if value == block.value and version == block.version:
        return
    if refusal := check_edit(block, value):
        raise EditRefused(refusal)
    if version != block.version or not save_value(block, value):
        raise EditRefused(CLASH.format(label=block.label))
