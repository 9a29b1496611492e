"""A process of its own for what is measured without a server: on a fresh database, set up as a server's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping

from tests.bench.place import database
from tests.servers import ROOT


def in_child(module: str) -> dict[str, float]:
    """The figures of ``python -m module child``."""
    with tempfile.TemporaryDirectory() as folder, database() as chosen:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("LETTAWEB_", "DATABASE_"))
        }
        environment |= {"LETTAWEB_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "lettaweb.settings", **chosen}
        command = [sys.executable, "-m", module, "child"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found


def child(measure: Callable[[], Mapping[str, float]]) -> None:
    """Print what ``measure`` finds and end the process, in the child; nothing in its parent."""
    if sys.argv[1:] != ["child"]:
        return
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps(measure()))
    sys.exit()
