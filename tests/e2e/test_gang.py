"""All nodes of a cluster or none, on the real AWS provider: placement group, EFA interfaces, and what a refused rank takes down with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.identities import Identities
from tests.e2e.workspace import Workspace
from tests.emulators.aws import Aws
from tests.emulators.terraform import Terraform

pytestmark = pytest.mark.terraform

JOB = """\
name: train
resources: {accelerators: A100:8, nodes: 2, capacity: [spot]}
work: {hours: 2, on: A100:8, nodes: 2}
run: python train.py
constraints: {clouds: [aws], instance_types: [p4d.24xlarge]}
"""


def interfaces(node: dict[str, Any]) -> list[tuple[str, int]]:
    return [(card["InterfaceType"], card["Attachment"]["NetworkCardIndex"]) for card in node["NetworkInterfaces"]]


def test_a_cluster_is_launched_whole_or_not_at_all(
    tmp_path: Path, aws: Aws, terraform: Terraform, as_written: Callable[[Workspace, str], None]
) -> None:
    workspace = Workspace(tmp_path / "repo", aws, terraform, job=JOB, identities=Identities(aws))
    ranked = workspace.plan()["ranked"]
    aws.proxy.fail(code="InsufficientInstanceCapacity", zone_id=ranked[0]["zone"], body=r"r01")
    done = workspace.apply()
    assert [(a["outcome"], a["code"]) for a in done["attempts"]] == [
        ("refused", "InsufficientInstanceCapacity"),
        ("done", ""),
    ]
    assert (done["run"]["generation"], done["run"]["zone"]) == (2, ranked[1]["zone"])

    ended = aws.client("ec2").describe_instances(Filters=[{"Name": "tag:skyplan:generation", "Values": ["1"]}])
    states = [i["State"]["Name"] for r in ended["Reservations"] for i in r["Instances"]]
    assert states == ["terminated"], "the other rank had been launched, and was torn down"
    nodes = aws.instances(skyplan_job="train")
    assert {n["InstanceId"] for n in nodes} == {n["instance_id"] for n in done["run"]["nodes"]}
    assert {n["InstanceId"]: n["PrivateIpAddress"] for n in nodes} == {
        n["instance_id"]: n["address"] for n in done["run"]["nodes"]
    }
    # with interfaces in the template only the head's address is fixed, the one that every other node is told
    assert done["run"]["nodes"][0]["address"] == ranked[1]["addresses"][0]

    groups = {g["GroupName"]: g for g in aws.client("ec2").describe_placement_groups()["PlacementGroups"]}
    (joined,) = {n["Placement"]["GroupName"] for n in nodes}
    assert groups[joined]["Strategy"] == "cluster"
    for node in nodes:
        assert interfaces(node) == [("efa", card) for card in range(4)]
        assert node["InstanceType"] == "p4d.24xlarge"
        assert node["InstanceLifecycle"] == "spot"
        assert "PublicIpAddress" not in node

    workspace.run("destroy", "train", "--auto-approve")
    assert aws.leftovers() == []
    as_written(workspace, "a cluster of two with EFA, the first launch refused")
