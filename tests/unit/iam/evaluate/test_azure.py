"""Azure role assignments and their conditions, those that skyplan writes among them; each denial beside its allowed twin."""

from __future__ import annotations

import pytest

from planner.iam.azure import READ_ACTION, SHUT_ACTIONS, WRITE_ACTIONS, condition
from planner.iam.evaluate.abac import AbacError, Asked, read
from planner.iam.evaluate.azure import judge, reaches
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import RoleAssignment

GROUP = "/subscriptions/s/resourceGroups/skyplan"
CONTAINER = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/a/blobServices/default/containers/c"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
PATH, PREFIX = f"Resource[{BLOBS}:path]", f"Request[{BLOBS}:prefix]"
NAME = "Resource[Microsoft.Storage/storageAccounts/blobServices/containers:name]"
READER = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"
OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
ROLE, KIND = (
    f"Request[Microsoft.Authorization/roleAssignments:{name}]" for name in ("RoleDefinitionId", "PrincipalType")
)
WRITE = "Microsoft.Authorization/roleAssignments/write"
#: only this role, only to service principals
DELEGATION = (
    f"(!(ActionMatches{{'{WRITE}'}}) OR ("
    f"@{ROLE} ForAnyOfAnyValues:GuidEquals {{{READER}}} AND "
    f"@{KIND} ForAnyOfAnyValues:StringEqualsIgnoreCase {{'ServicePrincipal'}}))"
)


def assignment(**values):
    return RoleAssignment(**{"role": "r", "scope": GROUP, **values})


def blobs(*prefixes, write=False, shut=False):
    data = (READ_ACTION, *WRITE_ACTIONS, *SHUT_ACTIONS)
    return [
        assignment(scope=CONTAINER, data_actions=data, condition=condition(prefixes, write=write, shut=shut)),
    ]


def test_actions_less_not_actions():
    role = assignment(actions=("Microsoft.Compute/virtualMachines/*",), not_actions=("*/runCommand/action",))
    vm = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/v"
    assert judge([role], "microsoft.compute/virtualmachines/READ", vm)
    assert not judge([role], "Microsoft.Compute/virtualMachines/runCommand/action", vm)
    assert not judge([role], "Microsoft.Compute/disks/read", vm)
    # taken from its own role only
    other = assignment(actions=("Microsoft.Compute/virtualMachines/runCommand/action",))
    assert judge([role, other], "Microsoft.Compute/virtualMachines/runCommand/action", vm)


def test_data_actions_are_a_world_of_their_own():
    role = assignment(actions=("*",), not_data_actions=())
    assert judge([role], READ_ACTION, CONTAINER)
    assert not judge([role], READ_ACTION, CONTAINER, data=True)
    some = assignment(data_actions=(f"{BLOBS}/*",), not_data_actions=(f"{BLOBS}/delete",))
    assert judge([some], READ_ACTION, CONTAINER, data=True)
    assert not judge([some], f"{BLOBS}/delete", CONTAINER, data=True)


def test_a_built_in_role_is_what_is_known_of_it():
    owner, contributor = assignment(role="Owner"), assignment(role="Contributor")
    assert judge([owner], WRITE, GROUP)
    assert not judge([contributor], WRITE, GROUP)
    assert judge([contributor], "Microsoft.Compute/virtualMachines/write", GROUP)
    # management is not data
    assert not judge([owner], READ_ACTION, CONTAINER, data=True)
    assert judge([assignment(role="Storage Blob Data Reader")], READ_ACTION, CONTAINER, data=True)
    assert "what the role holds is not known" in judge([assignment(role="Somebody")], WRITE, GROUP).by


@pytest.mark.parametrize(
    ("scope", "resource", "wanted"),
    [
        (GROUP, GROUP, True),
        (GROUP.upper(), CONTAINER, True),
        (GROUP + "/", CONTAINER, True),
        (GROUP, GROUP + "2/providers/x/y/z", False),
        (CONTAINER, GROUP, False),
        (CONTAINER, CONTAINER[:-1] + "cc", False),
        ("/", GROUP, True),
        ("", GROUP, False),
        ("${azurerm_resource_group.g.id}", "${azurerm_resource_group.g.id}/providers/x/y/z", True),
        ("${azurerm_resource_group.g.id}", "${azurerm_resource_group.h.id}/providers/x/y/z", False),
        ("/providers/Microsoft.Management/managementGroups/m", GROUP, False),
    ],
)
def test_what_an_assignment_reaches(scope, resource, wanted):
    assert reaches(scope, resource) is wanted


def test_a_management_group_is_named_by_the_caller():
    group = "/providers/Microsoft.Management/managementGroups/m"
    assert reaches(group, GROUP, [group.lower()])


@pytest.mark.parametrize(
    ("action", "path", "allowed"),
    [
        (READ_ACTION, "data/x", True),
        (READ_ACTION, "data2/x", False),
        (READ_ACTION, "Data/x", False),
        (WRITE_ACTIONS[0], "data/x", True),
        (WRITE_ACTIONS[0], "other/x", False),
        (WRITE_ACTIONS[1], "other/x", False),
        (SHUT_ACTIONS[0], "data/x", False),
        (SHUT_ACTIONS[3], "data/x", False),
    ],
)
def test_what_skyplans_own_condition_lets_through(action, path, allowed):
    verdict = judge(
        blobs("data/", write=True, shut=True), action, CONTAINER, data=True, attributes={PATH: path, NAME: "c"}
    )
    assert verdict.allowed is allowed


def test_without_shut_the_condition_leaves_deleting_to_the_role():
    assert judge(blobs("data/", write=True), SHUT_ACTIONS[0], CONTAINER, data=True, attributes={PATH: "data/x"})


def test_listing_is_held_to_the_prefix():
    def listed(**attributes):
        carried = {PREFIX: attributes["prefix"]} if attributes else {}
        return judge(
            blobs("data/", "more/"),
            READ_ACTION,
            CONTAINER,
            data=True,
            sub_operation="Blob.List",
            attributes=carried,
        )

    assert listed(prefix="data/")
    assert listed(prefix="more/deep/")
    assert not listed(prefix="dat")
    verdict = listed()
    assert verdict.decision is Decision.IMPLICIT_DENY
    assert "does not carry" in verdict.by


def test_constrained_delegation():
    giver = [assignment(actions=(WRITE,), condition=DELEGATION)]
    assert judge(giver, WRITE, GROUP, attributes={ROLE: READER, KIND: "ServicePrincipal"})
    assert judge(giver, WRITE, GROUP, attributes={ROLE: READER.upper(), KIND: "servicePrincipal"})
    assert not judge(giver, WRITE, GROUP, attributes={ROLE: OWNER, KIND: "ServicePrincipal"})
    assert not judge(giver, WRITE, GROUP, attributes={ROLE: READER, KIND: "User"})
    assert not judge(giver, WRITE, GROUP)


VALUE = {"resource[x:a]": ("b/c",), "resource[x:many]": ("a", "b"), "resource[x:n]": ("3",), "resource[x:t]": ("true",)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@Resource[x:a] StringEquals 'b/c'", True),
        ("@Resource[x:a] StringEquals 'B/c'", False),
        ("@Resource[x:a] stringequalsignorecase 'B/c'", True),
        ("@Resource[x:a] StringNotEquals 'b/c'", False),
        ("@Resource[x:a] StringStartsWith 'b/'", True),
        ("@Resource[x:a] StringNotStartsWith 'b/'", False),
        ("@Resource[x:a] StringLike 'b*'", True),
        ("@Resource[x:a] StringLike 'b?'", False),
        ("@Resource[x:a] StringNotLike 'c*'", True),
        ("@Resource[x:n] NumericGreaterThan 2", True),
        ("@Resource[x:n] NumericLessThanEquals 2.5", False),
        ("@Resource[x:a] NumericEquals 2", None),
        ("@Resource[x:t] BoolEquals true", True),
        ("@Resource[x:t] BoolNotEquals true", False),
        ("@Resource[x:a] StringEquals @Resource[x:a]", True),
        ("@Resource[x:many] ForAnyOfAnyValues:StringEquals {'a', 'z'}", True),
        ("@Resource[x:many] ForAllOfAnyValues:StringEquals {'a', 'z'}", False),
        ("@Resource[x:many] ForAllOfAnyValues:StringEquals {'a', 'b', 'z'}", True),
        ("@Resource[x:many] ForAnyOfAllValues:StringNotEquals {'b', 'z'}", True),
        ("@Resource[x:many] ForAllOfAllValues:StringNotEquals {'b', 'z'}", False),
        ("@Resource[x:many] ForAllOfAllValues:StringNotEquals {'y', 'z'}", True),
        # several values and no set operator, or none at all: open, also under a negation, unless the other side decides
        ("@Resource[x:many] StringEquals 'a'", None),
        ("@Resource[x:none] StringNotEquals 'a'", None),
        ("NOT (@Resource[x:none] StringEquals 'a')", None),
        ("@Resource[x:none] StringEquals 'a' OR @Resource[x:t] BoolEquals true", True),
        ("@Resource[x:none] StringEquals 'a' AND @Resource[x:t] BoolEquals false", False),
        ("@Resource[x:none] StringEquals 'a' AND @Resource[x:t] BoolEquals true", None),
        ("Exists @Resource[x:none]", False),
        ("Not Exists @Resource[x:none] && exists @resource[X:A]", True),
        ("ActionMatches{'a/*'}", True),
        ("ActionMatches{'b/*'}", False),
        ("!(ActionMatches{'A/READ'} AND NOT SubOperationMatches{'Blob.List'})", True),
        ("SubOperationMatches{'Blob.List'}", True),
        # AND binds closer than OR
        ("ActionMatches{'a/*'} OR ActionMatches{'b'} AND ActionMatches{'c'}", True),
    ],
)
def test_the_language(text, wanted):
    assert read(text)(Asked(action="a/read", sub_operation="Blob.List", attributes=VALUE)) is wanted


@pytest.mark.parametrize(
    "text",
    [
        "@Resource[x:a] Frobs 'x'",
        "@Resource[x:a] ForSome:StringEquals {'x'}",
        "@Resource[x:a] StringEquals {'x'}",
        "@Resource[x:a] StringEquals",
        "@Somebody[x:a] StringEquals 'x'",
        "Exists 'x'",
        "ActionMatches('x')",
        "(ActionMatches{'x'}",
        "ActionMatches{'x'} ActionMatches{'x'}",
        "'x'",
        "",
        "(" * 3000 + "ActionMatches{'x'}" + ")" * 3000,
    ],
)
def test_what_is_not_understood_is_refused(text):
    with pytest.raises(AbacError):
        read(text)
    verdict = judge([assignment(actions=("*",), condition=text or " ")], "a/read", GROUP)
    assert verdict.decision is Decision.IMPLICIT_DENY
    assert "not understood" in verdict.by
