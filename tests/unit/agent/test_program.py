"""The agent is a program of its own: standard library only, old Pythons too, one file, the same bytes every time."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
AGENT = ROOT / "modules" / "agent"
SOURCES = sorted(AGENT.rglob("*.py"))
OLDEST = (3, 8)
PYTHON_3_8 = os.environ.get("SKYPLAN_TEST_PYTHON38", "")  # read here: tests see no SKYPLAN_ variable
#: what 3.8 lacks and its parser cannot know
YOUNGER = {
    "removeprefix",
    "removesuffix",
    "is_relative_to",
    "pairwise",
    "bit_count",
    "override",
    "StrEnum",
    "tomllib",
    "UTC",
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("agent") / "agent.pyz"
    command = [sys.executable, "-m", "modules.agent.pack", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    return target


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.relative_to(AGENT).as_posix())
def test_it_imports_the_standard_library_and_itself_only(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= len(source.relative_to(AGENT).parts), "nothing above the agent"
            names = [] if node.level else [node.module or ""]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"__import__", "exec", "eval"}
            continue
        else:
            continue
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names, names
        assert "importlib" not in names


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.relative_to(AGENT).as_posix())
def test_it_is_written_for_python_3_8(source: Path) -> None:
    tree = ast.parse(source.read_text("utf-8"), feature_version=OLDEST)
    names = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    names |= {alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names}
    assert not names & YOUNGER
    keywords = {k.arg for n in ast.walk(tree) if isinstance(n, ast.Call) for k in n.keywords}
    assert not keywords & {"slots", "kw_only", "strict"}
    if source.read_text("utf-8").strip():
        assert "from __future__ import annotations" in source.read_text("utf-8"), "annotations are of a younger Python"


def python_3_8() -> str | None:
    """A Python 3.8 that works (a pyenv shim may not)."""
    for name in (PYTHON_3_8, "python3.8"):
        found = shutil.which(name) if name else None
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return None


def test_it_runs_on_python_3_8(archive: Path, tmp_path: Path) -> None:
    python = python_3_8()
    if not python:
        pytest.skip("no Python 3.8 here: set SKYPLAN_TEST_PYTHON38")
    config = tmp_path / "c.json"
    config.write_text('{"name": 7}')
    done = subprocess.run(
        [python, str(archive), "tunnel", "up", "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 78
    assert "`name` must be this node's name" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        ([], 64),
        (["tunnel"], 64),
        (["tunnel", "up"], 64),
        (["tunnel", "sideways"], 64),
        (["tunnel", "up", "--config", "/nowhere"], 78),
        (["tunnel", "key", "--interface", "../../etc/x"], 64),
    ],
)
def test_it_runs_from_one_file_and_by_module_name(
    archive: Path, tmp_path: Path, arguments: list[str], code: int
) -> None:
    for start, cwd in (([str(archive)], tmp_path), (["-m", "modules.agent"], ROOT)):
        command = [sys.executable, "-I" if start[0] != "-m" else "-E", *start, *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


def test_the_same_sources_make_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    copy = tmp_path / "modules" / "agent"
    for part in ("agent", "job"):
        shutil.copytree(ROOT / "modules" / part, copy.parent / part, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "modules" / "__init__.py").touch()
    for source in copy.rglob("*.py"):
        os.utime(source, (1, 1))
        source.chmod(0o600)
    command = [sys.executable, "-m", "modules.agent.pack", "again.pyz"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert (tmp_path / "again.pyz").read_bytes() == archive.read_bytes()


def test_the_archive_is_small_and_holds_nothing_else(archive: Path) -> None:
    assert archive.stat().st_size < 200 * 1024
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
    ours = {f"agent/{s.relative_to(AGENT).as_posix()}" for s in SOURCES if s.name != "pack.py"}
    assert set(names) == {"__main__.py", "job/skyplan_job.py", *ours}
