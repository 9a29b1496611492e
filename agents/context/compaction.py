"""What of a history to fold into a summary, and when. Plans only; the loop asks and stores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agents.context.history import HistoryMessage, split_prompt
from agents.context.pairing import calls_of, id_of, paired
from agents.context.tokens import estimate_tokens

FULL = 0.9  # of the window: from here on a request is compacted first
CLIP_CHARS = 50_000
KEEP = 0.7
ATTACHED = 2  # MessageContext.ATTACHED; models stay out of this package
ASKING = ("user", "system")
HEARTBEAT = '{\n  "type": "heartbeat"'  # how such a user message begins; it goes on with a turn


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """How an agent's history is folded.

    ``keep_fraction`` of the history stays (0: only what is still open). ``model`` is a handle, "" for the
    agent's own. ``prompt`` replaces what we ask of the summary. ``clip_chars`` bounds the summary in
    characters (0: no bound).
    """

    keep_fraction: float = KEEP
    model: str = ""
    prompt: str = ""
    clip_chars: int = CLIP_CHARS

    @property
    def mode(self) -> Literal["all", "sliding_window"]:
        return "sliding_window" if self.keep_fraction else "all"


def compaction_settings(stored: Mapping[str, Any] | None) -> CompactionSettings:
    """An agent's settings as they were sent: mode, sliding_window_percentage (the share to fold away, 0..1),
    model, prompt, clip_chars. What is missing or makes no sense counts as not set."""
    given = stored or {}
    share = given.get("sliding_window_percentage")
    keep = KEEP
    if isinstance(share, int | float) and 0 < share <= 1:
        keep = round(1 - share, 6)
    clip = given.get("clip_chars", CLIP_CHARS)
    return CompactionSettings(
        keep_fraction=0.0 if str(given.get("mode", "")).endswith("all") else keep,
        model=str(given.get("model") or ""),
        prompt=str(given.get("prompt") or ""),
        clip_chars=clip if isinstance(clip, int) and clip > 0 else 0,
    )


def needs_compaction(used: int, window: int, *, reported: int = 0) -> bool:
    """Whether a request of ``used`` estimated tokens must be compacted before it goes out.

    ``reported`` is what the vendor counted for the last request, 0 when it told nothing: the larger of
    the two counts, so a vendor that reports no usage cannot hold compaction back.
    """
    return window > 0 and max(used, reported) >= FULL * window


def plan_cut(
    history: Sequence[HistoryMessage],
    *,
    window: int,
    reserve: int,
    keep_fraction: float = KEEP,
    pending_ids: Collection[str] = (),
    steps: bool = False,
) -> int | None:
    """How many messages after system prompt and summary to fold, oldest first; None when none may go.

    Counts messages in context (``foldable(history)[:n]`` are the ones to fold). At least
    ``1 - keep_fraction`` of what is there goes, and so much that the rest takes no more than
    ``keep_fraction`` of ``window - reserve`` tokens (``reserve``: prompt, tools, summary and answer) where
    turns allow it. Whole turns go: a turn begins with a user message. Never cut: between a call and its
    result, inside a set whose call is in ``pending_ids``, between a message and one attached to it. With
    ``keep_fraction`` 0 a last turn that has its answer goes too. With ``steps`` a turn may also be cut
    after results, for a turn that fills the window alone.
    """
    body = foldable(history)
    tokens = [message.tokens or estimate_tokens(message.parts) for message in body]
    left = sum(tokens)
    target = keep_fraction * min(max(window - reserve, 0), left)
    best: int | None = None
    spent = 0
    for cut in _cuts(body, pending_ids, steps=steps, everything=not keep_fraction):
        left -= sum(tokens[spent:cut])
        best = spent = cut
        if left <= target:
            break
    return best


def foldable(history: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    """What is in context after system prompt and summary, oldest first."""
    return split_prompt(history)[1]


def _cuts(
    body: Sequence[HistoryMessage], pending_ids: Collection[str], *, steps: bool, everything: bool
) -> Iterator[int]:
    """Places where a cut harms nothing, rising: everything asked before place n has its answer before n."""
    pending = set(pending_ids)
    open_until = 0
    for at, (message, pairs) in enumerate(zip(body, paired(body), strict=True)):
        if at and at >= open_until and _may_start(body, at, steps=steps):
            yield at
        if not pending.isdisjoint(id_of(part) for part in calls_of(message)):
            return
        open_until = max([open_until, *(pair.answered_at + 1 for pair in pairs)])
    if everything and body and _is_answer(body[-1]):
        yield len(body)


def _may_start(body: Sequence[HistoryMessage], at: int, *, steps: bool) -> bool:
    before, message = body[at - 1], body[at]
    if before.context == ATTACHED:
        return False
    if steps and before.role in ("tool", "approval") and (message.role == "assistant" or _is_heartbeat(message)):
        return True
    return before.role not in ASKING and message.role in ASKING and _asks(body, at)


def _asks(body: Sequence[HistoryMessage], at: int) -> bool:
    """Whether a user's message stands at ``at`` or follows the system notes there; a heartbeat is none."""
    said = next((body[place] for place in range(at, len(body)) if body[place].role != "system"), None)
    return said is not None and said.role == "user" and not _is_heartbeat(said)


def _is_heartbeat(message: HistoryMessage) -> bool:
    return any(str(part.get("text", "")).startswith(HEARTBEAT) for part in message.parts)


def _is_answer(message: HistoryMessage) -> bool:
    return message.role == "assistant" and not any(calls_of(message))
