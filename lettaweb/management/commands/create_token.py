"""Make a bearer token of a user, shown once."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management.base import BaseCommand, CommandError, CommandParser
from knox.models import AuthToken

from agents.policies import tokens


class Command(BaseCommand):
    help = "Make a bearer token for the API; it has the rights of its user and is shown once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="", help="what it is for; kept in the admin's log")
        parser.add_argument("--days", type=int, default=None, help="valid for so many days (default: no end)")

    def handle(self, *, user: str, name: str, days: int | None, **_options: Any) -> None:
        owner = User.objects.filter(username=user).first()
        if owner is None:
            raise CommandError(f"There is no user '{user}'.")
        if days is not None and not 0 < days < 36_500:
            raise CommandError("--days must be between 1 and 36499.")
        token = tokens.make(owner, days)
        LogEntry.objects.create(
            user=owner,
            content_type=ContentType.objects.get_for_model(AuthToken),
            object_id=token[:15],
            object_repr=(name or token[:15])[:200],
            action_flag=ADDITION,
            change_message=f"Token made on the command line{f': {name}' if name else ''}.",
        )
        self.stdout.write(token)
