"""What the broker becomes for a job's nodes, in the job's access stack: by the stack's own provider where it lies in its account, else by one beside it.

Decides which provider makes it; what it is, `modules.CLOUD.data` says.  Whoever applies a stack with an identity in another cloud needs credentials there.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from modules import cdk, schema
from modules.aws.data import DataRole, DataRoleProps
from modules.gcp.data import DataRights
from modules.nebius.data import DataAccount
from planner.model.labels import labels_of
from planner.model.offer import Cloud
from planner.model.stack import AccessInput, DataIdentity
from stacks.base import AWS_RETRIES, NEBIUS_RETRIES, NEBIUS_TIMEOUT

#: provider and its source
_PROVIDERS = {
    Cloud.AWS: ("aws", "hashicorp/aws"),
    Cloud.GCP: ("google", "hashicorp/google"),
    Cloud.NEBIUS: ("nebius", "nebius/nebius"),
}
#: of an AWS provider that makes roles alone, which are in no region
_ANY_REGION = {"aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}


def data_identities(stack: cdk.Stack, given: AccessInput) -> None:
    """All of the stack's."""
    for identity in given.data_identities:
        label = f"data-{identity.cloud.value}-{identity.target}"
        own = (identity.cloud, identity.target) == (given.cloud, given.target)
        scope = stack if own else _beside(stack, identity, label)
        _make(scope, given, identity, "data" if own else label)


def _make(scope: cdk.Stack | cdk.Construct, given: AccessInput, identity: DataIdentity, label: str) -> None:
    job = given.workload.name
    match identity.cloud:
        case Cloud.AWS:
            DataRole(
                scope,
                DataRoleProps(label=label, project=given.project, job=job, identity=identity, tags=given.tags),
            )
        case Cloud.GCP:
            DataRights(scope, label=label, stack=given.name, identity=identity)
        case Cloud.NEBIUS:
            DataAccount(scope, label=label, identity=identity, labels=labels_of(given.tags))
        case Cloud.AZURE:
            raise ValueError(f"{given.name}: on Azure the broker has its rights from the foundation")


def _beside(stack: cdk.Stack, identity: DataIdentity, label: str) -> cdk.Beside:
    """Another provider, of the identity's cloud, account and deployer."""
    name, source = _PROVIDERS[identity.cloud]
    cdk.Provider(
        stack, name, source=source, version=identity.provider_version, attributes=_settings(identity), alias=label
    )
    return cdk.Beside(
        stack, f"beside-{label}", schema=schema.load(name, identity.provider_version), alias=f"{name}.{label}"
    )


def _settings(identity: DataIdentity) -> dict[str, Any]:
    role = identity.role_arn
    match identity.cloud:
        case Cloud.AWS:
            partition = identity.broker.split(":")[1]
            return {
                "region": identity.region or _ANY_REGION.get(partition, "us-east-1"),
                "max_retries": AWS_RETRIES,
                "allowed_account_ids": [identity.account],
                "assume_role": [{"role_arn": role, "session_name": "skyplan"}] if role else None,
            }
        case Cloud.GCP:
            return {
                "project": identity.account,
                "impersonate_service_account": role,
                "add_terraform_attribution_label": False,
            }
        case _:
            return {
                "parent_id": identity.account,
                "impersonate_service_account_id": role,
                "retries": NEBIUS_RETRIES,
                "timeout": NEBIUS_TIMEOUT,
            }
