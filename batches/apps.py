"""The app of batches."""

from __future__ import annotations

from django.apps import AppConfig


class BatchesConfig(AppConfig):
    name = "batches"

    def ready(self) -> None:
        from agents.actions.begin import on_batch_run
        from batches.poll.wish import wake

        if wake not in on_batch_run:
            on_batch_run.append(wake)
