"""Paths of the desk's API, below /api/; each with and without the trailing slash."""

from __future__ import annotations

from django.urls import re_path

from agents.views import approvals

CALL = r"^approvals/(?P<call_id>call-[^/]+)"

urlpatterns = [
    re_path(r"^approvals/?$", approvals.Approvals.as_view()),
    re_path(r"^approvals/counts/?$", approvals.Counts.as_view()),
    re_path(r"^approvals/presets/?$", approvals.Presets.as_view()),
    re_path(r"^approvals/bulk/?$", approvals.Bulk.as_view()),
    re_path(r"^approvals/unstick/?$", approvals.Unstick.as_view()),
    re_path(rf"{CALL}/?$", approvals.Approval.as_view()),
    re_path(rf"{CALL}/decide/?$", approvals.Decide.as_view()),
    re_path(rf"{CALL}/undo/?$", approvals.Undo.as_view()),
    re_path(rf"{CALL}/claim/?$", approvals.Claim.as_view()),
    re_path(rf"{CALL}/comment/?$", approvals.Comment.as_view()),
    re_path(rf"{CALL}/extend/?$", approvals.Extend.as_view()),
    re_path(rf"{CALL}/reveal/?$", approvals.Reveal.as_view()),
]
