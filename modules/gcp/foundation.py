"""The control identities of a project of GCP: service accounts, their custom roles, who may become them, and CI's way in without a key.

Applied once, by the platform team, with its own rights.  Single members are added; no policy or binding that replaces others is made.
What each may do comes in ready (`planner.iam.foundation.gcp`).  Never run against live Google Cloud.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.gcp.names import resource_name
from modules.text import literal
from planner.model.control_names import DATA_ACCOUNT, data_identity_name, role_id
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.stack import CiFederation, ControlIdentity, PolicyDocument

#: of a pool: 4 to 32 characters
_LONGEST_POOL = 32
_PROVIDER = "ci"
_TITLE = 100
_DESCRIPTION = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationProps:
    """`account`: id of the cloud's project."""

    project: str
    account: str
    identities: tuple[ControlIdentity, ...]
    ci: CiFederation | None


class Foundation(cdk.Construct):
    """Everything of it.  `emails`: identity -> reference to its service account's address; `provider`: reference to the name of CI's, "" without CI."""

    def __init__(self, scope: cdk.Stack, props: FoundationProps) -> None:
        super().__init__(scope, "foundation")
        self._props, self._becoming, self.provider = props, "", ""
        subjects = sorted({subject for one in props.identities for subject in one.subjects})
        self._pool = self._federation(props.ci, subjects) if props.ci and subjects else None
        self.emails = {one.identity.value: self._identity(one) for one in props.identities}
        broker = next((one for one in props.identities if one.identity is Identity.BROKER), None)
        if broker is not None:
            self._data()

    def _data(self) -> None:
        """What the broker becomes: it has no rights but the prefixes that jobs' access stacks give it, and nobody else may ask for its token."""
        props = self._props
        account = cdk.Resource(
            self,
            DATA_ACCOUNT,
            "google_service_account",
            {
                "account_id": data_identity_name(Cloud.GCP, props.project, "", ("", "", "")),
                "display_name": "skyplan data",
                "description": f"skyplan-managed; project {props.project}; data of jobs, by the broker; no key is ever made",
            },
        )
        member = f"serviceAccount:{self.emails[Identity.BROKER.value]}"
        self._member(account, f"{DATA_ACCOUNT}-broker", self._become(), member)

    def _identity(self, one: ControlIdentity) -> str:
        word = one.identity.value
        account = cdk.Resource(
            self,
            word,
            "google_service_account",
            {
                "account_id": one.name,
                "display_name": f"skyplan {word}",
                "description": f"skyplan-managed; project {self._props.project}; {word}; no key is ever made",
            },
        )
        for policy in one.policies:
            self._role(policy, account.ref("member"))
        for number, member in enumerate(one.trusted, start=1):
            self._member(account, f"{word}-{number}", self._become(), literal(member))
        if self._pool is not None:
            for number, subject in enumerate(one.subjects, start=1):
                member = f"principal://iam.googleapis.com/{self._pool.ref('name')}/subject/{literal(subject)}"
                self._member(account, f"{word}-ci-{number}", "roles/iam.workloadIdentityUser", member)
        return account.ref("email")

    def _become(self) -> str:
        """To ask for the account's token and nothing else: Google's own role for it also signs, and goes on to what the account may become."""
        if not self._becoming:
            self._becoming = cdk.Resource(
                self,
                "become",
                "google_project_iam_custom_role",
                {
                    "project": self._props.account,
                    "role_id": role_id(self._props.project, "become"),
                    "title": f"skyplan {self._props.project}: become",
                    "description": "become this control identity for an hour; bound on one account, never on the project",
                    "permissions": ["iam.serviceAccounts.getAccessToken"],
                },
            ).ref("name")
        return self._becoming

    def _member(self, account: cdk.Resource, label: str, role: str, member: str) -> None:
        """One who may become the account."""
        cdk.Resource(
            self,
            label,
            "google_service_account_iam_member",
            {"service_account_id": account.ref("name"), "role": role, "member": member},
        )

    def _role(self, policy: PolicyDocument, member: str) -> None:
        document = policy.document
        role = cdk.Resource(
            self,
            policy.name,
            "google_project_iam_custom_role",
            {
                "project": self._props.account,
                "role_id": document["role"],
                "title": document["title"][:_TITLE],
                "description": literal(document["reason"])[:_DESCRIPTION],
                "permissions": document["permissions"],
            },
        )
        condition = document.get("condition")
        bound: dict[str, Any] = {
            "role": role.ref("name"),
            "member": member,
            "condition": (
                {"title": condition["title"], "expression": literal(condition["expression"])} if condition else None
            ),
        }
        on = document["on"]
        if "bucket" in on:
            cdk.Resource(self, policy.name, "google_storage_bucket_iam_member", {"bucket": on["bucket"], **bound})
        else:
            cdk.Resource(self, policy.name, "google_project_iam_member", {"project": on["project"], **bound})

    def _federation(self, ci: CiFederation, subjects: list[str]) -> cdk.Resource:
        """A pool of its own, whose one provider takes only the tokens of these subjects: another repository's is refused before any account is asked."""
        pool = cdk.Resource(
            self,
            _PROVIDER,
            "google_iam_workload_identity_pool",
            {
                "project": self._props.account,
                "workload_identity_pool_id": resource_name(self._props.project, limit=_LONGEST_POOL),
                "display_name": "skyplan CI",
                "description": literal(f"CI of {ci.repository}: pull requests plan, the protected branch deploys")[
                    :_DESCRIPTION
                ],
            },
        )
        listed = ", ".join(f"'{_cel(subject)}'" for subject in subjects)
        provider = cdk.Resource(
            self,
            _PROVIDER,
            "google_iam_workload_identity_pool_provider",
            {
                "project": self._props.account,
                "workload_identity_pool_id": pool.ref("workload_identity_pool_id"),
                "workload_identity_pool_provider_id": _PROVIDER,
                "attribute_mapping": {"google.subject": "assertion.sub"},
                "attribute_condition": literal(f"assertion.sub in [{listed}]"),
                "oidc": {"issuer_uri": ci.issuer, "allowed_audiences": [ci.audience]},
            },
        )
        self.provider = provider.ref("name")
        return pool


def _cel(text: str) -> str:
    """The inside of a CEL literal.  Raises ValueError for what would end it."""
    if "'" in text or "\\" in text:
        raise ValueError(f"{text}: no subject of a CI token")
    return text
