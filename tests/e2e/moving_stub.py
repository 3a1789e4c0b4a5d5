"""A job that moves between two regions of a stub cloud: real Terraform, CDK and record, the orchestrator in a process of its own that a test ends at a chosen moment.

Nodes are those of `tests.unit.app.moving`, working in a thread here.  `prepared` makes the standing job once; each test moves a copy of its folder.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from planner.app import inputs
from planner.app.apply import Order as Launch
from planner.app.apply import apply
from planner.app.lease import myself
from planner.app.migrate import Order, Waits, migrate
from planner.app.plan import Request, run_on
from planner.app.ports import Ports
from planner.migration.steps import steps_of
from planner.model.market import Market
from planner.model.migration import REASON_CODES, MigrationDiff, MigrationReason, Standing
from planner.model.plan import PlacementPlan
from planner.model.project import Project
from planner.model.words import words_of
from planner.model.workload import Workload
from planner.spec.job import parse_jobs
from planner.spec.project import parse_project
from planner.state.engine import sqlite_url
from planner.state.record import Record
from planner.state.runtime import Runtime
from planner.state.writer import Writer
from stacks.tool import TerraformStacks
from tests.emulators import terraform as terraform_on_this_machine
from tests.emulators.stub_cloud import MACHINES, StubCloud
from tests.emulators.terraform import SCHEMAS
from tests.unit.app.moving import JOB, Nodes

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; from tests.e2e.moving_stub import main; main(sys.argv[1])"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
WAITS = Waits(checkpoint_seconds=30, cut_seconds=30, progress_seconds=30)
PROJECT = "project: acme\ntargets:\n  - {name: prod, cloud: aws, regions: [us-east-1, us-west-2]}\n"
JOB_FILE = """\
name: train
resources: {accelerators: T4:1, nodes: 1, capacity: [on_demand]}
work: {hours: 200, on: T4:1, nodes: 1}
run: python train.py
checkpoint: {uri: s3://acme-ckpt/train/, region: us-east-1, size: 100MB, every: 1h}
constraints: {clouds: [aws], instance_types: [g4dn.xlarge]}
"""


@cache
def market() -> Market:
    return inputs.load_market()


@cache
def project() -> Project:
    found, problems = parse_project(PROJECT, "skyplan.yaml", words_of(market()))
    assert not problems
    return found


@cache
def planned() -> tuple[PlacementPlan, Workload]:
    (work,), _ = parse_jobs(JOB_FILE, "jobs/train.yaml", words_of(market()), project())
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    read = inputs.Inputs(jobs=(job,), project=project(), project_file="skyplan.yaml", market=market(), warnings=())
    return run_on(read, Request(job_files=(), offline=True), NOW).planned[0].plan, work


def diff() -> MigrationDiff:
    plan, _ = planned()
    to = tuple(p for p in plan.ranked if p.region == "us-west-2")[:2]
    standing = Standing(
        generation=1,
        offer_id=plan.choice.offer_id,
        pool=plan.choice.pool,
        placement_id=plan.choice.placement_id,
        region=plan.choice.region,
        topology=plan.choice.topology,
        status="running",
        usd_per_hour=None,
        remaining_usd=None,
        remaining_hours=None,
        step=None,
        checkpoint_step=None,
        checkpoint_uri="",
    )
    return MigrationDiff(
        job=JOB,
        project="acme",
        reason=MigrationReason.SAVING,
        code=REASON_CODES[MigrationReason.SAVING],
        text="cheaper there",
        standing=standing,
        to=to,
        terms=(),
        numbers={},
        runner_up="",
        stop_minutes=Decimal(5),
        steps=steps_of(MigrationReason.SAVING, old="train-g1", new="us-west-2"),
        plan_digest=plan.digest,
        reviewed=True,
        prepared=True,
    )


class Clock:
    """The real time; waiting is short, since the stub cloud and its nodes are quick."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.05))


@dataclass(frozen=True)
class Work:
    """What the orchestrator's process needs.  `dies`: `before STATUS` (its act is done, and not written) or `after STATUS`."""

    folder: Path
    environment: Mapping[str, str]
    dies: str = ""


def ports_of(work: Work, record: Record) -> Ports:
    from stacks.app import document

    return Ports(
        record=record,
        terraform=TerraformStacks(work.folder, "acme", environment=work.environment),
        clouds=StubCloud(work.folder / "cloud.jsonl"),
        clock=Clock(),
        tell=lambda stack, text: None,
        synth=document,
        project=project(),
        market=market(),
        holder=myself(),
    )


def main(file: str) -> None:
    """The process that tests kill."""
    work: Work = pickle.loads(Path(file).read_bytes())
    moment, _, status = work.dies.partition(" ")
    go_on = Writer.go_on

    def deadly(self: Writer, *given: Any, **named: Any) -> Any:
        mine = named.get("status") == status
        if mine and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = go_on(self, *given, **named)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    Writer.go_on = deadly
    url = sqlite_url(work.folder / "record.sqlite")
    record, runtime = Record.open(url, "acme"), Runtime.open(url, "acme")
    plan, _ = planned()
    done = migrate(Order(job=JOB, diff=diff(), plan=plan, waits=WAITS), ports_of(work, record), runtime)
    sys.stdout.write(" ".join([done.status.value, *(d.summary for d in done.problems)]))


def environment(folder: Path, home: Path) -> dict[str, str]:
    ready = terraform_on_this_machine.prepare(home, stubs={"aws": SCHEMAS / "aws.json.gz"})
    return {**ready.environment, "STUB_LOG": str(folder / "cloud.jsonl"), "STUB_UNIQUE": ""}


def prepare(folder: Path, home: Path) -> None:
    """A job that stands in us-east-1, with us-west-2 ready for it."""
    folder.mkdir()
    work = Work(folder=folder, environment=environment(folder, home))
    record = Record.open(sqlite_url(folder / "record.sqlite"), "acme")
    plan, workload = planned()
    done = apply(Launch(plan=plan, workload=workload, prepare=1), ports_of(work, record))
    assert done.run.region == "us-east-1"
    record.close()


class Bed:
    """A copy of the standing job, its nodes at work."""

    def __init__(self, folder: Path, home: Path, standing: Path) -> None:
        shutil.copytree(standing, folder, symlinks=True)
        self.work = Work(folder=folder, environment=environment(folder, home))
        url = sqlite_url(folder / "record.sqlite")
        self.record, self.runtime = Record.open(url, "acme"), Runtime.open(url, "acme")
        self.cloud = StubCloud(folder / "cloud.jsonl")
        self.nodes = Nodes(self, self.runtime)  # pyright: ignore[reportArgumentType] - it asks for record and cloud only
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._nodes_work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self.runtime.close()
        self.record.close()

    def machines(self) -> dict[str, str]:
        """By id, the generation."""
        return {one: state["tags"]["skyplan:generation"] for one, state in self.cloud.of(MACHINES["aws"]).items()}

    def _nodes_work(self) -> None:
        while not self._over.is_set():
            there = {one: ("", SimpleNamespace(tags={"skyplan:generation": g})) for one, g in self.machines().items()}
            self.nodes.tick_of(there, datetime.now(UTC))
            time.sleep(0.1)

    def move(self, dies: str = "", **more: str) -> subprocess.Popen[str]:
        """The orchestrator, in a session of its own."""
        work = Work(folder=self.work.folder, environment={**self.work.environment, **more}, dies=dies)
        file = self.work.folder / "work.pickle"
        file.write_bytes(pickle.dumps(work))
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(file)],
            env={**work.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def killed(self, moving: subprocess.Popen[str]) -> None:
        """Terraform and orchestrator, as a machine that loses its power."""
        for pid_file in self.work.folder.glob(".skyplan/work/*/terraform.pid"):
            os.killpg(int(pid_file.read_text(encoding="ascii")), signal.SIGKILL)
        os.killpg(moving.pid, signal.SIGKILL)
        moving.communicate(timeout=60)
