"""What skyplan itself does in an account, and within which bounds: the ground that control identities' rights are made from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.model.grants import Identity, Permission
from planner.model.offer import Cloud


class Step(StrEnum):
    """When an operation happens: to a resource of a stack, or, for `CALL`, in skyplan's own code."""

    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    CALL = "call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that is done, and the cloud's own names of the rights it takes.

    stack     kind of stack it belongs to: `network`, `addresses`, `access`, `compute`; "" for skyplan's own calls
    resource  Terraform type (`aws_instance`, `data.aws_ssm_parameter`), or where in skyplan: `planner.clouds.aws.AwsLister`
    identity  who does it: the deployer, but for compute and skyplan's own calls
    permission  which neutral right it falls under
    actions   `ec2:RunInstances` · `compute.instances.create` · `Microsoft.Compute/virtualMachines/write` · a role on Nebius
    unused    why a granted action may go unseen in the enforcement run: a written reason, "" = it must be seen
    """

    stack: str
    resource: str
    step: Step
    identity: Identity
    permission: Permission
    actions: tuple[str, ...]
    unused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlScope:
    """Within what the control identities of one project may act in one account.

    account         12 digits (AWS), project id (GCP), subscription id (Azure), project id (Nebius)
    regions         those that the target allows, in full: no glob
    instance_types  globs of what may be launched; () = whatever the catalog has for the cloud
    state           bucket or account/container of the Terraform state in this cloud, "" where it lies elsewhere
    state_account   AWS: whose that bucket is, "" = `account`
    data_prefixes   AWS, Azure: under what jobs' data may lie, as URIs of that cloud's store; () = in all of the account, or of the group
    kms_key         the user's own disk key, by the cloud's name, or ""
    resource_group  Azure
    tenant          Azure, Nebius
    partition       AWS: `aws`, `aws-us-gov`, `aws-cn`
    tag_keys        AWS: tags of the user's own that may stand beside skyplan's, as globs
    own             AWS: the user's own places that jobs may be launched into, `REGION/KIND/ID`: `us-east-1/subnet/subnet-0abc`; they carry no tag of ours
    """

    cloud: Cloud
    project: str
    target: str
    account: str
    regions: tuple[str, ...]
    instance_types: tuple[str, ...] = ()
    state: str = ""
    kms_key: str = ""
    resource_group: str = ""
    tenant: str = ""
    partition: str = "aws"
    tag_keys: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    state_account: str = ""
    data_prefixes: tuple[str, ...] = ()
