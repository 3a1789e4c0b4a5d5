"""What stacks are made of: one frozen input per stack, handed from `app` to `stacks`.  No choice is left open but the generation.

Names: `net-TARGET-REGION`, `acc-NAME-TARGET-REGION`, `cmp-NAME-gN`.  What one stack learns from another comes in as Terraform variables, which the
runner fills from the other's outputs:
  net outputs  vpc_id · subnet_ids {zone: id} · security_group_ids · security_group_id (the first)
  acc inputs   variables subnet_ids · security_group_ids; outputs launch_templates {key: {"id", "version", "head_id", "head_version",
               "subnet_id" ("" if the template has its own interfaces)}} · placement_group ("" for none) · node_role_arn
  cmp inputs   variables subnet_id · security_group_ids · [head_]launch_template_id · [head_]launch_template_version · placement_group
               (`stacks.wiring` makes them of the outputs above)
  cmp outputs  nodes {rank key "r00": {"instance_id", "private_ip", "zone", "cloud"}} · plan_id
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import Backend, OwnNetwork
from planner.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class StackBase:
    """What every stack has: its name, where it acts and as whom.

    role_arn          role that the provider assumes; None = the caller's credentials
    provider_version  a Terraform version constraint
    tags              in order of precedence: skyplan's own, then the user's; already complete
    """

    name: str
    project: str
    cloud: Cloud
    target: str
    region: str
    account: str | None
    role_arn: str | None
    backend: Backend
    provider_version: str
    tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkInput(StackBase):
    """One network per target and region.  `zones`: (zone id, /20 CIDR).  `own` replaces creation: only outputs are then made."""

    cidr: str
    nat_cidr: str
    zones: tuple[tuple[str, str], ...]
    own: OwnNetwork | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """One launch template: `key` is `INSTANCE_TYPE/ZONE`.

    machine_image   pinned image id, or an SSM public parameter path starting with `/` that names the pinned release
    cluster         nodes are put close together (placement group)
    addresses       by rank, in this zone's subnet; () lets the cloud assign
    """

    key: str
    instance_type: str
    zone: str
    gpu_count: int
    nvme: bool
    fabric: Fabric
    efa_interfaces: int
    machine_image: str
    disk_gb: int
    cluster: bool
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDocument:
    """A rendered policy: `name` within its role, `document` in the cloud's own shape."""

    name: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessInput(StackBase):
    """Per job, target and region: the nodes' role, launch templates, placement group."""

    workload: Workload
    policies: tuple[PolicyDocument, ...]
    permissions_boundary: str | None
    kms_key_arn: str | None
    templates: tuple[NodeTemplate, ...]
    head_address: str | None
    agent_url: str | None
    agent_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeInput(StackBase):
    """Per launch attempt: the nodes, nothing else.  `addresses` by rank; () lets the cloud assign."""

    job: str
    generation: int
    plan_id: str
    zone: str
    instance_type: str
    capacity: CapacityType
    reservation: str
    nodes: int
    template_key: str
    cluster: bool
    addresses: tuple[str, ...]


StackInput = NetworkInput | AccessInput | ComputeInput


def rank_key(rank: int) -> str:
    """`r00`, `r01` …: the `for_each` key of a rank."""
    return f"r{rank:02d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSet:
    """The three stacks that one placement needs."""

    network: NetworkInput
    access: AccessInput
    compute: ComputeInput
