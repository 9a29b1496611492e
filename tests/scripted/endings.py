"""Ends batches of either vendor, for tests in this process and over the control routes."""

from __future__ import annotations

from tests.scripted import anthropic_batches, openai_batches
from tests.scripted.batch_rows import Ending
from tests.scripted.world import World


def end_batch(world: World, identifier: str, ending: Ending) -> None:
    """End a batch that has not ended. Raises KeyError for an unknown one, ValueError for one that has."""
    if identifier in world.message_batches:
        batch = world.message_batches[identifier]
        if batch.status == "ended":
            raise ValueError(f"{identifier} has ended")
        anthropic_batches.end(world, batch, ending)
        return
    row = world.batches[identifier]
    if row.status not in openai_batches.OPEN:
        raise ValueError(f"{identifier} has ended")
    openai_batches.end(world, row, ending)


def fail_batch(world: World, identifier: str, code: str, message: str, line: int | None = None) -> None:
    """Fail an OpenAI batch in its validation, for a line of its file. Raises KeyError for an unknown one."""
    batch = world.batches[identifier]
    batch.faults.append({"code": code, "line": line, "message": message, "param": None})
    openai_batches.move(batch, "failed")
