"""What people do at the desk. Every decision by hand goes through here: pages, REST and the admin alike.

A call is named by its uuid. A decision carries the ``version`` and ``digest`` that were shown; what has
changed since is refused with a :class:`~lettaweb.lib.problems.Problem` 409 that says who and when, and
nothing is recorded. Nothing of a set runs until all its gated calls are decided; until then a decision can
be undone. Whoever calls checks the right ``agents.decide_approval`` first (:func:`reveal` checks its own).
"""

from agents.actions.desk.beside import claim, comment, extend, release, reveal
from agents.actions.desk.clock import Expired, expire_due
from agents.actions.desk.find import find
from agents.actions.desk.look import detail
from agents.actions.desk.many import Item, RowResult, decide_many, summary
from agents.actions.desk.one import Decided, decide, undo
from agents.actions.desk.unstick import unstick
from agents.actions.desk.words import PRESETS, Preset, answer, approve, deny, warn_before
from agents.actions.requests import Verdict

__all__ = [
    "PRESETS",
    "Decided",
    "Expired",
    "Item",
    "Preset",
    "RowResult",
    "Verdict",
    "answer",
    "approve",
    "claim",
    "comment",
    "decide",
    "decide_many",
    "deny",
    "detail",
    "expire_due",
    "extend",
    "find",
    "release",
    "reveal",
    "summary",
    "undo",
    "unstick",
    "warn_before",
]
