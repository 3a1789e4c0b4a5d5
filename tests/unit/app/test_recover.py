"""Recovery where a machine is not all there is to a node, and of stacks whose names are unique."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.app.apply import Order, apply
from planner.app.sync import sync
from planner.model.record import RunStatus
from tests.unit.app.world import FakeTerraform, World, planned

ACCESS = "acc-train--aws-prod-us-east-1"


@pytest.fixture
def nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Azure and Nebius."""
    for where in ("recover", "sync"):
        monkeypatch.setattr(f"planner.app.{where}.IMPORTED", frozenset())


def steps_of_apply(folder: Path) -> int:
    world = World(folder)
    plan, work = planned()
    steps = world.count(lambda ports: apply(Order(plan=plan, workload=work, prepare=0), ports))
    world.close()
    return steps


@pytest.mark.usefixtures("nothing_is_imported")
def test_what_no_state_knows_is_ended_and_launched_anew(tmp_path: Path) -> None:
    anew = 0
    for n in range(steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        world.apply(n)
        lost = set(world.cloud.machines) - set(world.states.get("cmp-train-g1", {}).values())
        sync_changes_nothing(world)
        done = world.apply()
        assert done is not None
        assert {i.instance_id for i in done.nodes} == set(world.cloud.machines)
        assert len(done.nodes) == 3
        assert not lost & set(world.cloud.machines)
        assert not any(line.startswith("import") for line in world.log)
        anew += bool(lost)
        world.close()
    assert anew


def sync_changes_nothing(world: World) -> None:
    if world.record.job("train") is not None:
        before = dict(world.cloud.machines)
        world.live(lambda ports: sync("train", ports))
        assert world.cloud.machines == before


def taken_in(self: FakeTerraform, stack, error) -> bool:
    return self.refusals.pop(stack.name, None) is not None


def test_a_name_that_is_taken_after_a_crash_is_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTerraform, "take_existing", taken_in)
    for n in range(steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        world.apply(n)
        if world.states.get(ACCESS) == {}:
            break
        world.close()
    assert world.log[-1] == f"apply {ACCESS}"
    world.refusals = {ACCESS: ("unknown", "alreadyExists")}
    done = world.apply()
    assert done is not None
    assert (done.run.region, done.run.status) == ("us-east-1", RunStatus.RUNNING)
    assert not world.refusals
    world.close()


def test_without_a_crash_it_is_somebody_elses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTerraform, "take_existing", taken_in)
    world.refusals = {ACCESS: ("unknown", "alreadyExists")}
    done = world.apply()
    assert done is not None
    assert done.run.region == "us-west-2"
    assert ACCESS in world.refusals
