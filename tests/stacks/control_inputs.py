"""Foundations of GCP, Azure and Nebius: the scope of one target, and the stack of its control identities, with CI and a trusted person."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from planner.model.control import ControlScope
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.stack import CiFederation, FoundationInput
from tests.stacks import azure_inputs, gcp_inputs, nebius_inputs

CLOUDS = (Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS)
GROUP = "rg-skyplan"
PULL, MAIN = "repo:acme/infra:pull_request", "repo:acme/infra:ref:refs/heads/main"
CI = CiFederation(
    issuer="https://token.actions.githubusercontent.com", audience="skyplan", repository="acme/infra", branch="main"
)
SUBJECTS = {Identity.PLANNER: (PULL, MAIN), Identity.DEPLOYER: (MAIN,), Identity.ORCHESTRATOR: (MAIN,)}
TRUSTED = {
    Cloud.GCP: ("group:platform@acme.example",),
    Cloud.AZURE: ("22222222-0000-4000-8000-000000000000",),
    Cloud.NEBIUS: ("tenantuseraccount-e00acme",),
}
_BASE: dict[Cloud, dict[str, Any]] = {
    Cloud.GCP: gcp_inputs.BASE,
    Cloud.AZURE: {**azure_inputs.BASE, "resource_group": GROUP},
    Cloud.NEBIUS: nebius_inputs.BASE,
}
_SCOPES: dict[Cloud, dict[str, Any]] = {
    Cloud.GCP: {"account": gcp_inputs.ACCOUNT, "regions": ("us-central1", "europe-west4"), "state": "acme-state"},
    Cloud.AZURE: {
        "account": azure_inputs.ACCOUNT,
        "regions": ("eastus",),
        "state": "acmestate/tf",
        "resource_group": GROUP,
        "data_prefixes": ("az://acmeckpt/runs/llama/", "az://acmedata/corpus/llama/"),
    },
    Cloud.NEBIUS: {
        "account": nebius_inputs.PROJECT,
        "regions": ("eu-north1",),
        "state": "acme-state",
        "tenant": nebius_inputs.TENANT,
    },
}


def scope(cloud: Cloud, **changes: Any) -> ControlScope:
    """The target `prod` of the project `acme`."""
    return replace(ControlScope(cloud=cloud, project="acme", target="prod", **_SCOPES[cloud]), **changes)


def renderer(cloud: Cloud) -> Any:
    return import_module(f"planner.iam.foundation.{cloud.value}")


def foundation(cloud: Cloud, **changes: Any) -> FoundationInput:
    """The stack with everything in it: CI, and who the platform team trusts to deploy."""
    identities = tuple(
        replace(
            one,
            subjects=SUBJECTS.get(one.identity, ()),
            trusted=TRUSTED[cloud] if one.identity is Identity.DEPLOYER else (),
        )
        for one in renderer(cloud).identities(scope(cloud))
    )
    made = FoundationInput(
        **{**_BASE[cloud], "role_arn": None},
        name=f"fnd-{cloud.value}-prod",
        tags=(("skyplan:project", "acme"), ("skyplan:managed", "true")),
        identities=identities,
        ci=CI,
    )
    return replace(made, **changes)
