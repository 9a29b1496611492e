"""What the layers above tell this app: the built-in tools, and what must follow when a tool ends or is renamed.

Filled at start (``AppConfig.ready``); the tools app itself knows neither agents nor their memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.models import Tool, ToolType


@dataclass(frozen=True, slots=True)
class Builtin:
    """A tool that runs inside the server. ``json_schema`` has name, description and parameters."""

    json_schema: Mapping[str, Any]
    tool_type: ToolType = ToolType.LETTA_CORE

    @property
    def name(self) -> str:
        return str(self.json_schema["name"])


DeletedHook = Callable[[Tool], None]
RenamedHook = Callable[[Tool, str], None]

_builtins: dict[str, Builtin] = {}
_deleted: list[DeletedHook] = []
_renamed: list[RenamedHook] = []


def register_builtins(builtins: Iterable[Builtin]) -> None:
    """Make ``builtins`` known; a second registration of a name replaces the first."""
    _builtins.update({builtin.name: builtin for builtin in builtins})


def builtins() -> tuple[Builtin, ...]:
    return tuple(_builtins.values())


def is_builtin(name: str) -> bool:
    return name in _builtins


def on_deleted(hook: DeletedHook) -> None:
    """Call ``hook(tool)`` in the transaction that deletes a tool, before its row goes."""
    if hook not in _deleted:
        _deleted.append(hook)


def on_renamed(hook: RenamedHook) -> None:
    """Call ``hook(tool, old_name)`` in the transaction that renames a tool, after its row changed."""
    if hook not in _renamed:
        _renamed.append(hook)


def tell_deleted(tool: Tool) -> None:
    for hook in _deleted:
        hook(tool)


def tell_renamed(tool: Tool, old_name: str) -> None:
    for hook in _renamed:
        hook(tool, old_name)
