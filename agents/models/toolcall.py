"""Tool calls: what the model wants, what a person said, what came of it; and the append-only decisions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from agents.models.conversation import Conversation, Message
from agents.models.run import Run, Step
from tools.models import ExpireAction, Risk, Row, Tool


class CallKind(models.TextChoices):
    SERVER = "server"
    BUILTIN = "builtin"
    CLIENT = "client"
    INVALID = "invalid"


class CallState(models.TextChoices):
    """pending, unknown: a person must decide. ready: may run. started: runs. done: its result is here."""

    PENDING = "pending"
    UNKNOWN = "unknown"
    READY = "ready"
    STARTED = "started"
    DONE = "done"


WAITING = (CallState.PENDING, CallState.UNKNOWN)
WAITS = models.Func(template="agents_toolcall.state IN ('pending', 'unknown')", output_field=models.BooleanField())
"""That a call waits, written out as the partial indexes have it: SQLite cannot see that bound parameters mean
the same, and would read every call there ever was."""


class Outcome(models.TextChoices):
    """What became of a call, in words that stay distinct for ever."""

    NONE = ""
    RAN = "ran"
    FAILED = "failed"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    ANSWERED = "answered"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class ToolCall(Row):
    """A tool call: proposal, decision and result in one row.

    ``arguments`` is canonical JSON, frozen when proposed, ``digest`` its SHA-256; ``edited_arguments``
    replace them when a person changed them. ``version`` rises with every change that a screen shows.
    """

    PREFIX = "call"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="calls", db_index=False)
    turn = models.ForeignKey(Run, models.CASCADE, related_name="turn_calls", db_index=False)
    step = models.ForeignKey(Step, models.CASCADE, related_name="calls")
    message = models.ForeignKey(Message, models.CASCADE, related_name="calls")
    position = models.PositiveSmallIntegerField()
    call_id = models.CharField(max_length=300)
    name = models.CharField(max_length=300)
    # No constraint: a tool may be deleted while a call of it is being stored; such a call has no tool.
    tool = models.ForeignKey(Tool, models.SET_NULL, null=True, blank=True, related_name="+", db_constraint=False)
    kind = models.CharField(max_length=8, choices=CallKind.choices)
    gated = models.BooleanField(default=False)
    arguments = models.TextField(default="{}")
    digest = models.CharField(max_length=64)
    edited_arguments = models.TextField(null=True, blank=True)
    heartbeat = models.BooleanField(null=True, blank=True)
    state = models.CharField(max_length=8, choices=CallState.choices)
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default="", blank=True)
    version = models.PositiveIntegerField(default=1)

    risk = models.CharField(max_length=8, choices=Risk.choices, default=Risk.MEDIUM)
    asked_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    expire_action = models.CharField(max_length=8, choices=ExpireAction.choices, default=ExpireAction.DENY)
    overdue = models.BooleanField(default=False)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    reason = models.TextField(null=True, blank=True)
    held_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    held_until = models.DateTimeField(null=True, blank=True)

    started_at = models.DateTimeField(null=True, blank=True)
    started_epoch = models.PositiveIntegerField(default=0)
    finished_at = models.DateTimeField(null=True, blank=True)
    result_ok = models.BooleanField(null=True, blank=True)
    result_text = models.TextField(default="", blank=True)
    result_content = models.JSONField(null=True, blank=True, help_text="content parts that a client returned")
    stdout = models.JSONField(default=list, blank=True)
    stderr = models.JSONField(default=list, blank=True)
    returned = models.BooleanField(default=False, help_text="its result is in a tool message")

    class Meta:
        ordering = ("id",)
        permissions = [
            ("decide_approval", "Can decide tool calls that wait"),
            ("reveal_secret", "Can see masked arguments"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "call_id"], name="call_id_once"),
            models.CheckConstraint(condition=~Q(state="done") | Q(result_ok__isnull=False), name="done_has_a_result"),
        ]
        indexes = [
            models.Index(fields=["conversation", "id"], condition=Q(returned=False), name="call_open"),
            models.Index(fields=["state", "id"], condition=Q(state__in=["pending", "unknown"]), name="call_waiting"),
            models.Index(
                fields=["expires_at"],
                condition=Q(state__in=["pending", "unknown"], expires_at__isnull=False),
                name="call_expiring",
            ),
            models.Index(fields=["decided_at"]),
            models.Index(fields=["turn", "id"]),
        ]

    @property
    def waiting(self) -> bool:
        return self.state in WAITING

    @property
    def runs_with(self) -> str:
        """The JSON text of the arguments that run: a person's edit where there is one."""
        return self.arguments if self.edited_arguments is None else self.edited_arguments


def calls_that_wait() -> models.QuerySet[ToolCall]:
    """All calls that people must decide, found by the index of those alone."""
    return ToolCall.objects.filter(WAITS)


class DecisionKind(models.TextChoices):
    APPROVE = "approve"
    EDIT = "edit"
    DENY = "deny"
    ANSWER = "answer"
    EXPIRE = "expire"
    CANCEL = "cancel"
    UNSTICK = "unstick"
    RERUN = "rerun"
    HAPPENED = "happened"
    TELL = "tell"
    EXTEND = "extend"
    OVERDUE = "overdue"
    REVEAL = "reveal"
    UNDO = "undo"


class Decision(Row):
    """Who said what about a call, when, having seen what. Append-only: rows are never changed."""

    PREFIX = "decision"

    call = models.ForeignKey(ToolCall, models.CASCADE, related_name="decisions", db_index=False)
    kind = models.CharField(max_length=16, choices=DecisionKind.choices)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    actor_name = models.CharField(max_length=200)
    via = models.CharField(max_length=16, help_text="api, rest, desk, admin or clock")
    reason = models.TextField(null=True, blank=True)
    digest = models.CharField(max_length=64, help_text="of the arguments that were seen")
    before = models.TextField(null=True, blank=True)
    after = models.TextField(null=True, blank=True)
    sent = models.JSONField(null=True, blank=True, help_text="the approval as it came over the wire")

    class Meta:
        indexes = [models.Index(fields=["call", "id"])]


class CallComment(Row):
    """What people say to each other about a call; the model never sees it."""

    PREFIX = "comment"

    call = models.ForeignKey(ToolCall, models.CASCADE, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    author_name = models.CharField(max_length=200)
    text = models.TextField()
