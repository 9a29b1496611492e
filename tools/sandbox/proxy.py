"""The only way out of a network call: an HTTP proxy on a socket inside the call's network, that dials from the host.

It knows the hosts that the call may reach, resolves their names itself, dials only global addresses and dials what it
resolved, so neither a redirect nor a name that changes its address gets around it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from .config import SandboxConfig
from .inside import message

WEB_PORTS = (80, 443)
LARGEST_HEAD = 32768
MOST_CONNECTIONS = 16
DIAL_TIMEOUT = 10.0
IDLE_TIMEOUT = 60.0
NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """The proxy does not do that; the text is told to the tool."""


def allowed(hosts: Iterable[str], host: str, port: int) -> bool:
    """Whether one of ``hosts`` (name, *.name, name:port; without a port: 80 and 443) covers ``host`` and ``port``."""
    host = host.lower().rstrip(".")
    for entry in hosts:
        name, _, wanted = entry.lower().strip().partition(":")
        ports = (int(wanted),) if wanted.isdigit() else WEB_PORTS
        below = name.startswith("*.") and host.endswith(name[1:]) and len(host) > len(name) - 1
        if host and (below or host == name.rstrip(".")) and port in ports:
            return True
    return False


def is_global(text: str) -> bool:
    """Whether an address is on the public internet, also the one that is wrapped in it."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_global(str(inner))
    return address.is_global and not address.is_multicast and not address.is_reserved


def dial(host: str, port: int, *, private: bool) -> socket.socket:
    """Connect to a host; raises Refused when it has no address that may be dialled."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Refused(f"the name {host} cannot be resolved") from error
    addresses = [str(item[4][0]) for item in found]
    if not private and not all(map(is_global, addresses)):
        raise Refused(f"{host} is not on the public internet")
    for address in addresses:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), DIAL_TIMEOUT)
    raise Refused(f"{host}:{port} does not answer")


def read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request and what came after it; raises Refused."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(8192)
        data += part
        if not part or len(data) > LARGEST_HEAD:
            raise Refused("the request has no head")
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def target_of(head: bytes) -> tuple[str, int, bytes]:
    """Return host, port and, for plain HTTP, the head to pass on (empty for a tunnel); raises Refused."""
    line, *fields = head.split(b"\r\n")
    parts = line.split(b" ")
    if len(parts) != 3:
        raise Refused("the request line cannot be read")
    method, target, version = (part.decode("latin-1") for part in parts)
    try:
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = url.hostname or "", url.port or (443 if method == "CONNECT" else 80)
    except ValueError:
        raise Refused("the target cannot be read") from None
    if not host or (method != "CONNECT" and url.scheme != "http"):
        raise Refused("the target cannot be read")
    if method == "CONNECT":
        return host, port, b""
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [item for item in fields if not re.match(rb"(?i)(host|connection|proxy-[a-z-]+|keep-alive)\s*:", item)]
    first = f"{method} {path} {version}\r\nHost: {url.netloc.rpartition('@')[2]}\r\nConnection: close".encode("latin-1")
    return host, port, b"\r\n".join([first, *kept]) + b"\r\n\r\n"


def answer(client: socket.socket, text: str) -> None:
    """Tell the tool why not."""
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    with contextlib.suppress(OSError):
        client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)


def copy(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until one side ends, then tell the other side."""
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Proxy:
    """The proxy of one call; lives as long as the call."""

    def __init__(self, channel: socket.socket, hosts: tuple[str, ...], *, private: bool) -> None:
        self.channel, self.hosts, self.private = channel, hosts, private
        self.lock = threading.Lock()
        self.open: set[socket.socket] = {channel}
        self.closed = False
        self.room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        threading.Thread(target=self._serve, name="sandbox-proxy", daemon=True).start()

    def close(self) -> None:
        """Cut every connection."""
        with self.lock:
            self.closed = True
            for item in self.open:
                with contextlib.suppress(OSError):
                    item.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def _held(self, item: socket.socket) -> Iterator[socket.socket]:
        with self.lock:
            if self.closed:
                item.close()
                raise OSError("the call has ended")
            self.open.add(item)
        try:
            yield item
        finally:
            with self.lock:
                self.open.discard(item)
                item.close()

    def _serve(self) -> None:
        """Take the listening socket that the call's process sends, and what connects to it."""
        with contextlib.suppress(OSError), self.channel:
            _, descriptors = message.receive(self.channel)
            if not descriptors:
                return
            with self._held(socket.socket(fileno=descriptors[0])) as listener:
                while True:
                    client, _ = listener.accept()
                    if not self.room.acquire(blocking=False):
                        client.close()
                        continue
                    threading.Thread(target=self._client, args=(client,), name="sandbox-proxy", daemon=True).start()

    def _client(self, client: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError), self._held(client):
                client.settimeout(IDLE_TIMEOUT)
                try:
                    self._pass_on(client)
                except Refused as error:
                    answer(client, str(error))
        finally:
            self.room.release()

    def _pass_on(self, client: socket.socket) -> None:
        head, rest = read_head(client)
        host, port, changed = target_of(head)
        if not allowed(self.hosts, host, port):
            raise Refused(f"the tool may not reach {host}:{port}")
        with self._held(dial(host, port, private=self.private)) as server:
            server.settimeout(IDLE_TIMEOUT)
            if changed:
                server.sendall(changed + rest)
            else:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(rest)
            upward = threading.Thread(target=copy, args=(client, server), name="sandbox-proxy", daemon=True)
            upward.start()
            copy(server, client)
            client.shutdown(socket.SHUT_RD)
            upward.join(IDLE_TIMEOUT)


def open_proxy(hosts: tuple[str, ...], config: SandboxConfig) -> tuple[Proxy, int]:
    """Return the proxy of a call and the descriptor through which its process hands over the listening socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Proxy(ours, hosts, private=config.allow_private_network), theirs.detach()
