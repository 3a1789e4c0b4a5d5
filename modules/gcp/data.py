"""What the broker becomes for a job's nodes on Google's stores: the foundation's data account gets the job's prefixes, and nobody gets the account.

Two access stacks of one job give the same account the same role on the same folder: the condition's title, which is the stack's name, keeps them apart, so
that the end of one is not the end of the other.  Its expression holds for all that is in the bucket, listing included.
Single members are added; nothing that its owner has set is replaced.  Never run against live Google Cloud.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from modules import cdk
from modules.gcp.access import MEMBERS, binding_label, distinct
from modules.text import literal
from planner.model.stack import DataIdentity

_TITLE = 100


class DataRights(cdk.Construct):
    """The members of one stack."""

    def __init__(self, scope: cdk.Stack | cdk.Construct, *, label: str, stack: str, identity: DataIdentity) -> None:
        super().__init__(scope, label)
        member = f"serviceAccount:{identity.name}@{identity.account}.iam.gserviceaccount.com"
        for binding in distinct(identity.policies):
            kind, keys = MEMBERS[binding["kind"]]
            place: dict[str, Any] = {key: literal(binding[key]) for key in keys if binding.get(key)}
            condition = {
                "title": stack[:_TITLE],
                "expression": f'resource.name.startsWith("projects/_/buckets/{literal(binding["bucket"])}")',
            }
            cdk.Resource(
                self,
                f"{label}-{binding_label(binding, keys)}",
                kind,
                {**place, "role": binding["role"], "member": literal(member), "condition": condition},
            )
