"""The reaper through every cloud's own lister: machines on and off, and what they leave behind."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from planner.app.over import GRACE
from planner.app.ports import Ports
from planner.app.reap import reap
from planner.model.labels import labels_of
from planner.model.project import Backend, Project
from planner.model.record import Action, Node, Run, RunStatus, Stack
from planner.state.engine import sqlite_url
from planner.state.record import Record
from tests.unit.app.world import empty_record
from tests.unit.clouds.test_contract import DENIED, UNREACHABLE, Aws, Azure, Gcp, Nebius, tags

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PLACES = {
    "aws": ("us-east-1", "use1-az1", "p4d.24xlarge"),
    "gcp": ("us-central1", "us-central1-a", "a3-highgpu-8g"),
    "azure": ("eastus", "eastus-2", "Standard_ND96isr_H100_v5"),
    "nebius": ("eu-north1", "", "gpu-h100-sxm_8gpu-128vcpu-1600gb"),
}
MADE = {"aws": Aws, "gcp": Gcp, "azure": Azure, "nebius": Nebius}


class Clock:
    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at

    def sleep(self, seconds):
        self.at += timedelta(seconds=seconds)


class Clouds:
    """Each cloud by its own adapter, over what stands in for it."""

    def __init__(self, made):
        self.made = made

    def lister(self, where):
        return self.made[where.cloud].lister()


@pytest.fixture
def clouds(monkeypatch, tmp_path):
    with ExitStack() as stack:
        yield {name: kind(stack, monkeypatch, tmp_path) for name, kind in MADE.items()}


@pytest.fixture
def ports(tmp_path, clouds):
    path = tmp_path / "record.sqlite"
    path.write_bytes(empty_record().read_bytes())
    record = Record.open(sqlite_url(path), "acme")
    yield Ports(
        record=record,
        terraform=None,  # type: ignore[arg-type] - the reaper has no Terraform
        clouds=Clouds(clouds),  # type: ignore[arg-type]
        clock=Clock(),
        tell=lambda *_: None,
        synth=lambda _: {},
        project=Project(name="acme"),
        market=None,  # type: ignore[arg-type] - nor a market
        holder="reaper",
    )
    record.close()


def run_in(ports: Ports, cloud: str, machines: list[str], *, generation: int = 3) -> None:
    """The job `train` of that generation, its nodes those machines, exited."""
    region, zone, kind = PLACES[cloud]
    run = Run(
        job="train",
        generation=0,
        plan_digest="sha256:1",
        rank=1,
        placement_id="p0123456789",
        offer_id="/".join(filter(None, (f"{cloud}:prod", region, zone, kind, "spot"))),
        cloud=cloud,
        target="prod",
        region=region,
        zone=zone,
        pool="pool",
        instance_type=kind,
        capacity="spot",
        nodes=len(machines),
        gpus=8,
        vcpus=96,
        addresses=(),
        usd_per_hour=Decimal(30),
    )
    record, now = ports.record, ports.clock.now()
    lease = record.take_lease("train", "apply", now, timedelta(minutes=1))
    writer = record.writer(lease)
    writer.issue(run, now, generation=generation)
    stack = Stack(
        name=f"cmp-train-g{generation}",
        kind="compute",
        job="train",
        cloud=cloud,
        target="prod",
        region=region,
        generation=generation,
        backend=Backend(kind="local"),
        document={},
        variables={},
    )
    intent = writer.intend(stack, Action.APPLY, now)
    nodes = [Node(rank=k, instance_id=one, address="") for k, one in enumerate(machines)]
    writer.launched(intent, generation, nodes, now)
    writer.run_status(generation, RunStatus.EXITED, now, "the job ended")
    record.release(lease, now)


def left(clouds, cloud: str) -> list[str]:
    return [i.id for i in clouds[cloud].lister().instances(project="acme", job="train")]


@pytest.mark.parametrize("cloud", MADE)
def test_ends_what_has_exited_and_leaves_what_is_not_ours(ports, clouds, cloud):
    here = clouds[cloud]
    run_in(ports, cloud, [here.launch(rank="r00"), here.launch(rank="r01")])
    other_job, other_project = here.launch(rank="r00", job="other"), here.launch(rank="r00", project="other")
    ports.clock.sleep(GRACE.total_seconds())
    done = reap(ports)
    assert (len(done.ended), done.closed, done.problems) == (2, ("train-g3",), ())
    assert [m.id for m in done.unknown] == [other_job]
    assert left(clouds, cloud) == []
    assert [i.id for i in here.lister().instances(project="other", job="train")] == [other_project]
    assert reap(ports).ended == ()


def off(clouds, cloud: str) -> str:
    """A machine that has powered itself off and is there still."""
    here, given = clouds[cloud], tags(rank="r00")
    if cloud == "azure":
        return here.api.launch(tags=given, power="stopped")  # not deallocated: billed as if it ran
    if cloud == "gcp":
        return here.api.launch(labels=labels_of(given.items()), status="TERMINATED")
    if cloud == "nebius":
        return here.api.launch(labels=labels_of(given.items()), state="STOPPED")
    machine = here.launch(rank="r00")
    here.made._ec2.stop_instances(InstanceIds=[machine])
    return machine


@pytest.mark.parametrize("cloud", MADE)
def test_ends_what_is_off_and_was_not_given_back(ports, clouds, cloud):
    run_in(ports, cloud, [off(clouds, cloud)])
    ports.clock.sleep(GRACE.total_seconds())
    done = reap(ports)
    assert [m.state for m in done.ended] == ["stopped"]
    assert left(clouds, cloud) == []


@pytest.mark.parametrize("how", [DENIED, UNREACHABLE])
@pytest.mark.parametrize("broken", MADE)
def test_no_cloud_waits_for_another(ports, clouds, broken, how):
    for number, cloud in enumerate(MADE, start=1):
        run_in(ports, cloud, [clouds[cloud].launch(rank="r00", generation=number)], generation=number)
    clouds[broken].refuse(how)
    ports.clock.sleep(GRACE.total_seconds())
    done = reap(ports)
    assert {m.cloud for m in done.ended} == set(MADE) - {broken}
    assert len(done.closed) == 3
    (problem,) = done.problems
    assert problem.summary.startswith(f"{broken}:prod ")


def test_what_a_machine_leaves_behind_on_azure_ends_with_it(ports, clouds):
    machine = clouds["azure"].launch(rank="r00")
    run_in(ports, "azure", [machine])
    ports.clock.sleep(GRACE.total_seconds())
    done = reap(ports)
    assert machine in {m.id for m in done.ended}
    assert left(clouds, "azure") == []
