"""Programs written with letta-client, each generation in its own environment, against the running server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.scripted.server import ScriptedProvider
from tests.servers import ServerProcess, clean_environment

HERE = Path(__file__).resolve().parent


def run_program(python: Path, program: str, server: ServerProcess, provider: ScriptedProvider) -> str:
    """Run a pytest file of the client's environment; its output. Fails when one of its tests does."""
    alone = ["--noconftest", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(HERE)]
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", *alone, str(HERE / program)],
        env={**clean_environment(), "LETTA_SERVER_URL": server.url, "SCRIPTED_URL": provider.url, "NO_PROXY": "*"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_it_serves_programs_of_the_first_generation(
    server: ServerProcess, provider: ScriptedProvider, letta0_python: Path
) -> None:
    assert " passed" in run_program(letta0_python, "program_letta0.py", server, provider)
    assert provider.refused == []


def test_it_serves_programs_of_the_second_generation(
    server: ServerProcess, provider: ScriptedProvider, letta1_python: Path
) -> None:
    assert " passed" in run_program(letta1_python, "program_letta1.py", server, provider)
    assert provider.refused == []


@pytest.mark.parametrize("path", ["/v1/health", "/v1/health/"])
def test_it_answers_those_who_wait_for_it(server: ServerProcess, path: str) -> None:
    assert server.get(path).json()["status"] == "ok"
