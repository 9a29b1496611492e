"""Everything in one command: migrate, first account, web process and queue under a supervisor."""

from __future__ import annotations

import json
import sys
import urllib.request
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection, connections

from lettaweb.server.account import FIRST, ensure_first
from lettaweb.server.lock import migrate, only_server
from lettaweb.server.supervisor import Child, Supervisor


class Command(BaseCommand):
    help = "Serve: bring the database up to date, then run the web process and the queue until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="load demonstration data into an empty database")

    def handle(self, *, demo: bool, **options: Any) -> None:
        directory = Path(settings.LETTAWEB_DATA_DIR)
        with only_server(directory):
            migrate(directory)
            _outlive_predecessor()
            password = ensure_first()
            if demo and find_spec("agents.actions.demo"):
                import_module("agents.actions.demo").load()
            connections.close_all()  # nothing open is handed to the children
            supervisor = Supervisor(_children(), is_ready=_healthy, ready=lambda: self.stdout.write(_block(password)))
            code = supervisor.run()
        sys.exit(code)


def _outlive_predecessor() -> None:
    """Its runs are taken over at once. Several servers share a database only where it is no file."""
    if connection.vendor == "sqlite":
        from agents.executor.lease import outlive

        outlive("web")


def _children() -> list[Child]:
    return [
        Child("web", ["web"], grace=settings.LETTAWEB_DRAIN_SECONDS + 10),
        Child("queue", ["cluster"], grace=settings.Q_CLUSTER["timeout"] + 10),
    ]


def _url() -> str:
    every_address = settings.LETTAWEB_HOST in ("0.0.0.0", "::", "")  # noqa: S104
    host = "127.0.0.1" if every_address else settings.LETTAWEB_HOST
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.LETTAWEB_PORT}"


def _healthy() -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{_url()}/v1/health", timeout=1) as answer:
            return bool(json.load(answer).get("status") == "ok")
    except (OSError, ValueError):
        return False


def _block(password: str | None) -> str:
    """What a person needs to go on, printed once when the server answers."""
    account = f"{FIRST} / {password}   (shown this once)" if password else f"{FIRST} and its password"
    header = "" if settings.LETTAWEB_AUTH == "open" else ' -H "Authorization: Bearer $TOKEN"'
    lines = [
        "",
        f"  lettaweb runs at  {_url()}",
        f"  log in as         {account}",
        f"  try the API       curl -s{header} {_url()}/v1/agents/",
    ]
    if header:
        lines.append(f"  make a token      python manage.py create_token {FIRST} --name laptop")
    return "\n".join([*lines, "  stop              Ctrl-C", ""])
