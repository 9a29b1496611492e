"""The approval queue in the administration: filters with counts, approve and deny for many, and the audit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import cached_property
from django.utils.translation import ngettext

from agents.actions import desk
from agents.admin.readonly import Pages, ReadOnly, ReadOnlyInline
from agents.forms.decision import items, plain_verdict
from agents.models import CallComment, CallState, Decision, ToolCall
from agents.models.toolcall import WAITING, WAITS, calls_that_wait
from agents.policies.rights import DECIDE, can
from agents.templatetags.desk import headline, outcome, plain
from agents.wire import redact
from agents.wire.fields import raw_json, shown_text

MOST = 500  # calls of one decision
MOST_LISTED = 10_000
BESIDE = ("agent", "tool", "step__run", "decided_by", "held_by")
NOT_LISTED = ("result_text", "result_content", "stdout", "stderr", "tool__source_code", "agent__system")


class Shown(admin.SimpleListFilter):
    """Which calls: by itself those that wait."""

    title, parameter_name = "shown", "shown"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("unknown", "Outcome unknown"), ("decided", "Decided"), ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        """Counted is what waits; counting all that was ever decided would read it all."""
        unknown = Count("pk", filter=Q(state=CallState.UNKNOWN))
        found = calls_that_wait().aggregate(waiting=Count("pk"), unknown=unknown)
        changelist.add_facets, facets = False, changelist.add_facets
        first, second, *others = super().choices(changelist)
        changelist.add_facets = facets
        second = {**second, "display": f"{second['display']} ({found['unknown']})"}
        return [{**first, "display": f"Waiting ({found['waiting']})"}, second, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
        if self.value() == "all":
            return queryset
        if self.value() == "decided":
            return queryset.filter(decided_at__isnull=False).exclude(state__in=WAITING)
        found = queryset.filter(WAITS)
        return found.filter(state=CallState.UNKNOWN) if self.value() == "unknown" else found


class Bounded(Pages):
    """Pages of the first thousands: whoever looks for older calls filters or searches."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[:MOST_LISTED].count()


class CallList(ChangeList):
    """The list counts what its filters hold while it shows what waits, and loads no long results."""

    def __init__(self, request: HttpRequest, *given: Any, **options: Any) -> None:
        super().__init__(request, *given, **options)
        self.add_facets = request.GET.get(Shown.parameter_name, "") in ("", "unknown")

    def get_queryset(self, *given: Any, **options: Any) -> QuerySet[ToolCall]:
        return super().get_queryset(*given, **options).defer(*NOT_LISTED)


class DecisionInline(ReadOnlyInline):
    model = Decision
    fields = readonly_fields = ("created_at", "kind", "actor_name", "via", "reason")


class CommentInline(ReadOnlyInline):
    model = CallComment
    fields = readonly_fields = ("created_at", "author_name", "text")


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnly):
    """Calls: those that wait first. Decisions go through the desk's action, after a page that shows what is meant."""

    list_display = ("what", "agent", "risk", "what_became_of_it", "asked_at", "expires_at", "decided_by", "held_by")
    list_filter = (Shown, "risk", "outcome", "kind", "gated")
    list_select_related = BESIDE
    paginator = Bounded
    search_fields = ("name", "agent__name", "call_id")
    show_facets = admin.ShowFacets.NEVER  # the list itself says when
    inlines = (DecisionInline, CommentInline)
    actions = ("approve_selected", "deny_selected")
    fields = readonly_fields = (
        "what",
        "agent",
        "name",
        "risk",
        "what_became_of_it",
        "arguments_shown",
        "result_shown",
        "asked_at",
        "expires_at",
        "decided_by",
        "decided_at",
        "reason",
        "started_at",
        "finished_at",
        "call_id",
        "version",
        "digest",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolCall]:
        return super().get_queryset(request).select_related(*BESIDE)

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return CallList

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """What waits oldest first; the rest newest first."""
        shown = request.GET.get(Shown.parameter_name)
        return {"decided": ("-decided_at",), "all": ("-pk",)}.get(shown or "", ("pk",))

    @admin.display(description="Call", ordering="name")
    def what(self, call: ToolCall) -> str:
        return headline(call)

    @admin.display(description="State")
    def what_became_of_it(self, call: ToolCall) -> str:
        return outcome(call)

    @admin.display(description="Arguments")
    def arguments_shown(self, call: ToolCall) -> str:
        return plain(raw_json(call))

    @admin.display(description="Result")
    def result_shown(self, call: ToolCall) -> str:
        return plain(shown_text(call.result_text))

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return can(request.user, DECIDE)

    @admin.action(description="Approve the selected calls", permissions=["decide"])
    def approve_selected(self, request: HttpRequest, queryset: QuerySet[ToolCall]) -> HttpResponse | None:
        return self._decide(request, queryset, "approve")

    @admin.action(description="Deny the selected calls", permissions=["decide"])
    def deny_selected(self, request: HttpRequest, queryset: QuerySet[ToolCall]) -> HttpResponse | None:
        return self._decide(request, queryset, "deny")

    def _decide(self, request: HttpRequest, queryset: QuerySet[ToolCall], action: str) -> HttpResponse | None:
        """First a page with every call and its version; what comes back from there is decided, as it was shown."""
        if "sure" not in request.POST:
            return self._review(request, queryset, action)
        verdict = plain_verdict(action, request.POST)
        results = desk.decide_many(items(request.POST.getlist("item")), verdict, user=request.user, via="admin")
        good = all(result.status == "done" for result in results)
        told = desk.summary(results, verdict.kind)
        self.message_user(request, told, messages.SUCCESS if good else messages.WARNING)
        for result in results:
            if result.message:
                self.message_user(request, plain(result.message), messages.WARNING)
        return None

    def _review(self, request: HttpRequest, queryset: QuerySet[ToolCall], action: str) -> HttpResponse:
        rows = list(queryset.filter(WAITS).order_by("pk")[:MOST])
        context = {
            **self.admin_site.each_context(request),
            "title": ngettext("%d call: %s?", "%d calls: %s?", len(rows)) % (len(rows), action),
            "rows": rows,
            "action": f"{action}_selected",
            "verb": action.capitalize(),
            "presets": desk.PRESETS if action == "deny" else (),
            "checkbox": ACTION_CHECKBOX_NAME,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/agents/toolcall/decide.html", context)


@admin.register(Decision)
class DecisionAdmin(ReadOnly):
    """Who said what about which call, when: append-only."""

    list_display = ("created_at", "kind", "actor_name", "via", "call_name", "agent", "reason")
    list_filter = ("kind", "via")
    list_select_related = ("call__agent",)
    search_fields = ("actor_name", "call__name", "call__agent__name")
    date_hierarchy = None
    fields = readonly_fields = (
        "created_at",
        "kind",
        "actor_name",
        "via",
        "call",
        "reason",
        "before_shown",
        "after_shown",
        "digest",
    )

    @admin.display(description="Tool")
    def call_name(self, decision: Decision) -> str:
        return plain(decision.call.name)

    @admin.display(description="Agent")
    def agent(self, decision: Decision) -> str:
        return plain(decision.call.agent.name)

    @admin.display(description="Before")
    def before_shown(self, decision: Decision) -> str:
        return _masked(decision, decision.before)

    @admin.display(description="After")
    def after_shown(self, decision: Decision) -> str:
        return _masked(decision, decision.after)


def _masked(decision: Decision, text: str | None) -> str:
    if not text or not text.startswith("{"):
        return text or ""
    return plain(shown_text(redact.of_call(decision.call).mask_text(text)))
