"""The control identities of a subscription: user-assigned identities, their roles and assignments, and CI's way in without a secret.

Applied once, by the platform team, with its own rights, into the target's own resource group.  Only additive assignments.
What each may do comes in ready (`planner.iam.foundation.azure`).  Never run against live Azure.
"""

# pyright: basic

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.azure.names import azure_tags
from modules.text import literal
from planner.model.stack import CiFederation, ControlIdentity, PolicyDocument

_DESCRIPTION = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationProps:
    """`subscription` an id; `group` the resource group's name; `region` of the identities, which act everywhere.

    elsewhere   by name of a variable, the reference to it: a list of ids outside the group on which a role is assigned too
    """

    subscription: str
    group: str
    region: str
    tags: tuple[tuple[str, str], ...]
    identities: tuple[ControlIdentity, ...]
    ci: CiFederation | None
    elsewhere: dict[str, str]


class Foundation(cdk.Construct):
    """Everything of it.  `clients`: identity -> reference to the client id that skyplan.yaml names."""

    def __init__(self, scope: cdk.Stack, props: FoundationProps) -> None:
        super().__init__(scope, "foundation")
        self._props = props
        self._subscription = f"/subscriptions/{props.subscription}"
        self._group = f"{self._subscription}/resourceGroups/{props.group}"
        self._found: dict[str, str] = {}
        # the condition of the deployer's names all of them
        made = {one.identity.value: self._identity(one) for one in props.identities}
        for one in props.identities:
            for policy in one.policies:
                self._role(policy, made[one.identity.value], one.trusted)
        self.clients = {word: identity.ref("client_id") for word, identity in made.items()}

    def _identity(self, one: ControlIdentity) -> cdk.Resource:
        """The identity, and the CI tokens that may become it: one credential per subject, for Azure compares them whole."""
        props, word = self._props, one.identity.value
        identity = cdk.Resource(
            self,
            word,
            "azurerm_user_assigned_identity",
            {
                "name": one.name,
                "resource_group_name": props.group,
                "location": props.region,
                "tags": azure_tags(props.tags),
            },
        )
        if (ci := props.ci) is None:
            return identity
        for subject in one.subjects:
            digits = hashlib.sha256(subject.encode()).hexdigest()[:8]
            cdk.Resource(
                self,
                f"{word}-{digits}",
                "azurerm_federated_identity_credential",
                {
                    "name": f"ci-{digits}",
                    "resource_group_name": props.group,
                    "parent_id": identity.ref(),
                    "issuer": ci.issuer,
                    "audience": [ci.audience],
                    "subject": literal(subject),
                },
            )
        return identity

    def _role(self, policy: PolicyDocument, holder: cdk.Resource, trusted: tuple[str, ...]) -> None:
        """The role, and its assignment to the identity.

        Nobody can become an identity that is on no machine, so whom the platform team trusts (object ids) has the same roles as himself.
        """
        document = policy.document
        # a role that a job's access stack assigns on a store must be assignable wherever the store is
        scope = self._group if document["on"] == "group" else self._subscription
        role = cdk.Resource(
            self,
            policy.name,
            "azurerm_role_definition",
            {
                "name": document["role"],
                "role_definition_id": document["guid"],
                "scope": scope,
                "assignable_scopes": [self._subscription if "elsewhere" in document else scope],
                "description": literal(document["reason"])[:_DESCRIPTION],
                "permissions": [{"actions": document["actions"], "data_actions": document["data_actions"]}],
            },
        )
        if document["on"] is None:
            return
        self._assign(
            policy.name,
            document,
            role,
            {
                "principal_id": holder.ref("principal_id"),
                "principal_type": "ServicePrincipal",
                # the identity is seconds old: Entra may not know it everywhere yet
                "skip_service_principal_aad_check": True,
            },
        )
        for number, who in enumerate(trusted, start=1):
            self._assign(f"{policy.name}-{number}", document, role, {"principal_id": literal(who)})

    def _assign(self, label: str, document: dict[str, Any], role: cdk.Resource, who: dict[str, Any]) -> None:
        given: dict[str, Any] = {
            "role_definition_id": role.ref("role_definition_resource_id"),
            **who,
            "description": literal(document["reason"])[:_DESCRIPTION],
            # its references to the identities are Terraform's to fill
            "condition": document.get("condition"),
            "condition_version": "2.0" if "condition" in document else None,
        }
        cdk.Resource(self, label, "azurerm_role_assignment", {"scope": self._place(document["on"]), **given})
        if "elsewhere" in document:
            ids = self._props.elsewhere[document["elsewhere"]].removeprefix("${").removesuffix("}")
            each = f"${{toset({ids})}}"
            cdk.Resource(
                self,
                f"{label}-elsewhere",
                "azurerm_role_assignment",
                {"scope": "${each.value}", **given},
                for_each=each,
            )

    def _place(self, on: Any) -> str:
        if on == "group":
            return self._group
        if on == "subscription":
            return self._subscription
        account = on["account"]
        if account not in self._found:
            found = cdk.DataSource(
                self,
                f"state-{account}",
                "azurerm_resources",
                {"type": "Microsoft.Storage/storageAccounts", "name": account},
            )
            missing = f"{self._group}/skyplan-found-no-storageAccounts-{account}"
            self._found[account] = f'${{try({found.address}.resources[0].id, "{missing}")}}'
        return f"{self._found[account]}/blobServices/default/containers/{on['container']}"
