"""The table of AWS operations against what our stacks really contain, and against AWS's own list of actions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.iam import actions
from planner.iam.operations.aws import OPERATIONS, TOLERATED
from planner.model.control import Step
from planner.model.grants import Identity

GOLDEN = Path(__file__).parents[2] / "stacks" / "golden"
STACKS = {"net": "network", "adr": "addresses", "acc": "access", "cmp": "compute"}


def contained():
    """(kind of stack, type) of every resource and data source in the golden stacks of all AWS jobs and shapes."""
    documents = [
        (kind, body)
        for file in sorted((GOLDEN / "jobs" / "aws").glob("*.json"))
        for kind, body in json.loads(file.read_text(encoding="utf-8")).items()
    ]
    for file in [*GOLDEN.glob("*.tf.json"), *(GOLDEN / "tunnel").glob("*-aws.tf.json")]:
        documents.append((file.name.partition("-")[0], json.loads(file.read_text(encoding="utf-8"))))
    found = {
        (STACKS[kind], prefix + name)
        for kind, body in documents
        if kind != "fnd"  # applied by an administrator, with the administrator's own rights
        for part, prefix in (("resource", ""), ("data", "data."))
        for name in body.get(part, {})
        if name.startswith("aws_")  # what the broker becomes may be another cloud's
    }
    # its golden file is of the address stack only; what a tunnelled job's compute stack adds is in tests/stacks/test_tunnel_stacks.py
    return found | {("compute", "aws_eip_association")}


def test_the_table_names_what_the_stacks_contain_and_nothing_else():
    assert {(one.stack, one.resource) for one in OPERATIONS if one.stack} == contained()


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: f"{one.resource}-{one.step.value}-{one.permission.value}")
def test_every_action_exists_and_is_written_as_aws_writes_it(one):
    assert [action for action in one.actions if not actions.known(action) or actions.canonical(action) != action] == []


def test_every_resource_is_made_read_and_ended():
    steps: dict[tuple[str, str], set[Step]] = {}
    for one in OPERATIONS:
        steps.setdefault((one.stack, one.resource), set()).add(one.step)
    for (stack, resource), found in steps.items():
        if stack and not resource.startswith("data."):
            assert {Step.CREATE, Step.READ, Step.DELETE} <= found, resource


def test_what_launches_is_the_orchestrators_and_the_rest_the_deployers():
    for one in OPERATIONS:
        if one.stack:
            assert one.identity is (Identity.ORCHESTRATOR if one.stack == "compute" else Identity.DEPLOYER)


def test_what_is_tolerated_is_granted_to_nobody():
    assert not TOLERATED.keys() & {action for one in OPERATIONS for action in one.actions}
    assert all(len(reason.split()) > 5 for reason in TOLERATED.values())


def test_nobody_makes_service_linked_roles_keys_or_users():
    forbidden = {"iam:CreateServiceLinkedRole", "iam:CreateAccessKey", "iam:CreateUser", "iam:UpdateAssumeRolePolicy"}
    assert not forbidden & {action for one in OPERATIONS for action in one.actions}
