"""Paths of the pages about batches."""

from __future__ import annotations

from django.urls import path, re_path

from batches.views import pages

urlpatterns = [
    path("batches/", pages.batches, name="batches"),
    path("batches/<str:batch_id>/", pages.batch, name="batch"),
    re_path(r"^batches/(?P<batch_id>[^/]+)/(?P<what>cancel|pause|resume|retry)/$", pages.act, name="batch-act"),
]
