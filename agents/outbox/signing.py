"""Signatures of deliveries, as Standard Webhooks has them: the receiver checks them with the same secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

from django.conf import settings
from standardwebhooks import Webhook

PREFIX = "whsec_"


def webhook_secret() -> str:
    """The secret that receivers need: LETTAWEB_WEBHOOK_SECRET, or one that follows from the server's key."""
    given: str = settings.LETTAWEB_WEBHOOK_SECRET
    if given:
        return given
    made = hmac.new(settings.SECRET_KEY.encode(), b"lettaweb.webhook", hashlib.sha256).digest()
    return PREFIX + base64.b64encode(made).decode()


def signed(message_id: str, at: datetime, body: str) -> dict[str, str]:
    """The headers of a delivery of ``body``; ``message_id`` stays the same over its retries."""
    signature = Webhook(webhook_secret()).sign(message_id, at, body)
    return {
        "content-type": "application/json",
        "user-agent": "lettaweb",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": str(signature),
    }
