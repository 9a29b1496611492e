"""The app of batches."""

from __future__ import annotations

from django.apps import AppConfig


class BatchesConfig(AppConfig):
    name = "batches"
