"""The orchestrator of a move killed by SIGKILL after each step and inside it, on a stub cloud with real Terraform: the next one comes to the same end.

One moment is always run, the rest in the long run.  Machines are counted in the stub's own log, never in a state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.model.migration import MigrationStatus
from planner.model.record import RunStatus
from tests.e2e.moving_stub import Bed, prepare
from tests.emulators import terraform as terraform_on_this_machine
from tests.emulators.stub_cloud import MACHINES
from tests.unit.app.moving import JOB

pytestmark = pytest.mark.terraform
WRITTEN = [s.value for s in MigrationStatus if s not in {MigrationStatus.PROPOSED, MigrationStatus.REVERTED}]
ALWAYS = {"before saved"}
MOMENTS = [f"{moment} {status}" for status in WRITTEN for moment in ("before", "after")]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory, terraform_home: Path) -> Path:
    if reason := terraform_on_this_machine.missing(aws=False):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("standing") / "job"
    prepare(folder, terraform_home / "stub-move")
    return folder


@pytest.fixture
def bed(tmp_path: Path, standing: Path, terraform_home: Path) -> Iterator[Bed]:
    made = Bed(tmp_path / "job", terraform_home / "stub-move", standing)
    yield made
    made.close()


def until(what: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def moved(bed: Bed) -> None:
    """One machine there, of the run that the record has; nothing here; it went on from the newest checkpoint."""
    done = bed.move()
    said, _ = done.communicate(timeout=120)
    assert (done.returncode, said.split()) == (0, ["retired"]), said
    (run,) = [r for r in bed.record.runs(JOB) if r.status is RunStatus.RUNNING]
    assert run.region == "us-west-2"
    assert list(bed.machines().values()) == [str(run.generation)]
    assert {n.instance_id for n in bed.record.nodes(JOB, run.generation)} == set(bed.machines())
    assert [s.name for s in bed.record.stacks(JOB) if s.kind == "compute"] == [f"cmp-{run.id}"]
    assert bed.cloud.created(MACHINES["aws"]) == 2, "nothing was launched twice"
    assert bed.nodes.cuts[run.generation] == max(c.step for c in bed.nodes.store if c.generation == 1)
    assert not bed.record.unfinished(JOB)


@pytest.mark.parametrize("dies", [pytest.param(m, marks=() if m in ALWAYS else pytest.mark.full) for m in MOMENTS])
def test_killed_at_each_step_the_next_finishes_it(bed: Bed, dies: str) -> None:
    until(lambda: bed.nodes.step.get(1, 0) >= 5)
    moving = bed.move(dies)
    assert moving.wait(120) == -9, moving.communicate()[0]
    moving.communicate()
    assert bed.machines(), "there is always somebody"
    moved(bed)


@pytest.mark.full  # tests/e2e/test_migrate.py does it with AWS' own provider
def test_killed_while_the_clouds_reply_to_the_launch_is_out(bed: Bed, tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.mkdir()
    until(lambda: bed.nodes.step.get(1, 0) >= 5)
    moving = bed.move(STUB_HOLD=f"aws_instance:{hold}")
    until(lambda: list(hold.glob("*.held")) or moving.poll() is not None, 120)
    bed.killed(moving)
    assert sorted(bed.machines().values()) == ["1", "2"]
    moved(bed)


@pytest.mark.full
def test_killed_while_the_old_machine_is_destroyed(bed: Bed) -> None:
    moving = bed.move()
    until(lambda: "1" not in bed.machines().values(), 120)
    bed.killed(moving)
    moved(bed)
