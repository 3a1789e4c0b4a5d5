"""The stacks of a placement on Azure.  Decides what goes into which stack; the resources are `modules.azure`'s.

`net`  one network per target and region, shared by jobs, and the resource group of all of them; or the user's own network, then only its ids
       are handed on (its owner's security groups are not touched: nodes carry the job's own).
`adr`  public endpoints of a tunnelled job's nodes.  They cost while they stand, whether a node has them or not.
`acc`  what a job's nodes are and may do.  Everything here is reviewed; nothing here runs.
`cmp`  the nodes of one launch attempt with their interfaces.  Its identity may launch, delete and describe; so nothing else is in it.
`fnd`  once per subscription and resource group, by the platform team: the identities that plan, deploy and launch.
Checked against the provider's schema and run with a stub of it, never against a live subscription.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from modules import cdk
from modules.azure import access as azure
from modules.azure.address import Endpoints
from modules.azure.compute import Nodes, NodesProps
from modules.azure.foundation import Foundation, FoundationProps
from modules.azure.names import resource_name
from modules.azure.network import Network, NetworkProps, resource_group
from modules.user_data import node_of, packed, user_data
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.offer import CapacityType, Cloud, Fabric
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
from stacks.wiring import (
    ADDRESS_IDS,
    ADDRESS_VARIABLES,
    PEER_ENDPOINTS,
    TUNNEL_COMPUTE_VARIABLES,
    declared,
    tunnel_port,
)

#: variable of the compute stack -> (type, description)
VARIABLES = {
    "resource_group": ("string", "Name of the resource group"),
    "subnet_id": ("string", "Subnet of the nodes"),
    "security_group_id": ("string", "Network security group of the nodes' interfaces"),
    "peers_id": ("string", "Application security group of the job"),
    "identity_id": ("string", "The nodes' user-assigned identity"),
    "scale_set_id": ("string", "Scale set whose machines share an InfiniBand partition; empty for none"),
    "proximity_group_id": ("string", "Proximity placement group; empty for none"),
}
#: variables of the foundation stack, all of them ids outside the target's resource group
ELSEWHERE = {
    "stores_elsewhere": "Ids of storage accounts and vaults on which the deployer may give nodes their rights",
    "used_elsewhere": "Ids of subnets, images, disk encryption sets and capacity reservation groups that launches refer to",
}
BILLING_END = (
    "a node powers itself off at the job's end or at the hard end, but Azure bills a machine that is off until it is deallocated or deleted: the control "
    "plane's reaper deletes it, and without a control plane `skyplan destroy` does; a spot node that Azure evicts is deleted, with its disk"
)
#: machines in one placement group (Microsoft Learn, placement groups, 2024)
MOST_IN_A_SCALE_SET = 100
#: a node name is this, a dash and the rank; Linux takes 64
_ROOM_FOR_NODE_NAME = 59


class _AzureStack(CloudStack):
    """A stack with the azurerm provider.  It registers nothing in the subscription and asks for no storage key."""

    def __init__(self, app: cdk.App, given: StackBase) -> None:
        super().__init__(
            app,
            given,
            provider="azurerm",
            source="hashicorp/azurerm",
            settings={
                "features": {},
                "subscription_id": given.account,
                "tenant_id": given.tenant,
                # for OIDC and managed identities; whoever is signed in to the CLI stays who he is
                "client_id": given.role_arn,
                "storage_use_azuread": True,
                "resource_provider_registrations": "none",
            },
        )


class FoundationStack(_AzureStack):
    """Variables: `ELSEWHERE`.  Outputs: `identities` {identity: client id}, `boundaries` (none on Azure), `skyplan_yaml`, with CI `ci`.

    Raises ValueError without a subscription or a resource group: roles are made in them.
    """

    def __init__(self, app: cdk.App, given: FoundationInput) -> None:
        super().__init__(app, given)
        if not (given.account and given.resource_group):
            raise ValueError(f"{given.name}: on Azure a foundation needs the subscription and the resource group")
        elsewhere = {
            name: cdk.variable(self, name, "list(string)", text, default=[]) for name, text in ELSEWHERE.items()
        }
        made = Foundation(
            self,
            FoundationProps(
                subscription=given.account,
                group=given.resource_group,
                region=given.region,
                tags=given.tags,
                identities=given.identities,
                ci=given.ci,
                elsewhere=elsewhere,
            ),
        )
        lines = (
            ("subscription", given.account),
            *((("tenant", given.tenant),) if given.tenant else ()),
            ("resource_group", given.resource_group),
            *role_lines(made.clients),
        )
        ci = {"tenant": given.tenant or "", "client_ids": made.clients} if given.ci else None
        self.foundation_outputs(given, made.clients, lines, ci=ci)


class NetworkStack(_AzureStack):
    """Outputs: `resource_group`, `subnet_ids` {zone: id}, `public_subnet_ids` {zone: id}.

    Of the user's own network one list of subnets is known: a tunnelled job in it needs them to be without a NAT gateway.
    """

    def __init__(self, app: cdk.App, given: NetworkInput) -> None:
        super().__init__(app, given)
        group = given.resource_group or resource_group(
            self, project=given.project, name=given.name, region=given.region, tags=given.tags
        )
        if given.own is not None:
            subnet_ids = public = dict(given.own.subnets)
        else:
            made = Network(
                self,
                NetworkProps(
                    project=given.project,
                    name=given.name,
                    region=given.region,
                    group=group,
                    cidr=given.cidr,
                    nat_cidr=given.nat_cidr,
                    zones=given.zones,
                    tags=given.tags,
                ),
            )
            subnet_ids, public = made.subnet_ids, made.public_subnet_ids
        cdk.output(self, "resource_group", group, "Group of everything that jobs here are made of")
        cdk.output(self, "subnet_ids", subnet_ids, "Zone to subnet id; the empty key is the region's")
        cdk.output(self, "public_subnet_ids", public, "Zone to the subnet without a NAT gateway")


class AddressStack(_AzureStack):
    """Variables: `stacks.wiring.ADDRESS_VARIABLES`.  Outputs: `endpoints` {rank: IPv4 address}, `address_ids` {rank: id}."""

    def __init__(self, app: cdk.App, given: AddressInput) -> None:
        super().__init__(app, given)
        ref = {n: cdk.variable(self, n, kind, text) for n, (kind, text) in ADDRESS_VARIABLES[Cloud.AZURE].items()}
        made = Endpoints(
            self,
            project=given.project,
            name=given.name,
            region=given.region,
            group=ref["resource_group"],
            ranks=given.ranks,
            tags=given.tags,
        )
        self.address_outputs(made.addresses, made.ids)


class AccessStack(_AzureStack):
    """Variables: `stacks.wiring.declared`.  Outputs: `launch`, `node_identity`, `node_principal_id`, `node_client_id`, `data_snippets`.

    Raises InputError for `access: session`, and for more nodes on InfiniBand than one placement group holds.
    """

    def __init__(self, app: cdk.App, given: AccessInput) -> None:
        super().__init__(app, given)
        _check(given)
        ref = {n: cdk.variable(self, n, kind, text) for n, (kind, text) in declared(given).items()}
        self._ref = ref
        self._place = azure.Place(
            project=given.project,
            name=given.name,
            region=given.region,
            group=ref["resource_group"],
            tags=given.tags,
            target=given.target,
        )
        held = azure.NodeIdentity(
            self, self._place, given.policies, given.account, foundation=given.orchestrator is not None
        )
        self._identity = held.identity
        self._peers = azure.Peers(self, self._place)
        if given.orchestrator is not None:
            azure.Launching(self, self._place, identity=self._identity, peers=self._peers)
        if port := tunnel_port(given):
            self._peers.open_tunnel(port, ref[PEER_ENDPOINTS])
        launch = {template.key: self._launch(template) for template in given.templates}
        cdk.output(self, "launch", launch, "What a launch needs, by template key")
        cdk.output(self, "node_identity", self._identity.ref(), "The identity that the orchestrator gives to nodes")
        cdk.output(self, "node_principal_id", self._identity.ref("principal_id"), "What owners of stores grant to")
        cdk.output(self, "node_client_id", self._identity.ref("client_id"), "What other clouds know the nodes by")
        data_identities(self, given)
        cdk.output(self, "data_snippets", list(given.snippets), "What the owners of stores must allow themselves")

    def _launch(self, template: NodeTemplate) -> dict[str, Any]:
        name = label(template.key).strip("-")
        scale_set = proximity_group = ""
        if template.fabric is Fabric.INFINIBAND:
            scale_set = azure.scale_set(self, name, self._place, template.zone).ref()
        elif template.cluster:
            proximity_group = azure.proximity_group(self, name, self._place).ref()
        return {
            "resource_group": self._place.group,
            "subnet_id": self._subnet(template),
            "security_group_id": self._peers.rules.ref(),
            "peers_id": self._peers.peers.ref(),
            "identity_id": self._identity.ref(),
            "scale_set_id": scale_set,
            "proximity_group_id": proximity_group,
        }

    def _subnet(self, template: NodeTemplate) -> str:
        """The zone's subnet, or the region's.  A tunnel's node answers from its own address, so it stands where the way out is no NAT gateway."""
        ids = self._ref["public_subnet_ids" if template.tunnel else "subnet_ids"].removeprefix("${").removesuffix("}")
        regional = f'{ids}[""]'
        return f'${{try({ids}["{template.zone}"], {regional})}}' if template.zone else f"${{{regional}}}"


class ComputeStack(_AzureStack):
    """Variables: `VARIABLES`, with a tunnel also `address_ids`.  Outputs: `nodes`, `plan_id`, `billing_end`."""

    def __init__(self, app: cdk.App, given: ComputeInput) -> None:
        super().__init__(app, given)
        node, workload = given.node, given.workload
        if node is None or workload is None:
            raise ValueError(f"{given.name}: on Azure a compute stack needs the node and the workload")
        known = VARIABLES | (TUNNEL_COMPUTE_VARIABLES if given.tunnel else {})
        ref = {name: cdk.variable(self, name, kind, text) for name, (kind, text) in known.items()}
        addresses = given.addresses or ("",) * given.nodes
        made = Nodes(
            self,
            NodesProps(
                name=resource_name(given.project, given.job, f"g{given.generation}", limit=_ROOM_FOR_NODE_NAME),
                region=given.region,
                zone=given.zone,
                instance_type=given.instance_type,
                image=node.machine_image,
                capacity=given.capacity,
                reservation=given.reservation,
                ranks=tuple((rank_key(rank), address) for rank, address in enumerate(addresses, given.first_rank)),
                custom_data=packed(user_data(workload, node_of(node, given, given.data_paths)), given.cloud),
                disk_gb=node.disk_gb,
                disk_key=given.kms_key_arn,
                group=ref["resource_group"],
                subnet=ref["subnet_id"],
                security_group=ref["security_group_id"],
                peers=ref["peers_id"],
                identity=ref["identity_id"],
                scale_set=ref["scale_set_id"],
                # Azure takes a capacity reservation or a proximity group, never both
                proximity_group=None if given.capacity is CapacityType.RESERVED else ref["proximity_group_id"],
                tags=given.tags,
                address_ids=ref.get(ADDRESS_IDS),
            ),
        )
        self.compute_outputs(given, made.described(), BILLING_END)


def _check(given: AccessInput) -> None:
    """Raises InputError for what Azure cannot give."""
    found: list[Diagnostic] = []
    if any(template.session for template in given.templates) and (why := azure.session_supported()):
        found.append(
            Diagnostic(
                code="SKY-SPEC-113", summary=f"`access: session`: {why}", hint="leave it out, or leave out azure"
            )
        )
    for template in given.templates:
        if template.fabric is Fabric.INFINIBAND and template.nodes > MOST_IN_A_SCALE_SET:
            summary = (
                f"{template.key}: {template.nodes} nodes; one InfiniBand partition of Azure holds {MOST_IN_A_SCALE_SET}"
            )
            found.append(Diagnostic(code="SKY-SPEC-105", summary=summary, hint="ask for fewer nodes"))
    if found:
        raise InputError(found)
