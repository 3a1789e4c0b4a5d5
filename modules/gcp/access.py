"""What a job's nodes are and may do: their service account with its rights on data, the rule by which they reach each other, their placement.

Reviewed and applied by the deployer.  The account has no role on the project, not even that of writing logs.  Rights are single members added
to a bucket, a managed folder or a secret: a policy or binding, which would replace what its owner has set, is never made.
"""

# pyright: basic

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.gcp.images import family_of
from modules.gcp.names import account_id, resource_name
from modules.text import literal
from planner.model.stack import PolicyDocument

#: from where Identity-Aware Proxy forwards a person's SSH (cloud.google.com/iap/docs/using-tcp-forwarding)
IAP_RANGE = "35.235.240.0/20"
#: of two rules the smaller number wins; a rule that names none has 1000, and Google's own in a `default` network 65534
ALLOW_PRIORITY = 800
DENY_PRIORITY = 900
#: to hand an account to a machine; given on the one account, never on the project
ACCOUNT_USER = "roles/iam.serviceAccountUser"

#: kind of resource in a `planner.iam.gcp` binding -> Terraform type and the binding's keys that become arguments
MEMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "managed_folder": ("google_storage_managed_folder_iam_member", ("bucket", "managed_folder")),
    "bucket": ("google_storage_bucket_iam_member", ("bucket",)),
    "secret": ("google_secret_manager_secret_iam_member", ("project", "secret_id")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountProps:
    """`stack` is the access stack's name; `policies` as `planner.iam.gcp` renders them.

    orchestrator   email of the service account that launches: it may hand this account to a node, and no other; None = nobody is given that
    """

    project: str
    stack: str
    job: str
    policies: tuple[PolicyDocument, ...]
    orchestrator: str | None = None


class NodeAccount(cdk.Construct):
    """The nodes' service account.  No key of it is made: nodes get tokens from the metadata server."""

    def __init__(self, scope: cdk.Stack, props: AccountProps) -> None:
        super().__init__(scope, "account")
        account = cdk.Resource(
            self,
            "nodes",
            "google_service_account",
            {
                "account_id": account_id(props.project, props.stack, props.job),
                "display_name": f"skyplan nodes of {props.job}"[:100],
                # an account carries no labels
                "description": literal(f"skyplan-managed; project {props.project}; job {props.job}; data rights only")[
                    :256
                ],
            },
        )
        self.email = account.ref("email")
        for binding in distinct(props.policies):
            self._grant(binding, account.ref("member"))
        if props.orchestrator:
            cdk.Resource(
                self,
                "orchestrator",
                "google_service_account_iam_member",
                {
                    "service_account_id": account.ref("name"),
                    "role": ACCOUNT_USER,
                    "member": literal(f"serviceAccount:{props.orchestrator}"),
                },
            )

    def _grant(self, binding: dict[str, Any], member: str) -> None:
        """One role on one thing.  The reason has no field in the cloud (only a condition has a description); reviews show it with the grant."""
        kind, keys = MEMBERS[binding["kind"]]
        place = {key: literal(binding[key]) for key in keys if binding.get(key)}
        cdk.Resource(self, binding_label(binding, keys), kind, {**place, "role": binding["role"], "member": member})


def distinct(policies: Sequence[PolicyDocument]) -> list[dict[str, Any]]:
    """Each right once, whichever identities need it: two members of the same role and thing would end each other's right."""
    seen: dict[tuple[str, ...], dict[str, Any]] = {}
    for policy in policies:
        for binding in policy.document["bindings"]:
            keys = MEMBERS[binding["kind"]][1]
            seen.setdefault((binding["kind"], binding["role"], *(str(binding.get(key)) for key in keys)), binding)
    return [seen[key] for key in sorted(seen)]


def binding_label(binding: dict[str, Any], keys: tuple[str, ...]) -> str:
    """`objectViewer-1a2b3c4d`: stays the same whatever other rights come and go."""
    whole = "/".join((binding["role"], *(str(binding.get(key)) for key in keys)))
    return f"{binding['role'].rpartition('.')[2]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeersProps:
    """`network` and `account` are references; `session`: people may come in by Identity-Aware Proxy."""

    project: str
    name: str
    network: str
    account: str
    session: bool


class Peers(cdk.Construct):
    """Inbound rules of one job's nodes, told by their service account, so that two jobs in one network stay apart.

    The rest is refused by a rule, not left to the network: in a user's own the nodes would be open to whatever its rules allow, as `default`'s allow SSH
    and RDP from everywhere, and a tunnel's nodes have public addresses.  What the network's owner sets at a smaller number, or in a firewall policy
    that is read before such rules, still decides.

    Outbound is what the network's implied rule allows: all.  By NAT no connection comes in.
    """

    def __init__(self, scope: cdk.Stack, props: PeersProps) -> None:
        super().__init__(scope, "peers")
        self._props = props
        self._rule(
            "rest-inbound",
            "Nobody else, whatever the network's other rules allow",
            {"source_ranges": ["0.0.0.0/0"], "deny": [{"protocol": "all"}]},
            priority=DENY_PRIORITY,
        )
        self._rule(
            "peers",
            "All traffic among the nodes of this job",
            {"source_service_accounts": [props.account], "allow": [{"protocol": "all"}]},
        )
        if props.session:
            # Google's session channel is SSH forwarded by Identity-Aware Proxy, to the node's private address.  Who may use it is IAM's to say
            # (roles/iap.tunnelResourceAccessor and roles/compute.osLogin, given to people by the project's owner); nobody has it from skyplan
            self._rule(
                "session",
                "SSH for people, by Identity-Aware Proxy only",
                {"source_ranges": [IAP_RANGE], "allow": [{"protocol": "tcp", "ports": ["22"]}]},
                log_config={"metadata": "INCLUDE_ALL_METADATA"},
            )

    def open_tunnel(self, port: int, endpoints: str) -> None:
        """UDP from the public endpoints of the job's nodes (a reference to a list of addresses), each as a /32, and from nothing wider.

        One rule for all: a rule of Google's holds thousands of ranges, and a project a hundred rules by default.
        """
        bare = endpoints.removeprefix("${").removesuffix("}")
        self._rule(
            "tunnel",
            "The tunnels of other nodes of this job",
            {
                "source_ranges": f'${{[for address in {bare} : format("%s/32", address)]}}',
                "allow": [{"protocol": "udp", "ports": [str(port)]}],
            },
        )

    def _rule(
        self, key: str, description: str, source: dict[str, Any], *, priority: int = ALLOW_PRIORITY, **more: Any
    ) -> None:
        props = self._props
        cdk.Resource(
            self,
            key,
            "google_compute_firewall",
            {
                "name": resource_name(props.project, props.name, key),
                "description": description,
                "network": props.network,
                "direction": "INGRESS",
                "priority": priority,
                "target_service_accounts": [props.account],
                **source,
                **more,
            },
        )


def placement_policy(scope: cdk.Stack, label: str, name: str, region: str) -> str:
    """Reference to a policy by which Google puts nodes close together, as far as it can.

    One per template: instances that share a policy are put beside each other, which nodes of different zones, or of a move's old and new side,
    cannot be.  No `vm_count`: with one, the policy would serve exactly so many machines and fail a launch that follows another.
    """
    policy = cdk.Resource(
        scope,
        label,
        "google_compute_resource_policy",
        {
            "name": name,
            "region": region,
            "description": "skyplan: nodes of one job, close together",
            "group_placement_policy": {"collocation": "COLLOCATED"},
        },
    )
    return policy.ref("self_link")


def image_link(scope: cdk.Stack, label: str, image: str) -> str:
    """The image as compute names it: a family's newest image, found now, or the one that is named."""
    family = family_of(image)
    if family is None:
        return literal(image)
    return cdk.DataSource(scope, label, "google_compute_image", {"project": family[0], "family": family[1]}).ref(
        "self_link"
    )
