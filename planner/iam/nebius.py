"""Grants as Nebius rights: exactly the prefixes and the secrets, no delete.  Pure.

`policies` gives one document per node identity that has a grant in Nebius's own stores:
    {"group": NAME,                                                        who gets the rights
     "bucket_rules": [{"bucket", "paths", "roles", "reason"}],             for the buckets' owners: see `snippets`
     "permits": [{"resource_id", "role", "reason"}]}                       on single secrets: the access stack makes them
A bucket's policy is one list, which whoever writes it replaces whole, so skyplan never does: `snippets` has the text for its owner.
Roles (docs.nebius.com/object-storage/supported-actions, read 2026-10): `storage.object-viewer` gets, `storage.object-lister` lists, `storage.uploader`
puts and has multipart uploads; none of them deletes.  Whether the listing of a prefix is held to the paths of the rule is not verified.
Never run against live Nebius.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from planner.model.grants import Grant, Identity, Permission
from planner.model.labels import label_value
from planner.model.stack import PolicyDocument

READ = ("storage.object-lister", "storage.object-viewer")
WRITE = ("storage.object-lister", "storage.object-viewer", "storage.uploader")
#: role that reads what a secret holds, given on that secret alone
READ_SECRET = "mysterybox.payload-viewer"  # noqa: S105 - a role
_ROLES = {Permission.READ_OBJECTS: READ, Permission.WRITE_CHECKPOINTS: WRITE}
_STORE = "nebius://"
_SECRET = "nebius-mysterybox://"  # noqa: S105 - a scheme


class BucketRule(TypedDict):
    """One rule of a bucket's policy, without its group."""

    bucket: str
    paths: list[str]
    roles: list[str]
    reason: str


class Permit(TypedDict):
    """A role on one resource."""

    resource_id: str
    role: str
    reason: str


def group_name(project: str, job: str, target: str, region: str) -> str:
    """Name of the group that a job's nodes are in."""
    return label_value(f"skyplan-{project}-{job}-{target}-{region}")


def policies(grants: Sequence[Grant], *, account: str | None, region: str, group: str) -> tuple[PolicyDocument, ...]:
    """One document per node identity; grants in other clouds' stores render to nothing, their order changes nothing.  `group`: see `group_name`."""
    del account, region  # ids name buckets and secrets without either
    out: list[PolicyDocument] = []
    for identity in (Identity.NODE_DATA, Identity.NODE_CHECKPOINT):
        mine = sorted(grant for grant in set(grants) if grant.identity is identity)
        rules, permits = _rules(mine), _permits(mine)
        if rules or permits:
            document = {"group": group, "bucket_rules": rules, "permits": permits}
            out.append(PolicyDocument(name=identity.value, document=document))
    return tuple(out)


def snippets(grants: Sequence[Grant], *, group: str, tenant: str | None) -> tuple[str, ...]:
    """Terraform for the owner of each bucket, in order of their names.  Without a tenant there is no group yet, and the first text says so."""
    rules = _rules(sorted(set(grants)))
    missing = () if tenant or not (rules or _permits(sorted(set(grants)))) else (_no_tenant(group),)
    buckets = sorted({rule["bucket"] for rule in rules})
    return (
        *missing,
        *(_snippet(bucket, [r for r in rules if r["bucket"] == bucket], group, tenant) for bucket in buckets),
    )


def _rules(grants: Sequence[Grant]) -> list[BucketRule]:
    """A rule per grant; two reasons for one right make one rule."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for grant in grants:
        if grant.permission in _ROLES and grant.resource.startswith(_STORE):
            bucket, _, prefix = grant.resource.removeprefix(_STORE).partition("/")
            # the slash stays: `data*` would let `data2/` in
            path = f"{prefix.rstrip('/')}/*" if prefix.rstrip("/") else "*"
            found.setdefault((bucket, path, _ROLES[grant.permission]), []).append(grant.reason)
    return [
        BucketRule(bucket=bucket, paths=[path], roles=list(roles), reason="; ".join(dict.fromkeys(reasons)))
        for (bucket, path, roles), reasons in sorted(found.items())
    ]


def _permits(grants: Sequence[Grant]) -> list[Permit]:
    """A permit per secret.  `nebius-mysterybox://SECRET_ID/KEY`: rights are on the secret, a key in it has none of its own."""
    found: dict[str, list[str]] = {}
    for grant in grants:
        if grant.permission is Permission.READ_SECRET and grant.resource.startswith(_SECRET):
            secret = grant.resource.removeprefix(_SECRET).partition("/")[0]
            found.setdefault(secret, []).append(grant.reason)
    return [
        Permit(resource_id=secret, role=READ_SECRET, reason="; ".join(dict.fromkeys(reasons)))
        for secret, reasons in sorted(found.items())
    ]


def _no_tenant(group: str) -> str:
    return (
        f"# Nebius: rights go to groups, and groups live under the tenant, which skyplan.yaml does not name (`tenant`).\n"
        f"# Without it the group {group} is not made, and the job's service account may read and write nothing.\n"
    )


def _snippet(bucket: str, rules: list[BucketRule], group: str, tenant: str | None) -> str:
    """The rules to add to the policy of one bucket."""
    label = group.replace("-", "_")
    lines = [
        f"# Nebius bucket {bucket}: what the group {group} needs of it.",
        "# Add the rules to those in the bucket's `bucket_policy`: the list there is the whole policy.",
        f'data "nebius_iam_v1_group" "{label}" {{',
        f'  name      = "{group}"',
        f'  parent_id = "{tenant or "TENANT_ID"}"',
        "}",
        "",
        f'# in the resource "nebius_storage_v1_bucket" of {bucket}',
        "bucket_policy = {",
        "  rules = [",
    ]
    for rule in rules:
        roles = ", ".join(f'"{role}"' for role in rule["roles"])
        paths = ", ".join(f'"{path}"' for path in rule["paths"])
        lines += [
            f"    {{ # {rule['reason']}",
            f"      group_id = data.nebius_iam_v1_group.{label}.id",
            f"      paths    = [{paths}]",
            f"      roles    = [{roles}]",
            "    },",
        ]
    return "\n".join([*lines, "  ]", "}", ""])
