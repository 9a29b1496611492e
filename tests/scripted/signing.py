"""Signs thinking and knows its own signatures again, also after a restart. A stand-in for the vendor's encryption."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

KEY = b"scripted provider: not a secret"


def sign(text: str) -> str:
    """The signature of this thinking text."""
    return _mac(b"thinking", text.encode("utf-8", "surrogatepass"))


def is_signed(text: str, signature: object) -> bool:
    return isinstance(signature, str) and hmac.compare_digest(signature.encode(), sign(text).encode())


def redact() -> str:
    """New encrypted thinking."""
    nonce = secrets.token_hex(8)
    return f"{nonce}{_mac(b'redacted', nonce.encode())}"


def is_redacted(data: object) -> bool:
    """Whether this encrypted thinking came from here, unchanged."""
    if not isinstance(data, str) or not data.isascii():
        return False
    nonce, mac = data[:16], data[16:]
    return hmac.compare_digest(mac.encode(), _mac(b"redacted", nonce.encode()).encode())


def _mac(purpose: bytes, data: bytes) -> str:
    digest = hmac.new(KEY, purpose + b"\0" + data, hashlib.sha256).digest()
    return base64.b64encode(b"scripted" + digest).decode()
