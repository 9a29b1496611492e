"""Arguments of a call: read from what a model sent, checked against the tool's schema, frozen by a digest."""

from tools.arguments.errors import ArgumentsError
from tools.arguments.freezing import canonical, digest
from tools.arguments.reading import parse, strip_internal
from tools.arguments.validation import check

__all__ = ["ArgumentsError", "canonical", "check", "digest", "parse", "strip_internal"]
