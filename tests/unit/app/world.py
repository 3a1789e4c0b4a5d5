"""A world without Terraform or cloud: a fake Terraform that forgets what it was killed in, a fake cloud, a clock that can end the process.

`World.crash_at(n)` ends the process at the n-th step, as SIGKILL would: from then on nothing of it takes effect, not even what `finally` does.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from planner.app import inputs
from planner.app.apply import Applied, Order, apply
from planner.app.destroy import Destroyed, destroy
from planner.app.plan import Request, run_on
from planner.app.ports import Ports, Tell
from planner.clouds.fake import FakeCloud, FakeLister
from planner.clouds.port import Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import TerraformError
from planner.model.market import Market
from planner.model.offer import CapacityType, Cloud
from planner.model.plan import PlacementPlan
from planner.model.project import Project, Target
from planner.model.record import Stack
from planner.model.stack import AccessInput, AddressInput, ComputeInput, StackInput, rank_key
from planner.model.workload import Workload
from planner.state.engine import sqlite_url
from planner.state.record import Record
from tests import builders as b

NOW = datetime(2026, 1, 2, tzinfo=UTC)
P4DE = b.instance_type("p4de.24xlarge")
EAST = b.region("us-east-1")
WEST = b.region("us-west-2", net_index=2)
PROJECT = Project(name="acme", targets=(Target(name="prod", cloud=Cloud.AWS),), default_targets=False)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Life:
    """One process: counts its steps, and dies at one."""

    dies_at: int | None = None
    steps: int = 0
    dead: bool = False

    def step(self) -> None:
        if self.dead or self.steps == self.dies_at:
            self.dead = True
            raise Killed
        self.steps += 1


@dataclass
class FakeClock:
    life: Life
    at: datetime = NOW

    def now(self) -> datetime:
        self.life.step()
        self.at += timedelta(milliseconds=1)
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@dataclass
class FakeTerraform:
    """States by stack name, shared by lives: the backend.  `refusals`: {(instance type, zone): code} or of a stack's name."""

    cloud: FakeCloud
    life: Life
    states: dict[str, dict[str, str]]
    refusals: dict[str, tuple[str, str]]
    refuse_after: int = 0
    log: list[str] = field(default_factory=list)

    def prepare(self, stack: Stack) -> None:
        self.life.step()

    def apply(self, stack: Stack, tell: Tell) -> None:
        self.log.append(f"apply {stack.name}")
        self.life.step()
        state = self.states.setdefault(stack.name, {})
        if stack.kind != "compute":
            if stack.name in self.refusals:
                raise self._error(stack.name)
            self.life.step()
            state["made"] = "yes"
            self.life.step()
            return
        d = stack.document
        made = dict(state)
        for count, rank in enumerate(ranks(d)):
            if made.get(rank) in self.cloud.machines:
                continue
            if d["zone"] in self.refusals and count >= self.refuse_after:
                self.life.step()
                self.states[stack.name] = made
                raise self._error(d["zone"])
            made[rank] = self.cloud.launch(
                d["region"],
                rank=rank,
                zone=d["zone"],
                instance_type=d["instance_type"],
                capacity=d["capacity"],
                tags=d["tags"],
            )
            self.life.step()
        self.states[stack.name] = made
        self.life.step()

    def destroy(self, stack: Stack, tell: Tell) -> None:
        self.log.append(f"destroy {stack.name}")
        self.life.step()
        for rank, machine in dict(self.states.get(stack.name, {})).items():
            self.cloud.machines.pop(machine, None)
            self.life.step()
            del self.states[stack.name][rank]
        self.states.pop(stack.name, None)
        self.life.step()

    def outputs(self, stack: Stack) -> dict[str, Any]:
        self.life.step()
        match stack.kind:
            case "network":
                subnets = {"subnet_ids": {"a": "s"}, "public_subnet_ids": {"a": "s"}}
                return {"vpc_id": "v", "security_group_ids": ["sg"], "network": "n", **subnets}
            case "addresses":
                made = stack.document["ranks"] if self.states.get(stack.name) else []
                return {
                    "endpoints": {rank: endpoint(stack.cloud, rank) for rank in made},
                    "address_ids": {rank: f"{stack.cloud}-{rank}" for rank in made},
                }
            case "access":
                launch = {"subnet_id": "s", "launch_template_id": "lt"}
                return {"launch": dict.fromkeys(stack.document["templates"], launch), "node_identity": "arn"}
            case _:
                state = self.states.get(stack.name, {})
                machines = {r: self.cloud.machines[m][1] for r, m in state.items() if m in self.cloud.machines}
                return {
                    "plan_id": stack.document["plan_id"] if state else "",
                    "nodes": {r: {"instance_id": m.id, "private_ip": m.address} for r, m in machines.items()},
                }

    def nodes(self, stack: Stack) -> dict[str, str]:
        self.life.step()
        return {r: m for r, m in self.states.get(stack.name, {}).items() if m in self.cloud.machines}

    def holds(self, stack: Stack) -> frozenset[str]:
        self.life.step()
        return frozenset(self.states.get(stack.name, {}).values())

    def adopt(self, stack: Stack, rank: str, machine: str) -> None:
        self.log.append(f"import {stack.name} {rank} {machine}")
        self.life.step()
        self.states.setdefault(stack.name, {})[rank] = machine
        self.life.step()

    def take_existing(self, stack: Stack, error: TerraformError) -> bool:
        return False

    def settle(self, stack: Stack, tell: Tell) -> None:
        self.log.append(f"settle {stack.name}")
        self.life.step()

    def classify(self, error: TerraformError) -> tuple[str, str]:
        kind, _, code = str(error).partition(" ")
        return kind, code

    def _error(self, key: str) -> TerraformError:
        kind, code = self.refusals[key]
        return TerraformError(
            [Diagnostic(code="SKY-APPLY-310", summary=f"{kind} {code}")], f"Error: api error {code}: words"
        )


@dataclass
class SteppedLister:
    inner: FakeLister
    life: Life

    def instances(self, *, project: str, job: str, generation: int | None = None):
        self.life.step()
        return self.inner.instances(project=project, job=job, generation=generation)

    def terminate(self, ids) -> None:
        self.life.step()
        self.inner.terminate(ids)
        self.life.step()


@dataclass
class SteppedClouds:
    cloud: FakeCloud
    life: Life

    def lister(self, where: Where) -> SteppedLister:
        return SteppedLister(self.cloud.lister(where), self.life)


def ranks(document: dict[str, Any]) -> list[str]:
    """Of a compute stack's nodes."""
    return [rank_key(document["first_rank"] + i) for i in range(document["nodes"])]


def endpoint(cloud: str, rank: str) -> str:
    """The address that is reserved for a rank, in a network of that cloud's own."""
    network = {"aws": "198.51.100", "gcp": "203.0.113"}[cloud]
    return f"{network}.{int(rank[1:]) + 10}"


def fake_synth(given: StackInput) -> dict[str, Any]:
    out: dict[str, Any] = {"name": given.name, "region": given.region, "tags": dict(given.tags)}
    if isinstance(given, AccessInput):
        out["templates"] = [t.key for t in given.templates]
    if isinstance(given, AddressInput):
        out["ranks"] = list(given.ranks)
    if isinstance(given, ComputeInput):
        names = ("nodes", "first_rank", "zone", "instance_type", "plan_id")
        out |= {n: getattr(given, n) for n in names} | {"capacity": given.capacity.value}
    return out


def small_market() -> Market:
    """Four zones in two regions, each dearer than the one before."""
    zones = [
        (EAST, "us-east-1-a", 10.0),
        (EAST, "us-east-1-b", 11.0),
        (WEST, "us-west-2-a", 12.0),
        (WEST, "us-west-2-b", 13.0),
    ]
    return b.market([(P4DE, region, zone, CapacityType.ON_DEMAND, usd) for region, zone, usd in zones])


@cache
def planned(name: str = "train", nodes: int = 3, priority: int = 0) -> tuple[PlacementPlan, Workload]:
    work = b.workload(name, resources={"nodes": nodes}, priority=priority)
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    read = inputs.Inputs(jobs=(job,), project=PROJECT, project_file="skyplan.yaml", market=small_market(), warnings=())
    plan = run_on(read, Request(job_files=(), offline=True), NOW).planned[0].plan
    assert len(plan.ranked) == 4
    return plan, work


@cache
def empty_record() -> Path:
    """A migrated, empty database: made once, copied."""
    path = Path(mkdtemp()) / "empty.sqlite"
    Record.open(sqlite_url(path), "acme").close()
    return path


class World:
    """What outlives a process: the cloud, Terraform's states, the record.  `kept`: documents written down for people."""

    project = PROJECT
    market = staticmethod(small_market)
    planned = staticmethod(planned)

    def __init__(self, folder: Path) -> None:
        self.path = folder / "record.sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(empty_record(), self.path)
        self.cloud = FakeCloud()
        self.states: dict[str, dict[str, str]] = {}
        self.refusals: dict[str, tuple[str, str]] = {}
        self.refuse_after = 0
        self.at = NOW
        self.said: list[str] = []
        self.log: list[str] = []
        self.kept: dict[str, Mapping[str, Any]] = {}
        self.record = Record.open(sqlite_url(self.path), "acme")

    def live(self, use: Callable[[Ports], Any], dies_at: int | None = None) -> tuple[Any, int]:
        """Run one process; its result (None if it was killed) and how many steps it took."""
        life = Life(dies_at)
        clock = FakeClock(life, self.at)
        terraform = FakeTerraform(self.cloud, life, self.states, self.refusals, self.refuse_after, self.log)
        ports = Ports(
            record=self.record,
            terraform=terraform,
            clouds=SteppedClouds(self.cloud, life),
            clock=clock,
            tell=lambda stack, text: self.said.append(f"{stack}: {text}"),
            synth=fake_synth,
            project=self.project,
            market=self.market(),
            holder=f"{socket.gethostname()} pid 999999999#1",  # no such process: what it leaves held is free
            keep=self._keep(life),
        )
        try:
            return use(ports), life.steps
        except Killed:
            return None, life.steps
        finally:
            self.at = clock.at + timedelta(seconds=1)

    def apply(self, dies_at: int | None = None, *, name: str = "train", nodes: int = 3, **order: Any) -> Applied | None:
        plan, work = self.planned(name, nodes)
        given = Order(plan=plan, workload=work, **{"prepare": 0, **order})
        return self.live(lambda ports: apply(given, ports), dies_at)[0]

    def destroy(self, dies_at: int | None = None, *, name: str = "train", **given: Any) -> Destroyed | None:
        return self.live(lambda ports: destroy(name, ports, **given), dies_at)[0]

    def _keep(self, life: Life) -> Callable[[str, Mapping[str, Any]], str]:
        def keep(name: str, document: Mapping[str, Any]) -> str:
            life.step()
            self.kept[name] = document
            return name

        return keep

    def count(self, use: Callable[[Ports], Any]) -> int:
        return self.live(use)[1]

    def close(self) -> None:
        self.record.close()
