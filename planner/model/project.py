"""What the platform team decides: skyplan.yaml, normalised.  A job can narrow these limits, never widen them."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.model.offer import Cloud
from planner.model.workload import Constraints, SecretRef


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNetwork:
    """The user's own network in one region, used instead of a new one.  `subnets`: (zone, subnet id).

    cidrs   (zone, CIDR) of those subnets; only where it is known can several nodes be given addresses, so that they find each other
    """

    region: str
    vpc_id: str
    subnets: tuple[tuple[str, str], ...]
    security_group_ids: tuple[str, ...] = ()
    cidrs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """At most `max_nodes`, `max_gpus` or `max_vcpus` in use at once of what the patterns match; capacity None = both."""

    instance_types: tuple[str, ...]
    regions: tuple[str, ...] = ("*",)
    capacity: str | None = None
    max_nodes: int | None = None
    max_gpus: int | None = None
    max_vcpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CiSettings:
    """Whose CI may become planner and deployer by its own tokens.  One file means one CI, in every account.

    provider    `github`, `gitlab` or `other`
    audience    the `aud` that the CI asks for; "" = what is usual for the cloud
    repository, branch     github, gitlab: `acme/infra` and its protected branch
    pull_request_subject, branch_subject   other: the `sub` claims of the two, as they are
    """

    provider: str
    issuer: str
    audience: str = ""
    repository: str = ""
    branch: str = ""
    pull_request_subject: str = ""
    branch_subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundationSettings:
    """Of one account: who may become which control identity, beside the CI.

    trusted       (identity, principal by the cloud's own name)
    ci_provider   AWS: ARN of the account's OIDC provider for the CI's issuer, where one stands already
    tag_keys      AWS: tags of jobs that may stand beside skyplan's, as globs; the project's own may anyhow
    state_account AWS: whose the bucket of Terraform's state is, 12 digits; "" = the target's own account
    """

    trusted: tuple[tuple[str, str], ...] = ()
    ci_provider: str = ""
    tag_keys: tuple[str, ...] = ()
    state_account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where skyplan may act: an account (AWS), project (GCP), subscription (Azure) or project id (Nebius) with roles.

    account           12 digits on AWS, project id on GCP, subscription id on Azure, project id on Nebius; None = as configured
    deployer_role     role the prepare step assumes (AWS ARN); None = the caller's own credentials
    orchestrator_role role the launch step assumes
    broker_role       who mints data credentials here, by the cloud's own name: a role's ARN, a service account's email, a principal's object id (Azure); None = nobody
    regions           globs; () = all
    permissions_boundary  ARN put on every role skyplan makes
    resource_group    Azure: the user's own group, instead of one that skyplan makes
    tenant            Azure: tenant id; Nebius: tenant id, under which groups live
    network_quota     (region glob, networks that skyplan may keep there), the most specific first: the first that matches wins
    """

    name: str
    cloud: Cloud
    account: str | None = None
    deployer_role: str | None = None
    orchestrator_role: str | None = None
    broker_role: str | None = None
    permissions_boundary: str | None = None
    regions: tuple[str, ...] = ()
    opt_in_zones: tuple[str, ...] = ()
    kms_key_arn: str | None = None
    networks: tuple[OwnNetwork, ...] = ()
    quotas: tuple[Quota, ...] = ()
    resource_group: str | None = None
    tenant: str | None = None
    network_quota: tuple[tuple[str, int], ...] = ()
    foundation: FoundationSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOverride:
    """A negotiated rate (`usd_per_hour`, per node) or a `discount` (0.12 = 12 % off the list) for what the patterns match."""

    clouds: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ("*",)
    regions: tuple[str, ...] = ("*",)
    capacity: str | None = None
    usd_per_hour: float | None = None
    discount: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Capacity already paid for: a sunk cost, so its marginal price is 0.  Open from `starts` until `expires` (UTC ISO).

    in_group        it was made inside a placement group, which its nodes must then be in
    capacity_block  AWS: a block of capacity bought for a time, which has a market of its own
    """

    target: str
    region: str
    zone: str
    instance_type: str
    nodes: int
    id: str
    starts: str
    expires: str
    in_group: bool = False
    capacity_block: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Terraform backend: `kind` local, s3, gcs or azurerm; `settings` go to `-backend-config` as they are."""

    kind: str = "local"
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppression:
    """An audit finding that the platform team accepts, with the reason, until `expires` (ISO date).

    grant   glob over where the finding stands (`Finding.origin`, then `identity`); `*` for anywhere
    """

    rule: str
    reason: str
    expires: str
    grant: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """Stores of one cloud that nodes in other clouds may reach with their own identity tokens.  Holds names, never a secret.

    stores       globs over URIs, all of one scheme: `s3://acme-*`
    from_clouds  where such nodes run
    settings     who the token is exchanged for, by the words of skyplan.yaml: `aws_role_arn`, `gcp_provider` …
    """

    stores: tuple[str, ...]
    from_clouds: tuple[Cloud, ...]
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """Where nodes of a job in several clouds learn each other's keys (`skyplan rendezvous`).

    url      as nodes reach it
    secrets  (cloud, reference): the join secret, where that cloud's nodes read it with their own identity
    """

    url: str
    secrets: tuple[tuple[str, SecretRef], ...]

    def secret(self, cloud: str) -> SecretRef | None:
        """That cloud's reference."""
        return dict(self.secrets).get(cloud)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """Where nodes report and learn what is asked of them (`skyplan serve`), and who mints their data credentials.

    url      as nodes reach it
    ca_file  on the nodes: certificates of an authority of the user's own, which both services' are checked against; None = the system's
    broker   `skyplan broker`, as nodes reach it; None = nothing is minted, nodes have their own identity's rights alone
    azure_audience, azure_broker_audience
             the applications that Azure's managed identities get tokens for: Entra issues none for an address; elsewhere a proof names the address
    """

    url: str
    ca_file: str | None = None
    broker: str | None = None
    azure_audience: str | None = None
    azure_broker_audience: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationSettings:
    """When jobs move, and what moves without being asked; None leaves it to `planner.migration.constants`.

    threshold_hours  a voluntary move must gain this much compute, net of all that it costs
    horizon_hours    over which a gain is counted at most
    cool_down_hours  no second voluntary move sooner
    apply            `never`: `skyplan watch` only proposes; `reviewed`: with --apply it carries out moves to prepared places of the reviewed plan
    """

    threshold_hours: float | None = None
    horizon_hours: float | None = None
    cool_down_hours: float | None = None
    apply: str = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What all jobs together may cost, running and planned; of these teams (globs), or of everybody.  None = no limit."""

    teams: tuple[str, ...] = ("*",)
    usd_per_hour: float | None = None
    usd_total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketSettings:
    """Where prices come from: `record` (its history, over the catalog; the catalog alone where there is none), `catalog`, or a snapshot's path."""

    source: str = "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """skyplan.yaml.  `default_targets` is True where the file names none: one target `default` per cloud then stands."""

    name: str = "default"
    targets: tuple[Target, ...] = ()
    default_targets: bool = True
    limits: Constraints = field(default_factory=Constraints)
    data_prefixes: tuple[str, ...] = ()
    prices: tuple[PriceOverride, ...] = ()
    reserved: tuple[Reservation, ...] = ()
    pool_cap_nodes: int | None = None
    backend: Backend = field(default_factory=Backend)
    provider_versions: tuple[tuple[str, str], ...] = ()
    policy: str | None = None
    suppressions: tuple[Suppression, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    """(pattern `CLOUD/REGION/INSTANCE_TYPE`, machine image id): pins that win over the packaged ones."""
    agent_url: str | None = None
    agent_sha256: str | None = None
    price_tolerance: float = 0.10
    rendezvous: Rendezvous | None = None
    tunnels: bool = True
    """Jobs may ask for nodes in several clouds, joined by a tunnel."""
    federation: tuple[Federation, ...] = ()
    ci: CiSettings | None = None
    control_plane: ControlPlane | None = None
    migration: MigrationSettings = field(default_factory=MigrationSettings)
    market: MarketSettings = field(default_factory=MarketSettings)
    budgets: tuple[Budget, ...] = ()

    @property
    def broker(self) -> str | None:
        """Where nodes get data credentials that are minted for them; None where nobody mints."""
        return self.control_plane.broker if self.control_plane else None

    def target(self, name: str) -> Target:
        """The target of that name.  Raises KeyError."""
        return next(t for t in self.targets if t.name == name)


def default_targets() -> tuple[Target, ...]:
    """One target `default` per cloud, with the account the caller's credentials point at."""
    return tuple(Target(name="default", cloud=cloud) for cloud in Cloud)
