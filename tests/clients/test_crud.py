"""Both SDK generations make, change and delete everything that is no message, on the same routes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.servers import ServerProcess

HERE = Path(__file__).resolve().parent


def run(python: Path, program: str, server: ServerProcess) -> None:
    done = subprocess.run(
        [str(python), str(HERE / program), server.url], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + server.tail()


@pytest.mark.parametrize(("fixture", "program"), [("letta0_python", "crud_0.py"), ("letta1_python", "crud_1.py")])
def test_it_serves_both_generations(
    fixture: str, program: str, server: ServerProcess, request: pytest.FixtureRequest
) -> None:
    run(request.getfixturevalue(fixture), program, server)
