"""The stacks of a placement on Nebius.  Decides what goes into which stack; the resources are `modules.nebius`'s.

`net`  one network per target and region, shared by jobs, without any firewall rule; or the user's own, then only its ids are handed on.
`adr`  public endpoints of a tunnelled job's nodes.  They cost while they stand, whether a node has them or not.
`acc`  what a job's nodes are and may do, and the GPU clusters they may join.  Everything here is reviewed; nothing here runs.
`cmp`  the nodes of one launch attempt, their boot disks and their addresses.
`fnd`  once per project of the cloud, by the platform team: the identities that plan, deploy and launch.

Credentials are the caller's: with the project given, a token in NEBIUS_IAM_TOKEN; without it, the profile of Nebius's CLI, which names the project too.
A project is in one region, so no resource names one.
Never run against live Nebius: held to the schema of provider 0.6.32.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from modules import cdk
from modules.nebius.access import IdentityProps, NodeIdentity, Peers, gpu_cluster
from modules.nebius.address import Endpoints
from modules.nebius.compute import Nodes, NodesProps
from modules.nebius.foundation import Foundation, FoundationProps
from modules.nebius.names import node_stem, resource_name
from modules.nebius.network import Network, NetworkProps
from modules.user_data import node_of, user_data
from planner.model.labels import labels_of
from planner.model.offer import Fabric
from planner.model.stack import (
    AccessInput,
    AddressInput,
    ComputeInput,
    FoundationInput,
    NetworkInput,
    NodeTemplate,
    StackBase,
    rank_key,
)
from stacks.base import NEBIUS_RETRIES, NEBIUS_TIMEOUT, CloudStack
from stacks.minted import data_identities
from stacks.naming import label
from stacks.wiring import (
    ADDRESS_IDS,
    ADDRESS_VARIABLES,
    PEER_ENDPOINTS,
    TUNNEL_COMPUTE_VARIABLES,
    declared,
    tunnel_port,
)

RETRIES, TIMEOUT = NEBIUS_RETRIES, NEBIUS_TIMEOUT
#: variable of the compute stack -> (type, description)
VARIABLES = {
    "subnet_id": ("string", "Subnet of the nodes"),
    "security_group_ids": ("list(string)", "Groups of the nodes"),
    "service_account_id": ("string", "What the nodes are"),
    "gpu_cluster_id": ("string", "GPU cluster that they join; empty for none"),
}
BILLING_END = (
    "a node powers itself off at the job's end or at the hard end, and `recovery_policy = FAIL` keeps it off, which ends the billing of the machine; "
    "its boot disk is billed until the instance is deleted: by the control plane, or by `skyplan destroy`"
)


class _NebiusStack(CloudStack):
    """A stack with the Nebius provider; `parent` is the project, or an expression for it."""

    def __init__(self, app: cdk.App, given: StackBase) -> None:
        super().__init__(
            app,
            given,
            provider="nebius",
            source="nebius/nebius",
            settings={
                "parent_id": given.account,
                "profile": None if given.account else {},
                "impersonate_service_account_id": given.role_arn,
                "retries": RETRIES,
                "timeout": TIMEOUT,
            },
        )
        self.labels = labels_of(given.tags)
        self._project = given.account or ""

    @property
    def parent(self) -> str:
        """Asked for only where something is made."""
        if not self._project:
            self._project = cdk.DataSource(self, "here", "nebius_parent_id", {}).ref("parent_id")
        return self._project


class FoundationStack(_NebiusStack):
    """Outputs: `identities` {identity: service account id}, `boundaries` (none on Nebius), `bucket_rules` for the state's owner, `skyplan_yaml`.

    Raises ValueError without the project's or the tenant's id.
    """

    def __init__(self, app: cdk.App, given: FoundationInput) -> None:
        super().__init__(app, given)
        if not (given.account and given.tenant):
            raise ValueError(f"{given.name}: on Nebius a foundation needs the project and the tenant")
        made = Foundation(
            self,
            FoundationProps(
                parent_id=given.account,
                tenant=given.tenant,
                labels=self.labels,
                identities=given.identities,
            ),
        )
        rules = [
            {
                "group_id": made.groups[one.identity.value],
                **{key: policy.document[key] for key in ("bucket", "paths", "roles")},
            }
            for one in given.identities
            for policy in one.policies
            if "bucket" in policy.document
        ]
        cdk.output(self, "bucket_rules", rules, "What the owner of the state's bucket adds to its policy")
        # skyplan's own calls cannot take on a role on Nebius (`planner.clouds.nebius`): the profile is the service account
        self.foundation_outputs(given, made.accounts, (("project", given.account), ("tenant", given.tenant)))


class NetworkStack(_NebiusStack):
    """Outputs: `network_id`, `subnet_ids` {zone: id}, `security_group_ids`."""

    def __init__(self, app: cdk.App, given: NetworkInput) -> None:
        super().__init__(app, given)
        if given.own is not None:
            self._outputs(given.own.vpc_id, dict(given.own.subnets), given.own.security_group_ids)
            return
        made = Network(
            self,
            NetworkProps(
                name=resource_name(given.name, given.project),
                parent_id=self.parent,
                cidr=given.cidr,
                zones=given.zones,
                labels=self.labels,
            ),
        )
        self._outputs(made.network.ref(), made.subnet_ids, ())

    def _outputs(self, network: str, subnets: dict[str, str], groups: tuple[str, ...]) -> None:
        cdk.output(self, "network_id", network, "The network")
        cdk.output(self, "subnet_ids", subnets, "Zone to subnet id; the empty key is the region's")
        cdk.output(self, "security_group_ids", list(groups), "The user's own groups for every node, if any")


class AddressStack(_NebiusStack):
    """Variables: `stacks.wiring.ADDRESS_VARIABLES`.  Outputs: `endpoints` {rank: IPv4 address}, `address_ids` {rank: allocation id}."""

    def __init__(self, app: cdk.App, given: AddressInput) -> None:
        super().__init__(app, given)
        ref = {n: cdk.variable(self, n, kind, text) for n, (kind, text) in ADDRESS_VARIABLES[given.cloud].items()}
        made = Endpoints(
            self,
            name=resource_name(given.name, given.project),
            parent_id=self.parent,
            subnet_id=f'${{{ref["subnet_ids"].strip("${}")}["{given.zone}"]}}',
            ranks=given.ranks,
            labels=self.labels,
        )
        self.address_outputs(made.addresses, made.ids)


class AccessStack(_NebiusStack):
    """Variables: `stacks.wiring.declared`.  Outputs: `launch`, `node_identity`, `data_snippets`."""

    def __init__(self, app: cdk.App, given: AccessInput) -> None:
        super().__init__(app, given)
        self._given = given
        ref = {n: cdk.variable(self, n, kind, text) for n, (kind, text) in declared(given).items()}
        self._subnets = ref["subnet_ids"].strip("${}")
        documents = [policy.document for policy in given.policies]
        permits = [(permit["resource_id"], permit["role"]) for made in documents for permit in made["permits"]]
        self._identity = NodeIdentity(
            self,
            IdentityProps(
                name=resource_name(given.name, given.project),
                parent_id=self.parent,
                group=documents[0]["group"] if documents else "",
                tenant=given.tenant or "",
                permits=tuple(dict.fromkeys(permits)),
                labels=self.labels,
            ),
        )
        peers = Peers(
            self,
            name=resource_name(given.name, given.project),
            parent_id=self.parent,
            network_id=ref["network_id"],
            labels=self.labels,
        )
        if port := tunnel_port(given):
            peers.open_tunnel(port, ref[PEER_ENDPOINTS])
        self._groups = f"${{concat([{peers.address}.id], {ref['security_group_ids'].strip('${}')})}}"
        launch = {template.key: self._launch(template) for template in given.templates}
        cdk.output(self, "launch", launch, "What a launch needs, by template key")
        cdk.output(
            self, "node_identity", self._identity.account.ref(), "The service account that nodes are started with"
        )
        data_identities(self, given)
        cdk.output(self, "data_snippets", list(given.snippets), "What the owners of stores must allow themselves")

    def _launch(self, template: NodeTemplate) -> dict[str, Any]:
        return {
            "subnet_id": f'${{{self._subnets}["{template.zone}"]}}',
            "security_group_ids": self._groups,
            "service_account_id": self._identity.account.ref(),
            "gpu_cluster_id": self._cluster(template) if template.fabric is Fabric.INFINIBAND else "",
        }

    def _cluster(self, template: NodeTemplate) -> str:
        given, name = self._given, label(template.key.rstrip("/"))
        return gpu_cluster(
            self,
            name,
            name=resource_name(given.name, given.project, f"-{name}"),
            parent_id=self.parent,
            instance_type=template.instance_type,
            fabric=template.fabric_name,
            labels=self.labels,
        ).ref()


class ComputeStack(_NebiusStack):
    """Variables: `VARIABLES`, with a tunnel also `address_ids`.  Outputs: `nodes`, `plan_id`, `billing_end`.

    Raises ValueError without `given.node` and `given.workload`.
    """

    def __init__(self, app: cdk.App, given: ComputeInput) -> None:
        super().__init__(app, given)
        if given.node is None or given.workload is None:
            raise ValueError(f"{given.name}: what the nodes are is not said")
        known = VARIABLES | (TUNNEL_COMPUTE_VARIABLES if given.tunnel else {})
        ref = {name: cdk.variable(self, name, kind, text) for name, (kind, text) in known.items()}
        addresses = given.addresses or ("",) * given.nodes
        made = Nodes(
            self,
            NodesProps(
                stem=node_stem(given.project, given.job, given.generation),
                parent_id=self.parent,
                instance_type=given.instance_type,
                machine_image=given.node.machine_image,
                user_data=user_data(given.workload, node_of(given.node, given, given.data_paths)),
                disk_gb=given.node.disk_gb,
                nvme=given.node.nvme,
                capacity=given.capacity,
                reservation=given.reservation,
                clustered=given.node.fabric is Fabric.INFINIBAND,
                ranks=tuple((rank_key(rank), address) for rank, address in enumerate(addresses, given.first_rank)),
                subnet_id=ref["subnet_id"],
                security_group_ids=ref["security_group_ids"],
                service_account_id=ref["service_account_id"],
                gpu_cluster_id=ref["gpu_cluster_id"],
                labels=self.labels,
                address_ids=ref.get(ADDRESS_IDS),
            ),
        )
        self.compute_outputs(given, made.described(given.zone), BILLING_END)
