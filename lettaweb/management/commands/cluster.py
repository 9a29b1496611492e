"""The queue's cluster: django-q2's, tied to its supervisor."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from lettaweb.server.family import bind_forks, watch_parent


class Command(BaseCommand):
    help = "Run the queue: batch polling, expiry, retention, callbacks."

    def handle(self, **_options: Any) -> None:
        from django_q.cluster import Cluster

        watch_parent(75)
        bind_forks()
        Cluster().start()
