"""Grants as Azure role assignments: exactly the prefixes, no wildcard action, no delete.  Pure.

A document is one assignment for the nodes' identity:
  role        name of an existing role; absent where `definition` says what the stack has to define
  definition  {"data_actions": […]} of a role of its own
  resource    {"type", "name"} of the account or vault, found by these in the target's subscription
  child       path below that resource's id at which the role is assigned: one container, one secret
  condition   ABAC text, version 2.0; absent where the whole container is granted
  reason      why, shown in the assignment's description

Azure allows one assignment per identity, role and scope, so that all prefixes of a container stand in one condition.  A prefix is compared with
`StringStartsWith`, which knows no wildcard, and ends in `/`: a sibling `data2` is not under `data`.  Listing is its own sub-operation with its
own attribute; without `prefix` in the request it is refused.

Checkpoints get a role of their own, since the built-in Storage Blob Data Contributor has `containers/delete` and `containers/write` among its
management actions, which no condition reaches: a node could delete the container.  The role has read, write and add, nothing else; overwriting
is part of write, renaming (accounts with a hierarchical namespace) is not in it.  `checkpoint_role` names an existing role instead, for a platform
team that lets nobody define roles; deleting, moving and retagging are then shut by the condition.

Never run against a live account.  A vault must use Azure RBAC, not access policies, or its assignments mean nothing.
Format of conditions: Microsoft Learn, conditions-format and storage-auth-abac-attributes, 2024-04.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Sequence
from typing import Any

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.grants import Grant, Permission
from planner.model.stack import PolicyDocument

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
READ_ACTION = f"{_BLOBS}/read"
WRITE_ACTIONS = (f"{_BLOBS}/write", f"{_BLOBS}/add/action")
#: what a role that skyplan did not define may hold, and nodes never do
SHUT_ACTIONS = (
    f"{_BLOBS}/delete",
    f"{_BLOBS}/deleteBlobVersion/action",
    f"{_BLOBS}/permanentDelete/action",
    f"{_BLOBS}/move/action",
    f"{_BLOBS}/tags/write",
    f"{_BLOBS}/immutableStorage/runAsSuperUser/action",
)
READER = "Storage Blob Data Reader"
SECRET_READER = "Key Vault Secrets User"  # noqa: S105 -- a role's name
ACCOUNT_TYPE = "Microsoft.Storage/storageAccounts"
VAULT_TYPE = "Microsoft.KeyVault/vaults"
#: length of a condition that Azure takes, in characters (Azure RBAC limits, 2024-04)
CONDITION_LIMIT = 8 * 1024

_AZ = "az://"
_SECRET = "azure-keyvault://"  # noqa: S105 -- a scheme
_NAMES = {Permission.READ_OBJECTS: "read", Permission.WRITE_CHECKPOINTS: "write", Permission.READ_SECRET: "secret"}
_PATH = f"@Resource[{_BLOBS}:path]"
_PREFIX = f"@Request[{_BLOBS}:prefix]"
_CONTAINER = "@Resource[Microsoft.Storage/storageAccounts/blobServices/containers:name]"
#: shorter than any container's name: a comparison with it is never true
_NO_CONTAINER = "-"

Document = dict[str, Any]


def policies(
    grants: Sequence[Grant],
    *,
    account: str | None,
    region: str,
    elsewhere: Collection[str] = (),
    checkpoint_role: str | None = None,
) -> tuple[PolicyDocument, ...]:
    """One document per role and container or secret; grants in other clouds' stores render to nothing.

    `elsewhere` names storage accounts and vaults that skyplan may not touch (see `snippets`).  `account` and `region` change nothing: an assignment
    lives where the store is.  The order of the grants changes nothing.  Raises InputError for what no condition can say.
    """
    del account, region
    return tuple(made for made, name in _assignments(grants, checkpoint_role) if name not in elsewhere)


def snippets(
    grants: Sequence[Grant],
    *,
    account: str | None,
    region: str,
    elsewhere: Collection[str] = (),
    checkpoint_role: str | None = None,
) -> tuple[str, ...]:
    """What the owners of the stores in `elsewhere` run, in their own subscription, with the Azure CLI.

    `$NODE_PRINCIPAL_ID` is the output `node_principal_id` of the job's access stack.
    """
    del account, region
    return tuple(_command(made) for made, name in _assignments(grants, checkpoint_role) if name in elsewhere)


def _assignments(grants: Sequence[Grant], checkpoint_role: str | None) -> list[tuple[PolicyDocument, str]]:
    """Every assignment with the name of the account or vault it is on, sorted by document name."""
    groups: dict[tuple[Permission, str, str], list[Grant]] = {}
    for grant in sorted(set(grants)):
        place = _place(grant)
        if place:
            groups.setdefault((grant.permission, *place), []).append(grant)
    out: list[tuple[PolicyDocument, str]] = []
    for (permission, resource, child), mine in groups.items():
        # `_` is in no name of Azure's here: two places never share a document's name
        name = f"{mine[0].identity.value}-{_NAMES[permission]}-{resource}_{child}"
        if permission is Permission.READ_SECRET:
            document = _secret(resource, child)
        else:
            document = _blobs(permission, resource, child, mine, checkpoint_role)
        reason = "; ".join(dict.fromkeys(grant.reason for grant in mine))
        out.append((PolicyDocument(name=name, document={**document, "reason": reason}), resource))
    return sorted(out, key=lambda made: made[0].name)


def _place(grant: Grant) -> tuple[str, str] | None:
    """(account, container) or (vault, secret), in the spelling that Azure compares by; None for other clouds' stores."""
    if grant.permission is Permission.READ_SECRET:
        if not grant.resource.startswith(_SECRET):
            return None
        vault, _, rest = grant.resource.removeprefix(_SECRET).lower().partition("/")
        secret = rest.split("/", 1)[0]  # a version may follow; a role is on the secret
        if not secret:
            raise _refusal("SKY-SPEC-105", f"{grant.resource} names no secret", "write azure-keyvault://VAULT/SECRET")
        return vault, secret
    if not grant.resource.startswith(_AZ):
        return None
    account, _, rest = grant.resource.removeprefix(_AZ).partition("/")
    return account, rest.partition("/")[0]


def _secret(vault: str, secret: str) -> Document:
    return {"role": SECRET_READER, "resource": {"type": VAULT_TYPE, "name": vault}, "child": f"/secrets/{secret}"}


def _blobs(
    permission: Permission, account: str, container: str, grants: list[Grant], checkpoint_role: str | None
) -> Document:
    prefixes = _outermost([_prefix(grant.resource) for grant in grants])
    writes = permission is Permission.WRITE_CHECKPOINTS
    text = condition(prefixes, write=writes, shut=writes and checkpoint_role is not None)
    if len(text) > CONDITION_LIMIT:
        summary = f"az://{account}/{container}: {len(prefixes)} prefixes make a condition of {len(text)} characters"
        raise _refusal("SKY-SPEC-105", f"{summary}; Azure takes {CONDITION_LIMIT}", "name a prefix above them")
    if not writes:
        role: Document = {"role": READER}
    elif checkpoint_role is not None:
        role = {"role": checkpoint_role}
    else:
        role = {"definition": {"data_actions": [READ_ACTION, *WRITE_ACTIONS]}}
    return {
        **role,
        "resource": {"type": ACCOUNT_TYPE, "name": account},
        "child": f"/blobServices/default/containers/{container}",
        **({"condition": text} if text else {}),
    }


def condition(prefixes: Sequence[str], *, write: bool, shut: bool = False) -> str:
    """The ABAC text that keeps reading, listing and (`write`) writing to prefixes that end in `/`; `()` is everything, "" needs no condition.

    `shut` closes what a role that skyplan did not define may hold beside that.  Raises InputError for a prefix with a quote.
    """
    clauses: list[str] = []
    if prefixes:
        whole = [f"{_matches(READ_ACTION)} AND NOT SubOperationMatches{{'Blob.List'}}"]
        whole += [_matches(action) for action in WRITE_ACTIONS] if write else []
        clauses.append(_clause(whole, _PATH, prefixes))
        clauses.append(_clause([f"{_matches(READ_ACTION)} AND SubOperationMatches{{'Blob.List'}}"], _PREFIX, prefixes))
    if shut:
        never = f"({_CONTAINER} StringEquals {_quoted(_NO_CONTAINER)})"
        clauses.append(f"({_none_of([_matches(action) for action in SHUT_ACTIONS])} OR {never})")
    return " AND ".join(clauses)


def _clause(actions: list[str], attribute: str, prefixes: Sequence[str]) -> str:
    """One of the actions only where the attribute begins with one of the prefixes."""
    starts = " OR ".join(f"{attribute} StringStartsWith {_quoted(prefix)}" for prefix in prefixes)
    return f"({_none_of(actions)} OR ({starts}))"


def _none_of(actions: list[str]) -> str:
    return "(" + " AND ".join(f"!({action})" for action in actions) + ")"


def _matches(action: str) -> str:
    return f"ActionMatches{{'{action}'}}"


def _quoted(text: str) -> str:
    """A literal.  No way to write a quote or a backslash in one is documented, and a guess could widen the right: refused."""
    if "'" in text or "\\" in text:
        summary = f"{text!r}: a condition on an Azure role cannot hold a quote or a backslash"
        raise _refusal("SKY-SPEC-108", summary, "rename the folder, or grant the one above it")
    return f"'{text}'"


def _prefix(uri: str) -> str:
    """Prefix in its container with one `/` at its end; "" is the whole container."""
    rest = uri.removeprefix(_AZ).partition("/")[2].partition("/")[2].rstrip("/")
    return f"{rest}/" if rest else ""


def _outermost(prefixes: list[str]) -> tuple[str, ...]:
    """The prefixes that are under no other, sorted; () where one is the whole container."""
    kept = [one for one in set(prefixes) if not any(one != other and one.startswith(other) for other in prefixes)]
    return () if kept == [""] else tuple(sorted(kept))


def _command(policy: PolicyDocument) -> str:
    """The Azure CLI's commands for one assignment, by the owner of the store."""
    document = policy.document
    resource = document["resource"]
    kind = "storage account" if resource["type"] == ACCOUNT_TYPE else "keyvault"
    name = shlex.quote(resource["name"])
    lines = [f"# {document['reason']}"]
    if "definition" in document:
        role = f"skyplan {policy.name}"
        body = json.dumps(
            {
                "Name": role,
                "Description": "Checkpoints of a skyplan job: read, write, add; never delete",
                "Actions": [],
                "DataActions": document["definition"]["data_actions"],
                "AssignableScopes": ["/subscriptions/SUBSCRIPTION"],
            }
        )
        lines.append("""subscription="$(az account show --query id --output tsv)\"""")
        lines.append(
            f'az role definition create --role-definition "$(echo {shlex.quote(body)} |'
            ' sed "s/SUBSCRIPTION/$subscription/")"'
        )
    else:
        role = document["role"]
    words = [
        "az role assignment create",
        '--assignee-object-id "$NODE_PRINCIPAL_ID" --assignee-principal-type ServicePrincipal',
        f"--role {shlex.quote(role)}",
        f'--scope "$(az {kind} show --name {name} --query id --output tsv)"{shlex.quote(document["child"])}',
        f"--description {shlex.quote(document['reason'])}",
    ]
    if "condition" in document:
        words.append(f"--condition-version 2.0 --condition {shlex.quote(document['condition'])}")
    lines.append(" \\\n  ".join(words))
    return "\n".join(lines)


def _refusal(code: str, summary: str, hint: str) -> InputError:
    return InputError([Diagnostic(code=code, summary=summary, hint=hint)])
