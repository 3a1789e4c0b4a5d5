"""What a pipeline of the user's own cannot do with a job in several clouds, and what it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from planner.app.files import write_plans
from tests.unit.app.split import planned

ROOT = Path(__file__).parents[3]
RUN = [sys.executable, "-c", "from planner.cli.entry import run; run()"]


def skyplan(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*RUN, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_synth_of_a_job_in_several_clouds_is_refused_in_words(tmp_path: Path) -> None:
    """Its stacks name endpoints that are not reserved yet."""
    write_plans([planned()[0]], tmp_path / "plans")
    done = skyplan(tmp_path, "synth", "plans/train.plan.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "SKY-SPEC-113" in done.stderr
    assert "`train` lies in several clouds" in done.stderr
    assert "use `skyplan apply`" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "cdktf.out").exists()


def test_among_other_plans_it_is_passed_over_and_named(tmp_path: Path) -> None:
    """`cdktf synth` calls this for a whole folder: one job must not keep the others from their stacks."""
    write_plans([planned()[0]], tmp_path / "plans")
    done = skyplan(tmp_path, "synth")
    assert done.returncode == 0, done.stderr
    assert "train: passed over" in done.stderr
