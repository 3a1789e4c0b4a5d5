"""What the user wants to run: the job file, normalised.  Every size in bytes, every duration in hours; `None` is "not said"."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from planner.model.offer import CapacityType


class Store(StrEnum):
    """Object stores that data and checkpoints may lie in, with the cloud they belong to as URI scheme."""

    S3 = "s3"
    GCS = "gs"
    AZURE_BLOB = "az"
    NEBIUS = "nebius"

    @property
    def cloud(self) -> str:
        """The cloud's word: aws, gcp, azure, nebius."""
        return {"s3": "aws", "gs": "gcp", "az": "azure", "nebius": "nebius"}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPrefix:
    """A prefix in a store.  `bucket` is `account/container` on Azure; `prefix` has no leading slash, "" is the whole bucket."""

    store: Store
    bucket: str
    prefix: str
    region: str | None = None

    @property
    def uri(self) -> str:
        """`s3://bucket/prefix`."""
        return f"{self.store.value}://{self.bucket}/{self.prefix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuOption:
    """One acceptable accelerator per node: a canonical model, or any model with at least `min_memory_gib` per GPU."""

    count: int
    model: str | None = None
    min_memory_gib: float | None = None

    def __str__(self) -> str:
        return f"{self.model}:{self.count}" if self.model else f">={self.min_memory_gib:g}GiB:{self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one node needs, and how many nodes.  `accelerators` is "any of", in no order."""

    accelerators: tuple[GpuOption, ...]
    nodes: int = 1
    min_ram_gib: float | None = None
    min_vcpus: int | None = None
    disk_bytes: int | None = None
    capacity: tuple[CapacityType, ...] = (CapacityType.ON_DEMAND,)
    interconnect_sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How much there is to do: `hours` on `nodes` nodes with `count` GPUs of `model` each."""

    hours: float
    model: str
    count: int
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A container image.  `digest` is `sha256:…` where the reference pins one."""

    ref: str
    size_bytes: int | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """An environment variable whose value the node fetches itself: `store` such as `aws-secretsmanager`, `path` its name there."""

    env: str
    store: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Input.  `reads` is how many times the job reads the whole of it over the network (epochs without a local copy).

    mount    folder on the node under which it can be read as files
    copy_to  folder on the node into which it is copied before the job starts; never both
    """

    at: ObjectPrefix
    size_bytes: int
    reads: float = 1.0
    mount: str | None = None
    copy_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """Where checkpoints go, how large one is, how often one is written."""

    at: ObjectPrefix
    size_bytes: int
    every_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The result, written once at the end."""

    at: ObjectPrefix
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Limits.  Empty tuples mean "no limit"; patterns are shell globs.  Deadlines run from the job's first apply.

    stop_after_hours  hard end: so long after its boot a node powers itself off, whatever the job does
    """

    deadline_hours: float | None = None
    max_usd_per_hour: float | None = None
    max_usd_total: float | None = None
    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    stop_after_hours: float | None = None


class Apart(StrEnum):
    """How far two jobs of an anti-affinity group must lie from each other: never in one pool, zone, region or cloud."""

    POOL = "pool"
    ZONE = "zone"
    REGION = "region"
    CLOUD = "cloud"


WIDTH = {Apart.POOL: 0, Apart.ZONE: 1, Apart.REGION: 2, Apart.CLOUD: 3}
"""The widest that any job of a group names holds for all of it."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AntiAffinity:
    """No two jobs of `group` share a `by`."""

    group: str
    by: Apart = Apart.ZONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Jobs that are of use together only: fewer than `least` jobs of `group` placed means none is."""

    group: str
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One job.

    tunnel   its nodes may lie in several clouds, joined by a tunnel; never so unless the job asks
    sync_bytes, sync_seconds   of a job with a tunnel: bytes that all nodes reduce at each synchronisation (gradients, or weights of local SGD), and
                               seconds of computing between two on the job's reference hardware
    team     whose share of scarce capacity the job counts to, and whose budget; "" = nobody's
    session  people may open a shell on its nodes by the cloud's session channel, without an open port
    """

    name: str
    resources: Resources
    work: Work
    run: str
    image: Image | None = None
    setup: str | None = None
    workdir: str | None = None
    registry_auth: SecretRef | None = None
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[SecretRef, ...] = ()
    data: tuple[Dataset, ...] = ()
    checkpoint: CheckpointPolicy | None = None
    output: Output | None = None
    constraints: Constraints = field(default_factory=Constraints)
    tags: tuple[tuple[str, str], ...] = ()
    priority: int = 0
    tunnel: bool = False
    sync_bytes: int | None = None
    sync_seconds: float | None = None
    session: bool = False
    team: str = ""
    anti_affinity: tuple[AntiAffinity, ...] = ()
    gang: Gang | None = None

    def secrets_in(self, cloud: str) -> tuple[SecretRef, ...]:
        """One reference per variable, in order: that of the cloud's own store where there is one, else the first."""
        found: dict[str, SecretRef] = {}
        for secret in self.secrets:
            if secret.env not in found or secret.store.startswith(f"{cloud}-"):
                found[secret.env] = secret
        return tuple(found.values())
