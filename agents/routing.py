"""Paths of the websockets."""

from __future__ import annotations

from typing import Any

from django.urls import re_path

from agents.consumers.agents import agent_socket
from agents.consumers.approvals import approvals_socket
from agents.consumers.runs import run_socket

_APPS: tuple[tuple[str, Any], ...] = (
    (r"^ws/approvals/?$", approvals_socket),
    (r"^ws/agents/(?P<agent_id>[^/]+)/?$", agent_socket),
    (r"^ws/runs/(?P<run_id>[^/]+)/?$", run_socket),
)
websocket_urlpatterns = [re_path(path, app) for path, app in _APPS]
