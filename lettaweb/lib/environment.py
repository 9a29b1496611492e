"""What settings read beside the environment: the data directory, the secret key, loopback names."""

from __future__ import annotations

import ipaddress
import os
import secrets
from pathlib import Path

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether a bind address or a host name (no port) means this machine only."""
    bare = host.strip().strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def data_dir(path: str | Path) -> Path:
    """The directory of everything that is kept, created for its owner alone."""
    directory = Path(path).expanduser().absolute()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def secret_key(directory: Path) -> str:
    """The key in ``secret.key``; made once, also when several processes start at the same moment."""
    target = directory / "secret.key"
    if not target.exists():
        _make_secret(target)
    return target.read_text(encoding="ascii").strip()


def _make_secret(target: Path) -> None:
    # A link is atomic and refuses to replace: whoever comes second reads the first one's key.
    draft = target.with_name(f".secret.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, target)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
