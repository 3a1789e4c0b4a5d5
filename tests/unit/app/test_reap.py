"""The reaper on fakes: it ends what is over and nothing else, whatever a cloud, another process or a tag says (R27)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from planner.app.apply import Order, apply
from planner.app.lease import held
from planner.app.over import BOOT, GRACE, LINGER, over, past_its_end
from planner.app.ports import Ports
from planner.app.reap import Reaped, reap, warnings
from planner.clouds.fake import FakeLister
from planner.clouds.port import Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import Unavailable
from planner.model.record import NodeStatus, RunStatus, moment, stamp
from planner.model.runtime import NodeSeen, Seat
from planner.state.writer import Writer
from tests import builders as b
from tests.unit.app.world import World


def alive(world: World) -> list[str]:
    return sorted(world.cloud.machines)


def write(world: World, use: Callable[[Writer, Ports], None], job: str = "train") -> None:
    def under_lease(ports: Ports) -> None:
        with held(ports, job, wait_seconds=0) as lease:
            use(ports.record.writer(lease), ports)

    world.live(under_lease)


def move(world: World, status: RunStatus, generation: int = 1, job: str = "train") -> None:
    """As the record does: the status, and an event of the same name."""
    write(world, lambda writer, ports: writer.run_status(generation, status, ports.clock.now(), "told"), job)


def fence(world: World, generation: int = 1) -> None:
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE run SET fenced_at = ? WHERE generation = ?", (stamp(world.at), generation))


def pass_over(world: World, *jobs: str, **given) -> Reaped:
    done, _ = world.live(lambda ports: reap(ports, jobs, **given))
    assert done is not None
    return done


def stranger(world: World, generation: str | None = "9", *, job: str = "train", project: str = "acme") -> str:
    tags = {"skyplan:project": project, "skyplan:job": job, "skyplan:managed": "true"}
    tags |= {} if generation is None else {"skyplan:generation": generation}
    given = {"zone": "us-east-1-a", "instance_type": "p4de.24xlarge", "capacity": "on_demand"}
    return world.cloud.launch("us-east-1", rank="r00", tags=tags, **given)


def test_a_run_that_lives_is_left_alone(world: World) -> None:
    world.apply()
    world.at += timedelta(days=30)
    done = pass_over(world)
    assert (done.ended, done.closed, done.unknown, done.problems) == ((), (), (), ())
    assert len(alive(world)) == 3
    assert world.record.runs("train")[0].status is RunStatus.RUNNING


def test_nodes_of_a_job_that_has_exited_get_a_grace_to_end_themselves_and_are_ended_after_it(world: World) -> None:
    world.apply()
    move(world, RunStatus.EXITED)
    assert pass_over(world).ended == ()
    assert len(alive(world)) == 3
    world.at += GRACE
    done = pass_over(world)
    assert ([m.id for m in done.ended], done.closed) == (["i-0001", "i-0002", "i-0003"], ("train-g1",))
    assert alive(world) == []
    (run,) = world.record.runs("train")
    assert run.status is RunStatus.ENDED
    assert {n.status for n in world.record.nodes("train", 1)} == {NodeStatus.ENDED}
    assert [e.text for e in world.record.events("train") if e.kind == "reaped"] == [
        "ending i-0001, i-0002, i-0003: its job has exited [SKY-RUN-519]"
    ]
    assert pass_over(world).ended == ()


def test_a_job_whose_agents_ended_their_nodes_is_closed_without_ending_anything(world: World) -> None:
    world.apply()
    move(world, RunStatus.EXITED)
    for machine in alive(world):
        world.cloud.reclaim(machine)
    world.at += GRACE
    done = pass_over(world)
    assert (done.ended, done.closed) == ((), ("train-g1",))
    assert world.record.runs("train")[0].status is RunStatus.ENDED


@pytest.mark.parametrize("status", [RunStatus.ENDED, RunStatus.FAILED, RunStatus.LOST])
def test_machines_of_a_run_that_is_over_are_ended_at_once(world: World, status: RunStatus) -> None:
    world.apply()
    move(world, status)
    done = pass_over(world)
    assert len(done.ended) == 3
    assert alive(world) == []
    assert world.record.runs("train")[0].status is status


def test_a_fenced_generation_is_ended_and_its_successor_never(world: World) -> None:
    world.apply()
    old = dict(world.cloud.machines)
    move(world, RunStatus.ENDED)
    world.apply(again=True)
    world.cloud.machines |= old
    move(world, RunStatus.RUNNING)  # the old one beside the new one, as in a move
    nodes = tuple(replace(n, status=NodeStatus.RUNNING) for n in world.record.nodes("train", 1))
    write(world, lambda writer, ports: writer.seen(1, nodes, RunStatus.RUNNING, ports.clock.now(), "there"))
    assert len(alive(world)) == 6
    assert pass_over(world).ended == ()
    fence(world)
    done = pass_over(world)
    assert {(m.generation, m.why) for m in done.ended} == {(1, "a newer generation has taken over")}
    assert alive(world) == ["i-0004", "i-0005", "i-0006"]
    assert [r.status for r in world.record.runs("train")] == [RunStatus.ENDED, RunStatus.RUNNING]


def test_a_machine_that_is_off_and_not_given_back_is_ended_too(world: World) -> None:
    world.apply()
    move(world, RunStatus.EXITED)
    for one, (region, machine) in list(world.cloud.machines.items()):
        world.cloud.machines[one] = (region, replace(machine, state="stopped"))  # Azure: off, not deallocated, billed
    world.at += GRACE
    assert {m.state for m in pass_over(world).ended} == {"stopped"}
    assert alive(world) == []


def test_a_node_that_is_over_and_off_is_ended_though_its_run_goes_on(world: World) -> None:
    world.apply()
    off, on = "i-0002", "i-0001"
    for one in (off,):
        region, machine = world.cloud.machines[one]
        world.cloud.machines[one] = (region, replace(machine, state="stopped"))
    told = stamp(world.at)
    seat = {rank: Seat(job="train", generation=1, rank=rank) for rank in range(3)}
    heard = [NodeSeen(seat=seat[1], at=told, exit_code=1), NodeSeen(seat=seat[0], at=told)]
    assert pass_over(world).ended == ()
    assert pass_over(world, heard=lambda _j, _g: heard).ended == ()  # within its grace
    world.at += GRACE
    done = pass_over(world, heard=lambda _j, _g: heard)
    assert [m.id for m in done.ended] == [off]
    assert on in alive(world)
    assert [n.status for n in world.record.nodes("train", 1)] == [
        NodeStatus.RUNNING,
        NodeStatus.ENDED,
        NodeStatus.RUNNING,
    ]
    assert world.record.runs("train")[0].status is RunStatus.RUNNING


def test_a_node_that_still_reports_after_its_jobs_exit_gets_more_time_and_not_for_ever(world: World) -> None:
    world.apply()
    move(world, RunStatus.EXITED)
    seat = Seat(job="train", generation=1, rank=0)

    def busy(_job, _generation) -> list[NodeSeen]:
        return [NodeSeen(seat=seat, at=stamp(world.at), exit_code=0)]

    world.at += GRACE
    assert pass_over(world, heard=busy).ended == ()
    world.at += LINGER
    assert len(pass_over(world, heard=busy).ended) == 3


def test_a_job_that_failed_on_all_its_nodes_is_over_too(world: World) -> None:
    world.apply()
    heard = [
        NodeSeen(seat=Seat(job="train", generation=1, rank=rank), at=stamp(world.at), exit_code=code)
        for rank, code in enumerate((0, 1, 137))
    ]
    world.at += GRACE
    assert pass_over(world, heard=lambda _j, _g: heard[:2]).ended == ()
    done = pass_over(world, heard=lambda _j, _g: heard)
    assert {m.why for m in done.ended} == {"its job has ended with an error [SKY-RUN-522]"}
    assert world.record.runs("train")[0].status is RunStatus.ENDED


def test_a_run_noted_as_lost_whose_nodes_report_on_is_not_ended(world: World) -> None:
    world.apply()
    move(world, RunStatus.LOST)
    seat = Seat(job="train", generation=1, rank=0)
    later = stamp(world.at + timedelta(seconds=10))
    assert pass_over(world, heard=lambda _j, _g: [NodeSeen(seat=seat, at=later)]).ended == ()
    assert len(alive(world)) == 3
    before = stamp(world.at - timedelta(hours=1))
    assert len(pass_over(world, heard=lambda _j, _g: [NodeSeen(seat=seat, at=before)]).ended) == 3


def test_a_run_noted_as_lost_is_ended_once_it_falls_silent_or_is_past_its_end(world: World) -> None:
    world.apply()
    move(world, RunStatus.LOST)
    seat = Seat(job="train", generation=1, rank=0)
    # what was on its way while it was lost, and nothing after it
    heard = [NodeSeen(seat=seat, at=stamp(world.at + timedelta(seconds=10)))]
    world.at += LINGER
    assert pass_over(world, heard=lambda _j, _g: heard).ended == ()
    world.at += timedelta(seconds=11)
    assert len(pass_over(world, heard=lambda _j, _g: heard).ended) == 3


def test_a_run_noted_as_lost_that_reports_on_has_its_hard_end(world: World) -> None:
    world.apply()
    move(world, RunStatus.LOST)
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("UPDATE run SET stop_after_hours = 24")
    seat = Seat(job="train", generation=1, rank=0)
    for hours, ended in ((23, 0), (25, 3)):
        world.at += timedelta(hours=hours)
        heard = [NodeSeen(seat=seat, at=stamp(world.at))]
        assert len(pass_over(world, heard=lambda _j, _g, told=heard: told).ended) == ended


def test_what_no_record_knows_is_named_and_ended_only_on_request(world: World) -> None:
    world.apply()
    machine = stranger(world)
    done = pass_over(world)
    assert ([m.id for m in done.unknown], done.ended) == ([machine], ())
    (warning,) = warnings(done)
    assert warning.code == "SKY-APPLY-321"
    assert machine in warning.summary
    assert machine in alive(world)
    done = pass_over(world, end_unknown=True)
    assert ([m.id for m in done.ended], done.unknown) == ([machine], ())
    assert len(alive(world)) == 3


def test_a_second_machine_of_a_rank_is_no_node_and_is_named(world: World) -> None:
    world.apply()
    twin = stranger(world, "1")
    assert [(m.id, m.why) for m in pass_over(world).unknown] == [(twin, "it is no node of its run")]
    assert pass_over(world, end_unknown=True).ended[0].id == twin
    assert alive(world) == ["i-0001", "i-0002", "i-0003"]


@pytest.mark.parametrize(
    "tags", [{"generation": None}, {"generation": "one"}, {"generation": "-1"}, {"project": "other"}, {"job": "other"}]
)
def test_nothing_is_touched_whose_tags_do_not_name_project_job_and_generation(world: World, tags: dict) -> None:
    world.apply()
    move(world, RunStatus.ENDED)
    kept = stranger(world, **tags)
    done = pass_over(world, end_unknown=True)
    assert len(done.ended) == 3
    assert alive(world) == [kept]


def test_machines_of_a_job_that_the_record_does_not_know_are_ended_only_by_its_name(world: World) -> None:
    world.apply()
    other = stranger(world, job="other")
    elsewhere = world.cloud.launch(
        "us-west-2",
        rank="r00",
        zone="us-west-2-a",
        instance_type="p4de.24xlarge",
        capacity="spot",
        tags={"skyplan:project": "acme", "skyplan:job": "other", "skyplan:generation": "4"},
    )
    for given in ({}, {"end_unknown": True}):
        done = pass_over(world, **given)
        assert ([m.id for m in done.unknown], done.ended) == ([other], ())
        assert "`skyplan reap other --unknown`" in warnings(done)[0].hint
    assert pass_over(world, "train", end_unknown=True).unknown == ()
    assert pass_over(world, "other").unknown[0].id == other
    done = pass_over(world, "other", end_unknown=True, places=[("aws", "prod", "us-west-2")])
    assert {m.id for m in done.ended} == {other, elsewhere}
    assert alive(world) == ["i-0001", "i-0002", "i-0003"]
    assert [j.name for j in world.record.jobs()] == ["train"], "nothing is written of a job that was never applied"


def test_a_place_is_asked_once_a_pass_while_nothing_is_to_be_ended(world: World) -> None:
    for name in ("train", "b", "c"):
        world.apply(name=name)
    counting = Flaky(world, "nowhere")
    world.live(lambda ports: reap(replace(ports, clouds=counting)))
    assert counting.asked == ["us-east-1"]


def test_a_launch_at_work_is_left_to_who_holds_the_job(world: World) -> None:
    world.apply()
    move(world, RunStatus.ENDED)

    def while_held(ports: Ports) -> Reaped:
        with held(replace(ports, holder="elsewhere pid 1#1"), "train", wait_seconds=0):
            return reap(ports)

    done, _ = world.live(while_held)
    assert (done.busy, done.ended, done.problems) == (("train",), (), ())
    assert len(alive(world)) == 3


def test_half_made_launches_are_not_the_reapers(world: World, tmp_path: Path) -> None:
    plan, work = world.planned()
    steps = World(tmp_path / "whole").count(lambda ports: apply(Order(plan=plan, workload=work, prepare=0), ports))
    world.apply(dies_at=steps - 8)
    assert alive(world)
    assert world.record.runs("train")[-1].status is RunStatus.STARTING
    world.at += timedelta(days=1)
    done = pass_over(world, end_unknown=True)
    assert (done.ended, done.unknown) == ((), ())
    assert alive(world)


@dataclass
class Flaky:
    """A cloud of which one region does not answer; `deaf`: it lists, and refuses to end."""

    world: World
    region: str
    deaf: bool = False
    asked: list[str] = field(default_factory=list)

    def lister(self, where: Where):
        self.asked.append(where.region)
        inner = FakeLister(self.world.cloud, where.region)
        return _Broken(inner, deaf=self.deaf) if where.region == self.region else inner


@dataclass
class _Broken:
    inner: FakeLister
    deaf: bool

    def instances(self, **asked):
        if self.deaf:
            return self.inner.instances(**asked)
        raise Unavailable([Diagnostic(code="SKY-APPLY-326", summary="no answer")])

    def terminate(self, ids: Sequence[str]) -> None:
        raise Unavailable([Diagnostic(code="SKY-APPLY-326", summary="not now")])


@pytest.mark.parametrize("deaf", [False, True])
def test_one_clouds_failure_is_shown_and_stops_no_other(world: World, deaf: bool) -> None:
    world.apply()  # us-east-1
    world.refusals = {"us-east-1-a": ("capacity", "X"), "us-east-1-b": ("capacity", "X")}
    world.apply(name="west")  # us-west-2
    move(world, RunStatus.EXITED)
    move(world, RunStatus.EXITED, 3, "west")
    world.at += GRACE
    done, _ = world.live(lambda ports: reap(replace(ports, clouds=Flaky(world, "us-east-1", deaf))))
    assert next((d.code, d.summary) for d in done.problems) == (
        "SKY-APPLY-326",
        f"aws:prod us-east-1: {'not now' if deaf else 'no answer'}",
    )
    assert {m.job for m in done.ended} == {"west"}
    assert done.closed == ("west-g3",)
    assert world.record.runs("train")[0].status is RunStatus.EXITED, "what was not seen gone is not noted as gone"
    assert len(alive(world)) == 3
    assert pass_over(world).closed == ("train-g1",)


def test_only_the_jobs_that_were_named(world: World) -> None:
    world.apply()
    world.apply(name="other")
    move(world, RunStatus.ENDED)
    move(world, RunStatus.ENDED, 1, "other")
    assert {m.job for m in pass_over(world, "other").ended} == {"other"}
    assert len(alive(world)) == 3


def test_the_hard_end_counts_from_the_launch_and_lets_the_nodes_own_end_come_first(world: World) -> None:
    world.apply()
    (run,) = world.record.runs("train")
    began = moment(run.started_at)
    timed = replace(run, stop_after_hours=2.0)
    assert past_its_end(timed, began + timedelta(hours=2)) == ""
    assert past_its_end(timed, began + timedelta(hours=2) + BOOT) == "past its hard end of 2 h [SKY-RUN-525]"
    paid = replace(run, budget_usd=Decimal(60), usd_per_hour=Decimal(30))
    assert past_its_end(paid, began + timedelta(hours=2)) == ""
    said = "past its budget of $60.00 (2.0 h at $30.00/h) [SKY-RUN-525]"
    assert past_its_end(paid, began + timedelta(hours=2) + BOOT) == said
    assert past_its_end(run, began + timedelta(days=365)) == ""
    assert over(replace(timed, status=RunStatus.STARTING), began + timedelta(days=1)) != ""


def test_an_apply_after_the_job_has_exited_ends_its_nodes_first(world: World) -> None:
    world.apply()
    move(world, RunStatus.EXITED)
    world.log.clear()
    done = world.apply(again=True)
    assert done is not None
    assert (done.run.generation, done.changed) == (2, True)
    assert alive(world) == ["i-0004", "i-0005", "i-0006"]
    assert world.log.index("destroy cmp-train-g1") < world.log.index("apply cmp-train-g2")
    assert [r.status for r in world.record.runs("train")] == [RunStatus.ENDED, RunStatus.RUNNING]


def test_a_launch_notes_the_jobs_hard_ends_and_the_reaper_keeps_them(world: World) -> None:
    plan, work = world.planned()
    bound = replace(work, constraints=b.limits(stop_after_hours=3.0, max_usd_total=1000.0))
    world.live(lambda ports: apply(Order(plan=plan, workload=bound, prepare=0), ports))
    (run,) = world.record.runs("train")
    assert (run.stop_after_hours, run.budget_usd) == (3.0, Decimal(1000))
    world.at += timedelta(hours=3)
    assert pass_over(world).ended == ()
    world.at += BOOT
    done = pass_over(world)
    assert {m.why for m in done.ended} == {"past its hard end of 3 h [SKY-RUN-525]"}
    assert done.closed == ("train-g1",)
    assert alive(world) == []
    assert world.apply(again=True).run.id == "train-g2"
