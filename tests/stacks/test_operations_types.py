"""The operations tables of GCP, Azure and Nebius against what the stacks hold: every resource type and data source, both directions, by kind of stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from planner.iam import gcp as gcp_iam
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.stack import StackInput
from tests.stacks import azure_inputs, gcp_inputs, nebius_inputs
from tests.stacks.tunnel_inputs import PARTS

GOLDEN = Path(__file__).with_name("golden")
CLOUDS = (Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS)
PROVIDERS = {Cloud.GCP: "google", Cloud.AZURE: "azurerm", Cloud.NEBIUS: "nebius"}
MINTED = {"aws_iam_role", "aws_iam_role_policy", "data.aws_iam_policy_document"}
KINDS = {"net": "network", "adr": "addresses", "acc": "access", "cmp": "compute"}
WHOLE_BUCKET = (
    Grant(identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource="gs://acme-corpus", reason="data"),
)


def shapes(cloud: Cloud) -> Iterator[StackInput]:
    """What no golden job is: a tunnel's part, a target without an account, a whole bucket, an orchestrator that is named."""
    part = PARTS[cloud]
    yield from (part.network, part.addresses, part.access, part.compute)
    match cloud:
        case Cloud.GCP:
            whole = gcp_iam.policies(WHOLE_BUCKET, account=gcp_inputs.ACCOUNT, region=gcp_inputs.REGION)
            orchestrator = "orchestrator@acme-ml.iam.gserviceaccount.com"
            yield gcp_inputs.access(policies=whole, account=None, orchestrator=orchestrator)
        case Cloud.AZURE:
            yield azure_inputs.access(orchestrator="11111111-0000-4000-8000-000000000000")
        case _:
            yield from (replace(given, account=None) for given in nebius_inputs.everything())
            yield replace(part.addresses, account=None)


def types(document: dict[str, Any]) -> set[str]:
    return {*document.get("resource", {}), *(f"data.{kind}" for kind in document.get("data", {}))}


def golden(cloud: Cloud) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind of stack, document) of every golden file of the cloud."""
    for path in sorted((GOLDEN / "jobs" / cloud.value).glob("*.json")):
        yield from json.loads(path.read_text(encoding="utf-8")).items()
    yield from ((path.name[:3], json.loads(path.read_text())) for path in sorted((GOLDEN / cloud.value).glob("*.json")))


def operations(cloud: Cloud) -> Any:
    return import_module(f"planner.iam.operations.{cloud.value}").OPERATIONS


@pytest.mark.parametrize("cloud", CLOUDS, ids=str)
def test_the_table_holds_what_the_stacks_hold_and_nothing_else(cloud, render):
    held = {(KINDS[kind], name) for kind, document in golden(cloud) if kind in KINDS for name in types(document)}
    held |= {(KINDS[given.name[:3]], name) for given in shapes(cloud) for name in types(render(given))}
    own = {(kind, name) for kind, name in held if name.removeprefix("data.").startswith(PROVIDERS[cloud])}
    # of another cloud's there is what the broker becomes, and nothing else
    assert {name for kind, name in held - own} <= MINTED
    assert {kind for kind, _ in held - own} <= {"access"}
    assert {(row.stack, row.resource) for row in operations(cloud) if row.stack} == own


@pytest.mark.parametrize("cloud", CLOUDS, ids=str)
def test_every_resource_is_made_read_and_ended(cloud):
    steps: dict[tuple[str, str], set[str]] = {}
    for row in operations(cloud):
        steps.setdefault((row.stack, row.resource), set()).add(row.step.value)
    for (stack, resource), found in steps.items():
        if not stack:
            assert found == {"call"}, resource
        elif resource.startswith("data."):
            assert found == {"read"}, resource
        else:
            assert {"create", "read", "delete"} <= found or resource.endswith("_association"), resource


@pytest.mark.parametrize("cloud", CLOUDS, ids=str)
def test_nothing_is_launched_by_the_deployer_and_nothing_else_by_the_orchestrator(cloud):
    for row in operations(cloud):
        if row.stack:
            wanted = Identity.ORCHESTRATOR if row.stack == "compute" else Identity.DEPLOYER
            assert row.identity is wanted, row
        assert row.actions
        assert len(set(row.actions)) == len(row.actions), row
        assert not any("*" in action for action in row.actions), row


@pytest.mark.parametrize("cloud", CLOUDS, ids=str)
def test_a_lister_is_where_the_table_says(cloud):
    for row in operations(cloud):
        if row.resource.startswith("planner."):
            module, _, name = row.resource.rpartition(".")
            assert hasattr(import_module(module), name)
