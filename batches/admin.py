"""Batches in the administration: to look at, and to cancel, pause and resume by the same actions as everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from agents.policies.rights import SEND, can
from batches import actions
from batches.models import BatchItem, BatchJob, BatchMember, LLMBatch
from lettaweb.lib.problems import Problem

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:  # generic for type checkers only
    Base = admin.ModelAdmin


class ToLookAt(Base):
    """Rows that only actions change."""

    list_per_page = 100
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(BatchJob)
class BatchJobAdmin(ToLookAt):
    """Jobs, newest first."""

    list_display = ("wire_id", "status", "phase", "total", "input_tokens", "output_tokens", "cost", "created_at")
    list_filter = ("status", "phase", "pause_kind")
    search_fields = ("uuid",)
    actions = ("cancel", "pause", "resume", "retry_failed")

    @admin.action(description="Cancel", permissions=["steer"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[BatchJob]) -> None:
        for job in chosen:
            actions.cancel(job)
        self.message_user(request, f"{len(chosen)} being cancelled")

    @admin.action(description="Pause", permissions=["steer"])
    def pause(self, request: HttpRequest, chosen: QuerySet[BatchJob]) -> None:
        for job in chosen:
            self._try(request, lambda job=job: actions.pause(job, request.user))

    @admin.action(description="Resume", permissions=["steer"])
    def resume(self, request: HttpRequest, chosen: QuerySet[BatchJob]) -> None:
        for job in chosen:
            self._try(request, lambda job=job: actions.resume(job))

    @admin.action(description="Ask again for what failed", permissions=["steer"])
    def retry_failed(self, request: HttpRequest, chosen: QuerySet[BatchJob]) -> None:
        for job in chosen:
            self._try(request, lambda job=job: actions.retry_failed(job))

    def has_steer_permission(self, request: HttpRequest) -> bool:
        return can(request.user, SEND)

    def _try(self, request: HttpRequest, act: Any) -> None:
        try:
            act()
        except Problem as problem:
            self.message_user(request, str(problem.detail), level=messages.ERROR)
        else:
            self.message_user(request, "Done")


@admin.register(LLMBatch)
class LLMBatchAdmin(ToLookAt):
    """One batch at one provider each."""

    list_display = ("wire_id", "job", "provider", "model", "status", "count", "provider_batch_id", "last_polled_at")
    list_filter = ("status", "provider", "local")
    list_select_related = ("job",)
    search_fields = ("uuid", "provider_batch_id")


@admin.register(BatchMember)
class BatchMemberAdmin(ToLookAt):
    """One agent's part in a job each."""

    list_display = ("job", "position", "agent", "state", "steps", "retries", "since")
    list_filter = ("state",)
    list_select_related = ("job", "agent")
    raw_id_fields = ("job", "agent", "run")


@admin.register(BatchItem)
class BatchItemAdmin(ToLookAt):
    """One model call each."""

    list_display = ("wire_id", "job", "llm_batch", "number", "request_status", "step_status", "cost", "answered_at")
    list_filter = ("request_status", "step_status")
    list_select_related = ("job", "llm_batch")
    raw_id_fields = ("job", "member", "llm_batch")
    search_fields = ("uuid", "agent_uuid")
