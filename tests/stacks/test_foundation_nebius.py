"""Nebius's foundation stack.  Never run against live Nebius: held to the provider's schema."""

from __future__ import annotations

import pytest

from planner.model.offer import Cloud
from tests.stacks import nebius_inputs
from tests.stacks.control_inputs import foundation
from tests.stacks.foundation_common import holds, same_as_golden


@pytest.fixture(scope="module")
def made(render):
    return render(foundation(Cloud.NEBIUS))


def test_the_stack_is_the_golden_one(made, request):
    same_as_golden(Cloud.NEBIUS, made, update=request.config.getoption("--update-golden", default=False))


def test_the_stack_holds_the_contract(made):
    holds(Cloud.NEBIUS, made)


def test_every_role_is_on_the_project_and_none_manages_rights(made):
    for name, body in made["resource"]["nebius_iam_v1_access_permit"].items():
        assert body["resource_id"] == nebius_inputs.PROJECT
        assert body["role"] in {"viewer", "editor"}
        assert body["parent_id"] == f"${{nebius_iam_v1_group.{name.split('-')[0]}.id}}"


def test_no_token_is_believed_whose_audience_nobody_compares(made):
    assert not [kind for kind in made["resource"] if "federated" in kind]


def test_the_owner_of_the_state_is_told_which_paths(made):
    rules = made["output"]["bucket_rules"]["value"]
    assert {rule["group_id"]: rule["paths"] for rule in rules} == {
        "${nebius_iam_v1_group.deployer.id}": ["skyplan/acme/acc-*", "skyplan/acme/adr-*", "skyplan/acme/net-*"],
        "${nebius_iam_v1_group.orchestrator.id}": ["skyplan/acme/cmp-*"],
    }


@pytest.mark.parametrize("missing", ["account", "tenant"])
def test_a_foundation_needs_a_project_and_a_tenant(render, missing):
    with pytest.raises(ValueError, match="foundation needs"):
        render(foundation(Cloud.NEBIUS, **{missing: None}))
