"""Gives a tool's arguments the types that its annotations ask for; JSON knows only six."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import pathlib
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Any

SEQUENCES: dict[Any, Callable[[Any], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    collections.abc.Set: set,
}
MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
FROM_TEXT: dict[Any, Callable[[Any], Any]] = {
    datetime.datetime: lambda value: datetime.datetime.fromisoformat(value),
    datetime.date: lambda value: datetime.date.fromisoformat(value),
    datetime.time: lambda value: datetime.time.fromisoformat(value),
    decimal.Decimal: lambda value: decimal.Decimal(str(value)),
    uuid.UUID: lambda value: uuid.UUID(value),
    pathlib.Path: lambda value: pathlib.Path(value),
    bytes: lambda value: value.encode(),
}
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class ArgumentMismatch(ValueError):
    """An argument cannot be turned into the type of its parameter; the text names both."""

    __module__ = "builtins"  # tracebacks then show the bare name


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved annotations by parameter; one that cannot be resolved is left out."""
    function = inspect.unwrap(function)
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        return _one_by_one(function)


def _one_by_one(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    scope = getattr(function, "__globals__", {})
    for name, annotation in getattr(function, "__annotations__", {}).items():
        try:
            holder = types.SimpleNamespace(__annotations__={name: annotation})
            found.update(typing.get_type_hints(holder, globalns=scope, include_extras=True))
        except Exception:
            continue
    return found


def arguments_for(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments of the call; raises ArgumentMismatch."""
    parameters = inspect.signature(function).parameters
    hints = annotations_of(function)
    keywords = {name: _argument(name, value, hints) for name, value in arguments.items()}
    positional = []
    for name, parameter in parameters.items():
        if parameter.kind is not parameter.POSITIONAL_ONLY or name not in keywords:
            break
        positional.append(keywords.pop(name))
    return positional, keywords


def _argument(name: str, value: Any, hints: Mapping[str, Any]) -> Any:
    if name not in hints:
        return value
    try:
        return coerce(value, hints[name])
    except Exception as error:
        raise ArgumentMismatch(f"argument {name}: {error}") from None


def coerce(value: Any, wanted: Any) -> Any:
    """Return ``value`` as ``wanted`` where that is possible; raises what the type's constructor raises."""
    wanted = _bare(wanted)
    origin = typing.get_origin(wanted)
    if origin in (typing.Union, types.UnionType):
        return _one_arm(value, typing.get_args(wanted))
    if origin is typing.Literal:
        return _literal(value, typing.get_args(wanted))
    if origin is not None:
        return _generic(value, origin, typing.get_args(wanted))
    if wanted is Any or not isinstance(wanted, type) or value is None:
        return value
    return _plain_type(value, wanted)


def _bare(wanted: Any) -> Any:
    """Look through Annotated, NewType and ``type`` aliases."""
    for _ in range(16):
        if typing.get_origin(wanted) in (typing.Annotated, typing.Required, typing.NotRequired):
            wanted = typing.get_args(wanted)[0]
        elif hasattr(wanted, "__supertype__"):
            wanted = wanted.__supertype__
        elif type(wanted).__name__ == "TypeAliasType":
            wanted = wanted.__value__
        else:
            break
    return wanted


def _one_arm(value: Any, arms: tuple[Any, ...]) -> Any:
    """The arm that the value already is; else the first that takes it; else the value as it is."""
    if value is None or any(isinstance(arm, type) and type(value) is arm for arm in arms):
        return value
    failure: Exception | None = None
    for arm in arms:
        if arm is type(None):
            continue
        try:
            return coerce(value, arm)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return value


def _literal(value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if choice == value and type(choice) is type(value):
            return choice
    for choice in choices:
        if str(getattr(choice, "value", choice)) == str(value):
            return choice
    raise ValueError(f"{value!r} is none of {', '.join(map(repr, choices))}")


def _generic(value: Any, origin: Any, inner: tuple[Any, ...]) -> Any:
    if origin is tuple and isinstance(value, list):
        return _tuple(value, inner)
    if origin in SEQUENCES and isinstance(value, list):
        return SEQUENCES[origin](coerce(item, inner[0]) for item in value)
    if origin in MAPPINGS and isinstance(value, dict) and len(inner) == 2:
        return {coerce(key, inner[0]): coerce(item, inner[1]) for key, item in value.items()}
    if isinstance(origin, type) and hasattr(origin, "model_validate"):
        return origin.model_validate(value)
    return value


def _tuple(value: list[Any], inner: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(coerce(item, inner[0]) for item in value)
    if len(inner) != len(value):
        raise ValueError(f"{len(value)} items instead of {len(inner)}")
    return tuple(coerce(item, kind) for item, kind in zip(value, inner, strict=True))


def _plain_type(value: Any, wanted: Any) -> Any:
    if issubclass(wanted, enum.Enum):
        return wanted[value] if value in wanted.__members__ and not _has_value(wanted, value) else wanted(value)
    if hasattr(wanted, "model_validate"):
        return wanted.model_validate(value)
    if isinstance(value, dict) and bool(dataclasses.is_dataclass(wanted)):
        return wanted(**_fields(value, wanted))
    if typing.is_typeddict(wanted) and isinstance(value, dict):
        return _fields(value, wanted)
    if issubclass(wanted, tuple) and hasattr(wanted, "_fields"):
        return wanted(**_fields(value, wanted)) if isinstance(value, dict) else wanted(*value)
    if wanted in FROM_TEXT and not isinstance(value, wanted):
        return FROM_TEXT[wanted](value)
    if wanted in SEQUENCES or wanted is tuple:
        return wanted(value) if isinstance(value, list) else value
    return _scalar(value, wanted)


def _has_value(wanted: type[enum.Enum], value: Any) -> bool:
    return any(member.value == value for member in wanted)


def _fields(value: dict[str, Any], wanted: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(wanted, include_extras=True)
    except Exception:
        hints = {}
    return {name: coerce(item, hints[name]) if name in hints else item for name, item in value.items()}


def _scalar(value: Any, wanted: type) -> Any:
    if _is_one(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return value
    if wanted is bool and isinstance(value, str):
        return _boolean(value)
    if wanted is int and isinstance(value, float):
        return _whole(value)
    if wanted in (int, float) and isinstance(value, (str, int, float)):
        return wanted(value)
    if wanted is str and isinstance(value, (int, float)):
        return str(value)
    return value


def _is_one(value: Any, wanted: type) -> bool:
    try:
        return isinstance(value, wanted)
    except TypeError:  # a protocol, say, that cannot be asked
        return True


def _boolean(value: str) -> bool:
    word = value.strip().lower()
    if word not in BOOLEANS:
        raise ValueError(f"{value!r} is no boolean")
    return BOOLEANS[word]


def _whole(value: float) -> int:
    if value != int(value):
        raise ValueError(f"{value!r} is no integer")
    return int(value)
