"""A job's life over two regions: real command line, Terraform, AWS provider, control plane, agents and training; an emulated AWS.

The price drops elsewhere, the move is killed in mid-launch and finished; then the cloud takes the node back.  Machines are counted by AWS' own API.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.app.inputs import read_plan
from planner.model.migration import MigrationReason
from planner.model.record import stamp
from tests.e2e.moving_bed import MovingBed, diff_of, write_diff
from tests.e2e.runtime_bed import JOB, ROOT
from tests.e2e.workspace import Workspace
from tests.emulators.aws import Aws
from tests.emulators.imds import Metadata
from tests.emulators.terraform import Terraform

pytestmark = pytest.mark.terraform
EAST, WEST = "us-east-1", "us-west-2"
JOB_FILE = """\
name: train
resources: {accelerators: T4:1, nodes: 1, capacity: [on_demand]}
work: {hours: 200, on: T4:1, nodes: 1}
run: python train.py
checkpoint: {uri: s3://acme-ckpt/train/, region: us-east-1, size: 100MB, every: 1h}
constraints: {clouds: [aws], instance_types: [g4dn.xlarge]}
"""


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("agent") / "agent.pyz"
    subprocess.run([sys.executable, "-m", "modules.agent.pack", str(target)], cwd=ROOT, check=True, capture_output=True)
    return target


def project(aws: Aws) -> str:
    """Two regions, each with a network of the user's own: making one takes AWS' provider half a minute."""
    networks: list[dict[str, Any]] = []
    for region in (EAST, WEST):
        subnets = aws.client("ec2", region).describe_subnets()["Subnets"]
        named = {s["AvailabilityZoneId"]: s["SubnetId"] for s in subnets}
        networks.append({"region": region, "vpc_id": subnets[0]["VpcId"], "subnets": named})
    target = {"name": "prod", "cloud": "aws", "regions": [EAST, WEST], "networks": networks}
    agent = {"url": "https://agent.test/agent.pyz", "sha256": "0" * 64}
    document = {
        "project": "acme",
        "targets": [target],
        "agent": agent,
        "control_plane": {"url": "https://control.test"},
    }
    return json.dumps(document)


class Life:
    """A user's repository, its job, and the cloud."""

    def __init__(self, folder: Path, aws: Aws, terraform: Terraform, archive: Path) -> None:
        self.aws = aws
        self.workspace = Workspace(folder / "repo", aws, terraform, job=JOB_FILE)
        (self.workspace.folder / "skyplan.yaml").write_text(project(aws), encoding="utf-8")
        self.bed = MovingBed(folder / "bed", archive, self.machines, cloud="aws", pace=0.2)
        # a client each, kept: making one takes longer than asking
        self._ec2 = {region: aws.client("ec2", region) for region in (EAST, WEST)}
        self.workspace.environment = {**self.workspace.environment, "SKYPLAN_DATABASE_URL": self.bed.url}

    def price(self, region: str, usd: str) -> None:
        """It is so much there from a moment ago on, as far as the record knows."""
        at = (datetime.now(UTC) - timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        row = f"{at},aws,{region},,g4dn.xlarge,on_demand,{usd}"
        head = "observed_at,cloud,region,zone,instance_type,capacity,usd_per_hour"
        (self.workspace.folder / "seen.csv").write_text(f"{head}\n{row}\n", encoding="utf-8")
        self.workspace.run("prices", "import", "seen.csv")

    def machines(self) -> set[str]:
        return {one for region in (EAST, WEST) for one in self.there(region)}

    def there(self, region: str) -> dict[str, str]:
        """Machines of the job in a region, with their generation."""
        found: dict[str, str] = {}
        wanted = [{"Name": "tag:skyplan:job", "Values": [JOB]}]
        answer = self._ec2[region].describe_instances(Filters=wanted)["Reservations"]
        for one in (i for r in answer for i in r["Instances"] if i["State"]["Name"] != "terminated"):
            found[one["InstanceId"]] = next(t["Value"] for t in one["Tags"] if t["Key"] == "skyplan:generation")
        return found


@pytest.fixture
def life(tmp_path: Path, aws: Aws, terraform: Terraform, archive: Path) -> Iterator[Life]:
    made = Life(tmp_path, aws, terraform, archive)
    yield made
    aws.proxy.clear()
    made.bed.close()


def test_the_price_drops_elsewhere_then_the_cloud_takes_the_node_back(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed, workspace = life.bed, life.workspace
    with Metadata() as imds:
        for name, value in imds.environment.items():
            monkeypatch.setenv(name, value)
        workspace.plan()
        plan = read_plan(workspace.folder / "plans" / "train.plan.json")
        bed.start()
        workspace.json("apply", "plans/train.plan.json", "--prepare", "1")
        bed.wait(lambda: bed.told(1) >= 10)

        assert "train  stays" in workspace.run("replan").stdout
        life.price(WEST, "0.2500")
        workspace.run("replan", "--out", ".", "--detailed-exitcode", code=2)
        diff = "migrations/train.diff.json"
        # killed after AWS has launched, before Terraform hears of it
        hold = life.aws.proxy.hold("RunInstances", times=1)
        moving = workspace.start("migrate", diff, "--auto-approve", "--quiet")
        try:
            bed.wait(lambda: hold.executed.is_set() or moving.poll() is not None, 240)
            assert hold.executed.is_set(), moving.communicate()
            pid = int((workspace.folder / ".skyplan/work/cmp-train-g2/terraform.pid").read_text(encoding="ascii"))
            os.killpg(pid, signal.SIGKILL)
            os.killpg(moving.pid, signal.SIGKILL)
        finally:
            moving.kill()
            moving.communicate(timeout=60)
            hold.release()
        launched = life.there(WEST)
        assert set(launched.values()) == {"2"}
        step = bed.told(1)
        bed.wait(lambda: bed.told(1) > step)  # the old one never noticed

        done = workspace.json("migrate", "--job", JOB)
        assert (done["status"], done["run"]["region"], done["diagnostics"]) == ("retired", WEST, [])
        assert life.there(EAST) == {}
        assert life.there(WEST) == launched, "what was launched is kept, not launched anew"
        assert bed.cut(2).chosen.step >= step
        assert [s.name for s in bed.record.stacks(JOB) if s.kind == "compute"] == ["cmp-train-g2"]
        bed.wait(lambda: bed.told(2) > bed.cut(2).chosen.step + 5)

        imds.spot = {"action": "terminate", "time": stamp(datetime.now(UTC) + timedelta(seconds=120))[:19] + "Z"}
        bed.wait(lambda: bed.rows("SELECT 1 FROM event WHERE kind = 'notice'"))
        imds.spot = None
        diff = write_diff(tmp_path / "back.diff.json", diff_of(bed, plan, MigrationReason.INTERRUPTION, EAST))
        back = workspace.json("migrate", diff, "--auto-approve")
        assert (back["status"], back["run"]["region"], back["diagnostics"]) == ("retired", EAST, [])
        assert life.there(WEST) == {}
        assert set(life.there(EAST).values()) == {"3"}
        assert bed.wrong() == [], bed.story()
