"""Daphne's HTTP protocol with a cap on bodies, which it would otherwise collect whole before anybody looks,
forms left to Django, and answers to HEAD without a body."""

from __future__ import annotations

import socket
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.internet import main, tcp
from twisted.web.http import Request  # each use of a name as the module's costs more, for the module is a proxy

MOST_READS = 128  # of 64 KB each, in one go: more than the kernel keeps of one connection
DEAD_AFTER = 60  # seconds that sent bytes may stay unconfirmed


class CappedRequest(WebRequest):
    """A request that is refused with 413 as soon as it declares or sends too much."""

    received = 0

    def __init__(self, *arguments: Any) -> None:
        # Twisted would read whole forms on the loop, and refuse a broken one with an empty answer.
        super().__init__(*arguments, parsePOSTFormSubmission=False)

    def gotLength(self, length: int | None) -> None:
        if length is not None and length > settings.LETTAWEB_MAX_BODY:
            self._refuse()
            length = 0
        super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:
        self.received += len(data)
        if self.received > settings.LETTAWEB_MAX_BODY:
            self._refuse()
        else:
            super().handleContentChunk(data)

    def handle_reply(self, message: Any) -> None:
        # A stream's next bytes, the shorter way: most of what Daphne looks at cannot be the matter with them.
        if self._response_started and message.get("more_body") and self.method != b"HEAD":
            if not self.finished and self.channel is not None:
                Request.write(self, message.get("body", b""))
            return
        # Of a body in several parts only the first would be held back: the rest would precede the next answer.
        super().handle_reply({**message, "body": b""} if self.method == b"HEAD" else message)

    def handle_exception(self, exception: Exception) -> None:
        # Once the answer has begun no other can be given, and Daphne would stop looking after all connections.
        if not self._response_started:
            super().handle_exception(exception)
        elif self.channel is not None:
            self.channel.loseConnection()

    def _refuse(self) -> None:
        if self.channel is None or getattr(self, "_refused", False):
            return
        self._refused = True
        body = b'{"detail":"The body is larger than %d MB."}' % settings.LETTAWEB_MAX_BODY_MB
        head = b"HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.channel.transport.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.channel.loseConnection()


class CappedFactory(HTTPFactory):
    """Builds connections that notice a peer which is gone."""

    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = CappedRequest
        return protocol


class PromptTransport(tcp.Server):
    """A connection that hands its bytes to the kernel as it gets them; the reactor is asked only for what is left.

    Telling the reactor, being called back and leaving it again costs more than sending one event of a stream.
    """

    def doRead(self) -> Any:
        """Take all that has come, up to what ended the connection: uvloop tells of an error once, and never again."""
        for _ in range(MOST_READS):
            try:
                data = self.socket.recv(self.bufferSize)
            except BlockingIOError:
                return None
            except OSError:
                return main.CONNECTION_LOST
            why = self._dataReceived(data)
            if why is not None or self not in self.reactor._readers:  # it is over, or reading was paused
                return why
        return None

    def startWriting(self) -> None:
        fresh = self._tempDataLen and not self.dataBuffer  # nothing is on its way already
        if not fresh or self.doWrite() is not None or self.dataBuffer:
            super().startWriting()


def notice_dead_peers(transport: Any) -> None:
    """Let the kernel close a connection whose peer vanished: a closed laptop sends no goodbye."""
    connection = getattr(transport, "socket", None)
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_USER_TIMEOUT", DEAD_AFTER * 1000)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
