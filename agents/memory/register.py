"""Makes the built-in tools known: to the tools app at start, and as rows that agents can be given."""

from __future__ import annotations

from agents.memory.builtins import BUILTINS
from tools.actions import ensure_builtins
from tools.models import Tool
from tools.registry import register_builtins


def register() -> None:
    """Tell the tools app which tools are built in; call it when the app is ready."""
    register_builtins(entry.builtin for entry in BUILTINS.values())


def ensure_base_tools() -> list[Tool]:
    """The rows of the built-in tools, made or brought up to date; what people set on them stays."""
    register()
    return ensure_builtins()
