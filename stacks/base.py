"""What every stack has: the backend's kind, its provider, the versions, and the outputs that are alike on all clouds."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modules import cdk, schema
from planner.model.offer import Cloud
from planner.model.stack import ComputeInput, FoundationInput, StackBase

#: attempts per call.  The provider's default (25; 0 means the same) takes 10 min over a capacity error, 5 take 4 s and survive throttling
AWS_RETRIES = 5
#: attempts per request, and the time one request may take.  The provider's own defaults, said so that a failover's time hangs on none
NEBIUS_RETRIES, NEBIUS_TIMEOUT = 3, "1m"


class CloudStack(cdk.Stack):
    """A stack with one provider.  `settings` are the provider's arguments; None is left out.

    It names no `required_version`: Checkov (3.3.30) cannot read Terraform JSON that does, and would tell a user nothing at all of our stacks.
    """

    def __init__(self, app: cdk.App, given: StackBase, *, provider: str, source: str, settings: dict[str, Any]) -> None:
        super().__init__(app, given.name, schema=schema.load(provider, given.provider_version))
        cdk.Backend(self, given.backend.kind, _keeper(given))
        cdk.Provider(self, provider, source=source, version=given.provider_version, attributes=settings)

    def compute_outputs(self, given: ComputeInput, nodes: Any, billing_end: str) -> None:
        """`nodes`, `plan_id`, `billing_end`.  The plan is named here and in no tag: a changed tag must never reach a node that trains."""
        cdk.output(self, "nodes", nodes, "The nodes by rank")
        cdk.output(self, "plan_id", given.plan_id, "The placement that these nodes are")
        cdk.output(self, "billing_end", billing_end, "How billing stops by itself")

    def address_outputs(self, endpoints: str, address_ids: str) -> None:
        """`endpoints`, `address_ids`."""
        cdk.output(self, "endpoints", endpoints, "Public address of each rank's node")
        cdk.output(self, "address_ids", address_ids, "What each rank's node attaches")

    def foundation_outputs(
        self,
        given: FoundationInput,
        identities: dict[str, str],
        lines: tuple[tuple[str, str], ...],
        boundaries: Any = None,
        ci: Any = None,
    ) -> None:
        """`identities` {identity: name}, `boundaries` {name: name}, `skyplan_yaml`: the target with `lines` (key, value); `ci` where CI comes in."""
        cdk.output(self, "identities", identities, "The control identities, by the cloud's own names")
        cdk.output(self, "boundaries", boundaries or {}, "Permissions boundaries, by name")
        if ci:
            cdk.output(self, "ci", ci, "What CI's own configuration names: see docs/control-identities.md")
        target = {"name": given.target, "cloud": given.cloud.value, **dict(lines)}
        text = "\n    ".join(f"{key}: {value}" for key, value in target.items())
        cdk.output(self, "skyplan_yaml", f"targets:\n  - {text}\n", "The target, for skyplan.yaml")


#: by backend: the cloud whose store it is, settings by which a user says who keeps the state, and how it is said that the stack's role does
_KEEPERS: dict[str, tuple[Cloud, tuple[str, ...], Callable[[str], dict[str, Any]]]] = {
    "s3": (
        Cloud.AWS,
        ("assume_role", "role_arn"),
        lambda role: {"assume_role": {"role_arn": role, "session_name": "skyplan"}},
    ),
    "gcs": (Cloud.GCP, ("impersonate_service_account",), lambda role: {"impersonate_service_account": role}),
    "azurerm": (Cloud.AZURE, ("client_id",), lambda role: {"client_id": role}),
}


def _keeper(given: StackBase) -> dict[str, Any]:
    """As whom Terraform keeps the stack's state: the role that applies the stack, whose rights on its own states the foundation gives it.

    Only where the store lies in the stack's own cloud, and the user's own settings name nobody else.
    """
    cloud, names, said = _KEEPERS.get(given.backend.kind, (None, (), lambda _: {}))
    if cloud is not given.cloud or not given.role_arn:
        return {}
    if any(name.startswith(names) for name, _ in given.backend.settings):
        return {}
    return said(given.role_arn)


def role_lines(identities: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The roles that a target names."""
    return tuple(
        (f"{one}_role", identities[one]) for one in ("deployer", "orchestrator", "broker") if one in identities
    )
