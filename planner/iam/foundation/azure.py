"""Azure's control identities: role definitions and their assignments, made of neutral grants and the operations table.  Pure.

A document is one role with its one assignment:
    {"role", "guid", "actions", "data_actions", "on": "group" | "subscription" | {"account", "container"}, "condition": ABAC text, absent for none,
     "elsewhere": the stack's variable with the ids outside the group on which the same right is wanted, "reason", "limits": [what the cloud cannot say]}
and, for a role that the foundation makes and the access stack of a job assigns, the same without `on`.
All in one resource group, the target's own: Azure has no condition on names or tags of machines, so the group is the bound (SKY-IAM-102).
The deployer gives roles to nodes; by which roles, to what kind of principal, and not to a control identity, is held by the assignment's condition.
It defines no role: whoever does can write any right into one.  The role for checkpoints is the foundation's, and so are the orchestrator's on a node.
Never run against live Azure.
"""

from __future__ import annotations

from typing import Any

from planner.iam.azure import condition
from planner.iam.foundation.rights import actions, grants_of, reason
from planner.iam.operations.azure import DATA_ACTIONS, OPERATIONS
from planner.model.control import ControlScope
from planner.model.control_names import (
    CHECKPOINTS,
    IDENTITY_USER,
    MINTS,
    NODE_JOIN,
    control_name,
    role_guid,
    role_name,
    state_prefixes,
)
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.grants import CONTROL_IDENTITIES, Grant, Identity, Permission
from planner.model.stack import ControlIdentity, PolicyDocument

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_CONTAINER = "@Resource[Microsoft.Storage/storageAccounts/blobServices/containers:name]"
_ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
_JOINS = (
    "Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action",
    "Microsoft.Network/networkSecurityGroups/join/action",
)
_USES = ("Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",)
#: built-in roles that nodes get (Microsoft Learn, built-in roles): Storage Blob Data Reader, Key Vault Secrets User
GIVEN_TO_NODES = ("2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", "4633458b-17de-408a-b874-0445c86b69e6")
#: what is not given here though an operation takes it, and why
WITHHELD = {
    "Microsoft.Authorization/roleDefinitions/delete": "see roleDefinitions/write",
    "Microsoft.Authorization/roleDefinitions/write": (
        "who defines a role may write any right into it; the one for checkpoints is the foundation's, and only roles whose ids are known may be assigned"
    ),
    "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action": (
        "on the group it is every identity in it; each job's access stack gives it on the one identity of its nodes"
    ),
    "Microsoft.Network/applicationSecurityGroups/joinIpConfiguration/action": "given by each job's access stack on its own group",
    "Microsoft.Network/networkSecurityGroups/join/action": "given by each job's access stack on its own rules",
    "Microsoft.Resources/subscriptions/resourceGroups/delete": "the group is the platform team's: the target names it",
    "Microsoft.Resources/subscriptions/resourceGroups/write": "the group is the platform team's: the target names it",
}
_ASSIGNING = (
    "Microsoft.Authorization/",
    "Microsoft.KeyVault/vaults/read",
    "Microsoft.Resources/subscriptions/resources/read",
    "Microsoft.Storage/storageAccounts/read",
)
#: what a launch refers to and somebody else may own
_REFERRED = (
    "Microsoft.Compute/capacityReservationGroups/deploy/action",
    "Microsoft.Compute/diskEncryptionSets/read",
    "Microsoft.Compute/images/read",
    "Microsoft.Network/virtualNetworks/subnets/join/action",
)
#: variables of the foundation stack
STORES_ELSEWHERE, USED_ELSEWHERE = "stores_elsewhere", "used_elsewhere"
#: the subscription's, of no group
_OF_SUBSCRIPTION = ("Microsoft.Compute/locations/", "Microsoft.Compute/skus/")

Document = dict[str, Any]


def names(scope: ControlScope) -> dict[Identity, str]:
    """Names of the user-assigned identities."""
    return {one: control_name(scope.project, one.value, limit=128) for one in CONTROL_IDENTITIES}


def identities(scope: ControlScope) -> tuple[ControlIdentity, ...]:
    """The four, with their roles; who may become them is the caller's to add.  Raises InputError without a resource group."""
    if not scope.resource_group:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"target {scope.target}: on Azure the resource group is the bound of every right, and none is named",
                    hint="make a group and write it as `resource_group` of the target",
                )
            ]
        )
    return tuple(
        ControlIdentity(identity=identity, name=name, policies=_policies(scope, identity))
        for identity, name in names(scope).items()
    )


def _policies(scope: ControlScope, identity: Identity) -> tuple[PolicyDocument, ...]:
    grants = grants_of(scope, identity)
    held = {grant.permission for grant in grants}
    found = [one for one in actions(OPERATIONS, identity, held) if one not in WITHHELD and one not in DATA_ACTIONS]
    # together with what finds a store: outside the group the deployer has this role alone
    assigning = tuple(one for one in found if one.startswith(_ASSIGNING)) if Identity.DEPLOYER is identity else ()
    common = tuple(one for one in found if one.startswith(_OF_SUBSCRIPTION))
    uses = tuple(one for one in found if one in _REFERRED) if identity is Identity.ORCHESTRATOR else ()
    rest = tuple(one for one in found if one not in {*assigning, *common, *uses})
    if identity is Identity.BROKER:
        return (_mints(scope, rest, grants),)
    made = [
        _role(scope, f"{identity.value}-group", rest, grants, on="group"),
        _role(scope, f"{identity.value}-catalog", common, grants, on="subscription"),
        _role(
            scope,
            f"{identity.value}-assign",
            assigning,
            grants,
            on="group",
            condition=_assignable(scope),
            elsewhere=STORES_ELSEWHERE,
        ),
        _role(scope, f"{identity.value}-uses", uses, grants, on="group", elsewhere=USED_ELSEWHERE),
        *_state(scope, identity, grants),
        *(_given_later(scope, grants) if identity is Identity.DEPLOYER else ()),
    ]
    return tuple(one for one in made if one.document["actions"] or one.document["data_actions"])


def _role(
    scope: ControlScope,
    name: str,
    found: tuple[str, ...],
    grants: tuple[Grant, ...],
    *,
    on: Any,
    condition: str = "",
    data: tuple[str, ...] = (),
    elsewhere: str = "",
) -> PolicyDocument:
    serving = {
        grant.permission
        for grant in grants
        if not {*found, *data}.isdisjoint(actions(OPERATIONS, grant.identity, (grant.permission,)))
    }
    document: Document = {
        "role": role_name(scope.project, scope.target, name),
        "guid": _guid(scope, name),
        "actions": list(found),
        "data_actions": list(data),
        "on": on,
        **({"condition": condition} if condition else {}),
        **({"elsewhere": elsewhere} if elsewhere else {}),
        "reason": reason(grants, serving),
        "limits": list(_limits(found)),
    }
    return PolicyDocument(name=name, document=document)


def _mints(scope: ControlScope, found: tuple[str, ...], grants: tuple[Grant, ...]) -> PolicyDocument:
    """To sign, and what it signs for: a signature gives no more than its signer may.

    Azure takes one assignment per identity, role and scope, so that the access stacks of two jobs could not both give it the container that they share.
    """
    data = tuple(
        one for one in actions(OPERATIONS, Identity.BROKER, {Permission.MINT_CREDENTIALS}) if one in DATA_ACTIONS
    )
    made = _role(
        scope, MINTS, found, grants, on="group", data=data, elsewhere=STORES_ELSEWHERE, condition=_under(scope, data)
    )
    limits = [
        *made.document["limits"],
        "what a signature is cut to is the broker's word: it may read and write all blobs of these accounts, and delete none",
    ]
    return PolicyDocument(name=made.name, document={**made.document, "limits": limits})


def _under(scope: ControlScope, data: tuple[str, ...]) -> str:
    """The ABAC text that keeps these actions to the project's own containers and prefixes; "" where it names none, or a whole container."""
    places = [uri.removeprefix("az://").split("/", 2) for uri in scope.data_prefixes]
    prefixes = sorted({f"{prefix.rstrip('/')}/" for _, _, prefix in places})
    if not prefixes or "/" in prefixes:
        return ""
    none = " AND ".join(f"!(ActionMatches{{'{one}'}})" for one in data)
    names = " OR ".join(f"{_CONTAINER} StringEquals '{name}'" for name in sorted({name for _, name, _ in places}))
    return f"{condition(prefixes, write=True)} AND (({none}) OR ({names}))"


def _given_later(scope: ControlScope, grants: tuple[Grant, ...]) -> tuple[PolicyDocument, ...]:
    """Roles that the deployer may assign: a job's access stack does, each on one thing of that job."""
    look = tuple(one.rsplit("/", 2)[0] + "/read" for one in _USES)
    made = (
        (
            CHECKPOINTS,
            (),
            (f"{_BLOBS}/add/action", f"{_BLOBS}/read", f"{_BLOBS}/write"),
            "checkpoints: read, write, add; never delete",
        ),
        (IDENTITY_USER, (*_USES, *look), (), "the orchestrator hands the nodes' identity on, this one alone"),
        (NODE_JOIN, _JOINS, (), "the orchestrator puts nodes behind the job's own rules"),
    )
    out: list[PolicyDocument] = []
    for name, found, data, why in made:
        document = _role(scope, name, found, grants, on=None, data=data).document
        out.append(PolicyDocument(name=name, document={**document, "reason": why, "limits": []}))
    return tuple(out)


def _guid(scope: ControlScope, word: str) -> str:
    return role_guid(scope.account, scope.project, scope.target, word)


def _assignable(scope: ControlScope) -> str:
    """The ABAC text by which the deployer gives and takes these roles only, to service principals only, and to no control identity.

    The identities are made in the same stack: their ids stand as Terraform's references.
    """
    own = (CHECKPOINTS, IDENTITY_USER, NODE_JOIN)
    roles = ", ".join((*GIVEN_TO_NODES, *(_guid(scope, one) for one in own)))
    on_nodes = ", ".join((*GIVEN_TO_NODES, _guid(scope, CHECKPOINTS)))
    control = ", ".join(f"${{azurerm_user_assigned_identity.{one.value}.principal_id}}" for one in CONTROL_IDENTITIES)
    clauses: list[str] = []
    for action, source in (("write", "@Request"), ("delete", "@Resource")):
        attribute = f"{source}[{_ASSIGNMENTS}:"
        clauses.append(
            f"((!(ActionMatches{{'{_ASSIGNMENTS}/{action}'}})) OR ("
            f"{attribute}RoleDefinitionId] ForAnyOfAnyValues:GuidEquals {{{roles}}}"
            f" AND {attribute}PrincipalType] ForAnyOfAnyValues:StringEqualsIgnoreCase {{'ServicePrincipal'}}"
            f" AND ({attribute}RoleDefinitionId] ForAnyOfAllValues:GuidNotEquals {{{on_nodes}}}"
            f" OR {attribute}PrincipalId] ForAnyOfAllValues:GuidNotEquals {{{control}}})))"
        )
    return " AND ".join(clauses)


def _state(scope: ControlScope, identity: Identity, grants: tuple[Grant, ...]) -> list[PolicyDocument]:
    """The blobs of its own stacks' state; a listing must ask for a prefix of them."""
    account, _, container = scope.state.partition("/")
    if not (account and container) or Permission.KEEP_STATE not in {grant.permission for grant in grants}:
        return []
    prefixes = state_prefixes(scope.project, identity)
    read, listed = f"ActionMatches{{'{_BLOBS}/read'}}", "SubOperationMatches{'Blob.List'}"
    write = f"ActionMatches{{'{_BLOBS}/write'}}"
    clauses = (
        (f"(!({read} AND NOT {listed}) AND !({write}))", f"@Resource[{_BLOBS}:path]"),
        (f"(!({read} AND {listed}))", f"@Request[{_BLOBS}:prefix]"),
    )
    text = " AND ".join(
        f"({guard} OR (" + " OR ".join(f"{attribute} StringStartsWith '{prefix}'" for prefix in prefixes) + "))"
        for guard, attribute in clauses
    )
    found = actions(OPERATIONS, identity, {Permission.KEEP_STATE})
    place = {"account": account, "container": container}
    return [_role(scope, f"{identity.value}-state", (), grants, on=place, condition=text, data=found)]


def _limits(found: tuple[str, ...]) -> tuple[str, ...]:
    """What Azure's roles cannot say of these actions."""
    out: list[str] = []
    if "Microsoft.Compute/virtualMachines/write" in found:
        out.append(
            "write also brings custom data, and changes a machine of the group: there is no action that only makes one"
        )
        out.append("no action or condition names a size, a region or an image: Azure Policy does")
    if "Microsoft.Compute/virtualMachines/delete" in found:
        out.append("no condition names machines: the right holds for the resource group")
    if (
        "Microsoft.Compute/virtualMachineScaleSets/write" in found
        and "Microsoft.Compute/virtualMachines/write" in found
    ):
        out.append("a machine joins a scale set or a proximity group by `write` on it, which could also change that")
    if f"{_ASSIGNMENTS}/write" in found:
        out.append(
            "which node a role is given to, and on which store, no condition can say: only which roles, and to which kind of principal"
        )
    return tuple(out)
