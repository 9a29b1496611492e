"""The queue's cluster: django-q2's, tied to its supervisor."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from lettaweb.lib import collector, drain
from lettaweb.server.family import bind_forks, watch_parent
from lettaweb.server.stopping import Stop


class Command(BaseCommand):
    help = "Run the queue: batch polling, expiry, retention, callbacks."

    def handle(self, **_options: Any) -> None:
        from django_q.cluster import Cluster

        cluster, stop = Cluster(), Stop()
        stop.at_signals()  # its own handler stops the cluster inside the signal, and waits there for locks
        watch_parent(75)
        bind_forks()
        drain.share()
        collector.spare()  # here: its workers are forks, and need not look at what they share
        cluster.start()
        while not stop.wait(0.5):
            if not cluster.sentinel.is_alive():
                sys.exit(1)
        drain.begin()
        cluster.stop()
