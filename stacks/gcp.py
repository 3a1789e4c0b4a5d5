"""The stacks of a placement on GCP.  Decides what goes into which stack; the resources are `modules.gcp`'s.

`net`  one network per target and region, shared by jobs; or the user's own, then only its ids are handed on.
`adr`  public endpoints of a tunnelled job's nodes.  They cost while they stand, whether a node has them or not.
`acc`  what a job's nodes are and may do, who reaches them, the networks of their GPU fabric.  Everything here is reviewed; nothing here runs.
`cmp`  the nodes of one launch attempt.  Its identity may launch, terminate and describe; so nothing else is in it.
`fnd`  once per project of the cloud, by the platform team: the identities that plan, deploy and launch.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from modules import cdk
from modules.gcp import access as gcp
from modules.gcp.address import Endpoints
from modules.gcp.compute import Nodes, NodesProps
from modules.gcp.fabric import FabricProps, Fabrics
from modules.gcp.foundation import Foundation, FoundationProps
from modules.gcp.images import secure_boot
from modules.gcp.names import resource_name
from modules.gcp.network import Network, NetworkProps
from modules.user_data import node_of, user_data
from planner.model.offer import CapacityType, Fabric
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
from stacks.base import CloudStack, role_lines
from stacks.minted import data_identities
from stacks.naming import label
from stacks.wiring import ADDRESS_IDS, PEER_ENDPOINTS, TUNNEL_COMPUTE_VARIABLES, declared, tunnel_port

#: variable of the compute stack -> (type, description)
VARIABLES = {
    "subnet": ("string", "Subnetwork of the nodes' first interface"),
    "fabric_subnets": ("list(string)", "Subnetworks of the interfaces of the GPU fabric, in order; empty for none"),
    "image": ("string", "Machine image"),
    "node_account": ("string", "Email of the nodes' service account"),
    "placement_policy": ("string", "Placement policy; empty for none"),
}
BILLING_END = (
    "a node powers itself off at the job's end: Compute Engine then stops billing its processors, memory and GPUs, and goes on billing its boot "
    "disk until the node is deleted; a spot node that is taken back, and a node running at its hard end, Compute Engine deletes with its disk"
)
#: a node name is this, a dash and the rank
_ROOM_FOR_NODE_NAME = 57


class _GcpStack(CloudStack):
    """A stack with the Google provider.  No `default_labels`: a changed default would reach nodes that must not change."""

    def __init__(self, app: cdk.App, given: StackBase) -> None:
        super().__init__(
            app,
            given,
            provider="google",
            source="hashicorp/google",
            settings={
                "project": given.account,
                "region": given.region,
                "impersonate_service_account": given.role_arn,
                "add_terraform_attribution_label": False,
            },
        )


class FoundationStack(_GcpStack):
    """Outputs: `identities` {identity: email}, `boundaries` (none on GCP), `skyplan_yaml`, with CI `ci`.

    Raises ValueError without the project's id: roles are made in it, and conditions name what lies in it.
    """

    def __init__(self, app: cdk.App, given: FoundationInput) -> None:
        super().__init__(app, given)
        if not given.account:
            raise ValueError(f"{given.name}: on GCP a foundation needs the project's id")
        made = Foundation(
            self,
            FoundationProps(project=given.project, account=given.account, identities=given.identities, ci=given.ci),
        )
        lines = (("project", given.account), *role_lines(made.emails))
        ci = {"workload_identity_provider": made.provider, "audience": given.ci.audience} if given.ci else None
        self.foundation_outputs(given, made.emails, lines, ci=ci)


class NetworkStack(_GcpStack):
    """Outputs: `network`, `subnet_ids` {zone: self link}."""

    def __init__(self, app: cdk.App, given: NetworkInput) -> None:
        super().__init__(app, given)
        if given.own is not None:
            self._outputs(given.own.vpc_id, dict(given.own.subnets))
            return
        made = Network(
            self,
            NetworkProps(project=given.project, name=given.name, region=given.region, zones=given.zones),
        )
        self._outputs(made.network.ref("self_link"), made.subnet_ids)

    def _outputs(self, network: str, subnet_ids: str | dict[str, str]) -> None:
        cdk.output(self, "network", network, "The network")
        cdk.output(self, "subnet_ids", subnet_ids, "Zone to subnetwork")


class AddressStack(_GcpStack):
    """Outputs: `endpoints` {rank: IPv4 address}, `address_ids` {rank: the same, which is what a node attaches}."""

    def __init__(self, app: cdk.App, given: AddressInput) -> None:
        super().__init__(app, given)
        made = Endpoints(
            self, project=given.project, name=given.name, region=given.region, ranks=given.ranks, tags=given.tags
        )
        self.address_outputs(made.addresses, made.ids)


class AccessStack(_GcpStack):
    """Variables: `stacks.wiring.declared`.  Outputs: `launch`, `node_identity`, `data_snippets`."""

    def __init__(self, app: cdk.App, given: AccessInput) -> None:
        super().__init__(app, given)
        self._given = given
        ref = {n: cdk.variable(self, n, kind, text) for n, (kind, text) in declared(given).items()}
        self._subnets = ref["subnet_ids"].removeprefix("${").removesuffix("}")
        account = gcp.NodeAccount(
            self,
            gcp.AccountProps(
                project=given.project,
                stack=given.name,
                job=given.workload.name,
                policies=given.policies,
                orchestrator=given.orchestrator,
            ),
        )
        self._account = account.email
        peers = gcp.Peers(
            self,
            gcp.PeersProps(
                project=given.project,
                name=given.name,
                network=ref["network"],
                account=account.email,
                session=any(template.session for template in given.templates),
            ),
        )
        if port := tunnel_port(given):
            peers.open_tunnel(port, ref[PEER_ENDPOINTS])
        self._fabrics = Fabrics(
            self,
            FabricProps(
                project=given.project,
                name=given.name,
                region=given.region,
                account=account.email,
                api_project=self._api_project(),
            ),
            given.templates,
        )
        launch = {template.key: self._launch(template) for template in given.templates}
        cdk.output(self, "launch", launch, "What a launch needs, by template key")
        cdk.output(self, "node_identity", account.email, "The service account that the orchestrator gives to nodes")
        data_identities(self, given)
        cdk.output(self, "data_snippets", list(given.snippets), "What the owners of stores must allow themselves")

    def _launch(self, template: NodeTemplate) -> dict[str, Any]:
        given, name = self._given, label(template.key)
        policy = ""
        if template.cluster:
            policy = gcp.placement_policy(self, name, resource_name(given.project, given.name, name), given.region)
        return {
            "subnet": f'${{{self._subnets}["{template.zone}"]}}',
            "fabric_subnets": self._fabrics.subnets_of(template),
            "image": gcp.image_link(self, name, template.machine_image),
            "node_account": self._account,
            "placement_policy": policy,
        }

    def _api_project(self) -> str:
        """The project's id, asked of the provider where the target does not name it and something needs it."""
        if self._given.account or not any(template.fabric is Fabric.ROCE for template in self._given.templates):
            return self._given.account or ""
        return cdk.DataSource(self, "here", "google_project", {}).ref("project_id")


class ComputeStack(_GcpStack):
    """Variables: `VARIABLES`, with a tunnel also `address_ids`.  Outputs: `nodes`, `plan_id`, `billing_end`."""

    def __init__(self, app: cdk.App, given: ComputeInput) -> None:
        super().__init__(app, given)
        if given.node is None or given.workload is None:
            raise ValueError(f"{given.name}: on GCP a compute stack needs the node and the workload")
        known = VARIABLES | (TUNNEL_COMPUTE_VARIABLES if given.tunnel else {})
        ref = {name: cdk.variable(self, name, kind, text) for name, (kind, text) in known.items()}
        reserved = given.capacity is CapacityType.RESERVED
        addresses = given.addresses or ("",) * given.nodes
        made = Nodes(
            self,
            NodesProps(
                name=resource_name(given.project, given.job, f"g{given.generation}", limit=_ROOM_FOR_NODE_NAME),
                zone=given.zone,
                node=given.node,
                capacity=given.capacity,
                reservation=given.reservation,
                reserved_block=given.capacity_block,
                ranks=tuple((rank_key(rank), address) for rank, address in enumerate(addresses, given.first_rank)),
                user_data=user_data(given.workload, node_of(given.node, given, given.data_paths)),
                image=ref["image"],
                secure_boot=secure_boot(given.node.machine_image),
                account=ref["node_account"],
                subnet=ref["subnet"],
                fabric_subnets=ref["fabric_subnets"],
                # a reservation made outside the policy has no capacity inside it
                placement=ref["placement_policy"] if given.cluster and (not reserved or given.in_group) else None,
                kms_key=given.kms_key_arn,
                tags=given.tags,
                address_ids=ref.get(ADDRESS_IDS),
            ),
        )
        self.compute_outputs(given, made.described(), BILLING_END)
