"""Admin classes that only show: what changes rows are actions, with their locks and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import HttpRequest

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
    InlineBase = admin.TabularInline[Any, Any]
    Pages = Paginator[Any]
else:  # generic for type checkers only
    Base, InlineBase, Pages = admin.ModelAdmin, admin.TabularInline, Paginator


class ReadOnly(Base):
    """A list and details without any form."""

    class Media:
        css = {"all": ["lettaweb/admin.css"]}

    list_per_page = 100
    show_full_result_count = False
    ordering = ("-pk",)
    actions: Any = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ReadOnlyInline(InlineBase):
    """Rows of another kind beside a detail."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
