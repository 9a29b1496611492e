"""The unsafe mode's process: resource limits, then the tool. For development only."""

from __future__ import annotations

import json
import os
import resource
import sys

from . import invoke, linux


def main(request: int, result: int) -> None:
    """Read the plan from stdin and run the request."""
    plan = json.load(sys.stdin)
    if sys.platform == "linux":
        linux.die_with_parent(plan["server"])
    limits = plan["limits"]
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_DATA, limits["memory"] + limits["reserve"]),
    ):
        resource.setrlimit(kind, (value, value))
    with open(request, "rb") as file:
        content = json.loads(file.read())
    os.environ.clear()
    os.environ.update(content["environment"])
    sys.path.extend(plan["packages"][:1])
    if plan["environment"]:
        sys.path.insert(0, plan["environment"])
    invoke.run(content, result=result, limits=limits)
    os._exit(0)
