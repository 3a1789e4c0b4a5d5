"""The blocks with rights in them of what the broker becomes, from an access stack's inputs: `modules.CLOUD.data` without a CDK."""

from __future__ import annotations

import json
import re
from typing import Any

from planner.iam.read.written import Blocks, add, digits, labels, literal, tags
from planner.model.control_names import SESSION_TAGS, data_path
from planner.model.offer import Cloud
from planner.model.stack import AccessInput, DataIdentity

_ACCOUNT, _GROUP = "nebius_iam_v1_service_account", "nebius_iam_v1_group"
_MEMBERS = {
    "managed_folder": ("google_storage_managed_folder_iam_member", ("bucket", "managed_folder")),
    "bucket": ("google_storage_bucket_iam_member", ("bucket",)),
}
_PROVIDERS = {Cloud.AWS: "aws", Cloud.GCP: "google", Cloud.NEBIUS: "nebius"}
_VARIABLE = re.compile(r"\$\{")


def minted(out: Blocks, given: AccessInput) -> None:
    """Adds them."""
    for one in given.data_identities:
        label = "data" if _own(given, one) else f"data-{one.cloud.value}-{one.target}"
        match one.cloud:
            case Cloud.AWS:
                _aws(out, given, one, label)
            case Cloud.GCP:
                _gcp(out, given, one, label)
            case _:
                _nebius(out, given, one, label)


def providers(given: AccessInput) -> dict[str, Any]:
    """Of other clouds than the stack's, as far as names are made of their arguments."""
    beside = [one for one in given.data_identities if one.cloud is not given.cloud]
    settings: dict[Cloud, dict[str, Any]] = {
        one.cloud: {
            Cloud.AWS: {"region": one.region, "allowed_account_ids": [one.account]},
            Cloud.GCP: {"project": one.account},
        }.get(one.cloud, {})
        for one in beside
    }
    return {_PROVIDERS[cloud]: values for cloud, values in settings.items()}


def _own(given: AccessInput, one: DataIdentity) -> bool:
    return (one.cloud, one.target) == (given.cloud, given.target)


def _json(document: dict[str, Any]) -> str:
    return _VARIABLE.sub("$${", json.dumps({"Version": "2012-10-17", **document}))


def _aws(out: Blocks, given: AccessInput, one: DataIdentity, label: str) -> None:
    trust = {
        "Sid": "BrokerForThisJob",
        "Effect": "Allow",
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Principal": {"AWS": one.broker},
        "Condition": {
            "ForAllValues:StringEquals": {"aws:TagKeys": list(SESSION_TAGS)},
            "StringEquals": {
                "aws:RequestTag/skyplan:project": given.project,
                "aws:RequestTag/skyplan:job": given.workload.name,
            },
        },
    }
    values = {
        "name": one.name,
        "path": data_path(given.project),
        "assume_role_policy": _json({"Statement": [trust]}),
        "permissions_boundary": one.boundary,
        "tags": tags(given),
    }
    add(out, "aws_iam_role", label, values)
    for policy in one.policies:
        held = {"name": policy.name, "role": f"${{aws_iam_role.{label}.name}}", "policy": _json(policy.document)}
        add(out, "aws_iam_role_policy", f"{label}-{policy.name}", held)


def _gcp(out: Blocks, given: AccessInput, one: DataIdentity, label: str) -> None:
    member = f"serviceAccount:{one.name}@{one.account}.iam.gserviceaccount.com"
    for policy in one.policies:
        for binding in policy.document["bindings"]:
            kind, keys = _MEMBERS[binding["kind"]]
            place = {key: literal(binding[key]) for key in keys if binding.get(key)}
            expression = f'resource.name.startsWith("projects/_/buckets/{literal(binding["bucket"])}")'
            values = {
                **place,
                "role": binding["role"],
                "member": literal(member),
                "condition": {"title": given.name[:100], "expression": expression},
            }
            add(out, kind, f"{label}-{digits('/'.join((binding['role'], *place.values())))}", values)


def _nebius(out: Blocks, given: AccessInput, one: DataIdentity, label: str) -> None:
    add(out, _ACCOUNT, label, {"name": one.name, "labels": labels(given)})
    if one.tenant:
        add(out, _GROUP, label, {"name": one.name, "labels": labels(given)})
        joined = {"parent_id": f"${{{_GROUP}.{label}.id}}", "member_id": f"${{{_ACCOUNT}.{label}.id}}"}
        add(out, "nebius_iam_v1_group_membership", label, joined)
