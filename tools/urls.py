"""Paths of the tools' API, below /v1/; each with and without the trailing slash."""

from __future__ import annotations

from django.urls import re_path

from tools import views

urlpatterns = [
    re_path(r"^tools/?$", views.Tools.as_view()),
    re_path(r"^tools/count/?$", views.ToolCount.as_view()),
    re_path(r"^tools/add-base-tools/?$", views.BaseTools.as_view()),
    re_path(r"^tools/run/?$", views.RunSource.as_view()),
    re_path(r"^tools/generate-schema/?$", views.GenerateSchema.as_view()),
    re_path(r"^tools/search/?$", views.SearchTools.as_view()),
    re_path(r"^tools/(?P<tool_id>[^/]+)/?$", views.ToolDetail.as_view()),
]
