"""API tokens in the administration: who has one, what it is for and when it ends; made, ended, never shown again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from knox.admin import AuthTokenAdmin, AuthTokenCreateForm
from knox.models import AuthToken

from agents.policies import tokens
from agents.templatetags.desk import plain


class TokenForm(AuthTokenCreateForm):
    name = forms.CharField(max_length=200, help_text="What it is for.")


class TokenAdmin(AuthTokenAdmin):
    """Knox's form makes a token and shows its text once."""

    add_form = TokenForm
    list_display = ("name", "user", "token_key", "created", "expiry")
    list_select_related = ("user", "named")
    list_per_page = 100
    show_full_result_count = False
    search_fields = ("named__name", "token_key", "user__username")
    ordering = ("-created",)
    raw_id_fields = ()

    @admin.display(description="Name", ordering="named__name")
    def name(self, token: AuthToken) -> str:
        return plain(token.named.name) if hasattr(token, "named") else ""

    def get_fields(self, request: HttpRequest, obj: AuthToken | None = None) -> tuple[str, ...]:
        return ("name", "user", "token_key", "created", "expiry") if obj else ("name", "user", "expiry")

    def get_readonly_fields(self, request: HttpRequest, obj: AuthToken | None = None) -> tuple[str, ...]:
        return self.get_fields(request, obj) if obj else ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: AuthToken, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        tokens.call_it(obj, form.cleaned_data["name"])


admin.site.unregister(AuthToken)  # knox shows hashes and no names
admin.site.register(AuthToken, TokenAdmin)
