"""Agents, what they said and did, and what must leave: lists without a query for each row."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from agents.admin.readonly import ReadOnly
from agents.filters.context import talk
from agents.models import Agent, Block, Conversation, Message, OutboxItem, Run, Step
from agents.templatetags.desk import milliseconds, plain
from lettaweb.lib.text import shorten


@admin.register(Agent)
class AgentAdmin(ReadOnly):
    list_display = (
        "name",
        "agent_type",
        "model",
        "tool_count",
        "last_run_completion",
        "last_stop_reason",
        "created_at",
    )
    list_filter = ("agent_type", "last_stop_reason")
    search_fields = ("name",)
    fields = readonly_fields = (
        "name",
        "uuid",
        "agent_type",
        "model",
        "description",
        "system",
        "tool_rules",
        "llm_config",
        "timezone",
        "last_run_completion",
        "last_stop_reason",
        "created_at",
        "updated_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset(request).annotate(tools_=Count("agenttool"))
        return found

    @admin.display(description="Tools", ordering="tools_")
    def tool_count(self, agent: Any) -> int:
        return int(agent.tools_)


@admin.register(Block)
class BlockAdmin(ReadOnly):
    list_display = ("label", "beginning", "limit", "read_only", "version", "updated_at")
    search_fields = ("label", "value")
    fields = readonly_fields = (
        "label",
        "uuid",
        "value",
        "limit",
        "description",
        "read_only",
        "version",
        "tags",
        "metadata",
    )

    @admin.display(description="Value")
    def beginning(self, block: Block) -> str:
        return plain(shorten(block.value, 80))


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    list_display = ("wire_id", "agent", "is_default", "last_message_at", "archived_at")
    list_filter = ("is_default",)
    list_select_related = ("agent",)
    search_fields = ("agent__name",)
    fields = readonly_fields = ("uuid", "agent", "is_default", "summary", "model", "last_message_at", "archived_at")


@admin.register(Message)
class MessageAdmin(ReadOnly):
    """Messages as people read them: calls with masked arguments, never the stored parts."""

    list_display = ("created_at", "agent", "role", "beginning", "context")
    list_filter = ("role", "context")
    list_select_related = ("agent",)
    search_fields = ("search_text",)
    fields = readonly_fields = (
        "uuid",
        "agent",
        "conversation",
        "run",
        "role",
        "said",
        "context",
        "tokens",
        "created_at",
    )

    @admin.display(description="Text")
    def beginning(self, message: Message) -> str:
        texts = (str(part["text"]) for part in message.parts if isinstance(part.get("text"), str))
        return plain(shorten(" ".join(texts), 120))

    @admin.display(description="Said")
    def said(self, message: Message) -> str:
        return plain("\n".join(f"{line.who}: {line.text}" for line in talk([message])))


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = (
        "created_at",
        "agent",
        "status",
        "stop_reason",
        "driver",
        "steps_count",
        "input_tokens",
        "output_tokens",
        "took",
    )
    list_filter = ("status", "stop_reason", "driver")
    list_select_related = ("agent",)
    search_fields = ("agent__name",)
    fields = readonly_fields = (
        "uuid",
        "agent",
        "conversation",
        "turn",
        "status",
        "stop_reason",
        "driver",
        "epoch",
        "error",
        "steps_count",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "created_at",
        "started_at",
        "completed_at",
    )

    @admin.display(description="Took")
    def took(self, run: Run) -> str:
        return milliseconds(run.total_duration_ns)


@admin.register(Step)
class StepAdmin(ReadOnly):
    list_display = (
        "created_at",
        "agent",
        "number",
        "status",
        "model",
        "attempt",
        "input_tokens",
        "output_tokens",
        "error_type",
    )
    list_filter = ("status", "provider", "error_type")
    list_select_related = ("agent",)
    search_fields = ("agent__name", "model")
    fields = readonly_fields = (
        "uuid",
        "agent",
        "run",
        "number",
        "status",
        "attempt",
        "provider",
        "model",
        "request_id",
        "input_tokens",
        "output_tokens",
        "stop_reason",
        "error_type",
        "error_data",
        "asked_at",
        "answered_at",
        "finished_at",
    )


@admin.register(OutboxItem)
class OutboxAdmin(ReadOnly):
    """What must leave; payloads are for their receivers."""

    list_display = ("created_at", "kind", "url", "attempts", "next_at", "delivered_at", "failed_at", "status_code")
    list_filter = ("kind", "status_code")
    fields = readonly_fields = (
        "kind",
        "url",
        "attempts",
        "next_at",
        "delivered_at",
        "failed_at",
        "status_code",
        "error",
    )
