"""The web process: Daphne's server in code, with back-pressure and an orderly end.

Daphne's own command line stops its reactor under open streams, which crashes some Pythons; here SIGTERM
drains first and then closes every connection before the reactor stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from typing import Any

import structlog
import uvloop
from autobahn.websocket.protocol import WebSocketProtocol
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory
from django.conf import settings
from twisted.internet import reactor as _reactor
from twisted.internet.endpoints import serverFromString
from twisted.logger import globalLogBeginner

from lettaweb import lifespan
from lettaweb.server.protocol import CappedFactory, PromptTransport, notice_dead_peers

reactor: Any = _reactor
log = structlog.get_logger(__name__)

HIGH = 256 * 1024  # bytes that may wait for one reader
GOODBYE = 1.0  # seconds that streams get to say their last word
RESTART = 1012  # the close code that asks a websocket's client to come back
_LOOK = 0.05


class WebServer(Server):
    """Daphne's server; ``run`` returns after an orderly end."""

    exit_code = 0
    _ending: asyncio.Task[None] | None = None

    def run(self) -> None:
        self.connections: dict[Any, dict[str, Any]] = {}
        # A websocket whose client has gone to sleep answers no ping, and is let go.
        self.ping_interval, self.ping_timeout = settings.LETTAWEB_PING_SECONDS, settings.LETTAWEB_READER_SECONDS
        self.http_factory = CappedFactory(self)
        self.ws_factory = WebSocketFactory(self, server=self.server_name)
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=self.websocket_max_message_size,
            maxFramePayloadSize=self.websocket_max_frame_size,
            closeHandshakeTimeout=settings.LETTAWEB_READER_SECONDS / 2,  # one that was too slow may yet learn why
        )
        globalLogBeginner.beginLoggingTo([_log_twisted], redirectStandardIO=False, discardBuffer=True)
        _use_uvloop()
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        reactor.callWhenRunning(self._begin)
        asyncio.set_event_loop(reactor._asyncioEventloop)
        reactor.run(installSignalHandlers=False)

    def _begin(self) -> None:
        loop = reactor._asyncioEventloop
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.end)
        self._starting = loop.create_task(self._start())

    async def _start(self) -> None:
        try:
            await lifespan.start()
            for description in self.endpoints:
                endpoint = serverFromString(reactor, description)
                port: Any = await endpoint.listen(self.http_factory).asFuture(asyncio.get_running_loop())
                port.transport = PromptTransport
                self.listeners.append(port)
        except Exception as error:
            log.critical("start_failed", exc_info=error)
            self.exit_code = 1
            reactor.stop()
            return
        log.info("listening", addresses=[f"{port.getHost().host}:{port.getHost().port}" for port in self.listeners])

    def end(self) -> None:
        """Begin to stop; later calls change nothing."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        log.info("stopping", seconds=settings.LETTAWEB_DRAIN_SECONDS)
        try:
            await lifespan.stop()
            for port in self.listeners:
                port.stopListening()
            await self._close_all()
        except Exception as error:
            log.error("stop_failed", exc_info=error)
        finally:
            log.info("stopped")
            reactor.stop()

    async def _close_all(self) -> None:
        for protocol in list(self.connections):
            if isinstance(protocol, WebSocketProtocol) and protocol.state == protocol.STATE_OPEN:
                protocol.sendCloseFrame(code=RESTART, reasonUtf8=b"The server restarts; please come back.")
        if working := self._working():
            await asyncio.wait(working, timeout=GOODBYE)
        for application in self._working():
            application.cancel()
        if working := self._working():
            await asyncio.wait(working, timeout=GOODBYE)
        for protocol in list(self.connections):
            _abort(protocol)
        await asyncio.sleep(0)

    def _working(self) -> list[asyncio.Future[Any]]:
        found = [details.get("application_instance") for details in self.connections.values()]
        return [application for application in found if application is not None and not application.done()]

    def protocol_connected(self, protocol: Any) -> None:
        super().protocol_connected(protocol)
        with contextlib.suppress(OSError):
            notice_dead_peers(_raw_transport(protocol))

    async def handle_reply(self, protocol: Any, message: Any) -> None:
        await super().handle_reply(protocol, message)
        if self._gone(protocol):
            await asyncio.sleep(0)  # an application that has not noticed yet must not keep the loop to itself
            return
        transport = _raw_transport(protocol)
        if transport is not None and _waiting(transport) > HIGH:
            await self._until_taken(protocol, transport)

    def _gone(self, protocol: Any) -> bool:
        return "disconnected" in self.connections.get(protocol, {"disconnected": 0})

    async def _until_taken(self, protocol: Any, transport: Any) -> None:
        least, since = _waiting(transport), time.monotonic()
        while not self._gone(protocol):
            await asyncio.sleep(_LOOK)
            now = _waiting(transport)
            if now <= HIGH // 2:
                return
            if now < least:
                least, since = now, time.monotonic()
            elif time.monotonic() - since > settings.LETTAWEB_READER_SECONDS:
                log.warning("reader_cut", client=str(getattr(protocol, "client_addr", "")), waiting=now)
                transport.abortConnection()
                return

    def application_checker(self) -> None:
        if self._ending is not None:
            return
        try:
            super().application_checker()
        except Exception as error:
            log.error("connections_not_checked", exc_info=error)
            reactor.callLater(1, self.application_checker)  # what it would have done last


def _use_uvloop() -> None:
    """Let the reactor run on uvloop, which takes a fifth less CPU for a token of a stream than asyncio's own loop.

    Daphne's app installs the reactor together with a loop as soon as Django starts; nothing runs on it before this.
    """
    reactor._asyncioEventloop.close()
    reactor._asyncioEventloop = uvloop.new_event_loop()


def serve_web(*, host: str, port: int) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    from lettaweb.asgi import application

    address = host.strip("[]").replace(":", r"\:")
    server = WebServer(
        application,
        endpoints=[f"tcp:port={port}:interface={address}"],
        signal_handlers=False,
        action_logger=_access_log if settings.LETTAWEB_ACCESS_LOG else None,
        request_buffer_size=65536,
        server_name="lettaweb",
        application_close_timeout=10,
        proxy_forwarded_address_header="X-Forwarded-For" if settings.LETTAWEB_HTTPS else None,
        proxy_forwarded_proto_header="X-Forwarded-Proto" if settings.LETTAWEB_HTTPS else None,
    )
    server.run()
    return server.exit_code


def _access_log(protocol: str, action: str, details: dict[str, Any]) -> None:
    """One line per answer; the query string stays out, it may hold what nobody should read."""
    if action in ("complete", "connected", "disconnected", "rejected"):
        path = str(details.get("path", "")).partition("?")[0]
        kept = {name: details[name] for name in ("status", "method", "client", "time_taken", "size") if name in details}
        log.info(f"{protocol}_{action}", path=path, **kept)


def _log_twisted(event: dict[str, Any]) -> None:
    if event.get("log_failure") is not None:
        log.error("twisted_failed", error=str(event["log_failure"].value), kind=event["log_failure"].type.__name__)


def _raw_transport(protocol: Any) -> Any:
    """The TCP transport below a request or a websocket, None when it is gone."""
    if isinstance(protocol, WebSocketProtocol):
        return getattr(protocol, "transport", None)
    channel = getattr(protocol, "channel", None)
    transport = getattr(channel, "transport", None)
    return getattr(transport, "transport", transport) if not hasattr(transport, "dataBuffer") else transport


def _waiting(transport: Any) -> int:
    """Bytes that were written and that the kernel has not taken yet."""
    return len(transport.dataBuffer) - transport.offset + transport._tempDataLen if _buffers(transport) else 0


def _buffers(transport: Any) -> bool:
    return hasattr(transport, "_tempDataLen") and hasattr(transport, "dataBuffer")


def _abort(protocol: Any) -> None:
    transport = _raw_transport(protocol)
    if transport is not None:
        with contextlib.suppress(Exception):
            transport.loseConnection()
