"""One HTTP call to a checked address: no redirects, no proxy, bounded in time and size."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from agents.outbox.address import Blocked, Place, resolve

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 15.0
MAX_ANSWER = 64 * 1024  # bytes of an answer that are read; nobody needs them


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call went: ``status`` 0 when there was none; ``final`` when no retry can change it."""

    status: int = 0
    error: str = ""
    final: bool = False

    @property
    def delivered(self) -> bool:
        return 200 <= self.status < 300


def post(url: str, body: str, headers: Mapping[str, str], *, seconds: float = TOTAL_SECONDS) -> Answer:
    """POST ``body``; an answer in every case."""
    try:
        place = resolve(url)
        status = _call(place, body.encode(), headers, seconds)
    except Blocked as error:
        return Answer(error=f"not delivered: {error}", final=True)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(error=f"{type(error).__name__}: {error}"[:500])
    if 200 <= status < 300:
        return Answer(status)
    return Answer(status, f"the receiver answered {status}", final=status == http.client.GONE)


def _call(place: Place, body: bytes, headers: Mapping[str, str], seconds: float) -> int:
    connection = _connected(place)
    # A receiver that sends a byte now and then would never run into a timeout of the socket.
    assert connection.sock is not None
    watch = threading.Timer(seconds, _cut, [connection.sock])
    watch.daemon = True
    watch.start()
    try:
        connection.request("POST", place.target, body=body, headers=dict(headers))
        answer = connection.getresponse()
        answer.read(MAX_ANSWER)
        return answer.status
    finally:
        watch.cancel()
        connection.close()


def _connected(place: Place) -> http.client.HTTPConnection:
    """A connection to the very address that was checked, under the name that was asked for."""
    raw = socket.create_connection((place.address, place.port), timeout=CONNECT_SECONDS)
    if place.secure:
        try:
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=place.host)
        except BaseException:
            raw.close()
            raise
    kind = http.client.HTTPSConnection if place.secure else http.client.HTTPConnection
    connection: http.client.HTTPConnection = kind(place.host, place.port, timeout=CONNECT_SECONDS)
    connection.sock = raw
    connection.auto_open = 0
    return connection


def _cut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
