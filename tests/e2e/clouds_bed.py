"""One job on a stub cloud, by the code that users run: planner, `planner.app.apply`, CDK, Terraform, a record in SQLite.

Not real are the provider (the cloud's schema and nothing behind it), the lister (it reads the stub's log) and waiting.  `start` runs an apply in a process
of its own, which a test may kill.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from planner.app import inputs
from planner.app.apply import Applied, Order, apply
from planner.app.destroy import Destroyed, destroy
from planner.app.lease import myself
from planner.app.plan import Request, run_on
from planner.app.ports import Ports
from planner.app.sync import Synced, sync
from planner.model.market import Market
from planner.model.plan import Placement, PlacementPlan
from planner.model.project import Project
from planner.model.words import words_of
from planner.model.workload import Workload
from planner.spec.job import parse_jobs
from planner.spec.project import parse_project
from planner.state.engine import sqlite_url
from planner.state.record import Record
from stacks.runner import Terraform
from stacks.tool import TerraformStacks
from tests.emulators import terraform as terraform_on_this_machine
from tests.emulators.stub_cloud import HELD, MACHINES, StubCloud
from tests.emulators.terraform import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; from tests.e2e.clouds_bed import main; main(sys.argv[1])"
STUBS = {"aws": "aws", "gcp": "google", "azure": "azurerm", "nebius": "nebius"}
#: what has a name that is unique: on GCP in a project, on Azure in a group, on Nebius (where it is documented of disks alone) in a project
UNIQUE = {"gcp": "google_*", "azure": "azurerm_*", "nebius": "nebius_compute_*|nebius_vpc_v1_allocation", "aws": ""}
#: a GPU with several candidates that cost nothing to look at
GPU = {"aws": "T4:1", "gcp": "L4:1", "azure": "T4:1", "nebius": "L40S:1"}
#: one for each: a region takes its time to prepare, and that is not what is tested
REGION = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus", "nebius": "eu-north1"}
NOW = datetime(2026, 11, 30, tzinfo=UTC)
PROJECT = """\
project: acme
targets:
  - {name: prod, cloud: aws}
  - {name: prod, cloud: gcp, project: acme-ml}
  - {name: prod, cloud: azure, subscription: 00000000-0000-0000-0000-000000000000}
  - {name: prod, cloud: nebius, project: project-e00acme, tenant: tenant-e00acme}
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
def planned(cloud: str, gpu: str, nodes: int) -> tuple[PlacementPlan, Workload]:
    text = (
        f"name: train\nresources: {{accelerators: {gpu}, nodes: {nodes}, capacity: [spot, on_demand]}}\n"
        f"work: {{hours: 2, on: {gpu}, nodes: {nodes}}}\nrun: python train.py\nconstraints: {{clouds: [{cloud}], regions: [{REGION[cloud]}]}}\n"
    )
    (work,), _ = parse_jobs(text, "jobs/train.yaml", words_of(market()), project())
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    read = inputs.Inputs(jobs=(job,), project=project(), project_file="skyplan.yaml", market=market(), warnings=())
    plan = run_on(read, Request(job_files=(), offline=True), NOW).planned[0].plan
    assert plan.ranked
    return plan, work


class Clock:
    """The real time, and what was slept, without waiting for it: the stub cloud shows at once what is done."""

    def __init__(self) -> None:
        self._slept = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._slept

    def sleep(self, seconds: float) -> None:
        self._slept += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Work:
    """What a process of its own needs to apply the same."""

    folder: Path
    cloud: str
    plan: PlacementPlan
    workload: Workload
    environment: Mapping[str, str]


class Bed:
    """A working folder with its record, its states and its cloud.  `plan` may be narrowed by a test before it applies."""

    def __init__(
        self, folder: Path, home: Path, cloud: str, *, nodes: int = 2, gpu: str = "", candidates: int = 3
    ) -> None:
        stub = STUBS[cloud]
        prepared = terraform_on_this_machine.prepare(home, stubs={stub: SCHEMAS / f"{stub}.json.gz"})
        plan, workload = planned(cloud, gpu or GPU[cloud], nodes)
        self.work = Work(
            folder=folder,
            cloud=cloud,
            plan=replace(plan, ranked=plan.ranked[:candidates]),
            workload=workload,
            environment={
                **prepared.environment,
                "STUB_LOG": str(folder / "cloud.jsonl"),
                "STUB_UNIQUE": UNIQUE[cloud],
            },
        )
        self.cloud = StubCloud(folder / "cloud.jsonl")
        self.said: list[str] = []
        self.record = Record.open(sqlite_url(folder / "record.sqlite"), project().name)

    @property
    def ranked(self) -> tuple[Placement, ...]:
        return self.work.plan.ranked

    def terraform(self, stack: str) -> Terraform:
        """Of a stack that was applied."""
        return TerraformStacks(self.work.folder, "acme", environment=self.work.environment).terraform(stack)

    def apply(self, **environment: str) -> Applied:
        return run(self.work, self._ports(environment))

    def destroy(self) -> Destroyed:
        return destroy("train", self._ports({}))

    def sync(self) -> Synced:
        return sync("train", self._ports({}))

    def machines(self) -> dict[str, str]:
        """Of the job, by id: the generation."""
        alive = self.cloud.of(MACHINES[self.work.cloud])
        return {one: _generation(state) for one, state in alive.items()}

    def held(self) -> dict[str, str]:
        """What machines hang on, by id: the generation; {} where a machine is one resource."""
        kind = HELD.get(self.work.cloud)
        return {one: _generation(state) for one, state in self.cloud.of(kind).items()} if kind else {}

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """An apply in a session of its own."""
        file = self.work.folder / "work.pickle"
        file.write_bytes(pickle.dumps(replace(self.work, environment={**self.work.environment, **environment})))
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(file)],
            env={**self.work.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def killed_while_held(self, kind: str, count: int) -> None:
        """Apply until so many creates of a kind were done whose replies never came, then kill all that works on it."""
        folder = self.work.folder / "hold"
        folder.mkdir()
        applying = self.start(STUB_HOLD=f"{kind}:{folder}")
        try:
            for _ in range(2400):
                if len(list(folder.glob("*.held"))) >= count or applying.poll() is not None:
                    break
                time.sleep(0.05)
            held = len(list(folder.glob("*.held")))
            for pid_file in self.work.folder.glob(".skyplan/work/*/terraform.pid"):
                os.killpg(int(pid_file.read_text(encoding="ascii")), signal.SIGKILL)
            os.killpg(applying.pid, signal.SIGKILL)
        finally:
            applying.kill()
            said, _ = applying.communicate(timeout=60)
        assert held == count, said

    def close(self) -> None:
        self.record.close()

    def _ports(self, environment: Mapping[str, str]) -> Ports:
        work = replace(self.work, environment={**self.work.environment, **environment})
        return ports_of(work, self.record, self.said)


def ports_of(work: Work, record: Record, said: list[str]) -> Ports:
    from stacks.app import document

    return Ports(
        record=record,
        terraform=TerraformStacks(work.folder, "acme", environment=work.environment),
        clouds=StubCloud(work.folder / "cloud.jsonl"),
        clock=Clock(),
        tell=lambda stack, text: said.append(f"{stack}: {text}"),
        synth=document,
        project=project(),
        market=market(),
        holder=myself(),
    )


def run(work: Work, ports: Ports) -> Applied:
    return apply(Order(plan=work.plan, workload=work.workload, prepare=0), ports)


def main(file: str) -> None:
    """The process that tests kill."""
    work: Work = pickle.loads(Path(file).read_bytes())
    record = Record.open(sqlite_url(work.folder / "record.sqlite"), project().name)
    run(work, ports_of(work, record, []))


def _generation(state: dict) -> str:
    tags = state.get("labels") or state["tags"]
    return tags.get("skyplan-generation") or tags["skyplan:generation"]
