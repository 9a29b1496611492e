"""Sources that mean harm, or are no Python at all: a clean refusal, soon, and nothing of them runs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tools.schema import SchemaError, ToolSchema, decode_source, derive

DOC = "'T.\\n\\nArgs:\\n    p: P.'"
NESTED = {
    "brackets": "x = " + "(" * 100_000,
    "lists": "x = " + "[" * 90_000 + "]" * 90_000,
    "signs": "x = " + "-" * 200_000 + "1",
    "attributes": "x = a" + ".a" * 120_000,
    "sum": "x = 1" + "+1" * 120_000,
    "subscripts": "x = a" + "[0]" * 80_000,
    "calls": "x = a" + "()" * 100_000,
    "lambdas": "x = " + "lambda:" * 30_000 + "1",
    "conditions": "x = " + "1 if 1 else " * 20_000 + "1",
    "elif": "if 1:\n pass\n" + "elif 1:\n pass\n" * 15_000,
    "blocks": "".join(" " * level + "if 1:\n" for level in range(150)) + " " * 150 + "pass",
    "digits": "x = " + "1" * 5000,
    "f-strings": "x = " + 'f"{' * 10,
    "null": "x = 1\0",
    "surrogate": "x = '\ud800'",
    "too long": "x = 1\n" * 50_000,
    "too long in bytes": "# " + "ü" * 140_000,
}


def outcome(source: str) -> ToolSchema | str:
    """The schema, or the text of the refusal."""
    try:
        return derive(source)
    except SchemaError as error:
        return str(error)


@pytest.mark.parametrize("name", NESTED)
def test_it_refuses_a_hostile_source(name: str) -> None:
    begun = time.monotonic()
    with pytest.raises(SchemaError) as caught:
        derive(f"def tool():\n    'T.'\n{NESTED[name]}\n")
    assert str(caught.value).startswith("Failed to derive json schema: Schema generation failed: ")
    assert len(str(caught.value)) <= 600
    str(caught.value).encode()
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    "annotation",
    [
        "List[" * 90 + "int" + "]" * 90,
        "'" + "List[" * 500 + "int" + "]" * 500 + "'",
        "'" + "(" * 3000 + "'",
        "int" + " | int" * 300,
        "'\\x00'",
        "'\\ud800'",
        "\"'int'\"" + "",
        "Literal[" + ",".join(str(number) for number in range(3000)) + ", len]",
        "Annotated[int, " + "Field(ge=" * 50 + "1" + ")" * 50 + "]",
    ],
)
def test_it_ends_on_a_hostile_annotation(annotation: str) -> None:
    source = f"from typing import *\nfrom pydantic import Field\ndef tool(p: {annotation}):\n    {DOC}\n"
    made = outcome(source)
    assert "'p'" in made if isinstance(made, str) else made.json_schema["parameters"]["required"] == ["p"]


@pytest.mark.parametrize(
    "source",
    [
        "A = [B, B]\nB = [A, A]\ndef tool(p: int = A):\n    " + DOC,
        "\n".join(f"A{n} = [A{n + 1}] * 2, A{n + 1}, A{n + 1}" for n in range(60))
        + f"\ndef tool(p: int = A0):\n    {DOC}",
        "\n".join(f"A{n} = [A{n + 1}, A{n + 1}]" for n in range(60)) + f"\nA60 = 1\ndef tool(p: int = A0):\n    {DOC}",
        "class A(B): pass\nclass B(A): pass\ndef tool(p: A):\n    " + DOC,
    ],
)
def test_it_ends_on_definitions_that_go_round(source: str) -> None:
    made = outcome(source)
    if isinstance(made, str):
        assert "'p'" in made
    else:
        assert "default" not in made.json_schema["parameters"]["properties"]["p"]


def test_it_never_runs_the_source(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    touch = f"open({str(mark)!r}, 'w')"
    source = (
        f"import nothing.of.that.name\n{touch}\nCONSTANT = {touch}\n"
        f"class E(__import__('enum').Enum):\n    A = {touch}\n"
        f"@({touch} and (lambda f: f))\n"
        f"def tool(p: int = {touch}, q: {touch} = 1):\n    'T.\\n\\nArgs:\\n    p: P.\\n    q: Q.'\n"
    )
    with pytest.raises(SchemaError, match="parameter 'q'"):
        derive(source)
    derive(source.replace(f"q: {touch}", "q: int"))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "fine"),
    [("a" * 64, True), ("_x1", True), ("a" * 65, False), ("näm", False), ("名前", False), ("ﬁx", False)],
)
def test_it_refuses_a_name_that_vendors_refuse(name: str, fine: bool) -> None:
    source = f"def {name}():\n    'T.'\n"
    if fine:
        assert derive(source).name == name
    elif name == "ﬁx":  # Python itself reads the ligature as two letters
        assert derive(source).name == "fix"
    else:
        with pytest.raises(SchemaError, match=r"Tool name .* is not valid"):
            derive(source)


def test_it_refuses_a_parameter_name_that_vendors_refuse() -> None:
    with pytest.raises(SchemaError, match="Parameter name 'größe' is not valid"):
        derive("def tool(größe: int):\n    'T.\\n\\nArgs:\\n    größe: P.'\n")


@pytest.mark.parametrize(
    "source", ["", "# only a comment\n", "   ", "class A:\n    def method(self): pass\n", "x = lambda: 1"]
)
def test_it_finds_no_function(source: str) -> None:
    with pytest.raises(SchemaError, match="No functions found in source code"):
        derive(source)


def test_it_names_the_line_of_a_mistake() -> None:
    with pytest.raises(SchemaError) as caught:
        derive("def x(:\n  pass")
    assert str(caught.value) == (
        "Failed to derive json schema: Schema generation failed: "
        "Failed to parse source code: invalid syntax (<unknown>, line 1)"
    )
    with pytest.raises(SchemaError, match="line 3"):
        derive("x = 1\ny = 2\nz = = 3\n")


@pytest.mark.parametrize(
    "source", ["\ufeffdef tool():\n    'T.'\n", "def tool():\r\n    'T.'\r\n", "def tool():\n\t'T.'"]
)
def test_it_takes_odd_line_ends_and_a_byte_order_mark(source: str) -> None:
    assert derive(source).description == "T."


def test_it_cleans_the_texts_that_it_stores() -> None:
    made = derive(
        "def tool(p: Literal['a\\x00b\\ud800']):\n    'T\\x00\\ud800.\\n\\nArgs:\\n    p: P\\x00.'\n"
    ).json_schema
    assert made["description"] == "T\ufffd."
    assert made["parameters"]["properties"]["p"] == {"type": "string", "enum": ["ab\ufffd"], "description": "P."}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("# -*- coding: latin-1 -*-\nx = 'ü'".encode("latin-1"), "ü"),
        ("x = 'ü'".encode(), "ü"),
        (b"\xef\xbb\xbfx = '\xc3\xbc'", "ü"),
        ("# coding: cp1252\nx = '€'".encode("cp1252"), "€"),
        (b"x = '\xfc'", None),
        (b"# coding: nothing-of-that-name\n", None),
        (b"# coding: rot13\nk = 1", None),
        (b"# coding: hex\n00", None),
        (b"# coding: utf-8\nx = '\xfc'", None),
        (b"\xef\xbb\xbf# coding: latin-1\n", None),
    ],
)
def test_it_decodes_an_uploaded_file(data: bytes, text: str | None) -> None:
    if text is None:
        with pytest.raises(SchemaError, match="UTF-8"):
            decode_source(data)
    else:
        assert text in decode_source(data)
