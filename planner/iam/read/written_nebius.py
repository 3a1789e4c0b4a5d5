"""The blocks with rights in them that skyplan's Nebius stacks are made of, from their inputs: `modules.nebius` without a CDK.

Rules of buckets are in none of them: each bucket's owner writes those himself.
"""

from __future__ import annotations

from typing import Any

from planner.iam.read.written import Blocks, add, boots, empty, fit, labels, literal
from planner.model.offer import CapacityType
from planner.model.stack import AccessInput, AnyStack, ComputeInput, ControlIdentity, FoundationInput

_ACCOUNT, _GROUP = "nebius_iam_v1_service_account", "nebius_iam_v1_group"
_MEMBERSHIP, _PERMIT = "nebius_iam_v1_group_membership", "nebius_iam_v1_access_permit"


def blocks(given: AnyStack) -> Blocks:
    """Of a stack of any kind."""
    out = empty()
    if isinstance(given, AccessInput):
        _access(out, given)
    elif isinstance(given, ComputeInput):
        values = {
            "service_account_id": "${var.service_account_id}",
            "cloud_init_user_data": boots(given.workload, given.node),
            "preemptible": {"on_preemption": "STOP"} if given.capacity is CapacityType.SPOT else None,
            "labels": labels(given),
        }
        add(out, "nebius_compute_v1_instance", "node", values)
    elif isinstance(given, FoundationInput):
        for one in given.identities:
            _control(out, given, one)
    return out


def provider(given: AnyStack) -> dict[str, Any]:
    """Nothing is made of its arguments."""
    del given
    return {"nebius": {}}


def _access(out: Blocks, given: AccessInput) -> None:
    add(
        out,
        _ACCOUNT,
        "node",
        {"name": fit(f"skyplan-{given.project}-{given.name}", 63), "labels": labels(given)},
    )
    documents = [policy.document for policy in given.policies]
    if not (documents and documents[0]["group"] and given.tenant):
        return
    add(out, _GROUP, "node", {"name": documents[0]["group"], "labels": labels(given)})
    _joined(out, "node", "node", f"${{{_ACCOUNT}.node.id}}")
    permits = dict.fromkeys((one["resource_id"], one["role"]) for made in documents for one in made["permits"])
    for number, (secret, role) in enumerate(permits, start=1):
        values = {"parent_id": f"${{{_GROUP}.node.id}}", "resource_id": secret, "role": role}
        add(out, _PERMIT, f"secret-{number}", values)


def _joined(out: Blocks, group: str, name: str, member: str) -> None:
    add(out, _MEMBERSHIP, name, {"parent_id": f"${{{_GROUP}.{group}.id}}", "member_id": member})


def _control(out: Blocks, given: FoundationInput, one: ControlIdentity) -> None:
    word = one.identity.value
    for kind in (_ACCOUNT, _GROUP):
        add(out, kind, word, {"name": one.name, "labels": labels(given)})
    _joined(out, word, word, f"${{{_ACCOUNT}.{word}.id}}")
    for number, member in enumerate(one.trusted, start=1):
        _joined(out, word, f"{word}-{number}", literal(member))
    for policy in one.policies:
        if "on" in policy.document:
            values = {
                "parent_id": f"${{{_GROUP}.{word}.id}}",
                "resource_id": policy.document["on"]["project"],
                "role": policy.document["role"],
            }
            add(out, _PERMIT, policy.name, values)
