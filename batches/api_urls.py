"""Paths of batches below /api/; each with and without the trailing slash."""

from __future__ import annotations

from django.urls import re_path

from batches.views import more

BATCH = r"^batches/(?P<batch_id>[^/]+)"

urlpatterns = [
    re_path(rf"{BATCH}/?$", more.Batch.as_view()),
    re_path(rf"{BATCH}/llm-batches/?$", more.LLMBatches.as_view()),
    re_path(rf"{BATCH}/items/?$", more.Items.as_view()),
    re_path(rf"{BATCH}/approvals/?$", more.Approvals.as_view()),
    re_path(rf"{BATCH}/retry/?$", more.Retry.as_view()),
    re_path(rf"{BATCH}/pause/?$", more.Pause.as_view()),
    re_path(rf"{BATCH}/resume/?$", more.Resume.as_view()),
]
