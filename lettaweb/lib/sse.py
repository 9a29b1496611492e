"""Server-sent events as the wire has them: one ``data`` line a frame, ``[DONE]`` last."""

from __future__ import annotations

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"content-encoding", b"identity"),
]
OPENING = ": stream\n\n"  # daphne holds the headers back until bytes flow
SILENCE = ": ping\n\n"
DONE = "data: [DONE]\n\n"


def frame(data: str) -> str:
    """``data`` is JSON without line ends."""
    return f"data: {data}\n\n"


def error_frame(data: str) -> str:
    """The only named event: clients skip or raise on names that they do not know."""
    return f"event: error\ndata: {data}\n\n"
