"""What stacks are made of: one frozen input per stack, handed from `app` to `stacks`.  No choice is left open but the generation.

Names: `net-CLOUD-TARGET-REGION`, `acc-NAME--CLOUD-TARGET-REGION`, `cmp-NAME-gN`.  What one stack learns from another comes in as Terraform variables, which the
runner fills from the other's outputs, on every cloud in the same way (`stacks.wiring`):
  net outputs  `subnet_ids` {zone: id} ("" is the key where subnets are regional) and what else the cloud's access stack needs
  acc inputs   variables: the net outputs that `stacks.wiring.ACCESS_VARIABLES` names for the cloud
  acc outputs  `launch` {template key: {variable of the compute stack: value}} · `node_identity` (what the orchestrator hands to nodes) ·
               `data_snippets` (what owners of buckets must allow themselves; [] for nothing)
  adr outputs  (tunnel only) `endpoints`, `address_ids`
  acc inputs   (tunnel only) also `peer_endpoints`, the addresses of all the job's nodes: UDP 51820 from and to them
  cmp inputs   variables: `launch[template key]`; (tunnel only) also `address_ids`
  cmp outputs  nodes {rank key "r00": {"instance_id", "private_ip", "zone", "cloud"}} · plan_id · billing_end (how billing stops by itself)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.model.grants import Identity
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import Backend, OwnNetwork
from planner.model.reach import DataPath as DataPath  # noqa: PLC0414 -- part of the inputs below
from planner.model.reach import Reach as Reach  # noqa: PLC0414
from planner.model.workload import SecretRef, Workload

#: WireGuard's own default port
WIREGUARD_PORT = 51820


@dataclass(frozen=True, slots=True, kw_only=True)
class StackBase:
    """What every stack has: its name, where it acts and as whom.

    role_arn          role that the provider assumes; None = the caller's credentials
    provider_version  a Terraform version constraint
    tags              in order of precedence: skyplan's own, then the user's; already complete; keys and values as the user knows them
                      (`skyplan:job`): a cloud with a narrower alphabet turns them into labels (`planner.model.labels`)
    resource_group    Azure: the user's own group; None = one is made by the network stack (`resource_group_name`)
    tenant            Nebius tenant id, under which groups live; Azure tenant id
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
    resource_group: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkInput(StackBase):
    """One network per target and region.  `zones`: (zone id, /20 CIDR).  `own` replaces creation: only outputs are then made."""

    cidr: str
    nat_cidr: str
    zones: tuple[tuple[str, str], ...]
    own: OwnNetwork | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """A job over several clouds, as every one of its nodes knows it.  Public keys come by the rendezvous; no secret is here.

    members       (rank key, address inside the tunnel) of every rank of the job
    endpoints     (rank key, reserved public address); () until they are reserved, as in a plan's digests
    mtu           of the tunnel's interface, with the smallest underlay on the way in mind
    url           of the rendezvous service; "" = static: the operator lays the peers' keys down on each node
    secret        reference to the secret with which this cloud's nodes prove who they are; None with a static rendezvous
    agent_url, agent_sha256   the program that brings the tunnel up, fetched by the node
    """

    members: tuple[tuple[str, str], ...]
    mtu: int
    url: str
    secret: SecretRef | None
    agent_url: str
    agent_sha256: str
    endpoints: tuple[tuple[str, str], ...] = ()
    interface: str = "wg0"
    port: int = WIREGUARD_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAgent:
    """The program under which a job runs on its nodes, and whom it speaks to.  No secret: nodes prove who they are by their platform's own words.

    url, sha256  where it is fetched, and what it must be
    control_url  `skyplan serve`
    ca_file      on the node: an authority of the user's own, for both services; None = the system's
    broker_url   `skyplan broker`; None = nothing is minted
    audience, broker_audience
                 whom nodes' proofs name for each; None = its address
    """

    url: str
    sha256: str
    control_url: str
    ca_file: str | None = None
    broker_url: str | None = None
    audience: str | None = None
    broker_audience: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressInput(StackBase):
    """Per part of a tunnelled job: public endpoints, reserved before anything else, so that no stack waits for another.

    Named `adr-NAME--CLOUD-TARGET-REGION`.  Outputs: `endpoints` {rank key: IPv4 address}, `address_ids` {rank key: what a node attaches}.
    """

    job: str
    zone: str
    ranks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """What the nodes of one type in one zone are: `key` is `INSTANCE_TYPE/ZONE`.  AWS makes a launch template of it, other clouds the node itself.

    machine_image   pinned image: an id, or what the cloud's `images` module says names one (AWS: an SSM parameter path starting with `/`)
    nodes           how many
    fabric          between several nodes; ETHERNET for one
    fabric_name     Nebius: name of the InfiniBand fabric in that region; "" elsewhere
    cluster         nodes are put close together (placement group)
    addresses       by rank, in this zone's subnet; () lets the cloud assign
    stop_after_hours  hard end: the node powers itself off so long after its boot; None = only the job's end stops it
    session         people may open a shell by the cloud's session channel, without an open port
    tunnel          the job lies in several clouds: each node has a reserved public endpoint for UDP `tunnel.port`, open to its peers alone
    first_rank      rank of the first of these nodes
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
    nodes: int = 1
    fabric_name: str = ""
    stop_after_hours: float | None = None
    session: bool = False
    tunnel: Tunnel | None = None
    first_rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDocument:
    """A rendered policy: `name` within its role, `document` in the cloud's own shape (see `planner.iam.CLOUD`)."""

    name: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataIdentity:
    """What the broker becomes for a short time, on behalf of one job's nodes: an identity in a store's cloud, and the job's prefixes there.

    cloud, target, account  where it lies; not where the nodes run, if the store is another cloud's.  None is made on Azure
    name      in that cloud (`planner.model.control_names.data_identity_name`); GCP: the foundation's account, to which only the prefixes are given
    broker    who alone may become it, by the cloud's own name (`broker_role` of the target)
    role_arn  who makes it: the target's deployer; None = the caller
    region    AWS: of the provider, IAM has none
    boundary  AWS: the boundary of data identities, an ARN; None without a foundation
    provider_version  of that cloud's provider
    """

    cloud: Cloud
    target: str
    account: str
    name: str
    broker: str
    policies: tuple[PolicyDocument, ...]
    provider_version: str
    region: str = ""
    role_arn: str | None = None
    boundary: str | None = None
    tenant: str | None = None
    resource_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessInput(StackBase):
    """Per job, target and region: the nodes' identity, launch templates, placement group.

    data_paths   how the nodes reach each store
    snippets     what the owners of stores must allow themselves, as text
    orchestrator who launches, by the target's own words (`orchestrator_role`): it alone may hand the nodes' identity on; None = the caller, nothing is given
    spot_templates  AWS: keys of those templates that are bought as spot; each gets a second one (`spot_key`), whose spot requests carry the tags by which
                 the orchestrator may cancel them.  A template that tags spot requests launches nothing else, EC2 refuses it
    data_identities  what the broker becomes for these nodes, one per cloud and target whose stores they reach by it; not of Azure
    agent        the program that the job runs under; None = bare
    """

    workload: Workload
    policies: tuple[PolicyDocument, ...]
    permissions_boundary: str | None
    kms_key_arn: str | None
    templates: tuple[NodeTemplate, ...]
    head_address: str | None
    agent_url: str | None
    agent_sha256: str | None
    data_paths: tuple[DataPath, ...] = ()
    snippets: tuple[str, ...] = ()
    orchestrator: str | None = None
    spot_templates: tuple[str, ...] = ()
    data_identities: tuple[DataIdentity, ...] = ()
    agent: NodeAgent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeInput(StackBase):
    """Per launch attempt: the nodes, nothing else.  `addresses` by rank from `first_rank`; () lets the cloud assign.

    tunnel       the variable `address_ids` {rank key: id} gives every node its reserved public endpoint
    node, workload, data_paths   on clouds without launch templates (all but AWS): what the node boots
    kms_key_arn                  the user's own disk key, by the cloud's name for it
    in_group                     RESERVED only: the reservation was made inside the placement group
    capacity_block               RESERVED only: a block of capacity bought for a time, which has a market of its own (AWS)
    agent                        as `node`: where the job runs under it
    """

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
    first_rank: int = 0
    tunnel: bool = False
    node: NodeTemplate | None = None
    workload: Workload | None = None
    data_paths: tuple[DataPath, ...] = ()
    kms_key_arn: str | None = None
    in_group: bool = False
    capacity_block: bool = False
    agent: NodeAgent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CiFederation:
    """Whose CI tokens an account believes (OIDC), instead of a key: pull requests may only become the planner, the protected branch the deployer.

    issuer      `https://token.actions.githubusercontent.com`
    audience    the `aud` that the CI asks for
    repository  `acme/infra`
    branch      protected: its jobs deploy and launch
    provider    AWS: ARN of the account's provider for this issuer where one stands already, as there can be one only; "" = it is made
    """

    issuer: str
    audience: str
    repository: str
    branch: str
    provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlIdentity:
    """One identity of the foundation stack.

    name      in the cloud
    policies  rendered by `planner.iam.foundation.CLOUD`, in the cloud's own shape
    trusted   who may become it, by the cloud's own names (role or user ARNs, members, object ids); () = CI only
    subjects  `sub` claims of CI tokens that may become it
    boundary  AWS: name of the boundary among `FoundationInput.boundaries` that it carries, "" for none
    """

    identity: Identity
    name: str
    policies: tuple[PolicyDocument, ...]
    trusted: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    boundary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiEntry:
    """AWS: the role as which a job of the protected branch comes in.  No identity of work: all that it may do is to become those that it `opens`.

    A session that was begun by a CI token has one role for good; an apply takes two of them, the deployer's and the orchestrator's.
    arn       as it will be
    policies  the one right, rendered
    subjects  `sub` claims of the CI tokens that may become it, whole; their roles trust no token of these themselves
    """

    name: str
    arn: str
    opens: tuple[Identity, ...]
    policies: tuple[PolicyDocument, ...]
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationInput(StackBase):
    """Per account, once, by the platform team: the identities that plan, deploy, launch and mint; never the nodes'.  `fnd-CLOUD-TARGET`.

    boundaries  AWS: permissions boundaries, as policies of their own: of node roles, of the orchestrator
    entry       AWS: how CI's protected branch comes in; None without CI
    Outputs: `identities` {identity: ARN, email or id}, `boundaries` {name: ARN}, `skyplan_yaml` the lines for the target, `ci` {setting: value} for CI.
    """

    identities: tuple[ControlIdentity, ...]
    boundaries: tuple[PolicyDocument, ...] = ()
    ci: CiFederation | None = None
    entry: CiEntry | None = None


#: what a job needs
StackInput = NetworkInput | AddressInput | AccessInput | ComputeInput
#: what can be written as Terraform
AnyStack = StackInput | FoundationInput


def rank_key(rank: int) -> str:
    """`r00`, `r01` …: the `for_each` key of a rank."""
    return f"r{rank:02d}"


def spot_key(template_key: str) -> str:
    """Key in `launch` of the template for spot, where there is one of its own."""
    return f"{template_key}/spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSet:
    """The stacks that one placement, or one part of it, needs.  `addresses` for a part of a tunnelled job only."""

    network: NetworkInput
    access: AccessInput
    compute: ComputeInput
    addresses: AddressInput | None = None
