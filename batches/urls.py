"""Paths of batches below /v1/; each with and without the trailing slash."""

from __future__ import annotations

from django.urls import re_path

from batches.views import letta

BATCH = r"^messages/batches/(?P<batch_id>[^/]+)"

urlpatterns = [
    re_path(r"^messages/batches/?$", letta.Batches.as_view()),
    re_path(rf"{BATCH}/?$", letta.BatchDetail.as_view()),
    re_path(rf"{BATCH}/cancel/?$", letta.BatchCancel.as_view()),
    re_path(rf"{BATCH}/messages/?$", letta.BatchMessages.as_view()),
    re_path(r"^jobs/?$", letta.Jobs.as_view()),
    re_path(r"^jobs/active/?$", letta.ActiveJobs.as_view()),
    re_path(r"^jobs/(?P<job_id>[^/]+)/?$", letta.JobDetail.as_view()),
    re_path(r"^jobs/(?P<job_id>[^/]+)/cancel/?$", letta.JobCancel.as_view()),
]
