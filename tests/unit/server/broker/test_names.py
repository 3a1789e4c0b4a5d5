"""The node identities that the broker expects are those that the stacks really make: held against the golden stacks of a whole job."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.app.mint_nodes import NodeNames
from planner.model.offer import Cloud
from planner.model.runtime import NodeIdentity, same_machine
from planner.model.workload import Store
from tests.unit.server.broker.bed import ACCOUNTS, PROJECT, SUBSCRIPTION, node, plan, recorded, workload

GOLDEN = Path(__file__).parents[3] / "stacks" / "golden" / "jobs"
JOB = "llama3-8b-sft"


def made(cloud: Cloud, stack: str, kind: str) -> dict[str, Any]:
    """The one resource of that kind, with the region it is in."""
    document = json.loads((GOLDEN / cloud.value / "on-demand.json").read_text())
    (found,) = document[stack]["resource"][kind].values()
    return found


def principal(cloud: Cloud, account: str) -> str:
    match cloud:
        case Cloud.AWS:
            role = made(cloud, "acc", "aws_iam_role")
            return f"arn:aws:iam::{account}:role{role['path']}{role['name']}"
        case Cloud.GCP:
            return f"{made(cloud, 'acc', 'google_service_account')['account_id']}@{account}.iam.gserviceaccount.com"
        case _:
            group = made(cloud, "net", "azurerm_resource_group")["name"]
            name = made(cloud, "acc", "azurerm_user_assigned_identity")["name"]
            path = f"/subscriptions/{account}/resourceGroups/{group}/providers"
            return f"{path}/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.GCP, Cloud.AZURE])
def test_the_stacks_nodes_are_known_by_the_names_that_they_have(cloud):
    account = ACCOUNTS[cloud]
    approved = plan(cloud, workload(Store.S3, JOB))
    text = (GOLDEN / cloud.value / "on-demand.json").read_text()
    # the shortest: what hangs on the stack has more behind it
    region = min(re.findall(rf"{JOB}--{cloud.value}-prod-([a-z0-9-]*[a-z0-9])", text), key=len)
    approved = replace(approved, ranked=(replace(approved.ranked[0], region=region),))
    who = replace(node(cloud, JOB), principal=principal(cloud, account))
    found = NodeNames(project=PROJECT).piece(approved, who)
    assert found is not None
    assert {piece.cloud for piece in found} == {cloud.value}
    assert NodeNames(project=replace(PROJECT, name="acme2")).piece(approved, who) is None
    assert NodeNames(project=PROJECT).piece(plan(cloud, workload(Store.S3, "other")), who) is None


@pytest.mark.parametrize("cloud", Cloud)
def test_a_machine_is_the_one_that_terraform_named(cloud):
    who = node(cloud)
    assert same_machine(recorded(cloud), who)
    assert same_machine("", who), "a record that knows no machine contradicts none"
    assert same_machine(recorded(cloud, 1), who) == (not who.instance_id)


@pytest.mark.parametrize(
    "text",
    [
        "projects/other/zones/us-central1-a/instances/node-0",
        "projects/acme-ml/zones/us-central1-b/instances/node-0",
        "x/projects/acme-ml/zones/us-central1-a/instances/node-0",
        "node-00",
    ],
)
def test_a_path_of_google_is_compared_whole(text):
    assert not same_machine(text, node(Cloud.GCP))


def test_a_path_of_azure_is_of_the_subscription():
    who = node(Cloud.AZURE)
    assert same_machine(recorded(Cloud.AZURE).upper(), who)
    assert not same_machine(recorded(Cloud.AZURE).replace(SUBSCRIPTION, "0" * 36), who)
    assert not same_machine(recorded(Cloud.AZURE).replace("/node-0", "/other/virtualMachines/xnode-0"), who)
    assert not same_machine("i-1", NodeIdentity(scheme="aws-sts", cloud="aws", instance_id="i-2"))
