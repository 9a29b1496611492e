"""The log of a run: the only code that writes and reads it. Log first, then tell.

Events are short JSON lists; ``kinds`` says which. A delta reaches a reader only after its segment has
committed; an event that states a fact is written in the transaction that makes the fact true.
"""

from agents.events.hub import hub
from agents.events.kinds import Batch, Event, StepHead, is_terminal
from agents.events.log import Fence, append_facts, last_seq, page, whole
from agents.events.reader import LogGone, read_events
from agents.events.writer import DeltaWriter, writer

__all__ = [
    "Batch",
    "DeltaWriter",
    "Event",
    "Fence",
    "LogGone",
    "StepHead",
    "append_facts",
    "hub",
    "is_terminal",
    "last_seq",
    "page",
    "read_events",
    "whole",
    "writer",
]
