"""Tools in the administration: to look at; how they are treated is changed on their page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from tools import sandbox
from tools.models import Tool

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Tool]
else:  # generic for type checkers only
    Base = admin.ModelAdmin


def tier_words() -> str:
    """The sandbox of this server in words."""
    tier = sandbox.known_tier()
    return (
        f"Sandbox tier {tier['tier']}: {tier['name']}"
        if tier
        else "No tool has run yet in this process: no sandbox tier is chosen"
    )


@admin.register(Tool)
class ToolAdmin(Base):
    """Tools as they are stored."""

    list_display = (
        "name",
        "tool_type",
        "risk",
        "default_requires_approval",
        "expires_after",
        "on_interrupt",
        "updated_at",
    )
    list_filter = ("tool_type", "risk", "default_requires_approval")
    list_per_page = 100
    show_full_result_count = False
    search_fields = ("name", "description")
    ordering = ("name",)
    actions = None
    fields = readonly_fields = (
        "name",
        "uuid",
        "tool_type",
        "description",
        "risk",
        "default_requires_approval",
        "expires_after",
        "expire_action",
        "on_interrupt",
        "secret_fields",
        "network_hosts",
        "json_schema",
        "source_code",
        "pip_requirements",
        "sandbox_tier",
    )

    @admin.display(description="Sandbox")
    def sandbox_tier(self, tool: Tool) -> str:
        return tier_words()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {**(extra_context or {}), "subtitle": tier_words()})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
