"""What the broker makes keys of for a job's nodes: a service account of the job's own, in a group to which the buckets' owner gives the job's prefixes.

Groups live under the tenant: where it is not known there is none, and the account may nothing (`planner.iam.nebius.snippets` says so).
Whoever makes the account's keys is an administrator's to decide: no role of Nebius's is for that alone.  Never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from modules import cdk
from planner.model.stack import DataIdentity


class DataAccount(cdk.Construct):
    """The account and its group."""

    def __init__(
        self, scope: cdk.Stack | cdk.Construct, *, label: str, identity: DataIdentity, labels: dict[str, str]
    ) -> None:
        super().__init__(scope, label)
        account = cdk.Resource(
            self,
            label,
            "nebius_iam_v1_service_account",
            {
                "name": identity.name,
                "parent_id": identity.account,
                "description": "Data of one skyplan job, by the broker",
                "labels": labels,
            },
        )
        if not identity.tenant:
            return
        group = cdk.Resource(
            self,
            label,
            "nebius_iam_v1_group",
            {"name": identity.name, "parent_id": identity.tenant, "labels": labels},
        )
        cdk.Resource(
            self,
            label,
            "nebius_iam_v1_group_membership",
            {"parent_id": group.ref(), "member_id": account.ref(), "labels": labels},
        )
