"""Every path of the server: the API twice (``/v1`` and ``/latest``), pages, machines' routes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLResolver, include, path, re_path

from lettaweb import health
from lettaweb.openapi import description

handler400 = "lettaweb.errors.bad_request"
handler403 = "lettaweb.errors.forbidden"
handler404 = "lettaweb.errors.not_found"
handler500 = "lettaweb.errors.server_error"


def _included(prefix: str, *modules: str) -> list[URLResolver]:
    return [path(prefix, include(module)) for module in modules]


def _api(prefix: str) -> list[Any]:
    return [
        re_path(rf"^{prefix}/health/?$", health.health),
        re_path(rf"^{prefix}/ready/?$", health.ready),
        *_included(f"{prefix}/", "agents.urls", "tools.urls", "batches.urls"),
    ]


urlpatterns = [
    *description("v1"),
    *_api("v1"),
    *_api("latest"),
    *_included("api/", "agents.api_urls", "batches.api_urls"),
    path("metrics", health.metrics),
    path("login/", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    *_included("", "agents.page_urls", "batches.page_urls"),
]
