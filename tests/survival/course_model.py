"""One conversation, driven step by step without an event loop: what a driver holds, and what a reader saw."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now

from agents import loop
from agents.actions.cancel import cancel_conversation
from agents.actions.desk.one import decide
from agents.actions.requests import Verdict
from agents.actions.send import send
from agents.events import Batch, Event, Fence, page
from agents.loop import Act, Answered, Ask, AskFailed, Lost, Order, Outcome, Ran, Streamed
from agents.loop.crash import fail_run
from agents.loop.supersede import supersede
from agents.models import Agent, Conversation, Process, Run, RunStatus, ToolCall
from agents.models.run import ACTIVE
from agents.models.toolcall import WAITING
from agents.providers.base import CallPart, ModelResponse, Part, ProviderError, ReasoningPart, TextPart
from agents.serializers.requests import message_request
from lettaweb.lib.problems import Problem
from tests.agents.factories import write_deltas
from tests.scripted.signing import sign
from tools.models import Tool
from tools.runner import ToolResult

MODEL = "anthropic/claude-sonnet-4-5-20250929"


@dataclass
class Driver:
    """Who drives the run: its fence, the order it holds, and what of the open answer it has written."""

    fence: Fence
    order: Order | None = None
    written: list[Event] = field(default_factory=list)
    ran: set[int] = field(default_factory=set)


@dataclass
class Reader:
    """Follows a run with a cursor, page by page, as its log grows and is merged."""

    run_id: int
    seen: list[tuple[int, Event]] = field(default_factory=list)

    def look(self) -> None:
        after = self.seen[-1][0] if self.seen else 0
        self.seen += numbered(page(self.run_id, after))


def numbered(batches: Sequence[Batch]) -> list[tuple[int, Event]]:
    return [pair for batch in batches for pair in enumerate(batch.events, start=batch.first)]


class World:
    """A conversation of an agent with a free and a gated tool, and everybody who has to do with it."""

    def __init__(self) -> None:
        mark = uuid.uuid4().hex[:10]
        self.person, _ = User.objects.get_or_create(username="somebody", is_superuser=True)
        self.free, self.gated = f"free_{mark}", f"gated_{mark}"
        tools = [
            Tool.objects.create(name=name, source_code="", json_schema=schema(name)) for name in (self.free, self.gated)
        ]
        self.agent = Agent.objects.create(
            name=f"agent {mark}",
            model=MODEL,
            system="You help.",
            llm_config={"parallel_tool_calls": True, "context_window": 200_000},
            tool_rules=[{"type": "requires_approval", "tool_name": self.gated}],
        )
        self.agent.tools.add(*tools)
        self.conversation = Conversation.objects.create(agent=self.agent, is_default=True)
        self.process = Process.objects.create(kind="test", host="test", pid=1, started_at=Now(), beat_at=Now())
        self.driver: Driver | None = None
        self.ghosts: list[Fence] = []
        self.readers: dict[int, Reader] = {}
        self.executed: Counter[int] = Counter()
        self.allowed: Counter[int] = Counter()
        self.requests: list[Any] = []

    # --- people and clients ---

    def say(self, text: str, *, tokens: bool) -> bool:
        """Send a message; whether it was taken."""
        return self._send({"role": "user", "content": text}, tokens=tokens)

    def settle_all(self, words: Sequence[str]) -> bool:
        """Decide every waiting call over the wire; whether that was taken."""
        calls = self.waiting()
        approvals = [sent_of(call, word) for call, word in zip(calls, words, strict=False)]
        if not calls or len(approvals) < len(calls):
            return False
        taken = self._send({"type": "approval", "approvals": approvals}, tokens=False)
        assert taken, "a whole set was refused"
        for call, word in zip(calls, words, strict=False):
            self.allowed[call.pk] += word == "approve"
        return True

    def settle_one(self, word: str) -> None:
        """Decide the first waiting call at the desk."""
        call = self.waiting()[0]
        verdict = Verdict(call.call_id, word, sent_of(call, word), text="a person says so")
        decided = decide(call.uuid, verdict, version=call.version, digest=call.digest, user=self.person)
        self.allowed[call.pk] += word == "approve"
        if decided.run is not None:
            self.take(decided.run)

    def cancel(self) -> None:
        cancel_conversation(self.conversation, self.person)
        self.driver = self.driver if self.active() else None

    def _send(self, message: dict[str, Any], *, tokens: bool) -> bool:
        body = {"messages": [message], "stream_tokens": tokens}
        try:
            started = send(
                self.conversation, message_request(body, streaming=True), actor=self.person, owner=self.process.pk
            )
        except Problem as problem:
            if problem.status not in (400, 409):
                raise
            return False
        if started.fresh:
            self.take(started.run, started.first)
        return True

    # --- the executor ---

    def take(self, run: Run, first: loop.Advanced | None = None) -> None:
        """A process claims the run, or has it already and was told what comes ``first``."""
        if run.owner_id is None:
            Run.objects.filter(pk=run.pk, status__in=ACTIVE).update(
                owner=self.process, epoch=F("epoch") + 1, status=RunStatus.RUNNING
            )
            run.refresh_from_db()
        self.readers.setdefault(run.pk, Reader(run.pk))
        self.driver = Driver(Fence(run.pk, run.epoch))
        if first is None:
            self.go(None)
        else:
            self._heed(first.order)

    def go(self, outcome: Outcome) -> None:
        """The driver tells the loop what came of its order, and gets the next one."""
        driver = self.driver
        assert driver is not None
        try:
            order = loop.advance(driver.fence, outcome).order
        except Lost:
            self.driver = None
            return
        self._heed(order)

    def _heed(self, order: loop.Order | None) -> None:
        driver = self.driver
        assert driver is not None
        driver.order, driver.written, driver.ran = order, [], set()
        match driver.order:
            case Ask():
                self.requests.append(driver.order.request)
            case Act():
                for call in driver.order.calls:
                    gated = ToolCall.objects.get(pk=call.pk).gated
                    self.allowed[call.pk] += 0 if gated else self.allowed[call.pk] == 0
            case _:
                self.driver = None

    def stream(self, pieces: Sequence[str]) -> None:
        """Some deltas of the open answer reach the log."""
        driver = self.driver
        assert driver is not None
        assert isinstance(driver.order, Ask)
        order = driver.order
        if not order.stream or order.shown:
            return
        events: list[Event] = [["a", 0, piece] for piece in pieces]
        batch = Batch(order.last_seq + len(driver.written) + 1, events, order.head)
        if write_deltas(driver.fence, batch):
            driver.written += events
        else:
            self.driver = None

    def answer(self, kinds: Sequence[str]) -> None:
        """The model has answered; what it streamed is the beginning of what it says."""
        driver = self.driver
        assert driver is not None
        order = driver.order
        assert isinstance(order, Ask)
        written = Batch(order.last_seq + 1, driver.written, order.head) if driver.written else None
        last, head, rest = order.last_seq + len(driver.written), order.head, []
        if order.shown:
            batch, head = supersede(driver.fence, order.step_id)
            last, written, rest = batch.last, None, [["a", 0, "again"]]
        said = "".join(event[2] for event in [*driver.written, *rest])
        parts = [*([TextPart(said)] if said.strip() else []), *self._parts(kinds)]
        calls = any(isinstance(part, CallPart) for part in parts)
        response = ModelResponse(tuple(parts), "tool_use" if calls else "end_turn")
        kinds_seen = frozenset("a") if said else frozenset()
        self.go(Answered(order.step_id, response, Streamed(written, rest, head, last), kinds_seen))

    def _parts(self, kinds: Sequence[str]) -> list[Part]:
        made: list[Part] = []
        for number, kind in enumerate(kinds):
            match kind:
                case "think":
                    made.insert(0, ReasoningPart("hm", sign("hm"), "anthropic"))
                case "text":
                    made.append(TextPart(f"text {number}"))
                case "free" | "gated" as which:
                    name = self.free if which == "free" else self.gated
                    made.append(CallPart(f"toolu_{uuid.uuid4().hex[:12]}", name, f'{{"n": {number}}}'))
                case "unknown":
                    made.append(CallPart(f"toolu_{uuid.uuid4().hex[:12]}", "no_such_tool", "{}"))
        return made

    def refuse(self) -> None:
        """The model could not be asked."""
        driver = self.driver
        assert driver is not None
        assert isinstance(driver.order, Ask)
        order = driver.order
        written = Batch(order.last_seq + 1, driver.written, order.head) if driver.written else None
        streamed = Streamed(written, (), order.head, order.last_seq + len(driver.written))
        self.go(AskFailed(order.step_id, ProviderError("server", "it broke"), streamed))

    def run_call(self, *, ok: bool) -> None:
        """One of the claimed calls runs, and its result is stored; the last one goes to the loop."""
        driver = self.driver
        assert driver is not None
        assert isinstance(driver.order, Act)
        left = [call for call in driver.order.calls if call.pk not in driver.ran]
        self.executed[left[0].pk] += 1
        driver.ran.add(left[0].pk)
        ran = Ran(left[0].pk, ToolResult(ok=ok, text="done" if ok else "it failed"))
        if len(left) == 1:
            self.go(ran)
            return
        try:
            loop.store(driver.fence, ran)
        except Lost:
            self.driver = None

    def crash(self, *, working: bool) -> None:
        """The driver's process dies; another one takes the run over. ``working``: a claimed tool had begun."""
        driver = self.driver
        assert driver is not None
        if working and isinstance(driver.order, Act):
            left = [call.pk for call in driver.order.calls if call.pk not in driver.ran]
            self.executed[left[0]] += 1
        self.ghosts.append(driver.fence)
        self.driver = None
        Run.objects.filter(pk=driver.fence.run_id, epoch=driver.fence.epoch, status=RunStatus.RUNNING).update(
            owner=None
        )
        run = Run.objects.get(pk=driver.fence.run_id)
        if run.status in ACTIVE:
            self.take(run)

    def bug(self) -> None:
        """The driver meets a bug."""
        assert self.driver is not None
        fail_run(self.driver.fence)
        self.driver = None

    def haunt(self) -> None:
        """An old owner wakes up and goes on as if nothing had happened: nothing of it counts."""
        for fence in self.ghosts:
            assert not write_deltas(fence, Batch(10_000_000, [["a", 0, "boo"]]))
            try:
                loop.advance(fence)
            except Lost:
                continue
            raise AssertionError("an old owner was let in")

    # --- looking ---

    def look(self) -> None:
        """Every reader takes what there is."""
        for reader in self.readers.values():
            reader.look()

    def waiting(self) -> list[ToolCall]:
        rows = ToolCall.objects.filter(conversation=self.conversation, returned=False, state__in=WAITING)
        return list(rows.select_related("message").order_by("id"))

    def active(self) -> list[Run]:
        return list(Run.objects.filter(conversation=self.conversation, status__in=ACTIVE))


def schema(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": []}
    return {"name": name, "description": "A tool.", "parameters": parameters}


def sent_of(call: ToolCall, word: str) -> dict[str, Any]:
    if word == "answer":
        return {"type": "tool", "tool_call_id": call.call_id, "tool_return": "a person says so", "status": "success"}
    return {"type": "approval", "tool_call_id": call.call_id, "approve": word == "approve"}
