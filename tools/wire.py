"""Tools as the wire writes them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from tools.models import Tool

SYSTEM_USER = "user-00000000-0000-4000-8000-000000000000"


def moment(value: datetime) -> str:
    """A row's moment: RFC 3339 with microseconds and Z."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def tool_hash(source: str) -> str:
    """Twelve hex digits that change with a tool's source."""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:12]


def tool_state(tool: Tool) -> dict[str, Any]:
    """A tool with every field that either SDK knows."""
    metadata = dict(tool.metadata or {})
    if tool.source_code:
        metadata["tool_hash"] = tool_hash(tool.source_code)
    return {
        "id": tool.wire_id,
        "tool_type": tool.tool_type,
        "description": tool.description,
        "source_type": tool.source_type,
        "name": tool.name,
        "tags": tool.tags or [],
        "source_code": tool.source_code or None,
        "json_schema": tool.json_schema,
        "args_json_schema": tool.args_json_schema or {},
        "return_char_limit": tool.return_char_limit,
        "pip_requirements": tool.pip_requirements,
        "npm_requirements": tool.npm_requirements,
        "default_requires_approval": tool.default_requires_approval,
        "enable_parallel_execution": bool(tool.enable_parallel_execution),
        "created_by_id": SYSTEM_USER,
        "last_updated_by_id": SYSTEM_USER,
        "created_at": moment(tool.created_at),
        "updated_at": moment(tool.updated_at),
        "metadata_": metadata,
        "metadata": metadata,
        "project_id": tool.project_id,
    }
