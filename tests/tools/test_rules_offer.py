"""What tool rules let a model call, and what they say of other calls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.rule_builders import (
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
from tools.rules import Called, NoValidToolsError, parse_rules


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
