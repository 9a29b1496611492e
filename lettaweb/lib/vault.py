"""Secrets at rest: sealed with a key that comes from SECRET_KEY."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


def seal(text: str) -> str:
    """``text`` encrypted and authenticated, as ASCII."""
    return _fernet(settings.SECRET_KEY).encrypt(text.encode("utf-8")).decode("ascii")


def unseal(sealed: str) -> str | None:
    """What :func:`seal` was given; None when it was sealed under another key or was changed."""
    try:
        return _fernet(settings.SECRET_KEY).decrypt(sealed.encode("ascii")).decode("utf-8")
    except (InvalidToken, UnicodeError):
        return None


@lru_cache(maxsize=2)
def _fernet(secret: str) -> Fernet:
    digest = hashlib.sha256(b"lettaweb.vault\0" + secret.encode("utf-8")).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
