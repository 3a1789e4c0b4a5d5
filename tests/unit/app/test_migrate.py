"""A move, carried out: what is there at its end, what is refused before it begins, and what turns it back (R16, R25)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.app.migrate import Migrated
from planner.app.reap import reap
from planner.app.status import document, move_line, status
from planner.app.sync import sync
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError, StalePlan, TerraformError
from planner.model.migration import MigrationDiff, MigrationReason, MigrationStatus
from planner.model.record import NodeStatus, RunStatus, Stack
from planner.model.runtime import Seat
from tests.unit.app.moving import JOB, MoveWorld
from tests.unit.app.world import FakeTerraform

OLD = Seat(job=JOB, generation=1, rank=0)
CAPACITY = ("capacity", "InsufficientInstanceCapacity")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[MoveWorld]:
    made = MoveWorld(tmp_path / "world")
    yield made
    made.close()


def done(world: MoveWorld, diff: MigrationDiff | None = None) -> Migrated:
    found = world.migrate(diff or world.diff())
    assert found is not None
    return found


def runs(world: MoveWorld) -> dict[int, RunStatus]:
    return {r.generation: r.status for r in world.record.runs(JOB)}


def test_it_moves_and_loses_no_step_that_was_saved(world: MoveWorld) -> None:
    before = world.nodes.step[1]
    found = done(world)
    assert (found.status, found.problems, found.changed) == (MigrationStatus.RETIRED, (), True)
    assert runs(world) == {1: RunStatus.ENDED, 2: RunStatus.RUNNING}
    assert world.generations() == {2: 2}
    assert found.run is not None
    assert found.run.region == "us-west-2"
    assert world.nodes.cuts[2] >= before
    saved = [c.step for c in world.nodes.store if c.generation == 1]
    assert world.nodes.cuts[2] == max(saved)
    told = [e.text for e in world.record.events(JOB) if e.kind == "migration"]
    assert [text.split(": ")[1] for text in told] == [
        "proposed",
        "launched",
        "saved",
        "cut_over",
        "verified",
        "retired",
    ]
    assert [s.name for s in world.record.stacks(JOB) if s.kind == "compute"] == ["cmp-train-g2"]


def test_network_and_access_stacks_are_not_touched(world: MoveWorld) -> None:
    count = len(world.log)
    done(world)
    assert {line.split()[1][:4] for line in world.log[count:]} == {"cmp-"}


class OrchestratorsTerraform(FakeTerraform):
    """As the generated orchestrator policy has it: of the states, those of compute stacks alone."""

    def prepare(self, stack: Stack) -> None:
        if not stack.name.startswith("cmp-"):
            raise TerraformError([Diagnostic(code="SKY-APPLY-317", summary=f"permission AccessDenied {stack.name}")])
        super().prepare(stack)

    def outputs(self, stack: Stack) -> dict[str, Any]:
        self.prepare(stack)
        return super().outputs(stack)


def test_a_move_needs_no_state_of_network_and_access(world: MoveWorld) -> None:
    world.tool = OrchestratorsTerraform
    assert done(world).status is MigrationStatus.RETIRED
    assert world.generations() == {2: 2}


def test_what_was_applied_before_the_record_kept_outputs_is_read_from_its_state(world: MoveWorld) -> None:
    with sqlite3.connect(world.path) as database:
        database.execute("UPDATE stack SET outputs = NULL")
    database.close()
    assert done(world).status is MigrationStatus.RETIRED


def test_the_same_diff_again_is_done_already(world: MoveWorld) -> None:
    diff = world.diff()
    done(world, diff)
    again = done(world, diff)
    assert (again.status, again.changed) == (MigrationStatus.RETIRED, False)
    resumed = world.migrate(None)
    assert resumed is not None
    assert (resumed.status, resumed.changed) == (MigrationStatus.RETIRED, False)


def test_nothing_is_retired_before_the_new_nodes_make_progress(world: MoveWorld) -> None:
    world.nodes.silent.add(2)
    found = done(world)
    assert found.status is MigrationStatus.CUT_OVER
    assert [d.code for d in found.problems] == ["SKY-MOVE-421"]
    assert world.generations() == {1: 2, 2: 2}
    reaped = world.live(reap)[0]
    assert not reaped.ended
    assert world.generations() == {1: 2, 2: 2}
    world.nodes.silent.clear()
    went_on = world.migrate(None)
    assert went_on is not None
    assert went_on.status is MigrationStatus.RETIRED
    assert world.generations() == {2: 2}


def test_an_old_run_that_saves_nothing_keeps_its_nodes(world: MoveWorld) -> None:
    world.nodes.saves = False
    found = done(world)
    assert [d.code for d in found.problems] == ["SKY-MOVE-425"]
    assert found.status is MigrationStatus.REVERTED
    assert runs(world) == {1: RunStatus.RUNNING, 2: RunStatus.FAILED}
    assert world.generations() == {1: 2}
    assert {n.status for n in world.record.nodes(JOB, 2)} == {NodeStatus.ENDED}
    step = world.nodes.step[1]
    world.works(3)
    assert world.nodes.step[1] == step + 3
    world.nodes.saves = True
    assert done(world).status is MigrationStatus.RETIRED, "and the same diff may be tried again"


def test_it_fails_over_through_the_places_of_the_diff(world: MoveWorld) -> None:
    world.refusals, world.refuse_after = {"us-west-2-a": CAPACITY}, 1
    count, first = len(world.log), world.diff().to[0].pool
    found = done(world)
    assert found.run is not None
    assert (found.status, found.run.zone, found.run.generation) == (MigrationStatus.RETIRED, "us-west-2-b", 3)
    assert world.generations() == {3: 2}
    (failure,) = world.record.memory().failures
    assert (failure.scope, failure.code) == (first, CAPACITY[1])
    assert not [line for line in world.log[count:] if " cmp-" not in line]


def test_without_capacity_anywhere_nothing_has_changed(world: MoveWorld) -> None:
    world.refusals = {"us-west-2-a": CAPACITY, "us-west-2-b": CAPACITY}
    found = done(world)
    assert found.status is MigrationStatus.REVERTED
    assert [d.code for d in found.problems] == ["SKY-MOVE-420", "SKY-APPLY-310", "SKY-APPLY-310"]
    assert world.generations() == {1: 2}
    assert runs(world) == {1: RunStatus.RUNNING, 2: RunStatus.FAILED, 3: RunStatus.FAILED}


def test_a_place_that_is_not_prepared_is_not_gone_to(tmp_path: Path) -> None:
    world = MoveWorld(tmp_path / "w", prepare=0)
    with pytest.raises(StalePlan) as refused:
        world.migrate(world.diff())
    assert {d.code for d in refused.value.diagnostics} == {"SKY-MOVE-408"}
    assert world.record.moves(JOB) == ()
    world.close()


def test_lost_nodes_are_placed_again_without_asking_anybody(world: MoveWorld) -> None:
    for one in list(world.cloud.machines):
        world.cloud.machines.pop(one)
    world.live(lambda ports: sync(JOB, ports))
    assert runs(world) == {1: RunStatus.LOST}
    found = done(world, world.diff(MigrationReason.RECOVERY))
    assert found.status is MigrationStatus.RETIRED
    assert world.nodes.cuts[2] == max(c.step for c in world.nodes.store if c.generation == 1)
    assert world.generations() == {2: 2}
    assert not world.runtime.requests(OLD)


def test_a_notice_asks_for_the_checkpoint_first_and_waits_no_longer_than_it(world: MoveWorld) -> None:
    world.nodes.saves = False
    until = world.at + timedelta(seconds=30)
    world.nodes.notice(1, until)
    found = done(world, world.diff(MigrationReason.INTERRUPTION))
    assert found.status is MigrationStatus.RETIRED
    (asked,) = world.runtime.requests(OLD)
    assert asked.deadline
    texts = {e.text.split(": ")[1]: e.at for e in world.record.events(JOB) if e.kind == "migration"}
    assert asked.at < texts["launched"]
    assert abs((until - world.at).total_seconds()) < 30
    assert world.generations() == {2: 2}


def test_nodes_that_are_lost_while_it_waits_make_it_a_recovery(world: MoveWorld) -> None:
    world.nodes.saves = False
    for one, (_, machine) in list(world.cloud.machines.items()):
        if machine.tags["skyplan:generation"] == "1":
            world.cloud.machines.pop(one)
    found = done(world)
    assert found.status is MigrationStatus.RETIRED
    assert world.generations() == {2: 2}


def test_a_job_that_ends_while_it_moves_needs_no_move(world: MoveWorld) -> None:
    world.half_way()
    world.nodes.ends(1)
    found = world.migrate(None)
    assert found is not None
    assert found.status is MigrationStatus.REVERTED
    assert [d.code for d in found.problems] == ["SKY-MOVE-420"]
    assert runs(world) == {1: RunStatus.ENDED, 2: RunStatus.FAILED}
    assert world.generations() == {}, "nobody needs the old nodes either"
    assert 2 not in world.nodes.step, "a job that has ended is not begun again"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"plan_digest": "sha256:other"}, "SKY-MOVE-422"),
        ({"project": "other"}, "SKY-MOVE-422"),
        ({"reason": MigrationReason.RECOVERY}, "SKY-MOVE-422"),
        ({"to": ()}, "SKY-MOVE-423"),
    ],
)
def test_a_diff_that_does_not_fit_is_refused_before_anything_is_begun(
    world: MoveWorld, changes: dict, code: str
) -> None:
    with pytest.raises(StalePlan) as refused:
        world.migrate(world.diff(**changes))
    assert [d.code for d in refused.value.diagnostics] == [code]
    assert world.record.moves(JOB) == ()
    assert world.generations() == {1: 2}


def test_a_diff_of_an_earlier_generation_is_stale(world: MoveWorld) -> None:
    old = world.diff()
    world.nodes.saves = True
    done(world)
    with pytest.raises(StalePlan, match="record has train-g2"):
        world.migrate(world.diff(standing=old.standing, text="another"))


def test_two_runs_side_by_side_confuse_nobody(world: MoveWorld) -> None:
    world.half_way()
    with pytest.raises(StalePlan) as refused:
        world.apply(nodes=2)
    assert [d.code for d in refused.value.diagnostics] == ["SKY-MOVE-419"]
    synced = world.live(lambda ports: sync(JOB, ports))[0]
    assert (synced.lost, synced.strangers) == ((), ())
    reaped = world.live(lambda ports: reap(ports, heard=world.runtime.seen))[0]
    assert (reaped.ended, reaped.unknown, reaped.closed) == ((), (), ())
    (shown,) = status(world.record)
    assert shown.run is not None
    assert shown.run.generation == 1, "what computes is shown"
    assert sorted(h.nodes for h in world.record.holdings()) == [2, 2]
    assert world.generations() == {1: 2, 2: 2}


def test_another_diff_waits_for_the_move_under_way(world: MoveWorld) -> None:
    world.half_way()
    with pytest.raises(StalePlan) as refused:
        world.migrate(world.diff(text="another"))
    assert [d.code for d in refused.value.diagnostics] == ["SKY-MOVE-419"]


def test_it_is_given_up_on_request_until_the_cut(world: MoveWorld) -> None:
    world.half_way()
    found = world.migrate(None, revert=True)
    assert found is not None
    assert (found.status, found.problems) == (MigrationStatus.REVERTED, ())
    assert world.generations() == {1: 2}
    assert runs(world) == {1: RunStatus.RUNNING, 2: RunStatus.FAILED}
    with pytest.raises(InputError, match="no move"):
        world.migrate(world.diff(text="another"), revert=True)


def test_after_the_cut_there_is_no_way_back(world: MoveWorld) -> None:
    world.nodes.silent.add(2)
    done(world)
    found = world.migrate(None, revert=True)
    assert found is not None
    assert found.status is MigrationStatus.CUT_OVER
    assert [d.code for d in found.problems] == ["SKY-MOVE-420", "SKY-MOVE-421"]
    assert world.generations() == {1: 2, 2: 2}


def test_destroy_ends_both_and_the_move(world: MoveWorld) -> None:
    world.half_way()
    world.destroy()
    assert world.generations() == {}
    assert world.record.open_move(JOB) is None
    assert not world.record.stacks()
    assert not world.record.holdings()


def test_new_nodes_that_are_lost_after_the_cut_close_the_move(world: MoveWorld) -> None:
    world.nodes.silent.add(2)
    done(world)
    for one, (_, machine) in list(world.cloud.machines.items()):
        if machine.tags["skyplan:generation"] == "2":
            world.cloud.machines.pop(one)
    found = world.migrate(None)
    assert found is not None
    assert [d.code for d in found.problems] == ["SKY-MOVE-421"]
    assert found.status is MigrationStatus.RETIRED
    assert runs(world) == {1: RunStatus.ENDED, 2: RunStatus.LOST}
    world.nodes.silent.clear()
    again = done(world, world.diff(MigrationReason.RECOVERY))
    assert again.status is MigrationStatus.RETIRED
    assert world.generations() == {3: 2}


def test_new_nodes_that_are_lost_before_the_cut_turn_it_back(world: MoveWorld) -> None:
    world.half_way()
    for one, (_, machine) in list(world.cloud.machines.items()):
        if machine.tags["skyplan:generation"] == "2":
            world.cloud.machines.pop(one)
    found = world.migrate(None)
    assert found is not None
    assert (found.status, [d.code for d in found.problems]) == (MigrationStatus.REVERTED, ["SKY-MOVE-420"])
    assert world.generations() == {1: 2}
    assert runs(world)[1] is RunStatus.RUNNING


def test_a_place_whose_price_moved_is_not_gone_to(world: MoveWorld) -> None:
    diff = world.diff()
    first, second = (p.offer_id for p in diff.to)
    with pytest.raises(StalePlan) as refused:
        world.migrate(diff, barred={first: "dearer", second: "dearer"})
    assert [d.code for d in refused.value.diagnostics] == ["SKY-MOVE-422", "SKY-MOVE-422"]
    found = world.migrate(diff, barred={first: "dearer"})
    assert found is not None
    assert found.run is not None
    assert found.run.offer_id == second


def test_a_move_under_way_is_shown_with_its_step(world: MoveWorld) -> None:
    (before,) = status(world.record)
    assert document(before)["move"] is None
    world.half_way()
    (shown,) = status(world.record)
    assert shown.move is not None
    line = move_line(shown.move)
    assert line.startswith("train: move 1 (saving) from train-g1 to train-g2: launched: the new nodes hold"), line
    said = document(shown)["move"]
    assert (said["status"], said["from_generation"], said["to_generation"]) == ("launched", 1, 2)
    assert 10 <= said["asked_at_step"] <= world.nodes.step[1]
    assert "plan" not in json.dumps(said)
    world.nodes.saves = True
    world.migrate(None)
    (after,) = status(world.record)
    assert after.move is None
