"""Descriptions from docstrings, in every style, as clients of the Letta server know them."""

from __future__ import annotations

from typing import Any

import pytest

from tools.schema import SchemaError, derive

GOOGLE = """
    Does a thing.

    In two steps.

    Args:
        a: First.
        b (int): Second.

    Returns:
        str: Nothing.
    """
NO_BLANK_LINE = """
    Does a thing. In two steps.
    Args:
        a (str): First.
        b (int): Second.
    Returns:
        str: Nothing.
    """
PARAMETERS = """
        Does a thing. In two steps.

        Parameters:
            a (str): First.
            b: Second.

        Raises:
            RuntimeError: If it fails.
        """
NUMPY = """Does a thing.

    In two steps.

    Parameters
    ----------
    a : str
        First.
    b : int
        Second.
    """
REST = """Does a thing.

    In two steps.

    :param a: First.
    :param int b: Second.
    :returns: Nothing.
    """
EPYTEXT = """Does a thing.

    In two steps.

    @param a: First.
    @param b: Second.
    @return: Nothing.
    """


def read(docstring: str, signature: str = "a: str, b: int = 1") -> dict[str, Any]:
    return derive(f"def tool({signature}):\n    {docstring!r}\n").json_schema


@pytest.mark.parametrize("docstring", [GOOGLE, NO_BLANK_LINE, PARAMETERS, NUMPY, REST, EPYTEXT])
def test_it_reads_a_docstring(docstring: str) -> None:
    schema = read(docstring)
    assert " ".join(schema["description"].split()) == "Does a thing. In two steps."
    assert schema["parameters"] == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "First."},
            "b": {"type": "integer", "description": "Second."},
        },
        "required": ["a"],
    }


def test_it_puts_a_blank_line_between_short_and_long_description() -> None:
    assert read(GOOGLE)["description"] == "Does a thing.\n\nIn two steps."


def test_it_keeps_the_lines_of_a_description() -> None:
    docstring = (
        "Short.\n\n    Long:\n    - one\n      two\n\n    Args:\n        a: First\n            goes on.\n        b: B."
    )
    schema = read(docstring)
    assert schema["description"] == "Short.\n\nLong:\n- one\n  two"
    assert schema["parameters"]["properties"]["a"]["description"] == "First\ngoes on."


@pytest.mark.parametrize(
    ("docstring", "wanted"),
    [
        (
            "Short.\n\n    Args:\n        a: A.\n        b: B.\n\n    Examples:\n        tool(1)\n        tool(2)\n",
            "Short.\n\nExamples:\n        tool(1)\n        tool(2)",
        ),
        (
            "Short.\n\n    Examples:\n        tool(1)\n\n    Args:\n        a: A.\n        b: B.\n    ",
            "Short.\n\nExamples:\n        tool(1)\n\n    Args:\n        a: A.\n        b: B.",
        ),
        (
            "Short.\n\nArgs:\n    a: A.\n    b: B.\n\nExamples:\n    tool(1)\n\nReturns:\n    Nothing.\n",
            "Short.\n\nExamples:\n    tool(1)",
        ),
        ("Short. Examples: none.\n\n    Args:\n        a: A.\n        b: B.\n    ", "Short. Examples: none."),
    ],
)
def test_it_appends_the_examples(docstring: str, wanted: str) -> None:
    assert read(docstring)["description"] == wanted


def test_it_says_so_when_a_docstring_describes_nothing() -> None:
    assert read("\n    Args:\n        a: A.\n        b: B.\n    ")["description"] == "No description available"


def test_it_takes_a_docstring_of_a_tool_without_parameters() -> None:
    assert read("Now.", "")["parameters"] == {"type": "object", "properties": {}, "required": []}


@pytest.mark.parametrize(
    ("signature", "docstring", "wanted"),
    [
        ("a: int", "Short.", "Value error in schema generation: Parameter 'a' in function 'tool' lacks a description"),
        ("a: Nope", "Short.", "Value error in schema generation: Parameter 'a' in function 'tool' lacks a description"),
        ("a", "Short.\n\nArgs:\n    a: A.", "Type error in schema generation: Parameter 'a' in function 'tool' lacks"),
        (
            "*, a",
            "Short.\n\nArgs:\n    a: A.",
            "Type error in schema generation: Parameter 'a' in function 'tool' lacks",
        ),
        ("a: int", "", "Function tool missing docstring"),
    ],
)
def test_it_names_what_a_docstring_or_signature_lacks(signature: str, docstring: str, wanted: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(docstring, signature)
    assert str(caught.value).startswith(f"Failed to derive json schema: Schema generation failed: {wanted}")


def test_it_says_exactly_what_the_letta_server_says_of_a_missing_description() -> None:
    with pytest.raises(SchemaError) as caught:
        read("Short.", "a: int")
    assert str(caught.value) == (
        "Failed to derive json schema: Schema generation failed: Value error in schema generation: "
        "Parameter 'a' in function 'tool' lacks a description in the docstring"
    )


def test_it_takes_the_description_of_an_annotation_when_the_docstring_has_none() -> None:
    source = (
        "from typing import Annotated\nfrom pydantic import Field\n"
        "def tool(a: Annotated[int, Field(description='From Field')], b: Annotated[int, 'Just text'],\n"
        "         c: Annotated[int, 'Loses']):\n    '''T.\n\n    Args:\n        c: Wins.\n    '''\n"
    )
    properties = derive(source).json_schema["parameters"]["properties"]
    assert [part["description"] for part in properties.values()] == ["From Field", "Just text", "Wins."]


def test_it_hides_the_parameters_that_the_server_fills() -> None:
    docstring = "T.\n\n    Args:\n        a: A.\n"
    made = derive(f"def tool(self, agent_state: 'AgentState', agent_id, a: int):\n    {docstring!r}\n")
    assert list(made.json_schema["parameters"]["properties"]) == ["a"]
    assert made.takes_agent_state
    assert made.takes_agent_id


def test_it_leaves_out_star_parameters() -> None:
    made = read(
        "T.\n\n    Args:\n        a: A.\n        args: X.\n        kwargs: Y.\n", "a: int, *args: int, **kwargs: int"
    )
    assert list(made["parameters"]["properties"]) == ["a"]


def test_it_names_optional_parameters_that_have_no_default() -> None:
    made = derive("def tool(a: Optional[int], b: Optional[int] = 1):\n    'T.\\n\\nArgs:\\n    a: A.\\n    b: B.'\n")
    assert made.optional == ("a",)
    assert made.json_schema["parameters"]["required"] == []


@pytest.mark.parametrize(
    ("constant", "shown"),
    [
        ("'main'", "main"),
        ("3", 3),
        ("-1.5", -1.5),
        ("[1, {'a': (2, None)}]", [1, {"a": [2, None]}]),
        ("OTHER", "other"),
        ("'a' 'b' + 'c'", "abc"),
        ("None", ...),
        ("float('inf')", ...),
        ("1e999", ...),
        ("b'x'", ...),
        ("{1, 2}", ...),
        ("{1: 2}", ...),
        ("OTHER.upper()", ...),
        ("OTHER[0]", ...),
        ("CONSTANT", ...),
        ("'x' * 10**9", ...),
        ("'x' * 2", ...),
        (repr("x" * 2000), ...),
    ],
)
def test_it_shows_a_named_default_only_where_it_is_a_literal(constant: str, shown: Any) -> None:
    source = f"OTHER = 'other'\nCONSTANT = {constant}\ndef tool(a: str = CONSTANT):\n    'T.\\n\\nArgs:\\n    a: A.'\n"
    made = derive(source).json_schema["parameters"]
    assert made["required"] == []
    assert made["properties"]["a"].get("default", ...) == shown


def test_it_shows_no_default_of_a_name_that_is_bound_twice() -> None:
    source = "C = 1\nC += 1\ndef tool(a: int = C):\n    'T.\\n\\nArgs:\\n    a: A.'\n"
    assert "default" not in derive(source).json_schema["parameters"]["properties"]["a"]
