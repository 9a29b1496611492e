"""The files of LLM batches: JSON lines written once, checked before they are sent, removed at the end."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from uuid import UUID

from django.conf import settings

PIECE = 1 << 20


def folder() -> Path:
    """The folder of spooled files; what agents say stands in them, so nobody else may read it."""
    path = Path(settings.LETTAWEB_DATA_DIR) / "spool"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def path_of(name: UUID) -> Path:
    return folder() / f"{name}.jsonl"


class Spool:
    """A file that is being written. ``size`` in bytes; ``digest`` is the SHA-256 of what was written so far."""

    def __init__(self, name: UUID) -> None:
        self.path = path_of(name)
        self.size = 0
        self._hash = hashlib.sha256()
        self._file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def add(self, line: bytes) -> None:
        whole = line + b"\n"
        self._file.write(whole)
        self._hash.update(whole)
        self.size += len(whole)

    def close(self) -> None:
        """Make sure that the file is on the disk: its row will say so."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def intact(name: UUID, size: int, digest: str) -> bool:
    """Whether the file is there and holds what its row says."""
    path, found = path_of(name), hashlib.sha256()
    try:
        if path.stat().st_size != size:
            return False
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                found.update(piece)
    except OSError:
        return False
    return found.hexdigest() == digest


def remove(name: UUID) -> None:
    path_of(name).unlink(missing_ok=True)


def stray(known: set[UUID]) -> list[UUID]:
    """Names of files whose LLM batch is not among ``known``."""
    found = (UUID(path.stem) for path in folder().glob("*.jsonl"))
    return [name for name in found if name not in known]
