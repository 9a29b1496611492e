"""A server with a sandbox and a call that runs: to be killed (``kill``, ``unsafe``: without protection), or forked."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path


def main(root: str, what: str) -> None:
    sys.path.insert(0, root)
    from tools import sandbox
    from tools.sandbox import SandboxCall, SandboxConfig

    forks, unsafe = what == "fork", what == "unsafe"
    tier = None if unsafe else 3
    config = SandboxConfig(data_dir=Path(tempfile.gettempdir()), force_tier=tier, unsafe=unsafe, preload=())
    sandbox.start(config)
    sleep = SandboxCall(id="1", source="import time\ndef f():\n    time.sleep(600)", function="f", arguments={})
    add = SandboxCall(id="1", source="def f():\n    return 1 + 2", function="f", arguments={})
    if not forks:
        import threading

        threading.Thread(target=sandbox.run_blocking, args=(sleep,), daemon=True).start()
        time.sleep(0.3)
    print("running", flush=True)
    if forks:
        child = os.fork()
        if child == 0:
            sandbox.start(config)
            print(f"forked: {sandbox.run_blocking(add).value}", flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(f"first: {sandbox.run_blocking(add).value}", flush=True)
        sandbox.stop()
        return
    time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
