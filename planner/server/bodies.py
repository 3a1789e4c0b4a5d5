"""What nodes send and get, as schemas: of joins, sessions, the cut and the peers.  Reports have their own reading (`reports`); their schema is here too.

Decides form and bounds, and the OpenAPI's words.  Unknown fields are left alone: an agent may be newer than its server.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from planner.model.runtime import MAX_REPORT_ITEMS, Kind
from planner.server.reports import MAX_WHOLE, clean

MAX_CANDIDATES: Final = 2000
MAX_RANK: Final = 65_535

JobName = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$", examples=["train"])]
Generation = Annotated[int, Field(ge=1, le=10**9, strict=True)]


def _clean(found: Any) -> Any:
    """Before anything else looks: a file's name that is no Unicode would be refused, and with it all that was sent beside it."""
    return clean(found) if isinstance(found, str) else found


Text = Annotated[str, BeforeValidator(_clean), Field(max_length=2048)]
Uri = Annotated[str, BeforeValidator(_clean), Field(min_length=1, max_length=2048)]


class Body(BaseModel):
    """Of all that is sent."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Proof(Body):
    """The platform's own words about this machine."""

    scheme: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$", examples=["one-time"])]
    value: str | dict[str, Any]


class Join(Body):
    """`POST /v1/join`."""

    job: JobName
    generation: Generation
    rank: Annotated[int, Field(ge=0, le=MAX_RANK, strict=True)]
    instance_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/-]{0,256}$")] | None = ""
    proof: Proof
    key: Annotated[str, Field(pattern=r"^[\x21-\x7e]{16,128}$", description="The node's own random key.")]
    agent: Annotated[str, Field(max_length=64)] = ""
    at: AwareDatetime | None = None


class Joined(BaseModel):
    """A session and what the node starts with."""

    session: str
    expires_at: str
    renew_after_seconds: int
    manifest_key: Annotated[str, Field(description="Hex.")]
    project: str
    nodes: int
    stop_at: str | None
    stream: str | None
    through: int
    broker: str | None


class ReportItem(Body):
    """One item; further fields by kind, see docs/node-protocol.md."""

    model_config = ConfigDict(extra="allow")

    seq: Annotated[int, Field(ge=1, le=MAX_WHOLE)]
    kind: Kind
    at: AwareDatetime


class ReportBody(Body):
    """`POST /v1/report`."""

    stream: Annotated[str, Field(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
    items: Annotated[list[ReportItem], Field(max_length=MAX_REPORT_ITEMS)]


class Request(BaseModel):
    """What the node is asked to do."""

    id: int
    word: str
    reason: str
    deadline: str | None


class Through(BaseModel):
    """All items up to `through` are in the record."""

    through: int
    requests: list[Request]


class Begin(Body):
    """Fences all older generations."""

    phase: Literal["begin"]


class Choose(Body):
    """What the store holds.  A candidate that is none is skipped, with the reason: anybody may have written it."""

    phase: Literal["choose"]
    listed_at: AwareDatetime | None = None
    candidates: Annotated[list[Any], Field(max_length=MAX_CANDIDATES)]
    skipped: Annotated[list[tuple[Text, Text]], Field(max_length=MAX_CANDIDATES)] = []


class Reject(Body):
    """The chosen one proved wrong while it was fetched."""

    phase: Literal["reject"]
    uri: Uri
    reason: Text


class CandidateBody(Body):
    """One of `candidates`."""

    generation: Generation
    step: Annotated[int, Field(ge=0, le=MAX_WHOLE, strict=True)]
    uri: Uri
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    mac: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0, le=MAX_WHOLE, strict=True)] = 0


class Chosen(BaseModel):
    """`step` null: from the beginning."""

    step: int | None
    uri: str | None = None
    generation: int | None = None
    digest: str | None = None


class CutAnswer(BaseModel):
    """Where the generation starts from."""

    cut: Chosen | None
    skipped: list[tuple[str, str]] = []


class Begun(CutAnswer):
    """The generations that the record issued, up to this one."""

    generations: list[int]


class Meet(Body):
    """`POST /v1/peers`: this node's public key for the tunnel and where it is reached."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["r00"])]
    public_key: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]{43}=$")]
    endpoint: Annotated[str, Field(min_length=3, max_length=300)]


class Peer(Body):
    """One of the nodes to meet."""

    name: str
    public_key: str
    endpoint: str
    tunnel_address: str = ""


class Peers(BaseModel):
    """All or nothing: no peers while somebody is missing."""

    peers: list[Peer]
    missing: list[str]


class Problem(BaseModel):
    """A refusal."""

    error: str
    code: str
    reason: str
