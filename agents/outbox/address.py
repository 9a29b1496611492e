"""Where deliveries may go: http or https, and only to addresses that the whole internet shares.

LETTAWEB_WEBHOOK_PRIVATE lifts the second half. A name is resolved once per call, all its addresses are
checked, and the call goes to an address that was checked: a second answer of the resolver changes nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from lettaweb.lib.problems import Problem

MAX_URL = 2000
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class Blocked(Exception):
    """A delivery must not go where it was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checked address: who is called (``host``), at which ``address`` and ``port``."""

    host: str
    address: str
    port: int
    secure: bool
    target: str


def check_url(url: str | None, field: str = "callback_url") -> str | None:
    """``url`` as it was given; a :class:`Problem` 422 when no delivery to it would ever be made.

    Only what the text says is checked; names are resolved when the call is made.
    """
    if url is None or url == "":
        return None
    try:
        host = _parts(url).hostname or ""
        literal = _literal(host)
        if literal is not None:
            _check(literal)
        elif _local_name(host) and not settings.LETTAWEB_WEBHOOK_PRIVATE:
            raise Blocked("names of this machine are not allowed")
    except Blocked as error:
        raise Problem(422, f"{field}: {error}") from None
    return url


def resolve(url: str) -> Place:
    """Look up ``url`` for one call. Raises :class:`Blocked`, or OSError when the name has no address."""
    parts = _parts(url)
    secure = parts.scheme.lower() == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(info[4][0]) for info in found]
    for address in addresses:
        _check(ipaddress.ip_address(address.partition("%")[0]))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Place(host, addresses[0], port, secure, target)


def _parts(url: str) -> SplitResult:
    if len(url) > MAX_URL or not url.isascii() or any(ord(sign) <= 32 or ord(sign) == 127 for sign in url):
        raise Blocked("a plain URL of at most 2000 characters is expected")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise Blocked("this is not a URL") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise Blocked("only http and https are allowed")
    if not parts.hostname:
        raise Blocked("the host is missing")
    if parts.username is not None or parts.password is not None:
        raise Blocked("a name or password in the URL is not allowed")
    return parts


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        # The resolver also takes 127.1, 0x7f000001 and 2130706433.
        return ipaddress.IPv4Address(socket.inet_aton(host)) if host[-1:].isalnum() else None
    except OSError:
        return None


def _local_name(host: str) -> bool:
    bare = host.rstrip(".").lower()
    return bare == "localhost" or bare.endswith((".localhost", ".local", ".internal"))


def _check(address: IPAddress) -> None:
    if not settings.LETTAWEB_WEBHOOK_PRIVATE and not is_global(address):
        raise Blocked("addresses of private networks are not allowed")


def is_global(address: IPAddress) -> bool:
    """Whether everybody means the same machine by ``address``; wrapped IPv4 addresses are unwrapped."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or _nat64(address)
        if inner is not None:
            return is_global(inner)
        if address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast


def _nat64(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
