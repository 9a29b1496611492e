"""What a docstring says about a function and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import docstring_parser

from lettaweb.lib.text import clean_text
from tools.schema.errors import value_failed

_NO_DESCRIPTION = "No description available"
_EXAMPLES = "Examples:"


@dataclass(frozen=True, slots=True)
class Docs:
    """``description`` is what the model reads of the tool, ``parameters`` what it reads of each parameter.

    ``function`` is its name; ``complete`` means that every parameter must have its description.
    """

    function: str
    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True


def read_docs(text: str, function: str) -> Docs:
    """A docstring in Google, NumPy, reST or Epytext style, as the docstring_parser library reads it.

    Raises ``SchemaError`` when it cannot be read.
    """
    text = clean_text(text)
    try:
        parsed = docstring_parser.parse(text)
    except (docstring_parser.ParseError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise value_failed(f"The docstring of function '{function}' cannot be read") from None
    parameters: dict[str, str] = {}
    for parameter in parsed.params:
        parameters.setdefault(parameter.arg_name, parameter.description or "")
    return Docs(function, _described(parsed, text), parameters)


def _described(parsed: docstring_parser.Docstring, text: str) -> str:
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    description = "\n\n".join(parts) or _NO_DESCRIPTION
    examples = _examples(text)
    return f"{description}\n\n{examples}" if examples and _EXAMPLES not in description else description


def _examples(text: str) -> str:
    """The section of examples with its own indentation, up to a heading that stands at the margin."""
    lines = text.strip().splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip().startswith(_EXAMPLES)]
    if not starts:
        return ""
    first = starts[0]
    ends = [number for number, line in enumerate(lines) if number > first and _is_heading(line)]
    return "\n".join(lines[first : ends[0] if ends else len(lines)]).strip()


def _is_heading(line: str) -> bool:
    return not line.startswith(" ") and line.rstrip().endswith(":")
