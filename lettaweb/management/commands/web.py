"""The web process alone: HTTP, websockets and the executor of runs, without queue and supervisor."""

from __future__ import annotations

import socket
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from lettaweb.server.family import watch_parent
from lettaweb.server.supervisor import CANNOT_START


class Command(BaseCommand):
    help = "Serve HTTP and websockets and execute runs, in this one process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.LETTAWEB_HOST)
        parser.add_argument("--port", type=int, default=settings.LETTAWEB_PORT)

    def handle(self, *, host: str, port: int, **_options: Any) -> None:
        watch_parent(settings.LETTAWEB_DRAIN_SECONDS + 15)
        if problem := _cannot_listen(host, port):
            self.stderr.write(f"Cannot listen on {host}:{port}: {problem}")
            sys.exit(CANNOT_START)
        from lettaweb.server.web import serve_web

        sys.exit(serve_web(host=host, port=port))


def _cannot_listen(host: str, port: int) -> str:
    """Why the address cannot be used, "" when it can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            return error.strerror or str(error)
    return ""
