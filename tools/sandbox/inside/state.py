"""What a tool sees as ``agent_state``: the agent's JSON behind attributes; only changed block values go back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Attributes:
    """A JSON object whose keys are attributes and items."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        for key, value in content.items():
            setattr(self, key, wrap(value))

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __contains__(self, key: str) -> bool:
        return hasattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default``."""
        return getattr(self, key, default)

    def model_dump(self, mode: str = "json") -> dict[str, Any]:
        """Return the JSON object."""
        return {key: unwrap(value) for key, value in vars(self).items() if not key.startswith("_")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_dump()!r})"


class Memory(Attributes):
    """The agent's memory blocks."""

    blocks: list[Any]

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self.blocks = getattr(self, "blocks", None) or []

    def get_block(self, label: str) -> Any:
        """Return the block with ``label``; raises KeyError."""
        for block in self.blocks:
            if block.label == label:
                return block
        raise KeyError(f"there is no memory block {label} (blocks: {', '.join(self.list_block_labels())})")

    def list_block_labels(self) -> list[str]:
        """Return the labels of all blocks."""
        return [str(block.label) for block in self.blocks]

    def update_block_value(self, label: str, value: str) -> None:
        """Set the value of one block; raises KeyError and ValueError."""
        if not isinstance(value, str):
            raise ValueError("the value of a memory block is text")
        self.get_block(label).value = value


def wrap(value: Any) -> Any:
    """Return JSON with attributes in place of objects."""
    if isinstance(value, dict):
        return Attributes(value)
    if isinstance(value, list):
        return [wrap(item) for item in value]
    return value


def unwrap(value: Any) -> Any:
    """Return attributes as JSON again."""
    if isinstance(value, Attributes):
        return value.model_dump()
    if isinstance(value, list):
        return [unwrap(item) for item in value]
    return value


def agent_state(content: Mapping[str, Any] | None) -> Attributes | None:
    """Return what is passed as ``agent_state``, None when there is no agent."""
    if content is None:
        return None
    state = Attributes({key: value for key, value in content.items() if key != "memory"})
    memory = Memory(content.get("memory") or {"blocks": content.get("blocks") or []})
    setattr(state, "memory", memory)  # noqa: B010 - the attribute is no part of the class
    return state


def _values(memory: Memory) -> dict[str, str]:
    found = {}
    for block in memory.blocks:
        label, value = getattr(block, "label", None), getattr(block, "value", None)
        if isinstance(label, str) and isinstance(value, str):
            found[label] = value
    return found


def changed_values(content: Mapping[str, Any] | None, state: Attributes | None) -> dict[str, str]:
    """Return the values of the blocks that the tool changed, by label."""
    before = agent_state(content)
    if before is None or state is None:
        return {}
    old, new = _values(before.get("memory")), _values(state.get("memory"))
    return {label: value for label, value in new.items() if label in old and old[label] != value}
