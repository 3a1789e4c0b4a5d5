"""The control identities of a project in an AWS account: roles with managed policies, boundaries, and CI's way in without a key.

Applied once, by an administrator.  What each role may do comes in ready (`planner.iam.foundation.aws`); who may become it is written here: named roles and
users, CI tokens of which both audience and subject are checked, and the entry that such a token opens.  Nothing here trusts a whole account.
Never run against a live account.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.aws.access import iam_tags
from modules.aws.policy import policy_document
from modules.text import fit
from planner.model.grants import Identity
from planner.model.stack import CiEntry, CiFederation, ControlIdentity, PolicyDocument

_REASONS = {
    Identity.PLANNER: "Plans: reads prices, types, quotas and what runs; changes nothing",
    Identity.DEPLOYER: "Deploys: networks, templates and bounded node roles; launches nothing",
    Identity.ORCHESTRATOR: "Launches, terminates and describes nodes; reads no data, changes no rights",
    Identity.BROKER: "Becomes data identities for a short time; can do nothing itself",
}

#: word of the entry among the resources; no identity has it
_ENTRY = "ci"
_ENTRY_REASON = "CI of the protected branch comes in here; may become planner, deployer and orchestrator, nothing else"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationProps:
    """`identities` that nobody may become are left out: a role has to trust somebody."""

    project: str
    identities: tuple[ControlIdentity, ...]
    boundaries: tuple[PolicyDocument, ...]
    ci: CiFederation | None
    tags: tuple[tuple[str, str], ...]
    entry: CiEntry | None = None


class Foundation(cdk.Construct):
    """`roles`: identity -> reference to its ARN; `boundaries`: name -> reference; `node_boundary`: what every node's role has to carry.

    `entry`: reference to the ARN of the role that CI's protected branch takes, "" without CI.
    """

    def __init__(self, scope: cdk.Stack, props: FoundationProps) -> None:
        super().__init__(scope, "foundation")
        self._props = props
        self._path = f"/skyplan-foundation/{props.project}/"
        self._provider = self._federation(props.ci) if props.ci else ""
        self.boundaries = {one.name: self._policy(one, "boundary").ref("arn") for one in props.boundaries}
        self.node_boundary = next((ref for name, ref in self.boundaries.items() if name.endswith("node-boundary")), "")
        self.entry = self._entry(props.entry, props.ci) if props.entry and props.ci else ""
        self._made = {one.identity.value: one for one in props.identities if self._trust(one)}
        self.roles = {word: self._role(one) for word, one in self._made.items()}

    def _role(self, one: ControlIdentity) -> str:
        return self._holder(
            one.identity.value,
            one.name,
            _REASONS[one.identity],
            self._trust(one),
            one.policies,
            boundary=self.boundaries[one.boundary] if one.boundary else None,
        )

    def _entry(self, entry: CiEntry, ci: CiFederation) -> str:
        """The roles behind it name it, so it stands first; it names them by ARNs that are known before they stand."""
        trust = [self._token(ci, "Ci", "StringEquals", list(entry.subjects))]
        return self._holder(_ENTRY, entry.name, _ENTRY_REASON, trust, entry.policies)

    def _holder(
        self,
        word: str,
        name: str,
        reason: str,
        trust: list[dict[str, Any]],
        policies: tuple[PolicyDocument, ...],
        *,
        boundary: str | None = None,
    ) -> str:
        role = cdk.Resource(
            self,
            word,
            "aws_iam_role",
            {
                "name": fit(name, 64),
                "path": self._path,
                "description": reason,
                "assume_role_policy": policy_document(self, f"{word}-trust", {"Statement": trust}).ref("json"),
                "permissions_boundary": boundary,
                "tags": iam_tags(self._props.tags),
            },
        )
        for number, policy in enumerate(policies, start=1):
            made = self._policy(policy, reason)
            cdk.Resource(
                self,
                f"{word}-{number}",
                "aws_iam_role_policy_attachment",
                {"role": role.ref("name"), "policy_arn": made.ref("arn")},
            )
        return role.ref("arn")

    def _policy(self, policy: PolicyDocument, description: str) -> cdk.Resource:
        rendered = policy_document(self, policy.name, policy.document)
        return cdk.Resource(
            self,
            policy.name,
            "aws_iam_policy",
            {
                "name": fit(policy.name, 128),
                "path": self._path,
                "description": "Bounds what a role can ever do" if description == "boundary" else description,
                "policy": rendered.ref("json"),
                "tags": iam_tags(self._props.tags),
            },
        )

    def _trust(self, one: ControlIdentity) -> list[dict[str, Any]]:
        """Who may become it; [] for nobody."""
        statements: list[dict[str, Any]] = []
        through = [self.entry] if self.entry and self._props.entry and one.identity in self._props.entry.opens else []
        for sid, who in (("Named", list(one.trusted)), ("ThroughCi", through)):
            if who:
                statements.append(
                    {"Sid": sid, "Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": who}}
                )
        if self._props.ci:
            exact = [subject for subject in one.subjects if "*" not in subject]
            some = [subject for subject in one.subjects if "*" in subject]
            for sid, operator, subjects in (("Ci", "StringEquals", exact), ("CiOfAnyBranch", "StringLike", some)):
                if subjects:
                    statements.append(self._token(self._props.ci, sid, operator, subjects))
        return statements

    def _token(self, ci: CiFederation, sid: str, operator: str, subjects: list[str]) -> dict[str, Any]:
        """CI tokens of these subjects, asked for this audience."""
        issuer = _host(ci.issuer)
        condition: dict[str, dict[str, Any]] = {"StringEquals": {f"{issuer}:aud": ci.audience}}
        condition.setdefault(operator, {})[f"{issuer}:sub"] = subjects
        return {
            "Sid": sid,
            "Effect": "Allow",
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {"Federated": self._provider},
            "Condition": condition,
        }

    def _federation(self, ci: CiFederation) -> str:
        """The account's provider for the issuer, made unless one stands already."""
        if ci.provider:
            return ci.provider
        made = cdk.Resource(
            self,
            "ci",
            "aws_iam_openid_connect_provider",
            {"url": ci.issuer, "client_id_list": [ci.audience], "tags": iam_tags(self._props.tags)},
        )
        return made.ref("arn")


def _host(issuer: str) -> str:
    """The issuer as IAM's condition keys name it."""
    return issuer.removeprefix("https://").rstrip("/")
