"""The app ``tools``: what a tool is and how it runs."""

from __future__ import annotations

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "tools"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tools import checks  # noqa: F401  (registers the system checks)
