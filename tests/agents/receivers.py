"""A receiver of webhooks on loopback that answers as a test wants and remembers what came."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """``status`` and ``headers`` of every answer; ``drip`` seconds between the bytes of an endless one."""

    port: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0.0
    size: int = 2
    came: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"


@contextmanager
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(made))
    server.daemon_threads = True
    made.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def _answering(made: Receiver) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.came.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self._write()
            except OSError:
                return

        def _write(self) -> None:
            while made.drip:
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(made.drip)
            self.wfile.write(b"x" * made.size)

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Answering
