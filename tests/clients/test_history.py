"""Both SDK generations read what was said and done, on the same routes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.servers import ServerProcess

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize(("fixture", "program"), [("letta0_python", "history_0.py"), ("letta1_python", "history_1.py")])
def test_it_shows_history_to_both_generations(
    fixture: str, program: str, server: ServerProcess, request: pytest.FixtureRequest
) -> None:
    python: Path = request.getfixturevalue(fixture)
    done = subprocess.run(
        [str(python), str(HERE / program), server.url], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr + server.tail()
