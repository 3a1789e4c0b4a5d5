"""What nodes say of themselves while a job runs, and what the record answers: sessions, reports, checkpoints, the cut, credential leases.

Decides the words and the limits that server, broker, record and node share (the node's own copy of the limits is in `modules/agent`, held equal by a test);
nothing here speaks to anything.  Times are UTC ISO text, as in `planner.model.record`.  No secret is a value here but where a name ends in `_key`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from planner.model.errors import SkyplanError

MANIFEST: Final = "skyplan-checkpoint.json"
"""Name of the file that makes a folder a checkpoint; written last."""
MANIFEST_DOMAIN: Final = "skyplan-checkpoint-v1"
"""First line of everything a generation's key signs, so that a signature made here means nothing elsewhere."""
SESSION_SECONDS: Final = 3600
"""A node's session; renewed at half of it."""
MAX_REPORT_BYTES: Final = 256 * 1024
MAX_REPORT_ITEMS: Final = 500
LEASE_FLOOR_SECONDS: Final = 30 * 60
"""Shortest lease for an AWS client: below its 15 minutes of advisory refresh every signature asks anew (measured: notes/iam.md 2.3, botocore 1.44.8)."""


class Kind(StrEnum):
    """What a report's item says.  `progress`, `log` and `heartbeat` may be dropped by a full spool, the rest never."""

    HEARTBEAT = "heartbeat"
    PROGRESS = "progress"
    CHECKPOINT = "checkpoint"
    SKIPPED = "skipped"  # a checkpoint that was looked at and does not count
    NOTICE = "notice"  # the cloud will take the node away
    CREDENTIAL = "credential"
    LOG = "log"
    EVENT = "event"
    EXIT = "exit"


class Refusal(StrEnum):
    """Why the record did not take what a node sent.  The server answers with this word, the agent acts on it.

    fenced     a newer generation has taken over: stop the job, end the node
    ended      the run was ended or its launch given up: the same
    unknown    no such run, or the session is none: join (again)
    early      the record does not know this node's instance yet: try again
    identity   the proof does not hold, or is of another machine than the record's
    key        the machine joined before with another key
    replayed   this proof, or one-time token, was used before
    malformed  not what is expected here; sending it again is no use
    """

    FENCED = "fenced"
    ENDED = "ended"
    UNKNOWN = "unknown"
    EARLY = "early"
    IDENTITY = "identity"
    KEY = "key"
    REPLAYED = "replayed"
    MALFORMED = "malformed"


class Refused(SkyplanError):
    """Raised by what judges a node's request.  `reason` is for people and holds no secret."""

    def __init__(self, word: Refusal, reason: str) -> None:
        super().__init__(f"{word.value}: {reason}")
        self.word = word
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """What a platform's signature says of a machine.

    scheme       by which it was proven: `aws-iid`, `aws-sts`, `gcp-jwt`, `azure-jwt`, `nebius-jwt`, `one-time`
    cloud        aws, gcp, azure, nebius; "" by hand
    account      AWS account, GCP project id, Azure subscription, Nebius project; "" where the proof does not say it
    instance_id  as the record has it: `i-…`, the name on GCP (with its zone in `where`), the VM's name on Azure, `computeinstance-…`; "" where it does not say it
    principal    the node identity it runs as: role ARN, service account's email, managed identity's resource id; "" where it does not say it
    expires_at   until when the proof itself would hold
    """

    scheme: str
    cloud: str
    account: str = ""
    instance_id: str = ""
    principal: str = ""
    where: str = ""
    expires_at: str = ""


def same_machine(recorded: str, who: NodeIdentity) -> bool:
    """Whether the machine that the platform names is the one that the record has.  Either may not know: then the other cannot contradict.

    The record has what Terraform calls a machine: on GCP and Azure a path, in which project, zone and subscription stand too, and whose end is the name.
    """
    if not (recorded and who.instance_id) or recorded == who.instance_id:
        return True
    path, name = recorded.lower(), who.instance_id.lower()
    match who.cloud:
        case "gcp":
            parts = path.split("/")
            whole = len(parts) == 6 and parts[::2] == ["projects", "zones", "instances"] and parts[5] == name  # noqa: PLR2004
            return whole and who.account in {"", parts[1]} and who.where in {"", parts[3]}
        case "azure":
            account = who.account.lower()
            mine = path.startswith(f"/subscriptions/{account}/" if account else "/subscriptions/")
            return mine and path.endswith(f"/providers/microsoft.compute/virtualmachines/{name}")
        case _:
            return False


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Seat:
    """A node's place in a job: one rank of one generation."""

    job: str
    generation: int
    rank: int

    @property
    def run(self) -> str:
        """`train-g3`."""
        return f"{self.job}-g{self.generation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A seat that is taken, by which machine and key, until when."""

    seat: Seat
    instance_id: str
    expires_at: str
    key_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a node learns when it takes its seat.  `stream`, `through`: how far the seat's last stream was taken; "" and 0 at first."""

    session: Session
    nodes: int
    manifest_key: bytes
    stop_at: str | None = None
    stream: str = ""
    through: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that a node reports.  `seq` rises within the node's stream; `body` is what its kind says (docs/node-protocol.md)."""

    seq: int
    kind: Kind
    at: str
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Items of one stream, in order.  A node whose disk is new begins a new stream.

    holder  instance id and hash of the key of the machine that sends it, which must still have the seat; None where that is not asked
    """

    seat: Seat
    stream: str
    items: tuple[Item, ...]
    holder: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What became of a report: all items up to `through` are in the record, now or already before.  Or it was refused, and nothing was taken.

    requests  what the node is asked to do, oldest first
    """

    through: int = 0
    refused: Refused | None = None
    requests: tuple[NodeRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequest:
    """What a run's nodes are asked to do: `checkpoint` or `stop` (checkpoint if there is time, then end).  `deadline` "" is none."""

    id: int
    word: str
    reason: str
    deadline: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A step that the job told.  `rate` in steps per second; `metrics` what else it gave."""

    seat: Seat
    step: int
    at: str
    loss: float | None = None
    rate: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One that the record was told of, or found at a cut.

    digest  SHA-256 of the manifest's canonical text without its `mac`
    mac     by the generation's key, over `checkpoint_message`
    source  `report`, or `cut` where the record learnt of it from the store
    """

    job: str
    generation: int
    step: int
    uri: str
    digest: str
    mac: str
    bytes: int
    at: str
    source: str = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A manifest that a node found in the store, complete as far as sizes tell."""

    generation: int
    step: int
    uri: str
    digest: str
    mac: str
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """From where a generation starts: the newest checkpoint that was valid when its first node listed the store.  `chosen` None: from the beginning.

    recorded_step  what the record had believed; where it differs, the file's step won
    """

    seat: Seat
    at: str
    chosen: Candidate | None
    recorded_step: int | None = None
    skipped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialIssue:
    """A data credential that the broker gave out: who, what scope, until when; never the secret.

    id        of the lease
    store     s3, gs, az, nebius
    uri       the prefix it is cut to
    access    `read` or `write`
    identity  whose rights it is a part of: role ARN, service account, storage account
    """

    id: str
    seat: Seat
    store: str
    uri: str
    access: str
    identity: str
    issued_at: str
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """Lines of a node's output, in order of `id`."""

    id: int
    seat: Seat
    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """When a node was last heard of, and what it said of its GPUs.  `exit_code` None while its job runs."""

    seat: Seat
    at: str
    instance_id: str = ""
    gpu_memory_mib: int | None = None
    gpu_utilization_percent: float | None = None
    exit_code: int | None = None


def checkpoint_message(*, project: str, job: str, generation: int, step: int, uri: str, digest: str) -> bytes:
    """The bytes that a checkpoint's mac is about: no part can hold a line break, so that no two checkpoints have one message."""
    return "\n".join((MANIFEST_DOMAIN, project, job, str(generation), str(step), uri, digest)).encode()


def checkpoint_mac(key: bytes, message: bytes) -> str:
    """HMAC-SHA256, in hex."""
    return hmac.new(key, message, hashlib.sha256).hexdigest()
