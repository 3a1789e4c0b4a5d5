"""What a job's nodes are on Azure: their identity with its role assignments, the rules between them, what places them together.

Only additive assignments, only at containers and secrets, never a role that manages.  The job's own nodes reach each other; nothing else reaches
them: the last inbound rule also shuts Azure's own defaults, which would let in the whole virtual network and load balancers.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.azure.names import azure_tags, resource_name
from modules.azure.session import session_supported as session_supported  # noqa: PLC0414 -- asked for here, kept where no CDK starts
from modules.text import literal
from planner.model.control_names import CHECKPOINTS, IDENTITY_USER, NODE_JOIN, control_name, role_name
from planner.model.grants import Identity
from planner.model.stack import PolicyDocument

Tags = tuple[tuple[str, str], ...]
#: what nodes may open to the outside: package mirrors, registries, APIs, stores.  Azure's own DNS, metadata and time pass any rule
OUTBOUND_PORTS = ("80", "443")
#: a network of the user's may have a DNS server of its own
DNS_PORT = "53"
_FIRST, _LAST = 100, 4096
#: Azure takes so much of a description (role assignments, 2022-04-01)
_DESCRIPTION = 1024
_ANY: dict[str, Any] = {
    "protocol": "*",
    "source_port_range": "*",
    "destination_port_range": "*",
    "source_address_prefix": "*",
    "destination_address_prefix": "*",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What every resource of a job shares: `name` is the stack's, `group` the expression of the resource group's name."""

    project: str
    name: str
    region: str
    group: str
    tags: Tags
    target: str = ""

    def attributes(self, limit: int, *parts: str) -> dict[str, Any]:
        """Name, group, location and tags of a resource."""
        return {
            "name": resource_name(self.project, self.name, *parts, limit=limit),
            "resource_group_name": self.group,
            "location": self.region,
            "tags": azure_tags(self.tags),
        }


class NodeIdentity(cdk.Construct):
    """The nodes' user-assigned identity and its rights on data, as `planner.iam.azure` wrote them.

    `subscription` is where stores are looked for; it is only used in the text of the error for one that is not there.
    `foundation`: the platform team's foundation has the role for checkpoints, and whoever applies this may define none.
    """

    def __init__(
        self,
        scope: cdk.Stack,
        place: Place,
        policies: tuple[PolicyDocument, ...],
        subscription: str | None,
        *,
        foundation: bool = False,
    ) -> None:
        super().__init__(scope, "identity")
        self._place, self._foundation = place, foundation
        self._none = f"/subscriptions/{subscription or '00000000-0000-0000-0000-000000000000'}/resourceGroups"
        self._found: dict[str, str] = {}
        self._roles: dict[str, str] = {}
        self.identity = cdk.Resource(self, "node", "azurerm_user_assigned_identity", place.attributes(128))
        for policy in policies:
            self._assign(policy)

    def _assign(self, policy: PolicyDocument) -> None:
        document = policy.document
        store = self._store(document["resource"])
        if "definition" in document and self._foundation:
            role = {"role_definition_name": role_name(self._place.project, self._place.target, CHECKPOINTS)}
        elif "definition" in document:
            role = {"role_definition_id": self._role(document["resource"]["name"], store, document["definition"])}
        else:
            role = {"role_definition_name": document["role"]}
        cdk.Resource(
            self,
            policy.name,
            "azurerm_role_assignment",
            {
                "scope": f"${{{store}}}{document['child']}",
                **role,
                "principal_id": self.identity.ref("principal_id"),
                "principal_type": "ServicePrincipal",
                # the identity is seconds old: Entra may not know it everywhere yet
                "skip_service_principal_aad_check": True,
                "description": literal(document["reason"][:_DESCRIPTION]),
                "condition": literal(document["condition"]) if "condition" in document else None,
                "condition_version": "2.0" if "condition" in document else None,
            },
        )

    def _store(self, resource: dict[str, str]) -> str:
        """Expression, bare: id of an account or vault.  Where there is none, Azure's answer to the id names it."""
        name, kind = resource["name"], resource["type"]
        if name not in self._found:
            word = kind.rsplit("/", 1)[1]
            found = cdk.DataSource(self, f"{word}-{name}", "azurerm_resources", {"type": kind, "name": name})
            missing = f"{self._none}/skyplan-found-no-{word}-{name}"
            self._found[name] = f'try({found.address}.resources[0].id, "{missing}")'
        return self._found[name]

    def _role(self, account: str, store: str, definition: dict[str, Any]) -> str:
        """A role that may be assigned in the account's resource group, and nowhere else."""
        if account not in self._roles:
            place = self._place
            made = cdk.Resource(
                self,
                f"checkpoints-{account}",
                "azurerm_role_definition",
                {
                    "name": resource_name(place.project, place.name, account, limit=128),
                    "scope": f'${{join("/", slice(split("/", {store}), 0, 5))}}',
                    "description": "Checkpoints of one skyplan job: read, write, add; never delete",
                    "permissions": [{"actions": [], "data_actions": definition["data_actions"]}],
                },
            )
            self._roles[account] = made.ref("role_definition_resource_id")
        return self._roles[account]


class Peers(cdk.Construct):
    """The job's application security group, and the security group of its interfaces: peers in, peers and the web out, nothing else."""

    def __init__(self, scope: cdk.Stack, place: Place) -> None:
        super().__init__(scope, "peers")
        self._place = place
        self.peers = cdk.Resource(self, "nodes", "azurerm_application_security_group", place.attributes(80))
        self.rules = cdk.Resource(self, "nodes", "azurerm_network_security_group", place.attributes(80))
        for direction in ("Inbound", "Outbound"):
            self._rule(
                f"peers-{direction.lower()}",
                direction,
                _FIRST,
                "Allow",
                "the job's own nodes",
                source_address_prefix=None,
                destination_address_prefix=None,
                source_application_security_group_ids=[self.peers.ref()],
                destination_application_security_group_ids=[self.peers.ref()],
            )
            what = "nothing else, Azure's defaults included"
            self._rule(f"rest-{direction.lower()}", direction, _LAST, "Deny", what)
        self._rule(
            "web-outbound",
            "Outbound",
            _FIRST + 10,
            "Allow",
            "HTTP and HTTPS",
            protocol="Tcp",
            destination_port_range=None,
            destination_port_ranges=list(OUTBOUND_PORTS),
        )
        self._rule(
            "dns-outbound",
            "Outbound",
            _FIRST + 20,
            "Allow",
            "a DNS server of the network's owner",
            destination_port_range=DNS_PORT,
            destination_address_prefix="VirtualNetwork",
        )

    def open_tunnel(self, port: int, endpoints: str) -> None:
        """UDP from and to the public endpoints of the job's nodes (a reference to a list of addresses), each as a /32, and nothing wider.

        One rule for all: rules of one direction need different priorities, which would move when a peer goes.
        """
        prefixes = f'${{[for address in {endpoints.removeprefix("${").removesuffix("}")} : format("%s/32", address)]}}'
        group = [self.peers.ref()]
        here: dict[str, dict[str, Any]] = {
            "Inbound": {"source_address_prefixes": prefixes, "destination_application_security_group_ids": group},
            "Outbound": {"source_application_security_group_ids": group, "destination_address_prefixes": prefixes},
        }
        for direction, ends in here.items():
            self._rule(
                f"tunnel-{direction.lower()}",
                direction,
                _FIRST + 30,
                "Allow",
                "the tunnels of other nodes of the job",
                protocol="Udp",
                destination_port_range=str(port),
                source_address_prefix=None,
                destination_address_prefix=None,
                **ends,
            )

    def _rule(self, name: str, direction: str, priority: int, access: str, what: str, **more: Any) -> None:
        # a resource of its own: in Terraform's JSON an inline rule would need every argument that it has
        cdk.Resource(
            self,
            name,
            "azurerm_network_security_rule",
            {
                "name": name,
                "resource_group_name": self._place.group,
                "network_security_group_name": self.rules.ref("name"),
                "direction": direction,
                "priority": priority,
                "access": access,
                "description": what,
                **_ANY,
                **more,
            },
        )


class Launching(cdk.Construct):
    """What the orchestrator may do with this job's own things: hand this identity to a machine, put an interface behind these rules.

    Roles and orchestrator are the foundation's (`modules.azure.foundation`), found by the names that it gives: a target names the orchestrator by its client
    id, and an assignment wants the id of its principal.  What is shared by jobs (subnets, public addresses) the foundation's role gives on the group.
    """

    def __init__(self, scope: cdk.Stack, place: Place, *, identity: cdk.Resource, peers: Peers) -> None:
        super().__init__(scope, "launching")
        name = control_name(place.project, Identity.ORCHESTRATOR.value, limit=128)
        found = cdk.DataSource(
            self,
            "orchestrator",
            "azurerm_user_assigned_identity",
            {"name": name, "resource_group_name": place.group},
        )
        for label, role, on in (
            ("identity", IDENTITY_USER, identity),
            ("rules", NODE_JOIN, peers.rules),
            ("peers", NODE_JOIN, peers.peers),
        ):
            cdk.Resource(
                self,
                f"orchestrator-{label}",
                "azurerm_role_assignment",
                {
                    "scope": on.ref(),
                    "role_definition_name": role_name(place.project, place.target, role),
                    "principal_id": found.ref("principal_id"),
                    "principal_type": "ServicePrincipal",
                    "skip_service_principal_aad_check": True,
                    "description": f"the orchestrator launches this job's nodes: {label}",
                },
            )


def scale_set(scope: cdk.Stack, label: str, place: Place, zone: str) -> cdk.Resource:
    """The set whose machines share one InfiniBand partition: flexible, one placement group, no machines of its own.  At most 100 join it.

    Microsoft's comparison of orchestration modes (2024-06) says that flexible sets have no InfiniBand; its engineers make clusters of ND machines with
    exactly these settings.  Which holds was not seen here: a node without the fabric says so at boot and ends.
    """
    return cdk.Resource(
        scope,
        label,
        "azurerm_orchestrated_virtual_machine_scale_set",
        {
            **place.attributes(64, label),
            "platform_fault_domain_count": 1,
            "single_placement_group": True,
            "zones": [zone] if zone else None,
        },
    )


def proximity_group(scope: cdk.Stack, label: str, place: Place) -> cdk.Resource:
    """What puts machines without InfiniBand into one building; one per template, since the first machine fixes where it is."""
    return cdk.Resource(scope, label, "azurerm_proximity_placement_group", place.attributes(80, label))
