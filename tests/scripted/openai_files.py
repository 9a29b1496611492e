"""The files API as batches need it: upload, list, retrieve, content, delete."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any

from tests.scripted.batch_rows import StoredFile
from tests.scripted.exchange import Exchange
from tests.scripted.refusals import Refused, expect
from tests.scripted.world import World

Json = Any

PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
FIELD_NAME = re.compile(rb'name="([^"]*)"')
FILE_NAME = re.compile(rb'filename="([^"]*)"')


def store(world: World, name: str, purpose: str, content: bytes) -> StoredFile:
    """Keep a file under a new id."""
    row = StoredFile(f"file-{secrets.token_hex(11)}", name, purpose, content, time.time())
    world.files[row.id] = row
    return row


async def upload(exchange: Exchange) -> None:
    """POST /v1/files, multipart/form-data with ``purpose`` and ``file``."""
    fields = multipart(exchange.request.body or b"", exchange.request.headers.get("content-type", ""))
    expect("purpose" in fields, "'purpose' is a required property", param="purpose")
    expect("file" in fields, "'file' is a required property", param="file")
    purpose = fields["purpose"][1].decode()
    known = f"Invalid value: '{purpose}'. Supported values are: {', '.join(PURPOSES)}."
    expect(purpose in PURPOSES, known, param="purpose", code="invalid_value")
    name, content = fields["file"]
    expect(content, "The file is empty.", param="file", code="empty_file")
    suffix = purpose != "batch" or name.endswith(".jsonl")
    expect(suffix, "Invalid file format for Batch API. Must be .jsonl", param="file", code="invalid_file_format")
    await exchange.scripted(lambda: shown(store(exchange.world, name, purpose, content)))


def multipart(body: bytes, content_type: str) -> dict[str, tuple[str, bytes]]:
    """field → (file name, content) of a multipart body. Raises Refused when it is none."""
    found = re.search(r'boundary="?([^";]+)"?', content_type)
    expect(content_type.startswith("multipart/form-data") and found, "Could not parse multipart form")
    assert found is not None
    fields: dict[str, tuple[str, bytes]] = {}
    for part in body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name, file_name = FIELD_NAME.search(head), FILE_NAME.search(head)
        if name is not None:
            fields[name[1].decode()] = (file_name[1].decode() if file_name else "", content.removesuffix(b"\r\n"))
    return fields


async def list_files(exchange: Exchange) -> None:
    """GET /v1/files, newest first."""
    rows = [shown(row) for row in reversed(exchange.world.files.values())]
    await exchange.scripted(lambda: {"object": "list", "data": rows, "has_more": False})


async def retrieve(exchange: Exchange) -> None:
    """GET /v1/files/{id}."""
    await exchange.scripted(lambda: shown(found_file(exchange)))


async def content(exchange: Exchange) -> None:
    """GET /v1/files/{id}/content."""
    await exchange.scripted(lambda: found_file(exchange).content)


async def delete(exchange: Exchange) -> None:
    """DELETE /v1/files/{id}."""

    def act() -> Json:
        row = found_file(exchange)
        del exchange.world.files[row.id]
        return {"id": row.id, "object": "file", "deleted": True}

    await exchange.scripted(act)


def found_file(exchange: Exchange) -> StoredFile:
    identifier = exchange.request.path.split("/")[3]
    row = exchange.world.files.get(identifier)
    if row is None:
        raise Refused(f"No such File object: {identifier}", status=404, param="id")
    return row


def shown(row: StoredFile) -> dict[str, Json]:
    return {
        "id": row.id,
        "object": "file",
        "bytes": len(row.content),
        "created_at": int(row.created),
        "filename": row.name,
        "purpose": row.purpose,
        "status": "processed",
        "status_details": None,
        "expires_at": None,
    }
