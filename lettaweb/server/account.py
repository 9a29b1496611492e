"""The first account, so that somebody can log in."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction

from agents.policies.groups import SYSTEM_USER
from agents.policies.rights import ROLES

FIRST = "admin"


@transaction.atomic
def ensure_first() -> str | None:
    """Make the account ``admin`` where no person has one yet; the password when it was made up here."""
    if User.objects.exclude(username=SYSTEM_USER).exists():
        return None
    given = settings.LETTAWEB_ADMIN_PASSWORD
    password = given or secrets.token_urlsafe(12)
    user = User.objects.create_superuser(FIRST, password=password)
    user.groups.add(*Group.objects.filter(name__in=ROLES))
    return None if given else password
