"""Whatever people, models, tools and crashes do to a conversation in whatever order: these things hold."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agents.events import whole
from agents.events.kinds import is_terminal
from agents.loop import Act, Ask
from agents.models import CallState, Message, Run, Step, ToolCall
from tests.agents.test_strict_vendors import ask_anthropic
from tests.survival.course_model import World, numbered

EXAMPLES = int(os.environ.get("SURVIVAL_EXAMPLES", "15"))
STEPS = 60
PHASES = list(Phase) if os.environ.get("SURVIVAL_SHRINK") else [Phase.generate]
KINDS = st.lists(st.sampled_from(["think", "text", "free", "free", "gated", "gated", "unknown"]), max_size=4)
WORDS = st.sampled_from(["approve", "deny", "answer"])


class Course(RuleBasedStateMachine):
    """A conversation under everything at once."""

    @initialize()
    def begin(self) -> None:
        self.world = World()

    def asked(self) -> bool:
        return self.world.driver is not None and isinstance(self.world.driver.order, Ask)

    def acting(self) -> bool:
        return self.world.driver is not None and isinstance(self.world.driver.order, Act)

    def driven(self) -> bool:
        return self.world.driver is not None

    def waits(self) -> bool:
        return bool(self.world.waiting())

    def idle(self) -> bool:
        return not self.world.active() and not self.world.waiting()

    @precondition(idle)
    @rule(tokens=st.booleans())
    def say(self, tokens: bool) -> None:
        assert self.world.say("hello", tokens=tokens)

    @precondition(asked)
    @rule(pieces=st.lists(st.sampled_from(["so ", "and ", "then "]), min_size=1, max_size=3), look=st.booleans())
    def stream(self, pieces: Sequence[str], look: bool) -> None:
        self.world.stream(pieces)
        if look:
            self.world.look()

    @precondition(asked)
    @rule(kinds=KINDS)
    def answer(self, kinds: Sequence[str]) -> None:
        self.world.answer(kinds)

    @precondition(acting)
    @rule(ok=st.booleans())
    def run_call(self, ok: bool) -> None:
        self.world.run_call(ok=ok)

    @precondition(driven)
    @rule(working=st.booleans())
    def crash(self, working: bool) -> None:
        self.world.crash(working=working)
        self.world.haunt()

    @precondition(waits)
    @rule(words=st.lists(WORDS, min_size=4, max_size=4), at_once=st.booleans())
    def settle(self, words: Sequence[str], at_once: bool) -> None:
        if at_once:
            self.world.settle_all(words)
        else:
            self.world.settle_one(words[0])

    @rule(what=st.sampled_from(["cancel", "bug", "refusal", "look", "message", "nothing", "nothing"]))
    def disturb(self, what: str) -> None:
        if what == "cancel":
            self.world.cancel()
        elif what == "look":
            self.world.look()
        elif what == "message":
            free = self.idle()
            assert self.world.say("me too", tokens=False) == free
        elif what == "bug" and self.driven():
            self.world.bug()
        elif what == "refusal" and self.asked():
            self.world.refuse()

    # --- what holds ---

    @invariant()
    def it_has_one_active_run(self) -> None:
        active = self.world.active()
        assert len(active) <= 1
        assert not active or self.world.driver is not None
        assert not active or not self.world.waiting(), "a run goes on while people must decide"

    @invariant()
    def it_runs_a_call_as_often_as_it_may(self) -> None:
        too_often = {pk for pk, times in self.world.executed.items() if times > self.world.allowed[pk]}
        assert not too_often

    @invariant()
    def it_leaves_no_call_that_nobody_can_decide(self) -> None:
        if self.world.active():
            return
        left = ToolCall.objects.filter(conversation=self.world.conversation, returned=False)
        states = [call.state for call in left]
        assert not states or self.world.waiting(), states
        assert CallState.STARTED not in states

    @invariant()
    def it_asks_nothing_that_a_strict_vendor_refuses(self) -> None:
        while self.world.requests:
            ask_anthropic(self.world.requests.pop())

    @invariant()
    def it_has_a_log_without_gaps(self) -> None:
        for run in Run.objects.filter(conversation=self.world.conversation).order_by("-id")[:2]:
            events = numbered(whole(run.pk))
            assert [number for number, _ in events] == list(range(1, len(events) + 1))
            ends = [number for number, event in events if is_terminal(event)]
            assert ends == ([] if run.active else [len(events)])
            reader = self.world.readers.get(run.pk)
            if reader is not None:
                assert reader.seen == events[: len(reader.seen)]
                reader.look()
                assert not reader.seen or reader.seen == events[: len(reader.seen)]

    @invariant()
    def it_keeps_what_was_superseded_apart(self) -> None:
        gone = {
            uid for step in Step.objects.filter(run__conversation=self.world.conversation) for uid in step.superseded
        }
        assert not Message.objects.filter(uuid__in=gone).exists()


@pytest.mark.django_db(transaction=True)
def test_it_holds_in_any_order() -> None:
    run_state_machine_as_test(
        Course,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
            derandomize=os.environ.get("SURVIVAL_SEED") is None,
        ),
    )
