"""What is wrong with tool rules."""

from __future__ import annotations

from lettaweb.lib.text import clean_text, shorten


class RulesError(ValueError):
    """Rules that cannot be kept; the text names the rule and what is wrong with it."""

    def __init__(self, message: str) -> None:
        super().__init__(shorten(clean_text(message), 500))


class NoValidToolsError(RulesError):
    """The rules of a turn leave no tool that may be called."""

    def __init__(self) -> None:
        super().__init__("No valid tools found based on tool rules.")
