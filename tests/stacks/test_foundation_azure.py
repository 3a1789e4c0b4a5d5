"""Azure's foundation stack and what a job's access stack gives the orchestrator.  Never run against live Azure: held to the provider's schema."""

from __future__ import annotations

import pytest

from planner.model.control_names import role_guid
from planner.model.offer import Cloud
from tests.stacks import azure_inputs, checker
from tests.stacks.control_inputs import CI, GROUP, MAIN, PULL, TRUSTED, foundation
from tests.stacks.foundation_common import holds, same_as_golden

SUBSCRIPTION = f"/subscriptions/{azure_inputs.ACCOUNT}"
CLIENT = "11111111-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def made(render):
    return render(foundation(Cloud.AZURE))


def test_the_stack_is_the_golden_one(made, request):
    same_as_golden(Cloud.AZURE, made, update=request.config.getoption("--update-golden", default=False))


def test_the_stack_holds_the_contract(made):
    holds(Cloud.AZURE, made)


def test_what_the_ci_names_is_an_output(made, render):
    assert made["output"]["ci"]["value"] == {
        "tenant": azure_inputs.BASE["tenant"],
        "client_ids": made["output"]["identities"]["value"],
    }
    assert "ci" not in render(foundation(Cloud.AZURE, ci=None))["output"]


def test_a_pull_request_becomes_the_planner_alone_and_the_branch_the_others(made):
    by_subject: dict[str, set[str]] = {}
    for body in made["resource"]["azurerm_federated_identity_credential"].values():
        by_subject.setdefault(body["subject"], set()).add(body["parent_id"].split(".")[1])
        assert (body["issuer"], body["audience"]) == (CI.issuer, [CI.audience])
    assert by_subject == {PULL: {"planner"}, MAIN: {"planner", "deployer", "orchestrator"}}


def test_roles_are_assigned_in_the_group_but_those_of_catalog_and_state(made):
    for name, body in made["resource"]["azurerm_role_assignment"].items():
        name = name.replace("-1", "")  # noqa: PLW2901 - whom the platform team trusts has the same
        if name.endswith("-catalog"):
            assert body["scope"] == SUBSCRIPTION
            (permissions,) = made["resource"]["azurerm_role_definition"][name]["permissions"]
            assert all(action.endswith("/read") for action in permissions["actions"])
        elif name.endswith("-state"):
            assert body["scope"].endswith("/blobServices/default/containers/tf")
        elif name.endswith("-elsewhere"):
            variable = "used_elsewhere" if name.startswith("orchestrator") else "stores_elsewhere"
            assert (body["scope"], body["for_each"]) == ("${each.value}", f"${{toset(var.{variable})}}")
        else:
            assert body["scope"] == f"{SUBSCRIPTION}/resourceGroups/{GROUP}"
        if body["principal_id"] in TRUSTED[Cloud.AZURE]:
            assert name.startswith("deployer-")
        else:
            assert body["principal_id"].split(".")[1] == name.split("-")[0]
    assert {name: body["default"] for name, body in made["variable"].items()} == {
        "stores_elsewhere": [],
        "used_elsewhere": [],
    }


def test_whoever_assigns_roles_does_it_under_the_condition_everywhere(made):
    assigned = made["resource"]["azurerm_role_assignment"]
    texts = {name: body.get("condition", "") for name, body in assigned.items() if name.startswith("deployer-assign")}
    assert len(texts) == 4
    (text,) = set(texts.values())
    assert all(body["condition_version"] == "2.0" for name, body in assigned.items() if "condition" in body)
    for identity in ("planner", "deployer", "orchestrator", "broker"):
        assert f"${{azurerm_user_assigned_identity.{identity}.principal_id}}" in text


def test_whom_the_platform_team_trusts_holds_what_the_identity_holds_and_no_more(made):
    assigned = made["resource"]["azurerm_role_assignment"]
    held: dict[str, set[tuple[str, str, str]]] = {}
    for body in assigned.values():
        right = (body["role_definition_id"], body["scope"], body.get("condition", ""))
        held.setdefault(body["principal_id"], set()).add(right)
    (person,) = TRUSTED[Cloud.AZURE]
    assert held[person] == held["${azurerm_user_assigned_identity.deployer.principal_id}"]


def test_ids_of_roles_are_known_before_they_are_made(made):
    for name, body in made["resource"]["azurerm_role_definition"].items():
        assert body["role_definition_id"] == role_guid(azure_inputs.ACCOUNT, "acme", "prod", name)


@pytest.mark.parametrize("missing", ["account", "resource_group"])
def test_a_foundation_needs_a_subscription_and_a_group(render, missing):
    with pytest.raises(ValueError, match="foundation needs"):
        render(foundation(Cloud.AZURE, **{missing: None}))


def test_the_orchestrator_gets_the_things_of_this_job_and_the_stack_defines_no_role(render):
    made = render(azure_inputs.access(orchestrator=CLIENT))
    assert checker.problems(made) == []
    ours = "${data.azurerm_user_assigned_identity.orchestrator.principal_id}"
    given = {
        (body["role_definition_name"], body["scope"])
        for body in made["resource"]["azurerm_role_assignment"].values()
        if body["principal_id"] == ours
    }
    assert given == {
        ("skyplan-acme-prod-identity-user", "${azurerm_user_assigned_identity.node.id}"),
        ("skyplan-acme-prod-node-join", "${azurerm_network_security_group.nodes.id}"),
        ("skyplan-acme-prod-node-join", "${azurerm_application_security_group.nodes.id}"),
    }
    assert "azurerm_role_definition" not in made["resource"]
    names = {body.get("role_definition_name") for body in made["resource"]["azurerm_role_assignment"].values()}
    assert "skyplan-acme-prod-checkpoints" in names


def test_without_an_orchestrator_nothing_changes(render):
    made = render(azure_inputs.access())
    assert "azurerm_user_assigned_identity" not in made.get("data", {})
    assert "azurerm_role_definition" in made["resource"]
