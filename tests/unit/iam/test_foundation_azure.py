"""Azure's control identities: least rights out of the operations table, judged by the local evaluator.  Never run against live Azure."""

from __future__ import annotations

import re

import pytest

from planner.iam.evaluate.azure import judge
from planner.iam.foundation import azure
from planner.iam.operations.azure import DATA_ACTIONS, OPERATIONS
from planner.model.control_names import CHECKPOINTS, IDENTITY_USER, NODE_JOIN, role_guid
from planner.model.errors import InputError
from planner.model.grants import CONTROL_IDENTITIES, Identity
from planner.model.offer import Cloud
from planner.model.policy import RoleAssignment
from tests.stacks.azure_inputs import ACCOUNT
from tests.stacks.control_inputs import GROUP, scope

GROUP_ID = f"/subscriptions/{ACCOUNT}/resourceGroups/{GROUP}"
ASSIGN = "Microsoft.Authorization/roleAssignments"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
PRINCIPALS = {one: f"00000000-0000-4000-8000-00000000000{n}" for n, one in enumerate(CONTROL_IDENTITIES)}
NODE = "99999999-0000-4000-8000-000000000000"
OWNER, READER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635", azure.GIVEN_TO_NODES[0]


def made(**changes):
    return {one.identity: one for one in azure.identities(scope(Cloud.AZURE, **changes))}


def held(identity, field="actions", **changes):
    """What it holds itself: without the roles that it may only hand on."""
    policies = [p for p in made(**changes)[identity].policies if p.document["on"] is not None]
    return {one for policy in policies for one in policy.document[field]}


def assignments(identity):
    out = []
    for policy in made()[identity].policies:
        document, on = policy.document, policy.document["on"]
        if on is None:
            continue
        place = {"group": GROUP_ID, "subscription": f"/subscriptions/{ACCOUNT}"}.get(str(on), f"{GROUP_ID}/state")
        text = document.get("condition", "")
        for one, principal in PRINCIPALS.items():
            text = text.replace(f"${{azurerm_user_assigned_identity.{one.value}.principal_id}}", principal)
        assert "${" not in text
        out.append(
            RoleAssignment(
                role=document["role"],
                scope=place,
                actions=tuple(document["actions"]),
                data_actions=tuple(document["data_actions"]),
                condition=text,
            )
        )
    return out


def may_assign(role, principal=NODE, kind="ServicePrincipal", verb="write"):
    source = "Request" if verb == "write" else "Resource"
    attributes = {
        f"{source}[{ASSIGN}:RoleDefinitionId]": role,
        f"{source}[{ASSIGN}:PrincipalType]": kind,
        f"{source}[{ASSIGN}:PrincipalId]": principal,
    }
    verdict = judge(assignments(Identity.DEPLOYER), f"{ASSIGN}/{verb}", f"{GROUP_ID}/x", attributes=attributes)
    return verdict.decision == "allow"


@pytest.mark.parametrize("identity", CONTROL_IDENTITIES)
def test_every_action_is_one_that_an_operation_takes_and_none_is_a_pattern(identity):
    needed = {action for row in OPERATIONS if row.identity is identity for action in row.actions}
    assert held(identity) == needed - set(azure.WITHHELD) - DATA_ACTIONS
    assert held(identity, "data_actions") == needed & DATA_ACTIONS
    assert not [one for one in held(identity) if "*" in one]


def test_what_is_withheld_is_taken_by_an_operation_and_says_why():
    assert set(azure.WITHHELD) <= {action for row in OPERATIONS for action in row.actions}
    assert all(azure.WITHHELD.values())


def test_the_orchestrator_runs_nothing_on_a_machine_and_gives_nothing():
    actions = held(Identity.ORCHESTRATOR)
    never = re.compile(r"runCommand|extensions|login|listKeys|Authorization|assign/action|\*", re.IGNORECASE)
    assert not [one for one in actions if never.search(one)]
    assert held(Identity.ORCHESTRATOR, "data_actions", state="") == set()


def test_the_deployer_starts_nothing_and_defines_no_role():
    assert not [one for one in held(Identity.DEPLOYER) if "virtualMachines/" in one or "networkInterfaces" in one]
    assert "Microsoft.Authorization/roleDefinitions/write" not in held(Identity.DEPLOYER)
    assert all(one.endswith("/read") for one in held(Identity.PLANNER))
    assert held(Identity.BROKER) == {"Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action"}
    assert not [one for one in held(Identity.BROKER, "data_actions") if "delete" in one.lower()]


def test_a_deployer_gives_nodes_their_data_and_the_orchestrator_its_two_roles():
    own = {one: role_guid(ACCOUNT, "acme", "prod", one) for one in (CHECKPOINTS, IDENTITY_USER, NODE_JOIN)}
    for verb in ("write", "delete"):
        for role in (*azure.GIVEN_TO_NODES, *own.values()):
            assert may_assign(role, verb=verb)
        assert may_assign(own[IDENTITY_USER], PRINCIPALS[Identity.ORCHESTRATOR], verb=verb)


@pytest.mark.parametrize("verb", ["write", "delete"])
@pytest.mark.parametrize(
    ("role", "principal", "kind"),
    [
        (OWNER, NODE, "ServicePrincipal"),
        ("18d7d88d-d35e-4fb5-a5c3-7773c20a72d9", NODE, "ServicePrincipal"),
        (READER, NODE, "User"),
        (READER, NODE, "Group"),
        *((READER, principal, "ServicePrincipal") for principal in PRINCIPALS.values()),
        (role_guid(ACCOUNT, "acme", "prod", CHECKPOINTS), PRINCIPALS[Identity.DEPLOYER], "ServicePrincipal"),
        (role_guid(ACCOUNT, "acme", "prod", "orchestrator-group"), NODE, "ServicePrincipal"),
    ],
)
def test_a_deployer_gives_no_other_role_to_no_person_and_no_data_to_a_control_identity(role, principal, kind, verb):
    assert not may_assign(role, principal, kind, verb)


def test_reading_of_assignments_needs_no_attribute():
    verdict = judge(assignments(Identity.DEPLOYER), f"{ASSIGN}/read", f"{GROUP_ID}/x")
    assert verdict.decision == "allow"


@pytest.mark.parametrize(
    ("identity", "mine", "others"),
    [
        (Identity.ORCHESTRATOR, "skyplan/acme/cmp-a-g1.tfstate", "skyplan/acme/acc-a.tfstate"),
        (Identity.DEPLOYER, "skyplan/acme/net-a.tfstate", "skyplan/acme/cmp-a-g1.tfstate"),
    ],
)
def test_state_is_kept_apart(identity, mine, others):
    def asks(path, action="read", sub=""):
        attribute = f"Request[{BLOBS}:prefix]" if sub else f"Resource[{BLOBS}:path]"
        verdict = judge(
            assignments(identity),
            f"{BLOBS}/{action}",
            f"{GROUP_ID}/state/b",
            data=True,
            attributes={attribute: path},
            sub_operation=sub,
        )
        return verdict.decision == "allow"

    for action in ("read", "write"):
        assert asks(mine, action)
        assert not asks(others, action)
        assert not asks(mine.replace("acme", "other"), action)
    assert asks(mine, sub="Blob.List")
    assert not asks("skyplan/", sub="Blob.List")


def test_conditions_fit_azure():
    texts = [p.document.get("condition", "") for one in made().values() for p in one.policies]
    # a reference becomes an id of 36 characters
    assert max(len(re.sub(r"\$\{[^}]+\}", "x" * 36, text)) for text in texts) < 8 * 1024


def test_roles_of_two_projects_and_subscriptions_have_ids_of_their_own():
    ids = [
        policy.document["guid"]
        for changes in ({}, {"project": "other"}, {"account": NODE}, {"target": "dev"})
        for one in made(**changes).values()
        for policy in one.policies
    ]
    assert len(set(ids)) == len(ids)


def test_what_azure_cannot_say_is_said():
    said = " ".join(limit for one in made().values() for p in one.policies for limit in p.document["limits"])
    for word in ("custom data", "Azure Policy", "resource group", "only which roles"):
        assert word in said
    assert all(policy.document["reason"] for one in made().values() for policy in one.policies)


def test_without_a_resource_group_there_is_no_bound_and_no_foundation():
    with pytest.raises(InputError, match="resource group"):
        made(resource_group="")
