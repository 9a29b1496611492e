"""Make a bearer token of a user, shown once."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.policies import tokens

DAYS = 365


class Command(BaseCommand):
    help = "Make a bearer token for the API; it has the rights of its user and is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="", help="what it is for; the administration's list shows it")
        parser.add_argument("--days", type=int, default=DAYS, help=f"valid for so many days, 0: no end ({DAYS})")

    def handle(self, *, user: str, name: str, days: int, **_options: Any) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(f"There is no user '{user}'.")
        if not 0 <= days < 36_500:
            raise CommandError("--days must be between 0 and 36499.")
        self.stdout.write(tokens.make(owner, days or None, name))
