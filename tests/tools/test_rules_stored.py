"""Tool rules read, written, changed; and where they end a turn or ask a person."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.rule_builders import (
    EVERY_KIND,
    TOOLS,
    Json,
    at_most,
    calls,
    child,
    conditional,
    parent,
    run_first,
    simple,
)
from tools import rules
from tools.rules import Called, Kind, Rule, RulesError, parse_rules, to_wire


@pytest.mark.parametrize("wire", EVERY_KIND, ids=lambda wire: str(wire["type"]))
def test_it_reads_and_writes_every_kind(wire: Json) -> None:
    assert [to_wire(rule) for rule in parse_rules([wire])] == [{**wire, "prompt_template": None}]


def test_it_keeps_a_template_and_never_renders_it() -> None:
    wire = {**simple("exit_loop", "a"), "prompt_template": "{{ 7 * 7 }}"}
    parsed = parse_rules([wire])
    assert to_wire(parsed[0]) == wire
    assert "49" not in rules.describe(parsed)
    assert "{{" not in rules.describe(parsed)


def test_it_drops_rules_that_are_there_twice() -> None:
    given = [child("a", "b"), child("a", "b"), child("a", "c"), simple("exit_loop", "a"), simple("exit_loop", "a")]
    assert [to_wire(rule)["type"] for rule in parse_rules(given)] == [
        "constrain_child_tools",
        "constrain_child_tools",
        "exit_loop",
    ]


def test_it_reads_booleans_and_numbers_as_outputs() -> None:
    parsed = parse_rules([conditional("a", {True: "b", 5: "c", 1.5: "d"})])
    assert parsed[0].outputs == (("true", "b"), ("5", "c"), ("1.5", "d"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x", "must be a list"),
        (["x"], "rule 1 must be an object"),
        ([{"tool_name": "a"}], "rule 1: type None is not one of"),
        ([simple("exit_loop", "a"), {"type": "nothing", "tool_name": "a"}], "rule 2: type 'nothing' is not one of"),
        ([{"type": "exit_loop"}], "tool_name must be the name of a tool"),
        ([simple("exit_loop", " ")], "tool_name must be the name of a tool"),
        ([simple("exit_loop", "x" * 300)], "longer than 255"),
        ([{**simple("exit_loop", "a"), "prompt_template": 3}], "prompt_template must be a text"),
        ([child("a")], "children must be a list of 1"),
        ([{"type": "parent_last_tool", "tool_name": "a", "children": "b"}], "children must be a list"),
        ([child("a", "b", nodes=[{"name": "c"}])], "child_arg_nodes names 'c', which is not in children"),
        ([child("a", "b", nodes=[{"name": "b", "args": [1]}])], "args of 'b' must be an object"),
        ([{**child("a", "b"), "child_arg_nodes": {}}], "child_arg_nodes must be a list"),
        ([{**child("a", "b"), "child_arg_nodes": [3]}], "each of child_arg_nodes must be an object"),
        ([conditional("a", {})], "child_output_mapping must map"),
        ([{**conditional("a", {"x": "b"}), "child_output_mapping": [1]}], "child_output_mapping must map"),
        ([conditional("a", {"x": 3})], "each mapped tool must be the name of a tool"),  # type: ignore[dict-item]
        ([{**conditional("a", {"x": "b"}), "require_output_mapping": "yes"}], "must be true or false"),
        ([at_most("a", -1)], "max_count_limit must be an integer"),
        ([at_most("a", True)], "max_count_limit must be an integer"),
        ([{"type": "max_count_per_step", "tool_name": "a"}], "max_count_limit must be an integer"),
        ([run_first("a", {"x": float("nan")})], "NaN"),
        ([simple("exit_loop", "a")] * 501, "at most 500"),
    ],
)
def test_it_names_the_rule_that_does_not_fit(given: Any, said: str) -> None:
    with pytest.raises(RulesError) as caught:
        parse_rules(given)
    assert said in str(caught.value)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize(
    ("given", "name", "wanted"),
    [
        ([], "a", "default"),
        ([simple("exit_loop", "a")], "a", "end"),
        ([simple("exit_loop", "a")], "b", "default"),
        ([simple("continue_loop", "a")], "a", "continue"),
        ([child("a", "b")], "a", "continue"),
        ([conditional("a", {"x": "b"})], "a", "continue"),
        ([parent("a", "b")], "a", "default"),
        ([simple("exit_loop", "a"), simple("continue_loop", "a")], "a", "end"),
        ([simple("exit_loop", "a"), simple("required_before_exit", "b")], "a", "continue"),
        ([simple("exit_loop", "a"), simple("required_before_exit", "a")], "a", "end"),
        ([simple("required_before_exit", "b")], "b", "default"),
    ],
)
def test_it_knows_what_follows_a_call(given: list[Json], name: str, wanted: str) -> None:
    parsed = parse_rules(given)
    assert rules.after_call(parsed, name, calls(name)) == wanted
    assert rules.is_terminal(parsed, name) == any(rule.kind is Kind.EXIT_LOOP and rule.tool == name for rule in parsed)


def test_it_keeps_a_turn_open_until_what_is_required_was_called() -> None:
    given = parse_rules([simple("required_before_exit", name) for name in ("b", "a", "gone")])
    assert rules.blocks_exit(given, []) == ["b", "a", "gone"]
    assert rules.blocks_exit(given, [], tool_names=TOOLS) == ["b", "a"]
    assert rules.blocks_exit(given, [Called("b", "failed", ok=False)], tool_names=TOOLS) == ["a"]
    assert rules.blocks_exit(given, calls("a", "b"), tool_names=TOOLS) == []
    assert rules.exit_note(["b", "a"]).startswith("ToolRuleViolated: You must call b, a ")


def test_it_knows_who_asks_a_person() -> None:
    given = parse_rules([simple("requires_approval", "a")])
    assert rules.requires_approval(given, "a")
    assert not rules.requires_approval(given, "b")
    assert rules.offer(given, TOOLS, []).names == TOOLS
    both = rules.with_approval(given, "b", True)
    assert [rule.tool for rule in both] == ["a", "b"]
    assert rules.with_approval(both, "b", True) == both
    assert rules.with_approval(both, "a", False) == both[1:]
    assert rules.with_approval((), "a", False) == ()


@pytest.mark.parametrize(
    ("agent_type", "include", "wanted"),
    [
        ("letta_v1_agent", None, {}),
        ("letta_v1_agent", False, {}),
        ("memgpt_agent", False, {}),
        (
            "letta_v1_agent",
            True,
            {
                "memory_replace": "continue_loop",
                "conversation_search": "continue_loop",
                "send_message": "exit_loop",
                "memory_insert": "continue_loop",
            },
        ),
        (
            "memgpt_v2_agent",
            None,
            {
                "memory_replace": "continue_loop",
                "conversation_search": "continue_loop",
                "send_message": "exit_loop",
                "memory_insert": "continue_loop",
            },
        ),
    ],
)
def test_it_gives_a_new_agent_its_rules(agent_type: str, include: bool | None, wanted: dict[str, str]) -> None:
    names = ["memory_replace", "conversation_search", "send_message", "memory_insert", "own_tool", "send_message"]
    made = rules.default_rules(agent_type, names, include=include)
    assert {rule.tool: str(rule.kind) for rule in made} == wanted
    assert len(made) == len(wanted)


def test_it_puts_the_rules_into_words() -> None:
    told = rules.describe(parse_rules(EVERY_KIND)).splitlines()
    assert len(told) == 8
    assert all(line.startswith("- ") and "a" in line for line in told)
    assert told[-1] == "- You must call a before you end your turn."
    assert rules.describe(parse_rules([simple("requires_approval", "a")])) == ""
    assert rules.describe(()) == ""


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([simple("exit_loop", "a"), simple("exit_loop", "b")], [simple("exit_loop", "b")]),
        ([child("b", "a", "c")], [child("b", "c")]),
        ([child("b", "a")], []),
        ([child("b", "a", "c", nodes=[{"name": "a", "args": {}}, {"name": "c", "args": {"x": 1}}])],
         [child("b", "c", nodes=[{"name": "c", "args": {"x": 1}}])]),
        ([parent("b", "a")], []),
        ([parent("b", "a", "c")], [parent("b", "c")]),
        ([conditional("b", {"x": "a", "y": "c"}, "a")], [conditional("b", {"y": "c"})]),
        ([conditional("b", {"x": "a"}, "c")], []),
        ([conditional("b", {"x": "c"}, "a")], [conditional("b", {"x": "c"})]),
    ],
)  # fmt: skip
def test_it_forgets_a_tool_that_is_gone(given: list[Json], left: list[Json]) -> None:
    assert rules.without_tool(parse_rules(given), "a") == parse_rules(left)


def test_it_follows_a_tool_that_is_renamed() -> None:
    given = [
        *EVERY_KIND,
        child("b", "a", nodes=[{"name": "a", "args": {"a": "a"}}]),
        conditional("b", {"a": "a"}, "a"),
    ]
    renamed = [to_wire(rule) for rule in rules.rename_tool(parse_rules(given), "a", "new")]
    assert {wire["tool_name"] for wire in renamed} == {"new", "b"}
    assert renamed[-2]["children"] == ["new"]
    assert renamed[-2]["child_arg_nodes"] == [{"name": "new", "args": {"a": "a"}}]
    assert renamed[-1]["child_output_mapping"] == {"a": "new"}
    assert renamed[-1]["default_child"] == "new"
    assert rules.rename_tool(rules.rename_tool(parse_rules(given), "a", "new"), "new", "a") == parse_rules(given)


def test_rules_are_values() -> None:
    assert parse_rules([child("a", "b")]) == (Rule(Kind.CHILD, "a", children=("b",)),)
