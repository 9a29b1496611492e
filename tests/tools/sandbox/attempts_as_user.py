"""Run as another user: the folder of the project and the tier as arguments, what is wrong by attempt on stdout."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path


def main(root: str, tier: int) -> None:
    sys.path.insert(0, root)
    from tools.sandbox import Limits, SandboxConfig, SandboxUnavailable, escapes, probe
    from tools.sandbox.runners import ZygoteRunner

    with tempfile.TemporaryDirectory() as folder:
        hidden = (root, f"{root}/manage.py")
        limits = Limits(memory=128 << 20)
        config = SandboxConfig(data_dir=Path(folder), force_tier=tier, hidden_paths=hidden, limits=limits)
        try:
            runner = probe.start(config)
        except SandboxUnavailable as error:
            print(error)
            sys.exit(77)
        assert isinstance(runner, ZygoteRunner)
        print(json.dumps({verdict.escape.name: verdict.wrong for verdict in escapes.run_all(runner)}))
        runner.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
