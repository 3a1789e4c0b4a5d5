"""What is shown of a job, and how it is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from planner.app import watching, watching_json
from planner.app.sync import sync
from planner.app.watching import Move, cost, lowest_rank, rate_of, rates_between
from planner.model.record import Node, NodeStatus, RunStatus, stamp
from planner.model.runtime import Candidate, Checkpoint, Cut, NodeSeen, Progress, Seat
from tests.contract.beds import RUN as A_RUN
from tests.unit.app.test_reap import move
from tests.unit.app.world import World

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUN = replace(A_RUN, generation=1, usd_per_hour=Decimal(60), status=RunStatus.RUNNING, started_at=stamp(T0))


def at(hours: float) -> datetime:
    return T0 + timedelta(hours=hours)


def node(rank: int, status: NodeStatus = NodeStatus.RUNNING, hours: float = 0.1) -> Node:
    return Node(rank=rank, instance_id=f"i-{rank}", address="", status=status, at=stamp(at(hours)))


def told(step: int, seconds: float, *, generation: int = 1, rank: int = 0, rate: float | None = None) -> Progress:
    seat = Seat(job="train", generation=generation, rank=rank)
    return Progress(seat=seat, step=step, at=stamp(T0 + timedelta(seconds=seconds)), rate=rate)


@pytest.mark.parametrize(
    ("run", "nodes", "now", "usd", "counting"),
    [
        ({}, [node(0), node(1)], 2, "120.0000", True),
        ({}, [node(0), node(1, NodeStatus.LOST, 1.0)], 2, "90.0000", True),
        ({"status": RunStatus.LOST}, [node(0, NodeStatus.LOST, 1), node(1, NodeStatus.LOST, 1)], 9, "60.0000", False),
        ({"status": RunStatus.ENDED, "ended_at": stamp(at(3))}, [node(0), node(1)], 9, "180.0000", False),
        ({"status": RunStatus.ENDED, "ended_at": stamp(at(3))}, [node(0, NodeStatus.ENDED, 2)], 9, "60.0000", False),
        ({"status": RunStatus.EXITED}, [node(0), node(1)], 2, "120.0000", True),
        ({}, [node(0)], -1, "0.0000", True),
    ],
)
def test_cost_counts_each_node_from_the_launch_to_its_end(run, nodes, now, usd, counting) -> None:
    found = cost([replace(RUN, **run)], {1: nodes}, at(now))
    assert [str(line.usd) for line in found.lines] == [usd]
    assert found.usd == Decimal(usd)
    assert found.lines[0].counting is counting


def test_cost_is_the_sum_of_its_lines_and_says_what_it_leaves_out() -> None:
    second = replace(RUN, generation=2, started_at=stamp(at(3)), usd_per_hour=Decimal("0.3333"), nodes=3)
    refused = replace(RUN, generation=3, status=RunStatus.FAILED)
    ended = replace(RUN, status=RunStatus.ENDED, ended_at=stamp(at(1)))
    found = cost([ended, second, refused], {1: [node(0), node(1)], 2: [node(k) for k in range(3)], 3: []}, at(4))
    assert [line.run for line in found.lines] == ["train-g1", "train-g2"], "a refused launch had no nodes"
    assert found.usd == sum(line.usd for line in found.lines) == Decimal("60.3333")
    assert "egress" in found.left_out


def test_of_each_run_the_lowest_rank_that_tells_is_shown() -> None:
    series = [told(5, 3, generation=2, rank=1), told(1, 0), told(1, 0, rank=3), told(4, 2, generation=2, rank=1)]
    assert [(p.seat.generation, p.seat.rank, p.step) for p in lowest_rank(series)] == [(1, 0, 1), (2, 1, 4), (2, 1, 5)]


def test_the_rate_is_the_jobs_own_else_reckoned_within_one_run() -> None:
    assert rate_of(()) is None
    assert rate_of([told(0, 0, rate=1.0), told(9, 9, rate=5.5)]) == 5.5
    assert rate_of([told(50, 100), told(60, 103), told(70, 110)]) == 2.0
    assert rate_of([told(50, 100)]) is None, "one point has no rate"
    assert rate_of([told(50, 100), told(70, 100)]) is None, "no time has passed"
    series = [told(0, 0), told(100, 10), told(50, 100, generation=2), told(70, 110, generation=2)]
    assert [rate for _, rate in rates_between(series)] == [10.0, 2.0]
    assert rates_between([told(5, 0), told(5, 0), told(3, 9)]) == [], "no time, or steps taken back"


def test_a_move_tells_steps_done_twice_only_where_both_ends_are_known() -> None:
    one = Move(before=RUN, after=replace(RUN, generation=2), last_step=900, resumed_step=800, known=True)
    assert (one.repeated_steps, one.elsewhere) == (100, False)
    assert replace(one, resumed_step=None).repeated_steps == 900, "from the beginning"
    assert replace(one, known=False, resumed_step=None).repeated_steps is None
    assert replace(one, last_step=None).repeated_steps is None
    assert replace(one, after=replace(RUN, generation=2, offer_id="gcp:x/y/z/a3/spot")).elsewhere


class Nothing:
    """Nodes without agents."""

    def progress(self, job: str, *, generation: int | None = None, limit: int = 2000) -> tuple[Progress, ...]:
        return ()

    def recent(self, job: str, *, generation: int | None = None, limit: int = 20) -> tuple[Progress, ...]:
        return ()

    def checkpoints(self, job: str, *, limit: int = 200) -> tuple[Checkpoint, ...]:
        return ()

    def seen(self, job: str, generation: int) -> tuple[NodeSeen, ...]:
        return ()

    def cut(self, job: str, generation: int) -> Cut | None:
        return None


class Something(Nothing):
    """The second run went on from step 800 of the first."""

    def progress(self, job, *, generation=None, limit=2000):
        return (told(900, 9),) if generation in (None, 1) else ()

    def recent(self, job, *, generation=None, limit=20):
        return (told(900, 9),) if generation in (None, 1) else ()

    def checkpoints(self, job, *, limit=200):
        made = [(800, 8), (700, 7), (750, 9)]
        return tuple(
            Checkpoint(job=job, generation=1, step=s, uri="u", digest="d", mac="m", bytes=1, at=stamp(at(h)))
            for s, h in made
        )

    def seen(self, job, generation):
        seats = [Seat(job=job, generation=generation, rank=rank) for rank in (0, 1)]
        return (NodeSeen(seat=seats[0], at=stamp(at(1))), NodeSeen(seat=seats[1], at=stamp(at(2))))

    def cut(self, job, generation):
        seat = Seat(job=job, generation=generation, rank=0)
        chosen = Candidate(generation=1, step=800, uri="u", digest="d", mac="m")
        return Cut(seat=seat, at="", chosen=chosen)


def test_a_job_without_agents_has_a_view_too(world: World) -> None:
    world.apply()
    (found,) = watching.view(world.record, Nothing(), (), world.at)
    assert (found.job, found.newest, found.rate, found.heard_seconds, found.moves) == ("train", None, None, None, ())
    document = watching_json.document(found)
    assert document.run_id == document.placements[0].run == "train-g1"
    assert (document.step, document.checkpoints) == (None, [])
    assert [n.heard_at for n in document.nodes] == [None] * 3
    assert watching.view(world.record, Nothing(), ["nobody"], world.at) == ()


def test_a_view_puts_record_and_nodes_together(world: World) -> None:
    world.apply()
    move(world, RunStatus.ENDED)
    world.refusals = {"us-east-1-a": ("capacity", "X")}
    world.apply(again=True)  # g2 refused, g3 runs elsewhere
    (found,) = watching.view(world.record, Something(), ["train"], at(2.5))
    (one,) = found.moves
    assert (one.before.id, one.after.id, one.last_step, one.resumed_step) == ("train-g1", "train-g3", 900, 800)
    assert one.elsewhere
    assert [c.step for c in found.checkpoints] == [750, 800, 700], "the newest first"
    assert found.heard_seconds == 1800.0
    assert found.seen_of(1) is not None
    assert found.seen_of(7) is None


def test_nodes_that_ended_themselves_after_the_exit_are_not_lost(world: World) -> None:
    world.apply()
    move(world, RunStatus.EXITED)
    world.cloud.reclaim("i-0002")
    done, _ = world.live(lambda ports: sync("train", ports))
    assert (done.lost, done.warnings) == ((), ())
    assert world.record.runs("train")[0].status is RunStatus.EXITED
    for left in list(world.cloud.machines):
        world.cloud.reclaim(left)
    world.live(lambda ports: sync("train", ports))
    assert world.record.runs("train")[0].status is RunStatus.ENDED
    assert {n.status for n in world.record.nodes("train", 1)} == {NodeStatus.ENDED}
