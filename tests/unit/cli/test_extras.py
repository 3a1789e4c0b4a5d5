"""With what the first command of the README installs, every command either works or says which extra it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from planner.cli.extras import EXTRA_OF, missing_part

ROOT = Path(__file__).parents[3]
#: hides every package that no plain install brings, as if it were not there
BARE = """
import sys
from planner.cli.extras import EXTRA_OF

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA_OF:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from planner.cli.entry import call
sys.exit(call(sys.argv[1:]))
"""
NEEDY = [
    ["status"],
    ["status", "--json"],
    ["logs", "sft"],
    ["events", "sft"],
    ["sync"],
    ["reap", "--once"],
    ["serve", "--settings", "server.yaml"],
    ["broker", "--settings", "broker.yaml", "--plans", "."],
    ["rendezvous", "--listen", "127.0.0.1:0", "--peers", "peers.json", "--secret-file", "secret"],
    ["state", "export", "out.json"],
    ["state", "import", "in.json"],
    ["state", "backup", "copy.sqlite"],
    ["replan"],
    ["watch", "--once"],
    ["migrate", "move.diff.json"],
    ["migrate", "--job", "sft"],
    ["apply", "sft.plan.json"],
    ["destroy", "sft"],
    ["agent", "token", "sft", "--rank", "0"],
    ["prices", "refresh"],
    ["prices", "import", "prices.csv"],
    ["prices", "history", "H100:8"],
    ["prices", "chart", "H100:8"],
    ["prices", "compact", "--keep-days", "1"],
    ["prices", "snapshot", "market.json"],
    ["audit", "--live"],
    ["synth", "sft.plan.json"],
    ["replay", "trace.csv"],
    ["diff", "a", "b"],
]


@pytest.mark.parametrize("arguments", NEEDY, ids=" ".join)
def test_no_command_ends_in_a_traceback_for_want_of_an_extra(tmp_path: Path, arguments: list[str]) -> None:
    for name in ("sft.plan.json", "move.diff.json", "in.json", "peers.json"):
        (tmp_path / name).write_text("{}")
    for name in ("server.yaml", "broker.yaml", "secret", "prices.csv", "trace.csv"):
        (tmp_path / name).write_text("")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SKYPLAN_AUTO_APPROVE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", BARE, *arguments],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    assert done.returncode == 1, said
    assert "error" in said.lower()


@pytest.mark.parametrize(
    "arguments",
    [["status"], ["logs", "sft"], ["sync"], ["destroy", "sft"], ["prices", "history", "H100:8"], ["replan"]],
)
def test_what_needs_the_record_names_its_extra(tmp_path: Path, arguments: list[str]) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", BARE, *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "SKY-APPLY-316" in done.stderr
    assert "'.[record]'" in done.stderr


def test_every_extra_that_is_named_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRA_OF.values()) <= set(extras)


def test_an_import_that_no_extra_brings_stays_a_bug() -> None:
    assert missing_part(ModuleNotFoundError("No module named 'planner.nowhere'", name="planner.nowhere")) is None
    found = missing_part(ModuleNotFoundError("No module named 'sqlalchemy.orm'", name="sqlalchemy.orm"))
    assert found is not None
    assert "'.[record]'" in found.diagnostics[0].summary
