"""Bearer tokens: how they are sent, found and made. Knox stores their hashes only."""

from __future__ import annotations

import re
from datetime import timedelta
from hmac import compare_digest

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from knox.crypto import hash_token
from knox.models import AuthToken
from knox.settings import CONSTANTS

from agents.models import TokenName

_BEARER = re.compile(r"bearer[ \t]+(\S+)[ \t]*", re.IGNORECASE)
_PASSWORD = re.compile(r"password[ \t]+(\S+)[ \t]*", re.IGNORECASE)


def sent(authorization: str, bare_password: str) -> str:
    """The token in ``Authorization: Bearer …`` or ``X-BARE-PASSWORD: password …``, "" when none is there."""
    found = _BEARER.fullmatch(authorization.strip()) or _PASSWORD.fullmatch(bare_password.strip())
    return found[1] if found else ""


def find(token: str) -> AuthToken | None:
    """The stored token, None when it is unknown, expired or its user is switched off."""
    if not token.isascii() or len(token) > 200:
        return None
    digest = hash_token(token)
    alive = Q(expiry__isnull=True) | Q(expiry__gt=timezone.now())
    rows = AuthToken.objects.filter(
        alive, token_key=token[: CONSTANTS.TOKEN_KEY_LENGTH], user__is_active=True
    ).select_related("user")
    return next((row for row in rows if compare_digest(digest, row.digest)), None)


def make(user: User, days: int | None = None, name: str = "") -> str:
    """A new token of ``user``, valid for ``days`` (None: until it is deleted). Shown here and never again."""
    with transaction.atomic():
        row, token = AuthToken.objects.create(user, expiry=None if days is None else timedelta(days=days))
        call_it(row, name)
    return str(token)


def call_it(token: AuthToken, name: str) -> None:
    """Give a token its name; without one it has the beginning of its text."""
    TokenName.objects.create(token=token, name=name[:200] or token.token_key)
