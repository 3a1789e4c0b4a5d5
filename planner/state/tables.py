"""The record's tables.  Times are ISO text, money decimal text: both read alike on SQLite and PostgreSQL and sort or add exactly.

`job`, `run`, `stack` and `lease` move by compare-and-swap on `version`; `node`, `attempt` and `event` only grow, and what was last seen is the newest row.
Several projects may share a database: every key begins with the project.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text, nullable=null)


def _whole(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, Integer, nullable=null)


def _serial() -> Column[int]:
    return Column("id", Integer, primary_key=True, autoincrement=True)


def _of_job() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["project", "job"], ["job.project", "job.name"])


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
    ForeignKeyConstraint(["project", "job", "generation"], ["run.project", "run.job", "run.generation"]),
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
    Column("intent", Integer, nullable=True),
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
