"""The project as an app: its commands, its system checks."""

from __future__ import annotations

from django.apps import AppConfig


class LettawebConfig(AppConfig):
    name = "lettaweb"

    def ready(self) -> None:
        from lettaweb import checks  # noqa: F401  (registers the system checks)
