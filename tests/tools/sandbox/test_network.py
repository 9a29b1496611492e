"""A tool reaches the hosts that its call names, through the proxy, and nothing else."""

from __future__ import annotations

import dataclasses
import http.server
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tools.sandbox.calls import fly, make_call, run, value_of, wait_until
from tests.tools.sandbox.conftest import started
from tools.sandbox import SandboxConfig, proxy
from tools.sandbox.runners import ZygoteRunner

FETCH = """
import urllib.error, urllib.request
def tool(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
"""


class Origin(http.server.BaseHTTPRequestHandler):
    """Says what it was asked; /away sends elsewhere; /slow never answers."""

    def do_GET(self) -> None:
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest")
            self.end_headers()
            return
        body = f"{self.path} {self.headers['Host']} {self.headers['Proxy-Connection']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(len(data)).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def local(config: SandboxConfig) -> Iterator[ZygoteRunner]:
    """A sandbox whose proxy dials loopback addresses too."""
    runner = started(dataclasses.replace(config, allow_private_network=True))
    yield runner
    runner.stop()


def test_it_fetches_from_an_allowed_host(local: ZygoteRunner, origin: int) -> None:
    url = f"http://localhost:{origin}/path?q=1"
    expected = f"/path?q=1 localhost:{origin} None"
    assert value_of(local, FETCH, {"url": url}, network=(f"localhost:{origin}",)) == expected


def test_it_passes_bodies_on(local: ZygoteRunner, origin: int) -> None:
    source = """
        import urllib.request
        def tool(url):
            return urllib.request.urlopen(url, data=b"x" * 300000, timeout=10).read().decode()
    """
    found = value_of(local, source, {"url": f"http://localhost:{origin}/"}, network=(f"localhost:{origin}",))
    assert found == "300000"


def test_it_tunnels_to_an_allowed_host(local: ZygoteRunner, origin: int) -> None:
    source = """
        import http.client
        def tool(port):
            connection = http.client.HTTPConnection("127.0.0.1", 3128, timeout=10)
            connection.set_tunnel("localhost", port)
            connection.request("GET", "/tunnelled")
            return connection.getresponse().read().decode()
    """
    found = value_of(local, source, {"port": origin}, network=(f"localhost:{origin}",))
    assert found == f"/tunnelled localhost:{origin} None"


@pytest.mark.parametrize("hosts", [("other.example",), ("localhost",), ("localhost:1",), ("*.localhost",)])
def test_it_refuses_other_hosts_and_ports(hosts: tuple[str, ...], local: ZygoteRunner, origin: int) -> None:
    found = value_of(local, FETCH, {"url": f"http://localhost:{origin}/"}, network=hosts)
    assert found == f"403 the tool may not reach localhost:{origin}\n"


def test_it_checks_redirects_again(local: ZygoteRunner, origin: int) -> None:
    found = value_of(local, FETCH, {"url": f"http://localhost:{origin}/away"}, network=(f"localhost:{origin}",))
    assert found == "403 the tool may not reach 169.254.169.254:80\n"


def test_it_refuses_private_addresses_of_allowed_names(full: ZygoteRunner, origin: int) -> None:
    found = value_of(full, FETCH, {"url": f"http://localhost:{origin}/"}, network=(f"localhost:{origin}",))
    assert found == "403 localhost is not on the public internet\n"


def test_it_dials_what_it_has_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name whose address changes between two look-ups: there is only one look-up."""
    answers = iter(["93.184.215.14", "127.0.0.1"])
    dialled = []

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", (next(answers), port))]

    def connect(address: tuple[str, int], timeout: float) -> None:
        dialled.append(address)
        raise OSError

    monkeypatch.setattr(proxy.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(proxy.socket, "create_connection", connect)
    with pytest.raises(proxy.Refused, match="does not answer"):
        proxy.dial("rebinding.example", 443, private=False)
    with pytest.raises(proxy.Refused, match="not on the public internet"):
        proxy.dial("rebinding.example", 443, private=False)
    assert dialled == [("93.184.215.14", 443)]


def test_it_refuses_a_name_with_one_private_address(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("93.184.215.14", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]
    monkeypatch.setattr(proxy.socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(proxy.Refused):
        proxy.dial("mixed.example", 80, private=False)


def test_it_keeps_networks_of_calls_apart(local: ZygoteRunner, origin: int) -> None:
    wait = "import time\ndef tool():\n    time.sleep(1)"
    other = fly(local, make_call(wait, network=(f"localhost:{origin}",)))
    found = value_of(local, FETCH, {"url": f"http://localhost:{origin}/"}, network=("other.example",))
    assert found.startswith("403")
    assert other.future.result(10).status == "success"


def test_it_cuts_connections_when_the_call_ends(local: ZygoteRunner) -> None:
    source = """
        import socket
        def tool(port):
            out = socket.create_connection(("127.0.0.1", 3128))
            out.sendall(f"CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n".encode())
            out.recv(100)
            out.recv(100)
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome = run(local, source, {"port": port}, network=(f"localhost:{port}",), timeout=0.5)
        connection, _ = server.accept()
        with connection:
            connection.settimeout(5)
            assert connection.recv(10) == b""
    assert "TimeoutError" in outcome.error
    assert wait_until(lambda: not any(thread.name == "sandbox-proxy" for thread in threading.enumerate()))


@pytest.mark.parametrize(
    ("entry", "host", "port", "expected"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "API.Example.com.", 80, True),
        ("api.example.com", "api.example.com", 8080, False),
        ("api.example.com:8080", "api.example.com", 8080, True),
        ("api.example.com:8080", "api.example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("example.com", "api.example.com", 443, False),
        ("example.com", "example.com.evil.net", 443, False),
        ("*", "example.com", 443, False),
        ("", "", 443, False),
    ],
)
def test_it_compares_hosts(entry: str, host: str, port: int, expected: bool) -> None:
    assert proxy.allowed([entry], host, port) is expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.215.14", True), ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True), ("127.0.0.1", False),
        ("10.1.2.3", False), ("172.16.0.1", False), ("192.168.1.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("0.0.0.0", False), ("255.255.255.255", False), ("224.0.0.1", False),
        ("::1", False), ("::", False), ("fe80::1%eth0", False), ("fc00::1", False), ("ff02::1", False),
        ("::ffff:127.0.0.1", False), ("::ffff:93.184.215.14", True), ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False), ("64:ff9b::a9fe:a9fe", False), ("198.18.0.1", False), ("240.0.0.1", False),
    ],
)  # fmt: skip
def test_it_knows_the_public_internet(address: str, expected: bool) -> None:
    assert proxy.is_global(address) is expected
