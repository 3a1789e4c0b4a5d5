"""The stacks of a placement on AWS.  Decides what goes into which stack; the resources are `modules.aws`'s.

`net`  one network per target and region, shared by jobs; or the user's own, then only its ids are handed on.
`adr`  public endpoints of a tunnelled job's nodes.  They cost while they stand, whether a node has them or not.
`acc`  what a job's nodes are and may do.  Everything here is reviewed; nothing here runs.
`cmp`  the nodes of one launch attempt.  Its identity may launch, terminate and describe; so nothing else is in it.
`fnd`  who plans, deploys, launches and mints, once per account; applied by an administrator, with the administrator's own rights.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from modules import cdk
from modules.aws import access as aws
from modules.aws.address import Endpoints
from modules.aws.compute import Nodes, NodesProps
from modules.aws.foundation import Foundation, FoundationProps
from modules.aws.network import Network, NetworkProps, Peers
from modules.text import fit
from modules.user_data import node_of, packed, user_data
from planner.model.offer import CapacityType
from planner.model.stack import (
    AccessInput,
    AddressInput,
    ComputeInput,
    FoundationInput,
    NetworkInput,
    NodeTemplate,
    StackBase,
    rank_key,
    spot_key,
)
from stacks.base import AWS_RETRIES, CloudStack, role_lines
from stacks.minted import data_identities
from stacks.naming import label
from stacks.wiring import ADDRESS_IDS, PEER_ENDPOINTS, TUNNEL_COMPUTE_VARIABLES, declared, tunnel_port

MAX_RETRIES = AWS_RETRIES
#: variable of the compute stack -> (type, description)
VARIABLES = {
    "subnet_id": ("string", "Subnet of the nodes; empty if the template has its own interfaces"),
    "security_group_ids": ("list(string)", "Groups of the nodes; unused if the template has its own interfaces"),
    "launch_template_id": ("string", "Launch template of the nodes"),
    "launch_template_version": ("string", "Its version"),
    "head_launch_template_id": ("string", "Launch template of rank 0"),
    "head_launch_template_version": ("string", "Its version"),
    "placement_group": ("string", "Name of the placement group; empty for none"),
}
BILLING_END = "a node powers itself off at the job's end or at the hard end, and EC2 terminates an instance that does"


class _AwsStack(CloudStack):
    """A stack with the AWS provider.  No `default_tags`: a changed default would reach nodes that must not change."""

    def __init__(self, app: cdk.App, given: StackBase) -> None:
        super().__init__(
            app,
            given,
            provider="aws",
            source="hashicorp/aws",
            settings={
                "region": given.region,
                "max_retries": MAX_RETRIES,
                "allowed_account_ids": [given.account] if given.account else None,
                "assume_role": [{"role_arn": given.role_arn, "session_name": "skyplan"}] if given.role_arn else None,
            },
        )


class FoundationStack(_AwsStack):
    """Outputs: `identities` {identity: role ARN}, `boundaries` {name: policy ARN}, `skyplan_yaml`; with CI `ci` {whose job: the role that it takes}."""

    def __init__(self, app: cdk.App, given: FoundationInput) -> None:
        super().__init__(app, given)
        made = Foundation(
            self,
            FoundationProps(
                project=given.project,
                identities=given.identities,
                boundaries=given.boundaries,
                ci=given.ci,
                tags=given.tags,
                entry=given.entry,
            ),
        )
        lines = [("account", f'"{given.account}"'), *role_lines(made.roles)]
        if made.node_boundary:
            lines.append(("permissions_boundary", made.node_boundary))
        ci = {"protected_branch": made.entry, "pull_requests": made.roles["planner"]} if made.entry else None
        self.foundation_outputs(given, made.roles, tuple(lines), made.boundaries, ci)


class NetworkStack(_AwsStack):
    """Outputs: `vpc_id`, `subnet_ids` {zone: id}, `public_subnet_ids` {zone: id}, `security_group_ids`.

    Of the user's own network one list of subnets is known: a tunnelled job in it needs them to have a route to an Internet gateway.
    """

    def __init__(self, app: cdk.App, given: NetworkInput) -> None:
        super().__init__(app, given)
        if given.own is not None:
            subnets = dict(given.own.subnets)
            self._outputs(given.own.vpc_id, subnets, subnets, given.own.security_group_ids)
            return
        made = Network(
            self,
            NetworkProps(
                name=given.name,
                region=given.region,
                cidr=given.cidr,
                nat_cidr=given.nat_cidr,
                zones=given.zones,
                tags=given.tags,
            ),
        )
        self._outputs(made.vpc.ref(), made.subnet_ids, made.public_subnet_ids, ())

    def _outputs(
        self, vpc_id: str, subnet_ids: str | dict[str, str], public: str | dict[str, str], groups: tuple[str, ...]
    ) -> None:
        cdk.output(self, "vpc_id", vpc_id, "The network")
        cdk.output(self, "subnet_ids", subnet_ids, "Zone id to subnet id")
        cdk.output(self, "public_subnet_ids", public, "Zone id to the subnet with a route to the Internet")
        cdk.output(self, "security_group_ids", list(groups), "The user's own groups for every node, if any")


class AddressStack(_AwsStack):
    """Outputs: `endpoints` {rank: IPv4 address}, `address_ids` {rank: allocation id}."""

    def __init__(self, app: cdk.App, given: AddressInput) -> None:
        super().__init__(app, given)
        made = Endpoints(self, name=given.name, ranks=given.ranks, tags=given.tags)
        self.address_outputs(made.addresses, made.ids)


class AccessStack(_AwsStack):
    """Variables: `stacks.wiring.declared`.  Outputs: `launch`, `node_identity`, `data_snippets`."""

    def __init__(self, app: cdk.App, given: AccessInput) -> None:
        super().__init__(app, given)
        self._given = given
        ref = {n: cdk.variable(self, n, kind, text) for n, (kind, text) in declared(given).items()}
        self._ref = ref
        peers = Peers(self, name=f"{given.project}-{given.name}", vpc_id=ref["vpc_id"], tags=given.tags)
        if port := tunnel_port(given):
            peers.open_tunnel(port, ref[PEER_ENDPOINTS])
        self._groups = f"${{concat([{peers.id.strip('${}')}], {ref['security_group_ids'].strip('${}')})}}"
        self._role = aws.NodeRole(
            self,
            aws.RoleProps(
                name=f"skyplan-{given.project}-{given.name}",
                path=f"/skyplan/{given.project}/",
                policies=tuple((policy.name, policy.document) for policy in given.policies),
                session=any(template.session for template in given.templates),
                permissions_boundary=given.permissions_boundary,
                tags=given.tags,
            ),
        )
        group = ""
        if any(template.cluster for template in given.templates):
            group = aws.placement_group(self, f"skyplan-{given.project}-{given.name}", given.tags).ref("name")
        if given.orchestrator:
            self._role.passed_by(given.orchestrator, fit(f"skyplan-pass-{given.name}", 128))
        launch = {template.key: self._launch(template, group) for template in given.templates}
        for template in given.templates:
            if template.key in given.spot_templates:
                launch[spot_key(template.key)] = self._launch(template, group, spot=True)
        cdk.output(self, "launch", launch, "What a launch needs, by template key")
        cdk.output(self, "node_identity", self._role.role_arn, "The role that the orchestrator passes to nodes")
        data_identities(self, given)
        cdk.output(self, "data_snippets", list(given.snippets), "What the owners of stores must allow themselves")

    def _launch(self, template: NodeTemplate, group: str, *, spot: bool = False) -> dict[str, Any]:
        made = self._template(template, spot=spot).described
        return {
            "subnet_id": made["subnet_id"],
            "security_group_ids": self._groups,
            "launch_template_id": made["id"],
            "launch_template_version": made["version"],
            "head_launch_template_id": made["head_id"],
            "head_launch_template_version": made["head_version"],
            "placement_group": group,
        }

    def _subnet(self, template: NodeTemplate) -> str:
        """A tunnel's node answers from its own address, so it stands where the way out is no NAT gateway."""
        ids = self._ref["public_subnet_ids" if template.tunnel else "subnet_ids"].strip("${}")
        return f'${{{ids}["{template.zone}"]}}'

    def _template(self, template: NodeTemplate, *, spot: bool) -> aws.NodeTemplate:
        given, kind = self._given, label(template.key) + ("-spot" if spot else "")
        node = node_of(template, given, given.data_paths, head=given.head_address)
        return aws.NodeTemplate(
            self,
            aws.TemplateProps(
                label=kind,
                name=f"skyplan-{given.project}-{given.name}-{kind}",
                instance_type=template.instance_type,
                machine_image=template.machine_image,
                user_data=packed(user_data(given.workload, node), given.cloud),
                disk_gb=template.disk_gb,
                efa=template.efa_interfaces,
                subnet_id=self._subnet(template),
                security_group_ids=self._groups,
                head_address=node.head,
                profile_arn=self._role.profile.ref("arn"),
                kms_key_arn=given.kms_key_arn,
                tags=given.tags,
                spot=spot,
            ),
        )


class ComputeStack(_AwsStack):
    """Variables: `VARIABLES`, with a tunnel also `address_ids`.  Outputs: `nodes`, `plan_id`, `billing_end`."""

    def __init__(self, app: cdk.App, given: ComputeInput) -> None:
        super().__init__(app, given)
        known = VARIABLES | (TUNNEL_COMPUTE_VARIABLES if given.tunnel else {})
        ref = {name: cdk.variable(self, name, kind, text) for name, (kind, text) in known.items()}
        reserved = given.capacity is CapacityType.RESERVED
        addresses = given.addresses or ("",) * given.nodes
        made = Nodes(
            self,
            NodesProps(
                name=f"{given.job}-g{given.generation}",
                instance_type=given.instance_type,
                market=given.reservation if reserved else given.capacity.value,
                capacity_block=given.capacity_block,
                ranks=tuple((rank_key(rank), address) for rank, address in enumerate(addresses, given.first_rank)),
                template_id=ref["launch_template_id"],
                template_version=ref["launch_template_version"],
                head_template_id=ref["head_launch_template_id"],
                head_template_version=ref["head_launch_template_version"],
                subnet_id=ref["subnet_id"],
                security_group_ids=ref["security_group_ids"],
                # a reservation made outside the group has no capacity inside it
                placement_group=ref["placement_group"] if given.cluster and (not reserved or given.in_group) else None,
                tags=given.tags,
                address_ids=ref.get(ADDRESS_IDS),
            ),
        )
        self.compute_outputs(given, made.described(given.zone), BILLING_END)
