"""The sizes and borders that the house sets itself, read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("lettaweb", "agents", "tools", "batches")
LONGEST_FILE, LONGEST_TEST_FILE = 300, 400  # tables of cases are long
LONGEST_FUNCTION = 40
MARKS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) + r")\b|NotImplementedError")
EVENT_ROWS = re.compile(r"\bEventSegment\b")
MAY_TOUCH_EVENTS = re.compile(r"^agents/(events(/|\.py)|models/|migrations/)")
CORE = ("loop", "executor", "context", "memory", "wire", "events", "outbox", "providers", "policies", "models",
        "actions", "registry", "schema", "runner", "sandbox", "rules", "poll", "drivers")  # fmt: skip
RIM_ONLY = ("rest_framework", "channels")
TOP_LEVEL = {"lettaweb", "agents", "tools", "batches", "templates", "tests"}
VAGUE = re.compile(r"(Manager|Service|Helper|Util|Utils|Handler)$")


def sources(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not {"migrations", "cases"} & set(path.parts))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_it_keeps_files_short() -> None:
    limits = [(path, LONGEST_FILE) for path in sources(*FOLDERS)]
    limits += [(path, LONGEST_TEST_FILE) for path in sources("tests")]
    lengths = [(name(path), path.read_text(encoding="utf-8").count("\n"), limit) for path, limit in limits]
    assert [(path, lines) for path, lines, limit in lengths if lines > limit] == []


def test_it_keeps_functions_short() -> None:
    long = {
        f"{name(path)}:{node.name}": length(node)
        for path in sources(*FOLDERS)
        for node in functions(path)
        if length(node) > LONGEST_FUNCTION
    }
    assert long == {}


def test_it_says_in_every_module_what_it_is_for() -> None:
    silent = [name(path) for path in sources(*FOLDERS) if path.stat().st_size and ast.get_docstring(tree(path)) is None]
    assert silent == []


def test_it_leaves_no_work_behind() -> None:
    found = [
        f"{name(path)}:{number}"
        for path in sources(*FOLDERS, "tests")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MARKS.search(line) and path != Path(__file__)
    ]
    assert found == []


def test_it_lets_only_events_touch_the_log() -> None:
    strangers = [
        name(path)
        for path in sources(*FOLDERS)
        if EVENT_ROWS.search(path.read_text(encoding="utf-8")) and not MAY_TOUCH_EVENTS.match(name(path))
    ]
    assert strangers == []


def is_core(path: Path) -> bool:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0] in ("agents", "tools", "batches") and len(parts) > 1 and parts[1] in CORE


def test_it_keeps_web_frameworks_out_of_the_core() -> None:
    strangers = [
        f"{name(path)} imports {module}"
        for path in sources("agents", "tools", "batches")
        if is_core(path)
        for module in imported(path)
        if module.split(".")[0] in RIM_ONLY
    ]
    assert strangers == []


def test_it_puts_no_models_on_the_floor() -> None:
    strangers = [
        f"{name(path)} imports {module}"
        for path in sources("lettaweb/lib")
        for module in imported(path)
        if module.split(".")[0] in ("agents", "tools", "batches")
        or (module.startswith("lettaweb.") and not module.startswith("lettaweb.lib"))
    ]
    assert strangers == []


def test_it_enqueues_by_name_and_never_imports_tasks() -> None:
    strangers = [
        name(path)
        for path in sources("agents", "batches")
        if "actions" in path.parts or path.name == "actions.py"
        if any(module.endswith(".tasks") for module in imported(path))
    ]
    assert strangers == []


def test_it_has_no_other_top_level_folder() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.fail("git lists no files")
    folders = {line.split("/")[0] for line in listed.splitlines() if "/" in line}
    assert {folder for folder in folders if not folder.startswith(".")} <= TOP_LEVEL


def test_it_calls_classes_by_what_they_are() -> None:
    vague = [
        f"{name(path)}:{node.name}"
        for path in sources(*FOLDERS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and VAGUE.search(node.name)
    ]
    assert vague == []


def test_it_explains_every_setting() -> None:
    read = re.findall(r"env\.\w+\(\s*\"(\w+)\"", (ROOT / "lettaweb" / "settings.py").read_text(encoding="utf-8"))
    explained = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(read) > 30
    assert [setting for setting in read if f"`{setting}`" not in explained] == []
