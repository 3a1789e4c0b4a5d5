"""A job in two clouds by the code that users run: endpoints first, then both sides, open to all of them; taken down whole.

Real Terraform on stub providers (AWS by its 6.x schema, and GCP), a packaged catalog, a record in SQLite.  It proves stacks, order, wiring and that
nothing stays; that packets pass between clouds is proven elsewhere (tests/e2e/test_tunnel.py), and no live cloud was ever asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.app import inputs
from planner.app.apply import Applied, Order, apply
from planner.app.destroy import destroy
from planner.app.lease import myself
from planner.app.plan import Request, run_on
from planner.app.ports import Ports
from planner.app.sync import sync
from planner.model.diagnostic import Severity
from planner.model.errors import TerraformError
from planner.model.market import Market
from planner.model.plan import PlacementPlan
from planner.model.project import Project
from planner.model.record import RunStatus
from planner.model.words import words_of
from planner.model.workload import Workload
from planner.server import peers_file
from planner.spec.job import parse_jobs
from planner.spec.project import parse_project
from planner.state.engine import sqlite_url
from planner.state.record import Record
from stacks.app import document
from stacks.tool import TerraformStacks
from tests.e2e.clouds_bed import Clock
from tests.e2e.refusals import REFUSALS, always
from tests.emulators import terraform as terraform_on_this_machine
from tests.emulators.stub_cloud import MACHINES, StubCloud
from tests.emulators.terraform import SCHEMAS, Terraform

pytestmark = pytest.mark.terraform

STUBS = ("aws", "google")
NOW = datetime(2026, 11, 30, tzinfo=UTC)
PROJECT = """\
project: acme
targets:
  - {name: prod, cloud: aws, regions: [us-east-1], quotas: [{instance_types: ["*"], max_nodes: 2}]}
  - {name: prod, cloud: gcp, project: acme-ml, regions: [us-east4], quotas: [{instance_types: ["*"], max_nodes: 2}]}
agent: {url: "https://agent.test/agent.pyz", sha256: "%s"}
rendezvous:
  url: https://meet.test
  secrets: {aws: "aws-secretsmanager://join", gcp: "gcp-secretmanager://join"}
"""
JOB = """\
name: train
resources: {accelerators: L4:1, nodes: 3, capacity: [on_demand]}
work: {hours: 2, on: L4:1, nodes: 3}
run: python train.py
network: {across: tunnel, sync: {size: 1MB, every: 60s}}
constraints: {clouds: [aws, gcp]}
"""


@cache
def market() -> Market:
    return inputs.load_market()


@cache
def project() -> Project:
    found, problems = parse_project(PROJECT % ("0" * 64), "skyplan.yaml", words_of(market()))
    assert not problems
    return found


@cache
def planned() -> tuple[PlacementPlan, Workload]:
    (work,), problems = parse_jobs(JOB, "jobs/train.yaml", words_of(market()), project())
    assert not [d for d in problems if d.severity is Severity.ERROR]
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    read = inputs.Inputs(jobs=(job,), project=project(), project_file="skyplan.yaml", market=market(), warnings=())
    plan = run_on(read, Request(job_files=(), offline=True), NOW).planned[0].plan
    assert plan.ranked
    return plan, work


@dataclass
class Bed:
    """A working folder with its record, its states and both its clouds."""

    folder: Path
    environment: Mapping[str, str]
    record: Record

    @property
    def cloud(self) -> StubCloud:
        return StubCloud(self.folder / "cloud.jsonl")

    def ports(self, **environment: str) -> Ports:
        return Ports(
            record=self.record,
            terraform=TerraformStacks(self.folder, "acme", environment={**self.environment, **environment}),
            clouds=self.cloud,
            clock=Clock(),
            tell=lambda stack, text: None,
            synth=document,
            project=project(),
            market=market(),
            holder=myself(),
            keep=self.keep,
        )

    def keep(self, name: str, kept: Mapping[str, Any]) -> str:
        path = self.folder / Path(name).name
        path.touch(mode=0o600)
        path.write_text(json.dumps(kept), encoding="utf-8")
        return str(path)

    def apply(self, most: int = 1, **environment: str) -> Applied:
        plan, workload = planned()
        order = Order(plan=replace(plan, ranked=plan.ranked[:most]), workload=workload, prepare=0)
        return apply(order, self.ports(**environment))

    def alive(self, kind: str) -> dict[str, dict[str, Any]]:
        return self.cloud.of(kind)


@pytest.fixture
def bed(tmp_path: Path, terraform_home: Path) -> Iterator[Bed]:
    if reason := terraform_on_this_machine.missing(aws=False):
        pytest.skip(reason)
    stubs = {name: SCHEMAS / f"{name}.json.gz" for name in STUBS}
    ready: Terraform = terraform_on_this_machine.prepare(terraform_home / "stub-split", stubs=stubs)
    environment = {**ready.environment, "STUB_LOG": str(tmp_path / "cloud.jsonl"), "STUB_UNIQUE": "google_*"}
    record = Record.open(sqlite_url(tmp_path / "record.sqlite"), "acme")
    yield Bed(folder=tmp_path, environment=environment, record=record)
    record.close()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.full)], ids=["launched", "every-stack"])
def test_from_nothing_to_one_job_in_two_clouds_and_back(bed: Bed, every: bool) -> None:
    plan, _ = planned()
    parts = plan.choice.parts
    assert sorted((p.cloud, p.nodes) for p in parts) in ([("aws", 1), ("gcp", 2)], [("aws", 2), ("gcp", 1)])

    done = bed.apply()
    assert (done.changed, done.run.status, [n.rank for n in done.nodes]) == (True, RunStatus.RUNNING, [0, 1, 2])
    machines = {cloud: bed.alive(MACHINES[cloud]) for cloud in ("aws", "gcp")}
    assert {cloud: len(found) for cloud, found in machines.items()} == {p.cloud: p.nodes for p in parts}
    for node in done.nodes:
        assert node.instance_id in machines[done.run.part_of(node.rank).cloud]

    stacks = {s.name: s for s in bed.record.stacks()}
    assert len(stacks) == 8
    for name in (s.name for s in stacks.values() if every or s.kind in {"access", "compute"}):
        assert not TerraformStacks(bed.folder, "acme", environment=bed.environment).terraform(name).plan(), (
            f"{name}: nothing is left to change"
        )

    expected = peers_file.read(bed.folder / f"{done.run.id}.json", b"a secret that all nodes can read")
    assert [m.name for m in expected.members] == ["r00", "r01", "r02"]
    reserved = {m.name: (m.endpoint or "").partition(":")[0] for m in expected.members}
    assert len(set(reserved.values())) == 3
    for part in parts:
        own = {f"r{part.first_rank + i:02d}" for i in range(part.nodes)}
        (access,) = [s for s in stacks.values() if (s.kind, s.cloud) == ("access", part.cloud)]
        assert set(access.variables["peer_endpoints"]) == set(reserved.values())
        (compute,) = [s for s in stacks.values() if (s.kind, s.cloud) == ("compute", part.cloud)]
        assert set(compute.variables["address_ids"]) == own

    lines = len(bed.cloud.lines())
    assert not bed.apply().changed
    assert len(bed.cloud.lines()) == lines
    assert not sync("train", bed.ports()).lost

    gone = destroy("train", bed.ports())
    assert set(gone.stacks) == set(stacks)
    assert not gone.leaks
    assert not bed.cloud.alive()


@pytest.mark.full
def test_a_second_part_without_capacity_takes_the_first_down(bed: Bed) -> None:
    second = planned()[0].choice.parts[1]
    with pytest.raises(TerraformError):
        bed.apply(STUB_FAIL=always(second.cloud, REFUSALS[second.cloud][0].words))
    assert bed.cloud.created(MACHINES[planned()[0].choice.parts[0].cloud]) == 2
    (run,) = bed.record.runs("train")
    assert run.status is RunStatus.FAILED
    assert not [one for cloud in ("aws", "gcp") for one in bed.alive(MACHINES[cloud])]
    assert [f.scope for f in bed.record.memory().failures] == [second.pool]
    assert not [s for s in bed.record.stacks() if s.kind in {"compute", "addresses"}]
    destroy("train", bed.ports())
    assert not bed.cloud.alive()
