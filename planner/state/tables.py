"""The record's tables.  Times are ISO text, money decimal text: both read alike on SQLite and PostgreSQL and sort or add exactly.

`job`, `run`, `stack`, `lease` and `migration` move by compare-and-swap on `version`; `node`, `attempt` and `event` only grow, and what was last seen is the newest row.
What nodes tell (from `run_key` on): `seat`, `session`, `delivery`, `seen`, `member` and `one_time` hold the present; `progress`, `checkpoint`, `candidate`, `credential`,
`request` and `proof` only grow; `log` is pruned.  `progress`, `log`, `delivery` and `seen` have no foreign key to `run`: who writes them has locked the run's row.
Several projects may share a database: every key begins with the project.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from planner.state.market_tables import made

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


#: numbers of rows that only grow; SQLite numbers rows by itself in a column of this very name only
LONG = BigInteger().with_variant(Integer, "sqlite")


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text, nullable=null)


def _whole(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, Integer, nullable=null)


def _big(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def _real(name: str) -> Column[float]:
    return Column(name, Float, nullable=True)


def _key_number(name: str) -> Column[int]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


def _serial() -> Column[int]:
    return Column("id", LONG, primary_key=True, autoincrement=True)


def _of_job() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["project", "job"], ["job.project", "job.name"])


def _of_run() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["project", "job", "generation"], ["run.project", "run.job", "run.generation"])


def _seat_key() -> tuple[Column[str], Column[str], Column[int], Column[int]]:
    return _key("project"), _key("job"), _key_number("generation"), _key_number("rank")


def _seat() -> tuple[Column[str], Column[str], Column[int], Column[int]]:
    return _text("project"), _text("job"), _whole("generation"), _whole("rank")


job = Table(
    "job",
    metadata,
    _key("project"),
    _key("name"),
    _whole("generation"),
    _text("first_applied_at"),
    _whole("version"),
)

lease = Table(
    "lease",
    metadata,
    _key("project"),
    _key("name"),
    _text("holder", null=True),
    _whole("token"),
    _text("heartbeat_at"),
    _text("expires_at"),
    _whole("version"),
)

run = Table(
    "run",
    metadata,
    _key("project"),
    _key("job"),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    _text("plan_digest"),
    _whole("rank"),
    _text("placement_id"),
    _text("offer_id"),
    _text("cloud"),
    _text("target"),
    _text("region"),
    _text("zone"),
    _text("pool"),
    _text("instance_type"),
    _text("capacity"),
    _whole("nodes"),
    _whole("gpus"),
    _whole("vcpus"),
    _text("addresses"),
    _text("usd_per_hour"),
    _text("status"),
    _text("started_at"),
    _text("ended_at", null=True),
    _text("fenced_at", null=True),
    _text("cut", null=True),
    _whole("version"),
    _real("stop_after_hours"),
    _text("budget_usd", null=True),
    _of_job(),
    CheckConstraint("generation > 0", name="issued"),
    Index(None, "project", "status"),
)

node = Table(
    "node",
    metadata,
    _serial(),
    _text("project"),
    _text("job"),
    _whole("generation"),
    _whole("rank"),
    _text("instance_id"),
    _text("address"),
    _text("status"),
    _text("at"),
    _of_run(),
    Index(None, "project", "job", "generation"),
)

attempt = Table(
    "attempt",
    metadata,
    _serial(),
    _text("project"),
    _text("job"),
    _text("stack"),
    _text("action"),
    _whole("generation", null=True),
    # a row with `intent` is the result of that row; one without is an intent
    Column("intent", LONG, nullable=True),
    _text("outcome", null=True),
    _text("code"),
    _text("kind"),
    _text("scope"),
    _text("detail"),
    _text("at"),
    _of_job(),
    ForeignKeyConstraint(["intent"], ["attempt.id"]),
    UniqueConstraint("intent"),
    Index(None, "project", "job"),
)

stack = Table(
    "stack",
    metadata,
    _key("project"),
    _key("name"),
    _text("kind"),
    _text("job", null=True),
    _text("cloud"),
    _text("target"),
    _text("region"),
    _whole("generation", null=True),
    _text("backend"),
    _text("document"),
    _text("variables"),
    _text("status"),
    _text("at"),
    _whole("version"),
    _text("outputs", null=True),
    _of_job(),
)

event = Table(
    "event",
    metadata,
    _serial(),
    _text("project"),
    _text("job"),
    _whole("generation", null=True),
    _text("at"),
    _text("kind"),
    _text("text"),
    _of_job(),
    Index(None, "project", "job"),
)

# what nodes tell

run_key = Table("run_key", metadata, _key("project"), _key("job"), _key_number("generation"), _text("key"), _of_run())
"""The key that signs a generation's checkpoints, in hex.  The one secret that is here as it is: a mac cannot be checked by a hash of its key."""

seat = Table(
    "seat",
    metadata,
    *_seat_key(),
    _text("instance_id"),
    _text("key_sha256"),
    _text("at"),
    _of_run(),
)
"""Which machine took the seat, bound to the key it made."""

session = Table(
    "session",
    metadata,
    _key("project"),
    _key("token_sha256"),
    _text("job"),
    _whole("generation"),
    _whole("rank"),
    _text("instance_id"),
    _text("key_sha256"),
    _text("expires_at"),
    _of_run(),
    Index(None, "project", "job", "generation", "rank"),
)

proof = Table(
    "proof",
    metadata,
    _key("project"),
    _key("proof_sha256"),
    _text("key_sha256"),
    _text("expires_at"),
    _text("at"),
)
"""Proofs that were taken, each with the key it came with; those past their own end are forgotten."""

one_time = Table(
    "one_time",
    metadata,
    _key("project"),
    _key("token_sha256"),
    _text("job"),
    _whole("generation"),
    _whole("rank"),
    _text("expires_at"),
    _text("used_by"),
    _text("at"),
    _of_run(),
)

delivery = Table("delivery", metadata, *_seat_key(), _key("stream"), _big("through"), _text("at"))
"""How far each stream was taken."""

seen = Table(
    "seen",
    metadata,
    *_seat_key(),
    _text("at"),
    _whole("gpu_memory_mib", null=True),
    _real("gpu_utilization_percent"),
    _whole("exit_code", null=True),
    # characters that were ever logged: where in them each chunk ends is how old ones are found
    _big("logged"),
)

progress = Table(
    "progress",
    metadata,
    _serial(),
    *_seat(),
    _big("step"),
    _text("at"),
    _real("loss"),
    _real("rate"),
    _text("metrics"),
    Index(None, "project", "job", "generation", "rank", "id"),
)

checkpoint = Table(
    "checkpoint",
    metadata,
    _serial(),
    _text("project"),
    _text("job"),
    _whole("generation"),
    _big("step"),
    _text("uri"),
    _text("digest"),
    _text("mac"),
    _big("bytes"),
    _text("at"),
    _text("source"),
    _of_run(),
    UniqueConstraint("project", "job", "uri"),
)

candidate = Table(
    "candidate",
    metadata,
    _key("project"),
    _key("job"),
    # the generation whose cut it is; `generation` wrote the checkpoint
    _key_number("cut"),
    _key("uri"),
    _whole("generation"),
    _big("step"),
    _text("digest"),
    _text("mac"),
    _big("bytes"),
    _text("rejected"),
    ForeignKeyConstraint(["project", "job", "cut"], ["run.project", "run.job", "run.generation"]),
)
"""What was authentic in the store at a cut; `rejected` says why its contents were found wrong, empty where they were not."""

credential = Table(
    "credential",
    metadata,
    _serial(),
    _text("project"),
    _text("lease"),
    _text("job"),
    _whole("generation"),
    _whole("rank"),
    _text("store"),
    _text("uri"),
    _text("access"),
    _text("identity"),
    _text("issued_at"),
    _text("expires_at"),
    _text("at"),
    _of_run(),
    UniqueConstraint("project", "lease"),
    Index(None, "project", "job"),
)

request = Table(
    "request",
    metadata,
    _serial(),
    _text("project"),
    _text("job"),
    _whole("generation"),
    _text("word"),
    _text("reason"),
    _text("deadline"),
    _text("at"),
    _of_run(),
    Index(None, "project", "job", "generation"),
)

log = Table(
    "log",
    metadata,
    _serial(),
    *_seat(),
    _text("at"),
    _text("text"),
    _big("ends"),
    Index(None, "project", "job", "generation", "rank", "ends"),
)

member = Table(
    "member",
    metadata,
    _key("project"),
    _key("job"),
    _key_number("generation"),
    _key("name"),
    _text("document"),
    _text("public_key"),
    _text("endpoint"),
    _text("at"),
    _of_run(),
)
"""Who is to meet whom; `public_key` empty until it came."""

# markets and moves

markets = made(metadata)

migration = Table(
    "migration",
    metadata,
    _serial(),
    _text("project"),
    _text("job"),
    _whole("from_generation"),
    _whole("to_generation", null=True),
    _text("reason"),
    _text("status"),
    _text("document"),
    _text("at"),
    _whole("version"),
    _of_job(),
    Index(None, "project", "job"),
)
