"""Schemas of the sources in tests/cases/tools."""

from __future__ import annotations

import json
import sys

import jsonschema
import pytest

from tests.tools.schema_cases import CASES, NODE, NOT_STRICT, PREFIX, REFUSED, WANTED, source
from tools.schema import SchemaError, ToolSchema, derive, strict


@pytest.mark.parametrize("case", WANTED)
def test_it_derives_the_schema_of_a_case(case: str) -> None:
    name, description, properties, required = WANTED[case]
    schema = derive(source(case))
    assert schema.name == name
    assert schema.description == description
    assert schema.json_schema["name"] == name
    assert schema.json_schema["description"] == description
    parameters = dict(schema.json_schema["parameters"])
    assert parameters.pop("$defs", {}) == ({"Node": NODE} if case == "t35" else {})
    assert parameters == {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize("case", WANTED)
def test_it_makes_schemas_that_are_valid_json_schemas(case: str) -> None:
    parameters = derive(source(case)).json_schema["parameters"]
    jsonschema.Draft202012Validator.check_schema(parameters)
    json.dumps(parameters, allow_nan=False)


@pytest.mark.parametrize("case", WANTED)
def test_it_knows_which_cases_have_a_strict_form(case: str) -> None:
    rewritten = strict(derive(source(case)).json_schema["parameters"])
    assert (rewritten is None) == (case in NOT_STRICT)


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_a_case_with_the_known_text(case: str) -> None:
    with pytest.raises(SchemaError) as caught:
        derive(source(case))
    assert caught.value.message == str(caught.value) == PREFIX + REFUSED[case]


def test_every_case_is_in_a_table() -> None:
    files = {path.name.partition("_")[0] for path in CASES.iterdir()}
    assert files == WANTED.keys() | REFUSED.keys() | {"t37"}


def test_it_tells_how_the_function_is_called() -> None:
    assert derive(source("t14")).is_async
    assert derive(source("t26")).takes_agent_state
    assert not derive(source("t01")).is_async
    assert not derive(source("t01")).takes_agent_state


def test_it_takes_the_function_that_is_named() -> None:
    assert derive(source("t17"), name="helper").json_schema["description"] == "Helper."
    for name in ("square", "open", "absent"):
        with pytest.raises(SchemaError, match=f"No function '{name}' found"):
            derive(source("t18" if name == "square" else "t19"), name=name)


def test_it_needs_no_docstring_when_the_request_describes_the_tool() -> None:
    schema = derive(source("t16"), description="Adds.")
    assert schema.json_schema["description"] == schema.description == "Adds."
    assert schema.json_schema["parameters"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}


def test_it_gives_the_same_schema_with_and_without_the_future_import() -> None:
    with_import = source("t12")
    without = with_import.replace("from __future__ import annotations\n", "")
    assert derive(with_import) == derive(without)


def test_it_reads_new_syntax_where_the_server_does() -> None:
    def read() -> ToolSchema:
        return derive(source("t37"))

    if sys.version_info < (3, 12):
        with pytest.raises(SchemaError, match="line 1"):
            read()
    else:
        properties = read().json_schema["parameters"]["properties"]
        assert properties["items"]["items"] == {}
        assert properties["pair"]["prefixItems"] == [{"type": "integer"}, {"type": "integer"}]
