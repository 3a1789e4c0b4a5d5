"""One AWS network: private and public subnets per zone, an outbound path that exists, an S3 endpoint.  And the group in which a job's nodes reach
each other.

Nodes stand in the private subnets, without a public address, and nothing outside may open a connection to one.  Only nodes of a tunnelled job stand in
the public ones: there a node's way out is its own address, and what may come in is the tunnel's peers, one by one (docs/decisions/0013).  The network is
shared by jobs, so it holds no group: each job's access stack makes its own, and jobs do not reach each other.  Which zones and which addresses: the
caller's choice.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.cidr import consecutive
from modules.text import fit, literal_tags

#: what nodes may open to the outside: package mirrors, registries, APIs.  DNS and time come from the VPC itself, unfiltered
OUTBOUND_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProps:
    """`zones`: (AZ id, CIDR) of the private subnets; `nat_cidr`: the first zone's public subnet, with the NAT gateway; the other zones' follow it."""

    name: str
    region: str
    cidr: str
    nat_cidr: str
    zones: tuple[tuple[str, str], ...]
    tags: tuple[tuple[str, str], ...]


class Network(cdk.Construct):
    """VPC, subnets, NAT gateway, routes, S3 gateway endpoint.

    One NAT gateway for all zones: it is billed by the hour, and training data in S3 does not pass through it.
    """

    def __init__(self, scope: cdk.Stack, props: NetworkProps) -> None:
        super().__init__(scope, "network")
        self._props = props
        self.vpc = cdk.Resource(
            self,
            "net",
            "aws_vpc",
            {
                "cidr_block": props.cidr,
                "enable_dns_support": True,
                "enable_dns_hostnames": True,
                "tags": self._tags(""),
            },
        )
        self.subnets = cdk.Resource(
            self,
            "private",
            "aws_subnet",
            {
                "vpc_id": self.vpc.ref(),
                "availability_zone_id": "${each.key}",
                "cidr_block": "${each.value}",
                "map_public_ip_on_launch": False,
                "tags": self._tags("-${each.key}"),
            },
            for_each=dict(props.zones),
        )
        self._public()
        nat = self._nat()
        routes = self._route_table("private", {"nat_gateway_id": nat.ref()})
        cdk.Resource(
            self,
            "private",
            "aws_route_table_association",
            {"subnet_id": "${each.value.id}", "route_table_id": routes.ref()},
            for_each=f"${{{self.subnets.address}}}",
        )
        cdk.Resource(
            self,
            "s3",
            "aws_vpc_endpoint",
            {
                "vpc_id": self.vpc.ref(),
                "service_name": f"com.amazonaws.{props.region}.s3",
                "vpc_endpoint_type": "Gateway",
                "route_table_ids": [routes.ref(), self._public_table.ref()],
                "tags": self._tags("-s3"),
            },
        )

    @property
    def subnet_ids(self) -> str:
        """Expression: a map from zone id to subnet id."""
        return f"${{{{for zone, subnet in {self.subnets.address} : zone => subnet.id}}}}"

    @property
    def public_subnet_ids(self) -> str:
        """Expression: a map from zone id to the id of its public subnet."""
        return f"${{{{for zone, subnet in {self.public.address} : zone => subnet.id}}}}"

    def _public(self) -> None:
        """A subnet per zone with a route to the Internet.  A node in it gets a public address only where its launch asks for one."""
        self._gateway = cdk.Resource(
            self, "net", "aws_internet_gateway", {"vpc_id": self.vpc.ref(), "tags": self._tags("")}
        )
        self.public = cdk.Resource(
            self,
            "public",
            "aws_subnet",
            {
                "vpc_id": self.vpc.ref(),
                "availability_zone_id": "${each.key}",
                "cidr_block": "${each.value}",
                "map_public_ip_on_launch": False,
                "tags": self._tags("-public-${each.key}"),
            },
            for_each=consecutive(self._props.nat_cidr, (zone for zone, _ in self._props.zones)),
        )
        self._public_table = self._route_table("public", {"gateway_id": self._gateway.ref()})
        self._public_joined = cdk.Resource(
            self,
            "public",
            "aws_route_table_association",
            {"subnet_id": "${each.value.id}", "route_table_id": self._public_table.ref()},
            for_each=f"${{{self.public.address}}}",
        )

    def _nat(self) -> cdk.Resource:
        """The NAT gateway in the first zone's public subnet, created only once that subnet has its way out."""
        address = cdk.Resource(
            self, "nat", "aws_eip", {"domain": "vpc", "tags": self._tags("-nat")}, depends_on=(self._gateway,)
        )
        first = f'${{{self.public.address}["{self._props.zones[0][0]}"].id}}'
        return cdk.Resource(
            self,
            "net",
            "aws_nat_gateway",
            {"allocation_id": address.ref(), "subnet_id": first, "tags": self._tags("")},
            depends_on=(self._public_joined, self._public_route),
        )

    def _route_table(self, name: str, way_out: dict[str, Any]) -> cdk.Resource:
        """A route table with one default route."""
        table = cdk.Resource(self, name, "aws_route_table", {"vpc_id": self.vpc.ref(), "tags": self._tags(f"-{name}")})
        route = cdk.Resource(
            self,
            name,
            "aws_route",
            {"route_table_id": table.ref(), "destination_cidr_block": "0.0.0.0/0", **way_out},
        )
        if name == "public":
            self._public_route = route
        return table

    def _tags(self, suffix: str) -> dict[str, str]:
        return named(self._props.tags, self._props.name + suffix)


class Peers(cdk.Construct):
    """One job's security group: its members reach each other on every port, and the outside on HTTP and HTTPS.

    EFA asks for all traffic from and to the group itself: an outbound rule to 0.0.0.0/0 is not enough for it.
    """

    def __init__(self, scope: cdk.Stack, *, name: str, vpc_id: str, tags: tuple[tuple[str, str], ...]) -> None:
        super().__init__(scope, "peers")
        group = cdk.Resource(
            self,
            "nodes",
            "aws_security_group",
            {
                "name": fit(f"skyplan-{name}", 255),
                "description": "Nodes reach each other and the outside, nothing outside reaches them",
                "vpc_id": vpc_id,
                "tags": named(tags, f"{name}-nodes"),
            },
        )
        self.id = group.ref()
        common: dict[str, Any] = {"security_group_id": group.ref(), "tags": literal_tags(tags)}
        every = {**common, "referenced_security_group_id": group.ref(), "ip_protocol": "-1"}
        for direction in ("ingress", "egress"):
            cdk.Resource(
                self,
                "peers",
                f"aws_vpc_security_group_{direction}_rule",
                {**every, "description": "all traffic among the nodes (EFA needs both directions)"},
            )
        cdk.Resource(
            self,
            "out",
            "aws_vpc_security_group_egress_rule",
            {
                **common,
                "cidr_ipv4": "0.0.0.0/0",
                "ip_protocol": "tcp",
                "from_port": "${each.value}",
                "to_port": "${each.value}",
                "description": "${each.key}",
            },
            for_each=OUTBOUND_PORTS,
        )
        self._common = common

    def open_tunnel(self, port: int, endpoints: str) -> None:
        """UDP from and to the public endpoints of the job's nodes (a reference to a list of addresses), each as a /32, and nothing wider.

        A group holds 60 rules in each direction by default, three are taken: a job of more nodes needs that quota raised.
        """
        for direction in ("ingress", "egress"):
            cdk.Resource(
                self,
                "tunnel",
                f"aws_vpc_security_group_{direction}_rule",
                {
                    **self._common,
                    "cidr_ipv4": "${each.value}/32",
                    "ip_protocol": "udp",
                    "from_port": port,
                    "to_port": port,
                    "description": "the tunnel of another node of the job",
                },
                for_each=f"${{toset({endpoints.removeprefix('${').removesuffix('}')})}}",
            )


def named(tags: tuple[tuple[str, str], ...], name: str) -> dict[str, str]:
    """Tags with a `Name` for the console, unless the user set one."""
    return {"Name": name, **literal_tags(tags)}
