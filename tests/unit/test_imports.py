"""What starting costs: modules that may not be imported on the way of a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOB = ROOT / "examples" / "jobs" / "llama3-8b-sft.yaml"
NEVER = {
    "cdktf",
    "cdktn",
    "jsii",
    "constructs",
    "boto3",
    "botocore",
    "google",
    "httpx",
    "azure",
    "nebius",
    "networkx",
    "fastapi",
    "scipy",
    "pandas",
    "jinja2",
    "rich",
    "sqlalchemy",
    "alembic",
    "jsonschema",
}
PRINT = """
import sys
from planner.cli.entry import call
code = call(sys.argv[1:])
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def modules(folder: Path, *arguments: str) -> set[str]:
    return {line.split(".")[0] for line in imported(folder, *arguments)}


def imported(folder: Path, *arguments: str) -> set[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PRINT, *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["plan", "--help"], ["apply", "--help"], ["explain", "SKY-REJ-205"]]
)
def test_help_imports_neither_numpy_nor_a_cdk_nor_an_sdk(tmp_path: Path, arguments: list[str]) -> None:
    assert not modules(tmp_path, *arguments) & (NEVER | {"numpy", "yaml"})


def test_a_plan_imports_neither_a_cdk_nor_an_sdk_nor_a_database(tmp_path: Path) -> None:
    assert not modules(tmp_path, "plan", str(JOB)) & NEVER


def test_a_plan_of_a_job_file_of_ours_imports_nobody_elses_reader(tmp_path: Path) -> None:
    found = imported(tmp_path, "plan", str(JOB))
    assert "planner.spec.job" in found
    assert not {name for name in found if name.startswith("planner.spec.foreign")}
    task = tmp_path / "task.yaml"
    task.write_text("resources: {accelerators: A100-80GB:8, use_spot: true}\nrun: python train.py\n")
    assert "planner.spec.foreign.skypilot" in imported(tmp_path, "plan", str(task))


def test_a_users_own_stacks_folder_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "__init__.py").write_text("")
    command = [sys.executable, "-c", "from planner.cli.entry import run; run()", "--help"]
    env = {**os.environ, "PYTHONPATH": f".{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "`stacks` would be imported from another folder" in done.stderr
