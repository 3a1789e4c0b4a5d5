"""The control identities of a Nebius project: service accounts, a group for each, the groups' roles.

CI gets no way in of its own: Nebius's federated credentials compare a token's issuer and subject and no audience (provider 0.6.32), so a token of the
same repository that was meant for another service would do (SKY-IAM-402).  Who wants that all the same makes them beside this.

Applied once, by the platform team, with `admin` on the tenant.  What each may do comes in ready (`planner.iam.foundation.nebius`).
Never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass

from modules import cdk
from modules.text import literal
from planner.model.stack import ControlIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationProps:
    """`parent_id`: the project; groups live under the tenant."""

    parent_id: str
    tenant: str
    labels: dict[str, str]
    identities: tuple[ControlIdentity, ...]


class Foundation(cdk.Construct):
    """Everything of it.  `accounts`: identity -> reference to its service account's id; `groups`: to its group's."""

    def __init__(self, scope: cdk.Stack, props: FoundationProps) -> None:
        super().__init__(scope, "foundation")
        self._props = props
        self.groups: dict[str, str] = {}
        self.accounts = {one.identity.value: self._identity(one) for one in props.identities}

    def _identity(self, one: ControlIdentity) -> str:
        props, word = self._props, one.identity.value
        account = cdk.Resource(
            self,
            word,
            "nebius_iam_v1_service_account",
            {
                "name": one.name,
                "parent_id": props.parent_id,
                "description": f"skyplan {word}; no key is made here",
                "labels": props.labels,
            },
        )
        group = cdk.Resource(
            self, word, "nebius_iam_v1_group", {"name": one.name, "parent_id": props.tenant, "labels": props.labels}
        )
        self.groups[word] = group.ref()
        # whom the platform team trusts has the group's rights as himself: nobody is let be the account
        members = {word: account.ref(), **{f"{word}-{n}": literal(m) for n, m in enumerate(one.trusted, start=1)}}
        for label, member in members.items():
            cdk.Resource(
                self,
                label,
                "nebius_iam_v1_group_membership",
                {"parent_id": group.ref(), "member_id": member, "labels": props.labels},
            )
        for policy in one.policies:
            if "on" in policy.document:
                cdk.Resource(
                    self,
                    policy.name,
                    "nebius_iam_v1_access_permit",
                    {
                        "parent_id": group.ref(),
                        "resource_id": policy.document["on"]["project"],
                        "role": policy.document["role"],
                        "labels": props.labels,
                    },
                )
        return account.ref()
