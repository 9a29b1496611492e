"""A source with a type of every sort, and the schemas of some of them."""

from __future__ import annotations

from typing import Any

from tools.schema import derive

HEAD = """
import collections.abc
import datetime
import enum
import typing as t
import uuid
from collections import deque
from dataclasses import KW_ONLY, InitVar, dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum, auto
from pathlib import Path
from typing import *
import annotated_types
import pydantic
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, RootModel, conint, conlist

NAME = "n"
LONG = "a" * 3
Alias = List[int]
Quoted = "List[int]"
Json = Union[str, List["Json"], Dict[str, "Json"]]
Chain = Alias
T = TypeVar("T")
Bound = TypeVar("Bound", bound=int)
Either = TypeVar("Either", int, str)
Point = TypedDict("Point", {"x": int, "y": NotRequired[int]})


class Number(IntEnum):
    ONE = 1
    TWO = auto()
    UNO = 1


class Words(StrEnum):
    HELLO = auto()
    BYE = "bye"


class Base(str, Enum):
    @property
    def shown(self): return self.value


class Derived(Base):
    A = "a"
    _ignored = "x"


class Computed(Enum):
    A = len("x")


class Flags(IntFlag):
    A = 1


class Animal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: ClassVar[int] = 3
    _private: int = 1
    kind: str = Field(description="Kind of animal")
    legs: int = 4


class Dog(Animal):
    legs: float = Field(..., ge=0, le=4, description="Legs")
    nick: str = Field(alias="nickName", default="", max_length=9, pattern="^a")
    tags: Annotated[List[str], Field(min_length=1, description="Tags")] = []
    owner: Optional[str] = Field(..., description="Owner")
    made: int = Field(default_factory=int)


class Roots(RootModel[List[int]]):
    pass


class Page(BaseModel, Generic[T]):
    items: List[T]


class A(BaseModel):
    b: Optional["B"] = None


class B(BaseModel):
    a: List[A]


@dataclass
class Spot:
    x: int
    _: KW_ONLY
    y: int = 0
    hidden: int = field(default=1, init=False)
    start: InitVar[int] = 2


@pydantic.dataclasses.dataclass
class Spot3(Spot):
    z: Optional[float] = None


class Meta(TypedDict, total=False):
    who: Required[str]
    when: str


class Row(NamedTuple):
    x: int
    y: int = 0


class Holder(BaseModel):
    class Held(BaseModel):
        b: int

    held: Held


class Plain:
    x: int
"""


SPOT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}, "start": {"type": "integer"}},
    "required": ["x"],
}


DOG = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "description": "Kind of animal"},
        "legs": {"type": "number", "minimum": 0, "maximum": 4, "description": "Legs"},
        "nickName": {"type": "string", "maxLength": 9, "pattern": "^a"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Tags"},
        "owner": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Owner"},
        "made": {"type": "integer"},
    },
    "required": ["kind", "legs", "owner"],
}


HELD = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}


NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


INTEGERS = {"type": "array", "items": {"type": "integer"}}


STRINGS = {"type": "array", "items": {"type": "string"}}


def read(annotation: str, head: str = HEAD) -> dict[str, Any]:
    """The parameters of a tool with one parameter of this type."""
    made = derive(f'{head}\ndef tool(p: {annotation}):\n    """Tool.\n\n    Args:\n        p: P.\n    """\n')
    found: dict[str, Any] = made.json_schema["parameters"]
    return found
