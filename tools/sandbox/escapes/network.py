"""Attempts to reach something over a network, with and without the proxy."""

from __future__ import annotations

from tools.sandbox.config import FULL

from .table import Escape

OFF = """
import socket
for address in (("127.0.0.1", facts["port"]), ("169.254.169.254", 80), ("1.1.1.1", 443), ("127.0.0.1", 3128)):
    attempt(f"TCP {address}", lambda: socket.create_connection(address, 1))
attempt("TCP over IPv6", lambda: socket.create_connection(("::1", facts["port"]), 1))
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        return out.sendto(b"x", ("127.0.0.1", facts["port"]))
attempt("UDP", send)
attempt("DNS", lambda: socket.getaddrinfo("example.com", 80))
def unix(address):
    with socket.socket(socket.AF_UNIX) as out:
        return out.connect(address)
attempt("unix socket", lambda: unix(facts["socket"]))
attempt("abstract socket", lambda: unix(facts["abstract"]))
"""

FAMILIES = """
import socket
for name, family, kind, number in (
    ("netlink", 16, socket.SOCK_RAW, 0), ("packet", 17, socket.SOCK_RAW, 3), ("vsock", 40, socket.SOCK_STREAM, 0),
    ("raw", 2, socket.SOCK_RAW, 1), ("alg", 38, socket.SOCK_SEQPACKET, 0), ("bluetooth", 31, socket.SOCK_RAW, 1),
    ("UDP", 2, socket.SOCK_DGRAM, 0), ("unix", 1, socket.SOCK_STREAM, 0), ("IPv6", 10, socket.SOCK_STREAM, 0),
    ("SCTP", 2, socket.SOCK_SEQPACKET, 132), ("MPTCP", 2, socket.SOCK_STREAM, 262)):
    if name != "MPTCP" or not facts["network"]:
        attempt(name, lambda: socket.socket(family, kind, number).close())
attempt("socketpair", lambda: socket.socketpair(2, socket.SOCK_STREAM))
"""

AROUND = """
import socket
for address in (("127.0.0.1", facts["port"]), ("169.254.169.254", 80), ("1.1.1.1", 443), ("10.0.0.1", 80)):
    attempt(f"TCP {address}", lambda: socket.create_connection(address, 1))
attempt("DNS", lambda: socket.getaddrinfo("example.com", 80))
def listen():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 8080))
attempt("bind", listen)
"""

THROUGH = """
import socket, urllib.request, urllib.error
def ask(line):
    with socket.create_connection(("127.0.0.1", 3128), 5) as out:
        out.settimeout(8)
        out.sendall(line.encode("latin-1") + b"\\r\\n\\r\\n")
        return out.recv(100)
for target in (f"127.0.0.1:{facts['port']}", "169.254.169.254:80", "localhost:80", "[::1]:80", "[::ffff:127.0.0.1]:80",
               "1.1.1.1:443", "2130706433:80", "0:80", "10.0.0.1:443", "allowed.example:22", "a@127.0.0.1:80"):
    answer = ask(f"CONNECT {target} HTTP/1.1")
    if not answer.startswith(b"HTTP/1.1 403"):
        breaches.append(f"CONNECT {target}: {answer!r}")
for line in (f"GET http://127.0.0.1:{facts['port']}/ HTTP/1.1", "GET http://169.254.169.254/latest HTTP/1.1",
             "GET file:///etc/passwd HTTP/1.1", "GET / HTTP/1.1", "nonsense", "GET http://a.example:bad/ HTTP/1.1"):
    answer = ask(line)
    if not answer.startswith(b"HTTP/1.1 403"):
        breaches.append(f"{line}: {answer!r}")
"""

NETWORK = [
    Escape("network, when it is off", OFF),
    Escape("odd socket families", FAMILIES, needs_seccomp=True),
    Escape("odd socket families, with network", FAMILIES, network=("allowed.example",), tiers=(FULL,)),
    Escape("around the proxy", AROUND, network=("allowed.example",), tiers=(FULL,)),
    Escape(
        "through the proxy to other places",
        THROUGH,
        network=("allowed.example", "localhost", "127.0.0.1", "169.254.169.254", "10.0.0.1"),
        tiers=(FULL,),
    ),
]
