"""What README tells operators, as it stands there: uvicorn in the server's place, nginx before it, a systemd unit."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.sync.client import ClientConnection, connect

from tests.conftest import MakeServer
from tests.scripted.answers import answer, text, tokens, tool_use
from tests.scripted.server import ScriptedProvider
from tests.servers import ROOT, ServerProcess, free_port
from tests.stories.client import Client, Json, approve
from tests.stories.sources import ECHO
from tests.stories.test_slow_readers import to_the_close
from tests.survival.kit import WAIT, wait_until

README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = 20
NAME = "agents.example.org"
ADMIN_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/sbin"  # not on everybody's path


def block(language: str) -> str:
    """The one code block of README in ``language``."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return str(found)


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=ADMIN_DIRECTORIES)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


# --- what clients do, whatever stands between --------------------------------------------------------


def streamed_as_it_comes(api: Client, agent: str) -> str:
    """A stream gives what was said while the model still speaks, and can be left and resumed; its run."""
    api.provider.script("", answer(tokens(WORDS), hold="gate", hold_at=WORDS // 2))
    body = {"messages": [{"role": "user", "content": "go"}], "stream_tokens": True, "background": True}
    seen: list[dict[str, Json]] = []
    with api.open_stream(f"/v1/agents/{agent}/messages/stream", body) as frames:
        for chunk in frames:
            seen.append(chunk)
            if len(seen) == 3:  # the model waits: nobody could have kept these back
                break
    run, last = str(seen[-1]["run_id"]), seen[-1]["seq_id"]
    api.provider.release("gate")
    with api.http.stream("POST", f"/v1/runs/{run}/stream", headers={"Last-Event-ID": str(last)}, json={}) as resumed:
        lines = [line.removeprefix("data: ") for line in resumed.iter_lines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    seen += [json.loads(line) for line in lines]
    words = [chunk["content"] for chunk in seen if chunk["message_type"] == "assistant_message"]
    assert words == ["tok "] * WORDS
    return run


def told_over_a_socket(socket: ClientConnection) -> None:
    """A socket tells a run to its end, and closes as it should."""
    frames, code = to_the_close(socket)
    assert code == 1000
    assert (frames[0]["type"], frames[-1]["type"], frames[-1]["status"]) == ("events", "end", "completed")


def approved(api: Client) -> None:
    """A call waits for a decision and runs once it has one."""
    tool = api.gated(ECHO)
    agent = api.agent(tool)
    api.provider.script("", answer(tool_use(tool["name"], {"text": "hello"})), answer(text("Done.")))
    waiting = api.send(agent, "go").waiting
    done = api.decide(agent, approve(waiting[0]))
    assert done.only("tool_return_message")["tool_return"] == "echo hello"


def bearer(server: ServerProcess) -> dict[str, str]:
    """The header of the first account, which ``serve`` would have made."""
    server.manage("shell", "-v", "0", "-c", "from lettaweb.server.account import ensure_first; ensure_first()")
    return {"Authorization": f"Bearer {server.manage('create_token', 'admin')}"}


# --- uvicorn -------------------------------------------------------------------------------------------


def test_it_runs_under_uvicorn(make_server: MakeServer, provider: ScriptedProvider) -> None:
    (told,) = re.findall(r"`uvicorn ([^`]+)`", README)
    server = make_server(command="web", program=["-m", "uvicorn", *told.replace("8283", "PORT").split()])
    with Client(server.url, provider) as api:
        agent = api.agent()
        assert api.send(agent, "hi").stop == "end_turn"
        run = streamed_as_it_comes(api, agent)
        headers = bearer(server)
        url = f"{server.url.replace('http://', 'ws://')}/ws/runs/{run}/"
        with connect(url, additional_headers=headers, proxy=None) as told_there:
            told_over_a_socket(told_there)
        approved(api)
        provider.script("", answer(tokens(WORDS), hold="gate", hold_at=WORDS // 2))
        with api.open_stream(f"/v1/agents/{agent}/messages/stream", {"messages": [{"role": "user", "content": "x"}]}):
            assert server.terminate() in (0, -signal.SIGTERM)
        provider.release("gate")
    assert "Traceback" not in server.tail(100_000)


def test_it_installs_what_websockets_need_under_uvicorn() -> None:
    runtime = (ROOT / "requirements.txt").read_text().partition("# development")[0]
    assert "uvicorn==" in runtime
    assert "websockets==" in runtime


# --- nginx ---------------------------------------------------------------------------------------------


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for NAME that signs itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    names = x509.SubjectAlternativeName([x509.DNSName(NAME), x509.IPAddress(ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    dated = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = dated.add_extension(names, critical=False).sign(key, hashes.SHA256())
    files = directory / "certificate.pem", directory / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return files


def configuration(directory: Path, servers: list[ServerProcess], port: int) -> Path:
    """README's block with our ports and certificate, inside of what every nginx.conf has around it."""
    block_ = block("nginx").replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    for told, server in zip(("8283", "8284"), servers, strict=True):
        assert f"127.0.0.1:{told};" in block_
        block_ = block_.replace(f"127.0.0.1:{told};", f"127.0.0.1:{server.port};")
    for directive, file in zip(("ssl_certificate", "ssl_certificate_key"), certificate(directory), strict=True):
        block_, count = re.subn(rf"\b{directive} \S+;", f"{directive} {file};", block_)
        assert count == 1
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {directory / kind};\n" for kind in kinds)
    around = f"pid {directory / 'pid'};\nevents {{}}\nhttp {{\naccess_log off;\n{places}{block_}}}\n"
    made = directory / "nginx.conf"
    made.write_text(around)
    return made


@contextmanager
def proxied(directory: Path, servers: list[ServerProcess]) -> Iterator[int]:
    """The port of an nginx before ``servers``."""
    nginx, port, log = program("nginx"), free_port(), directory / "error.log"
    arguments = ["-c", str(configuration(directory, servers, port)), "-e", str(log), "-g", "daemon off;"]
    with subprocess.Popen([nginx, *arguments], stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: process.poll() is not None or listens(port), "an open port")
            assert process.poll() is None, process.stderr.read() if process.stderr else b""
            yield port
        finally:
            process.terminate()


def listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def behind_nginx() -> dict[str, str]:
    """The settings that README names below the block."""
    below = README.partition(block("nginx"))[2].split("\n\n")[1]
    found = dict(re.findall(r"`(LETTAWEB_\w+)=([^`]*)`", below))
    assert found
    return found


def test_it_streams_through_nginx(make_server: MakeServer, provider: ScriptedProvider, tmp_path: Path) -> None:
    program("nginx")
    first = make_server(command="web", **behind_nginx())
    second = make_server(command="web", data_dir=first.data_dir, **behind_nginx())
    headers = bearer(first)
    with proxied(tmp_path, [first, second]) as port, Client(f"https://127.0.0.1:{port}", provider) as api:
        trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        api.http = httpx.Client(
            base_url=api.url, verify=trusted, timeout=WAIT, trust_env=False, headers={"Host": NAME, **headers}
        )
        for _ in range(2):  # each by another process
            agent = api.agent()
            assert api.send(agent, "hi").stop == "end_turn"
            run = streamed_as_it_comes(api, agent)
            with secure_socket(port, f"/ws/runs/{run}/", trusted, headers) as told_there:
                told_over_a_socket(told_there)
        approved(api)
        assert api.http.get("/login/").status_code == 200


@contextmanager
def secure_socket(
    port: int, path: str, trusted: ssl.SSLContext, headers: Mapping[str, str]
) -> Iterator[ClientConnection]:
    with closing(socket.create_connection(("127.0.0.1", port), WAIT)) as connection, connect(
        f"wss://{NAME}{path}", sock=connection, ssl=trusted, additional_headers=headers, proxy=None
    ) as made:  # fmt: skip
        yield made


# --- systemd -------------------------------------------------------------------------------------------


def test_it_has_a_unit_that_systemd_takes(tmp_path: Path) -> None:
    unit = tmp_path / "lettaweb.service"
    unit.write_text(block("ini").replace("/opt/lettaweb/.venv/bin/python", sys.executable))
    command = [program("systemd-analyze"), "verify", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []  # of others there may be some
