"""What the model is told when its arguments cannot be used."""

from __future__ import annotations

from lettaweb.lib.text import clean_text, shorten

MAX_TEXT = 500


class ArgumentsError(ValueError):
    """Arguments that no tool is run with. The text is for the model, at most 500 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(shorten(clean_text(message), MAX_TEXT))
