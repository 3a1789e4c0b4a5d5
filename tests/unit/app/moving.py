"""A job that moves, without cloud or node: `World`, a record that real `Runtime` calls read and write, and nodes that work while the orchestrator sleeps.

The nodes outlive every process of the orchestrator.  A run's nodes make a step per tick while its machines are there and nobody has fenced it, save where they are
asked, and begin as the agent does: they ask for their cut until they are let.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from planner.app import inputs
from planner.app.migrate import Migrated, Order, Waits, migrate
from planner.app.plan import Request, run_on
from planner.app.ports import Ports
from planner.migration.steps import steps_of
from planner.model.migration import REASON_CODES, MigrationDiff, MigrationReason, MigrationStatus, Standing
from planner.model.plan import PlacementPlan
from planner.model.record import RunStatus, stamp
from planner.model.runtime import (
    Candidate,
    Item,
    Kind,
    Refusal,
    Refused,
    Report,
    Seat,
    checkpoint_mac,
    checkpoint_message,
)
from planner.model.workload import Workload
from planner.state.engine import sqlite_url
from planner.state.runtime import Runtime
from tests import builders as b
from tests.unit.app.world import (
    NOW,
    PROJECT,
    FakeClock,
    FakeTerraform,
    Killed,
    Life,
    SteppedClouds,
    World,
    fake_synth,
    small_market,
)

JOB = "train"


@cache
def planned(name: str = JOB, nodes: int = 2, priority: int = 0) -> tuple[PlacementPlan, Workload]:
    work = b.workload(name, resources={"nodes": nodes}, checkpoint=b.checkpoints(), priority=priority)
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    read = inputs.Inputs(jobs=(job,), project=PROJECT, project_file="skyplan.yaml", market=small_market(), warnings=())
    plan = run_on(read, Request(job_files=(), offline=True), NOW).planned[0].plan
    assert [p.region for p in plan.ranked] == ["us-east-1", "us-east-1", "us-west-2", "us-west-2"]
    return plan, work


@dataclass
class Nodes:
    """What runs on the machines.  `store` is the object store.

    saves   whether they do when they are asked
    silent  generations that make no step
    fatal   status of a move in which waiting for the nodes kills the process
    """

    world: MoveWorld
    runtime: Runtime

    def __post_init__(self) -> None:
        self.store: list[Candidate] = []
        self.step: dict[int, int] = {}
        self.saves = True
        self.silent: set[int] = set()
        self.over: set[int] = set()
        self.fatal = ""
        self.asked: dict[int, int] = {}
        self.seq: dict[int, int] = {}
        self.cuts: dict[int, int] = {}

    def tick(self, at: datetime) -> None:
        """What happens in a few seconds."""
        self.tick_of(self.world.cloud.machines, at)

    def tick_of(self, machines: Mapping[str, tuple[str, Any]], at: datetime) -> None:
        """The same with those machines."""
        alive = {int(i.tags["skyplan:generation"]) for _, i in machines.values()}
        for generation in sorted(alive):
            run = next((r for r in self.world.record.runs(JOB) if r.generation == generation), None)
            if run is None or run.status not in {RunStatus.RUNNING, RunStatus.EXITED}:
                continue  # not all of its machines are known yet
            if generation in self.step or self._begun(generation, at):
                self._works(generation, at)

    def _begun(self, generation: int, at: datetime) -> bool:
        seat = Seat(job=JOB, generation=generation, rank=0)
        try:
            self.runtime.begin_cut(seat, at)
            cut = self.runtime.choose_cut(seat, at, self.store)
        except Refused as refused:
            if refused.word not in {Refusal.EARLY, Refusal.ENDED}:
                raise
            return False
        self.step[generation] = cut.chosen.step if cut.chosen else 0
        self.cuts[generation] = self.step[generation]
        return True

    def _works(self, generation: int, at: datetime) -> None:
        seat = Seat(job=JOB, generation=generation, rank=0)
        if generation in self.over:
            return
        if generation in self.silent:
            self._tell(seat, at, Kind.HEARTBEAT, {})
            return
        self.step[generation] += 1
        if not self._tell(seat, at, Kind.PROGRESS, {"step": self.step[generation]}):
            return
        wanted = [r for r in self.runtime.requests(seat) if r.id > self.asked.get(generation, 0)]
        if self.saves and (wanted or self.step[generation] % 7 == 0):
            self.asked[generation] = max((r.id for r in wanted), default=self.asked.get(generation, 0))
            self.save(seat, at)

    def save(self, seat: Seat, at: datetime) -> None:
        step = self.step[seat.generation]
        about = {"generation": seat.generation, "step": step, "digest": f"{step:064x}"}
        uri = f"s3://ckpt/{JOB}/g{seat.generation}/step-{step:012d}/"
        message = checkpoint_message(project=PROJECT.name, job=JOB, uri=uri, **about)
        mac = checkpoint_mac(self.runtime.manifest_key(JOB, seat.generation), message)
        found = Candidate(**about, uri=uri, mac=mac, bytes=10)
        self.store.append(found)
        body = {name: getattr(found, name) for name in ("step", "uri", "digest", "mac", "bytes")}
        self._tell(seat, at, Kind.CHECKPOINT, {**body, "files": 1})

    def notice(self, generation: int, until: datetime) -> None:
        seat = Seat(job=JOB, generation=generation, rank=0)
        self._tell(seat, self.world.at, Kind.NOTICE, {"what": "spot", "deadline": stamp(until)})

    def ends(self, generation: int, code: int = 0) -> None:
        """The job's own end, on every node."""
        for rank in range(2):
            self._tell(Seat(job=JOB, generation=generation, rank=rank), self.world.at, Kind.EXIT, {"code": code})
        self.over.add(generation)

    def _tell(self, seat: Seat, at: datetime, kind: Kind, body: dict[str, Any]) -> bool:
        key = seat.generation
        self.seq[key] = self.seq.get(key, 0) + 1
        said = Item(seq=self.seq[key], kind=kind, at=stamp(at), body=body)
        (answer,) = self.runtime.deliver([Report(seat=seat, stream="s", items=(said,))], at)
        return answer.refused is None


class MoveClock(FakeClock):
    """While it sleeps, nodes work."""

    nodes: Nodes

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)
        self.nodes.tick(self.at)
        open_move = self.nodes.world.record.open_move(JOB)
        if open_move is not None and open_move.status == self.nodes.fatal:
            self.life.dead = True
            raise Killed


class SteppedRuntime:
    """The record as nodes see it; to ask something may be the last that a process does, before or after."""

    def __init__(self, inner: Runtime, life: Life) -> None:
        self._inner, self._life = inner, life

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            self._life.step()
            answer = getattr(self._inner, name)(*given, **named)
            self._life.step()
            return answer

        return call


class MoveWorld(World):
    """`World` with nodes that work, and a job that has run for a while in us-east-1."""

    planned = staticmethod(planned)
    tool = FakeTerraform

    def __init__(self, folder: Path, *, prepare: int = 2) -> None:
        super().__init__(folder)
        self.runtime = Runtime.open(sqlite_url(self.path), PROJECT.name)
        self.nodes = Nodes(self, self.runtime)
        self.apply(nodes=2, prepare=prepare)
        self.works(10)

    def works(self, ticks: int) -> None:
        for _ in range(ticks):
            self.at += timedelta(seconds=2)
            self.nodes.tick(self.at)

    def live(self, use: Callable[[Ports], Any], dies_at: int | None = None) -> tuple[Any, int]:
        life = Life(dies_at)
        clock = MoveClock(life, self.at)
        self.life = life
        terraform = self.tool(self.cloud, life, self.states, self.refusals, self.refuse_after, self.log)
        ports = Ports(
            record=self.record,
            terraform=terraform,
            clouds=SteppedClouds(self.cloud, life),
            clock=clock,
            tell=lambda stack, text: self.said.append(f"{stack}: {text}"),
            synth=fake_synth,
            project=self.project,
            market=self.market(),
            holder=f"{socket.gethostname()} pid 999999999#1",
            keep=self._keep(life),
        )
        if hasattr(self, "nodes"):
            clock.nodes = self.nodes
        try:
            return use(ports), life.steps
        except Killed:
            return None, life.steps
        finally:
            self.at = clock.at + timedelta(seconds=1)

    def diff(self, reason: MigrationReason = MigrationReason.SAVING, **changes: Any) -> MigrationDiff:
        plan, _ = planned()
        run = next(r for r in reversed(self.record.runs(JOB)) if r.status is not RunStatus.FAILED)
        standing = Standing(
            generation=run.generation,
            offer_id=run.offer_id,
            pool=run.pool,
            placement_id=run.placement_id,
            region=run.region,
            topology="nvswitch",
            status=run.status.value,
            usd_per_hour=run.usd_per_hour,
            remaining_usd=None,
            remaining_hours=None,
            step=self.nodes.step.get(run.generation),
            checkpoint_step=None,
            checkpoint_uri="",
        )
        found = MigrationDiff(
            job=JOB,
            project=PROJECT.name,
            reason=reason,
            code=REASON_CODES[reason],
            text="cheaper there",
            standing=standing,
            to=plan.ranked[2:4],
            terms=(),
            numbers={},
            runner_up="",
            stop_minutes=Decimal(5),
            steps=steps_of(reason, old=run.id, new="us-west-2"),
            plan_digest=plan.digest,
            reviewed=True,
            prepared=True,
        )
        return replace(found, **changes)

    def migrate(self, diff: MigrationDiff | None, dies_at: int | None = None, **given: Any) -> Migrated | None:
        return self.stepped(diff, dies_at, **given)[0]

    def stepped(
        self, diff: MigrationDiff | None, dies_at: int | None = None, **given: Any
    ) -> tuple[Migrated | None, int]:
        plan, _ = planned()
        waits = Waits(checkpoint_seconds=60, cut_seconds=60, progress_seconds=60)
        order = Order(job=JOB, diff=diff, plan=plan if diff else None, **{"waits": waits, **given})
        return self.live(lambda ports: migrate(order, ports, SteppedRuntime(self.runtime, self.life)), dies_at)

    def half_way(self) -> MigrationDiff:
        """The process dies while it waits for the checkpoint; both generations are up."""
        diff, self.nodes.saves, self.nodes.fatal = self.diff(), False, MigrationStatus.LAUNCHED.value
        assert self.migrate(diff) is None
        self.nodes.fatal = ""
        assert self.generations() == {1: 2, 2: 2}
        return diff

    def generations(self) -> dict[int, int]:
        """How many machines of each generation the cloud has."""
        found: dict[int, int] = {}
        for _, one in self.cloud.machines.values():
            number = int(one.tags["skyplan:generation"])
            found[number] = found.get(number, 0) + 1
        return found

    def close(self) -> None:
        self.runtime.close()
        super().close()
