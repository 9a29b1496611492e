"""What is said when a schema cannot be had; the texts are those that clients of the Letta server know."""

from __future__ import annotations

from lettaweb.lib.text import clean_text, shorten

MAX_TEXT = 600


class SchemaError(ValueError):
    """A source or a schema that makes no tool. ``message`` is the whole text for the client."""

    def __init__(self, message: str) -> None:
        self.message = shorten(clean_text(message), MAX_TEXT)
        super().__init__(self.message)


class UnmappableError(Exception):
    """An annotation without a JSON schema; the text names the type. Never leaves this package."""


def failed(text: str) -> SchemaError:
    """A source that yields no schema."""
    return SchemaError(f"Failed to derive json schema: Schema generation failed: {text}")


def type_failed(text: str) -> SchemaError:
    return failed(f"Type error in schema generation: {text}")


def value_failed(text: str) -> SchemaError:
    return failed(f"Value error in schema generation: {text}")
