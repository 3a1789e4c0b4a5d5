"""Rules 213, 214 and 216 outside AWS in detail: how wide, and under which condition."""

from __future__ import annotations

import pytest

from planner.iam.audit.escalation_other import AZURE, GOOGLE
from planner.iam.audit.registry import run
from tests.unit.iam.audit.fixture_files import audited_from

PROJECT = "projects/acme-llm"
ACCOUNT = f"{PROJECT}/serviceAccounts/node@acme-llm.iam.gserviceaccount.com"
SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000001"
GROUP = f"{SUBSCRIPTION}/resourceGroups/llm"


def google(rule, role, on=PROJECT, permissions=(), condition=""):
    binding = {
        "resource": on,
        "role": role,
        "members": ["user:a@acme.example"],
        "includedPermissions": list(permissions),
    }
    binding["condition"] = {"expression": condition}
    return run(audited_from({"subjects": [{"cloud": "gcp", "name": "x", "bindings": [binding]}]}), [f"SKY-IAM-{rule}"])


def azure(rule, scope, role="custom", condition="", **rights):
    assignment = {"scope": scope, "role": role, "condition": condition, "permissions": [rights]}
    subject = {"cloud": "azure", "name": "x", "assignments": [assignment]}
    return run(audited_from({"subjects": [subject]}), [f"SKY-IAM-{rule}"])


@pytest.mark.parametrize("power", GOOGLE, ids=lambda power: power.name)
def test_on_a_project(power):
    (one,) = google(213, "projects/acme-llm/roles/r", permissions=[power.name])
    assert power.name in one.message
    assert one.fix


@pytest.mark.parametrize("power", GOOGLE, ids=lambda power: power.name)
def test_on_one_account(power):
    assert bool(google(213, "projects/acme-llm/roles/r", ACCOUNT, [power.name])) is not power.narrow


@pytest.mark.parametrize(
    "role",
    ["roles/iam.serviceAccountUser", "roles/iam.serviceAccountTokenCreator", "roles/compute.instanceAdmin.v1"],
)
def test_roles_of_google(role):
    assert google(213, role)
    assert google(213, role, "folders/123")
    assert google(213, role, ACCOUNT) == () or "implicitDelegation" in google(213, role, ACCOUNT)[0].message


def test_a_condition_on_names_bounds_machines_and_no_project():
    mine = 'resource.name.extract("/instances/{name}").startsWith("skyplan-llm-")'
    assert google(213, "r", permissions=["compute.instances.setMetadata"], condition=mine) == ()
    assert google(213, "r", permissions=["resourcemanager.projects.setIamPolicy"], condition=mine)


def test_a_condition_on_time_bounds_nothing():
    until = 'request.time < timestamp("2030-01-01T00:00:00Z")'
    assert google(213, "roles/iam.serviceAccountUser", condition=until)
    assert google(102, "r", permissions=["compute.instances.delete"], condition=until)


def test_an_administrator_is_one_finding():
    assert google(216, "roles/owner")
    assert google(213, "roles/owner") == ()
    assert azure(216, GROUP, "Owner")
    assert azure(214, GROUP, "Owner") == ()


@pytest.mark.parametrize("power", AZURE, ids=lambda power: power.name)
def test_in_a_group(power):
    (one,) = azure(214, GROUP, **{"dataActions" if power.data else "actions": [power.name]})
    assert power.name in one.message
    assert one.fix


@pytest.mark.parametrize(
    "pattern",
    [
        "Microsoft.Compute/virtualMachines/*",
        "Microsoft.Compute/*/action",
        "microsoft.compute/virtualmachines/runCommand/*",
    ],
)
def test_wildcards_of_azure(pattern):
    assert "runCommand" in azure(214, GROUP, actions=[pattern])[0].message


def test_what_is_excluded_is_not_given():
    rights = {"actions": ["Microsoft.Compute/virtualMachines/*"]}
    rights["notActions"] = [f"Microsoft.Compute/virtualMachines/{one}" for one in ("runCommand*", "extensions/*")]
    assert azure(214, GROUP, **rights) == ()


def test_wildcards_of_actions_give_no_data_actions():
    assert all("login" not in one.message for one in azure(214, GROUP, actions=["Microsoft.Compute/virtualMachines/*"]))


def test_built_in_roles_by_name_and_by_id():
    path = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
    assert azure(216, SUBSCRIPTION, "Owner")
    assert azure(216, SUBSCRIPTION, path)
    assert azure(216, f"{GROUP}/providers/Microsoft.Storage/storageAccounts/a", "Contributor") == ()
    assert azure(214, GROUP, "Managed Identity Operator")


def test_an_administrator_of_roles_that_may_give_only_some():
    limited = "@Request[Microsoft.Authorization/roleAssignments:RoleDefinitionId] ForAnyOfAnyValues:GuidEquals {a}"
    name = "Role Based Access Control Administrator"
    assert azure(216, GROUP, name)
    assert azure(216, GROUP, name, limited) == ()
    assert azure(214, GROUP, name, limited) == ()


GIVEN = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', [])"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (f"{GIVEN}.hasOnly(['roles/storage.objectViewer'])", False),
        (f"{GIVEN}.hasOnly(['roles/storage.objectViewer', 'roles/iam.serviceAccountUser'])", True),
        (f"{GIVEN}.hasOnly(['roles/iam.serviceAccountTokenCreator'])", True),
        (f"{GIVEN}.hasOnly(['roles/iam.workloadIdentityUser'])", True),
        (f"{GIVEN}.hasOnly(['roles/storage.objectViewer']) || true", True),
        (f"!{GIVEN}.hasOnly(['roles/storage.objectViewer'])", True),
        (f"{GIVEN}.nothingThatIsKnown(['roles/storage.objectViewer'])", True),
        (f"resource.name.contains('/skyplan-') && {GIVEN}.hasOnly(['roles/iam.serviceAccountUser'])", False),
        ("", True),
    ],
)
def test_a_condition_on_roles_is_read(condition, found):
    permissions = ("iam.serviceAccounts.setIamPolicy",)
    assert bool(google("213", "projects/p/roles/r", permissions=permissions, condition=condition)) is found
    assert google("213", "projects/p/roles/r", ACCOUNT, permissions, condition) == ()
