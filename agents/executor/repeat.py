"""After a takeover: let pass only what readers have not seen of the same answer yet."""

from __future__ import annotations

from collections.abc import Sequence

from agents.events import Event


class Differs(Exception):
    """The new attempt says something else than what readers saw."""


class Repeat:
    """Compares a new attempt with what was shown, as one text per run of deltas of a kind.

    ``events`` keeps the new attempt from its start, for the case that it differs.
    """

    def __init__(self, shown: Sequence[tuple[str, str]]) -> None:
        self._left = _joined(shown)
        self.events: list[Event] = []

    @property
    def covered(self) -> bool:
        return not self._left

    def feed(self, event: Event) -> list[Event]:
        """What of ``event`` is new to readers, while not all is covered; raises :class:`Differs`."""
        self.events.append(event)
        kind, text = event[0], _text(event)
        shown_kind, shown_text = self._left[0]
        if kind != shown_kind:
            raise Differs
        if shown_text.startswith(text):
            self._consume(len(text))
            return []
        if kind == "c" or not text.startswith(shown_text):
            raise Differs
        self._consume(len(shown_text))
        rest = text[len(shown_text) :]
        if not self.covered:
            raise Differs
        return [(kind, event[1], rest)]

    def _consume(self, length: int) -> None:
        kind, text = self._left[0]
        if len(text) == length:
            self._left.pop(0)
        else:
            self._left[0] = (kind, text[length:])


def _text(event: Event) -> str:
    return str(event[2]) if event[0] != "c" else "\0".join(str(part) for part in event[1:])


def _joined(shown: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []
    for kind, text in shown:
        if kind != "c" and joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined
