"""What the broker becomes, on every cloud: exactly the prefixes that it mints for, to be taken on by the broker alone; on nodes there is nothing of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from planner.model.control_names import data_identity
from planner.model.offer import Cloud
from planner.model.stack import DataIdentity
from tests.stacks.cases import Document, Rendered
from tests.stacks.rules.common import Found, of_type


def nodes_alone(r: Rendered) -> Rendered:
    """The placement without what the broker becomes."""
    if not r.case.access.data_identities:
        return r
    acc: Document = dict(r.acc)
    for section in ("resource", "data"):
        kept = {
            kind: {name: body for name, body in named.items() if name.split("-")[0] != "data"}
            for kind, named in r.acc.get(section, {}).items()
        }
        acc[section] = {kind: named for kind, named in kept.items() if named}
    return replace(r, acc=acc)


def minted(r: Rendered) -> Found:
    """One identity per cloud and target; each has what its paths say, and no more."""
    given = r.case.access
    wanted = {
        (
            Cloud(
                path.uri.replace("gs://", "gcp://")
                .replace("s3://", "aws://")
                .replace("az://", "azure://")
                .split("://")[0]
            )
        )
        for path in given.data_paths
        if path.minted
    }
    if {one.cloud for one in given.data_identities} != wanted - {Cloud.AZURE}:
        yield f"identities of {sorted(one.cloud.value for one in given.data_identities)}, minted for {sorted(wanted)}"
    for one in given.data_identities:
        own = (one.cloud, one.target) == (given.cloud, given.target)
        label = "data" if own else f"data-{one.cloud.value}-{one.target}"
        check = {Cloud.AWS: _aws, Cloud.GCP: _gcp, Cloud.NEBIUS: _nebius}[one.cloud]
        yield from check(r, one, label)
        yield from _made_by(r, one, label, own=own)
        if not own:
            yield from _provider(r, one, label)


def _made_by(r: Rendered, one: DataIdentity, label: str, *, own: bool) -> Found:
    """By the stack's own provider, or by the one of the identity's account."""
    word = {Cloud.AWS: "aws", Cloud.GCP: "google", Cloud.NEBIUS: "nebius"}[one.cloud]
    alias = None if own else f"{word}.{label}"
    others = [f"data-{o.cloud.value}-{o.target}" for o in r.case.access.data_identities if o != one]
    for section in ("resource", "data"):
        for kind, named in r.acc.get(section, {}).items():
            for name, body in named.items():
                mine = (name == label or name.startswith(f"{label}-")) and not name.startswith(tuple(others))
                if mine and body.get("provider") != alias:
                    yield f"{kind}.{name} is made by {body.get('provider')}, not {alias}"


def _places(r: Rendered, scheme: str) -> set[tuple[str, bool]]:
    return {(p.uri, p.write) for p in r.case.access.data_paths if p.minted and p.uri.startswith(scheme)}


def _aws(r: Rendered, one: DataIdentity, label: str) -> Found:
    role = of_type(r.acc, "aws_iam_role").get(label, {})
    place = (r.case.cloud.value, r.case.access.target, r.case.access.region)
    arn = data_identity(Cloud.AWS, one.account, r.case.access.project, r.case.workload.name, place)
    if arn != f"arn:aws:iam::{one.account}:role{role.get('path')}{role.get('name')}":
        yield f"the role is not {arn}"
    if role.get("permissions_boundary") != one.boundary or role.get("max_session_duration") != 3600:
        yield f"unbounded, or longer than an hour: {role}"
    documents = r.acc["data"]["aws_iam_policy_document"]
    (trust,) = documents[f"{label}-trust"]["statement"]
    if trust["principals"] != [{"type": "AWS", "identifiers": [one.broker]}]:
        yield f"trusts {trust['principals']}"
    if trust["actions"] != ["sts:AssumeRole", "sts:TagSession"]:
        yield f"trust: {trust['actions']}"
    asked = {(c["test"], c["variable"]) for c in trust["condition"]}
    if asked != {
        ("ForAllValues:StringEquals", "aws:TagKeys"),
        ("StringEquals", "aws:RequestTag/skyplan:project"),
        ("StringEquals", "aws:RequestTag/skyplan:job"),
    }:
        yield f"trust: {asked}"
    rendered = [
        documents[f"{label}-{policy.name}"]["statement"] == [_as_written(s) for s in policy.document["Statement"]]
        for policy in one.policies
    ]
    if trust.get("effect") != "Allow" or not all(rendered):
        yield "the role's rights are not what was worked out"
    if role.get("tags", {}).get("skyplan:job") != r.case.workload.name or not role.get("description"):
        yield "the role does not say whose it is"
    found: set[tuple[str, bool]] = set()
    for policy in of_type(r.acc, "aws_iam_role_policy").values():
        if policy["role"] != f"${{aws_iam_role.{label}.name}}":
            continue
        name = policy["policy"].removeprefix("${data.aws_iam_policy_document.").removesuffix(".json}")
        if policy.get("name") != name.removeprefix(f"{label}-"):
            yield f"{name} is called {policy.get('name')}"
        for statement in documents[name]["statement"]:
            if set(statement["actions"]) <= {"s3:ListBucket", "kms:Decrypt", "kms:GenerateDataKey"}:
                continue
            (resource,) = statement["resources"]
            uri = resource.replace("arn:aws:s3:::", "s3://").removesuffix("*")
            found.add((uri, "s3:PutObject" in statement["actions"]))
    yield from _same(found, _places(r, "s3://"))


def _as_written(statement: dict[str, Any]) -> dict[str, Any]:
    """An IAM statement as the data source has it."""
    conditions = [
        {"test": test, "variable": variable, "values": values}
        for test, keys in sorted(statement.get("Condition", {}).items())
        for variable, values in sorted(keys.items())
    ]
    made = {
        "sid": statement["Sid"],
        "effect": statement["Effect"],
        "actions": statement["Action"],
        "resources": statement["Resource"],
    }
    return {**made, "condition": conditions} if conditions else made


def _provider(r: Rendered, one: DataIdentity, label: str) -> Found:
    """In the account that holds the identity, as its deployer."""
    name = {Cloud.AWS: "aws", Cloud.GCP: "google", Cloud.NEBIUS: "nebius"}[one.cloud]
    wanted: dict[str, Any] = {
        Cloud.AWS: {
            "allowed_account_ids": [one.account],
            "assume_role": [{"role_arn": one.role_arn, "session_name": "skyplan"}] if one.role_arn else None,
        },
        Cloud.GCP: {"project": one.account, "impersonate_service_account": one.role_arn},
        Cloud.NEBIUS: {"parent_id": one.account, "impersonate_service_account_id": one.role_arn},
    }[one.cloud]
    (settings,) = [given for given in r.acc["provider"][name] if given.get("alias") == label]
    if {key: settings.get(key) for key in wanted} != wanted:
        yield f"{settings}"


def _gcp(r: Rendered, one: DataIdentity, label: str) -> Found:
    email = data_identity(Cloud.GCP, one.account, r.case.access.project, r.case.workload.name, ("", "", ""))
    found: set[tuple[str, bool]] = set()
    for name, body in of_type(r.acc, "google_storage_managed_folder_iam_member").items():
        if not name.startswith(f"{label}-"):
            continue
        if body["member"] != f"serviceAccount:{email}" or body["condition"]["title"] != r.case.access.name:
            yield f"{name}: {body}"
        uri = f"gs://{body['bucket']}/{body['managed_folder']}"
        found.add((uri, body["role"] == "roles/storage.objectCreator"))
    wanted = _places(r, "gs://")
    yield from _same(found, wanted | {(uri, False) for uri, _ in wanted})
    if label in of_type(r.acc, "google_service_account"):
        yield "the account is the foundation's to make"


def _nebius(r: Rendered, one: DataIdentity, label: str) -> Found:
    account = of_type(r.acc, "nebius_iam_v1_service_account").get(label, {})
    if (account.get("name"), account.get("parent_id")) != (one.name, one.account):
        yield f"account {account}"
    member: dict[str, Any] = of_type(r.acc, "nebius_iam_v1_group_membership").get(label, {})
    if (member.get("parent_id"), member.get("member_id")) != (
        f"${{nebius_iam_v1_group.{label}.id}}",
        f"${{nebius_iam_v1_service_account.{label}.id}}",
    ):
        yield f"member {member}"
    snippets = json.dumps(r.case.access.snippets)
    if any(uri.split("/")[2] not in snippets for uri, _ in _places(r, "nebius://")):
        yield "the bucket's owner is not asked"


def _same(found: set[tuple[str, bool]], wanted: set[tuple[str, bool]]) -> Found:
    if found != wanted:
        yield f"{sorted(found ^ wanted)}"
