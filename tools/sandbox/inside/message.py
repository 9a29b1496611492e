"""Datagrams between the server, the zygote and its children: one JSON object and the descriptors that go with it."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

LARGEST = 65536
MOST_DESCRIPTORS = 8


def send(channel: socket.socket, content: dict[str, Any], descriptors: list[int] | None = None) -> None:
    """Send one message."""
    data = json.dumps(content).encode()
    if descriptors:
        socket.send_fds(channel, [data], descriptors)
    else:
        channel.send(data)


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return one message and its descriptors; None when the other side is gone."""
    data, descriptors, _, _ = socket.recv_fds(channel, LARGEST, MOST_DESCRIPTORS)
    if not data:
        close_all(descriptors)
        return None, []
    content: dict[str, Any] = json.loads(data)
    return content, list(descriptors)


def close_all(descriptors: list[int]) -> None:
    """Close what a message brought."""
    for descriptor in descriptors:
        os.close(descriptor)
