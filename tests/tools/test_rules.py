"""Tool rules: what they offer, forbid, end and ask, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from tools import rules
from tools.rules import Called, Kind, NoValidToolsError, Rule, RulesError, parse_rules, to_wire

Json = dict[str, Any]
TOOLS = ("a", "b", "c", "d")


def run_first(tool: str, args: Json | None = None) -> Json:
    return {"type": "run_first", "tool_name": tool, "args": args}


def child(tool: str, *children: str, nodes: list[Json] | None = None) -> Json:
    return {"type": "constrain_child_tools", "tool_name": tool, "children": list(children), "child_arg_nodes": nodes}


def parent(tool: str, *children: str) -> Json:
    return {"type": "parent_last_tool", "tool_name": tool, "children": list(children)}


def conditional(tool: str, mapping: dict[Any, str], default: str | None = None, only: bool = False) -> Json:
    return {
        "type": "conditional",
        "tool_name": tool,
        "child_output_mapping": mapping,
        "default_child": default,
        "require_output_mapping": only,
    }


def at_most(tool: str, limit: int) -> Json:
    return {"type": "max_count_per_step", "tool_name": tool, "max_count_limit": limit}


def simple(kind: str, tool: str) -> Json:
    return {"type": kind, "tool_name": tool}


def calls(*names: str) -> list[Called]:
    return [Called(name) for name in names]


EVERY_KIND = [
    run_first("a", {"x": 1}),
    simple("exit_loop", "a"),
    simple("continue_loop", "a"),
    child("a", "b", "c", nodes=[{"name": "b", "args": {"y": [1]}}, {"name": "c", "args": None}]),
    parent("a", "b"),
    conditional("a", {"yes": "b"}, "c", True),
    at_most("a", 2),
    simple("required_before_exit", "a"),
    simple("requires_approval", "a"),
]


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
    ("given", "history", "names", "forced"),
    [
        ([], [], "abcd", False),
        ([], calls("a"), "abcd", False),
        ([simple("exit_loop", "a"), simple("continue_loop", "b"), simple("requires_approval", "c")], [], "abcd", False),
        # run_first
        ([run_first("b")], [], "b", True),
        ([run_first("d"), run_first("b")], [], "bd", True),
        ([run_first("b")], calls("b"), "abcd", False),
        ([run_first("b")], calls("a"), "abcd", False),
        ([run_first("gone")], [], "abcd", False),
        ([run_first("b"), parent("a", "b")], [], "b", True),
        # constrain_child_tools
        ([child("a", "c", "b")], [], "abcd", False),
        ([child("a", "c", "b")], calls("a"), "bc", True),
        ([child("a", "c", "b")], calls("a", "b"), "abcd", False),
        ([child("a", "b", "c"), child("a", "c", "d")], calls("a"), "c", True),
        ([child("a", "a")], calls("a"), "a", True),
        # parent_last_tool
        ([parent("a", "b")], [], "acd", False),
        ([parent("a", "b")], calls("c"), "acd", False),
        ([parent("a", "b")], calls("a"), "b", True),
        ([parent("a", "b")], calls("a", "b"), "acd", False),
        ([parent("a", "b"), parent("c", "d")], [], "ac", False),
        # max_count_per_step
        ([at_most("a", 2)], calls("a"), "abcd", False),
        ([at_most("a", 2)], calls("a", "b", "a"), "bcd", False),
        ([at_most("a", 0)], [], "bcd", False),
        ([at_most("a", 3), at_most("a", 1)], calls("a"), "bcd", False),
        # combined
        ([child("a", "a", "b"), at_most("a", 2)], calls("a", "a"), "b", True),
        ([child("a", "b", "c"), conditional("a", {"x": "c"})], [Called("a", "x")], "c", True),
    ],
)
def test_it_offers_what_the_rules_allow(given: list[Json], history: list[Called], names: str, forced: bool) -> None:
    offer = rules.offer(parse_rules(given), TOOLS, history)
    assert "".join(offer.names) == names
    assert offer.forced is forced
    for tool in TOOLS:
        refused = rules.violation(parse_rules(given), TOOLS, tool, history)
        assert (refused is None) == (tool in offer.names)


@pytest.mark.parametrize(
    ("key", "message", "matches"),
    [
        ("yes", "yes", True),
        ("yes", "Yes", False),
        ("yes", "yes ", False),
        ("", "", True),
        (True, "True", True),
        (True, "true", True),
        (True, True, True),
        ("true", "True", True),
        (False, "false", True),
        (True, "1", False),
        (1, "True", False),
        (5, "5", True),
        ("5", "5", True),
        (5, " 5 ", True),
        (5, "5.0", True),
        ("5.0", 5, True),
        (5, "007", False),
        (7, "007", True),
        (1.5, "1.50", True),
        (1.5, 1.5, True),
        (-2, "-2", True),
        (10**30, str(10**30), True),
        (10**30, str(10**30 + 1), False),
        ("nan", "NaN", False),
        (5, "five", False),
        (5, "1_0", False),
        ("{'a': 1}", {"a": 1}, False),
        ('{"a": 1}', {"a": 1}, True),
        ("None", None, True),
        ("1e3", "1000", True),
        ("1e999999999", "1", False),
    ],
)
def test_it_compares_a_result_with_the_outputs(key: Any, message: Any, matches: bool) -> None:
    given = parse_rules([conditional("a", {key: "b"}, "c")])
    offer = rules.offer(given, TOOLS, [Called("a", message)])
    assert offer.names == (("b",) if matches else ("c",))
    assert offer.forced


def test_an_exact_output_goes_before_an_equal_one() -> None:
    given = parse_rules([conditional("a", {"7": "b", "007": "c"})])
    assert rules.offer(given, TOOLS, [Called("a", "007")]).names == ("c",)
    assert rules.offer(given, TOOLS, [Called("a", "07")]).names == ("b",)


def test_without_a_match_any_tool_or_none_may_follow() -> None:
    history = [Called("a", "other", ok=False)]
    assert rules.offer(parse_rules([conditional("a", {"x": "b"})]), TOOLS, history).names == TOOLS
    with pytest.raises(NoValidToolsError):
        rules.offer(parse_rules([conditional("a", {"x": "b"}, "c", only=True)]), TOOLS, history)


@pytest.mark.parametrize(
    ("given", "history"),
    [
        ([child("a", "b"), child("a", "c")], calls("a")),
        ([child("a", "gone")], calls("a")),
        ([parent("a", "b"), child("c", "b")], calls("c")),
        ([child("a", "b"), at_most("b", 1)], calls("b", "a")),
        ([parent("x", "a", "b", "c", "d")], []),
    ],
)
def test_it_says_when_no_tool_is_left(given: list[Json], history: list[Called]) -> None:
    with pytest.raises(NoValidToolsError) as caught:
        rules.offer(parse_rules(given), TOOLS, history)
    assert str(caught.value) == "No valid tools found based on tool rules."
    refusal = rules.violation(parse_rules(given), TOOLS, "b", history)
    assert refusal is not None
    assert "valid tools include: []" in refusal


def test_it_offers_nothing_when_only_the_counts_are_used_up() -> None:
    offer = rules.offer(parse_rules([at_most("a", 1)]), ("a",), calls("a"))
    assert offer.names == ()
    assert not offer.forced
    assert rules.offer((), (), []).names == ()


def test_it_gives_arguments_that_go_over_the_models() -> None:
    given = parse_rules(
        [
            run_first("a", {"x": 1}),
            run_first("b"),
            child("a", "b", "c", nodes=[{"name": "b", "args": {"y": 2}}, {"name": "c"}]),
            child("a", "b", "c", "d", nodes=[{"name": "b", "args": {"z": 3}}, {"name": "d", "args": {"no": 1}}]),
        ]
    )
    assert rules.offer(given, TOOLS, []).prefill == {"a": {"x": 1}}
    assert rules.offer(given, TOOLS, calls("a")).prefill == {"b": {"y": 2, "z": 3}}
    assert rules.offer(given, TOOLS, calls("a", "b")).prefill == {}


def test_it_tells_the_model_why_a_call_is_refused() -> None:
    given = parse_rules([child("a", "b"), at_most("c", 1), simple("exit_loop", "c")])
    assert rules.violation((), ("x", "y"), "z", []) == (
        "[ToolConstraintError] Cannot call z, valid tools include: ['x', 'y']."
    )
    assert rules.violation(given, TOOLS, "c", calls("a")) == (
        "[ToolConstraintError] Cannot call c, valid tools include: ['b'].\n"
        "Rules that forbid it:\n"
        "- Right after a you must call one of these tools: b.\n"
        "- You may call c at most 1 time in a turn."
    )
    assert rules.violation(given, TOOLS, "c", calls("c", "b")) == (
        "[ToolConstraintError] Cannot call c, valid tools include: ['a', 'b', 'd'].\n"
        "Rules that forbid it:\n"
        "- You may call c at most 1 time in a turn."
    )


@pytest.mark.parametrize("name", ["functions.a", "A ", "", "x" * 100_000, "a\0\ud800", "\n\n"])
def test_it_names_the_tools_there_are_for_one_that_is_not(name: str) -> None:
    said = rules.unknown_tool((), TOOLS, name, [])
    assert said.startswith("[ToolConstraintError] Cannot call ")
    assert said.endswith(", valid tools include: ['a', 'b', 'c', 'd'].")
    assert len(said) < 300
    said.encode("utf-8")
    assert len(rules.unknown_tool((), [f"tool_{n}" for n in range(5000)], name, [])) < 3000


def test_calls_of_one_answer_do_not_follow_each_other() -> None:
    given = parse_rules([child("a", "d"), at_most("b", 2), run_first("a"), run_first("b")])
    # the model called a and b at once, at the start of a turn: b is not judged as if it came after a
    assert rules.violation(given, TOOLS, "b", calls("a"), beside=1) is None
    assert rules.violation(given, TOOLS, "b", calls("a")) is not None
    # but counts run through the answer
    assert rules.violation(given, TOOLS, "b", calls("b", "b"), beside=2) is not None
    assert rules.violation(given, TOOLS, "b", calls("b"), beside=1) is None


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
