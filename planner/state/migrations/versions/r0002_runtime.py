"""The runtime: sessions, what nodes report, cuts, credential issues; and the tables of prices and migrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

RUN = (["project", "job", "generation"], ["run.project", "run.job", "run.generation"])
SEAT = ("project", "job", "generation", "rank")


def upgrade() -> None:
    """Add to `run`, and create the rest."""
    op.add_column("run", sa.Column("stop_after_hours", sa.Float(), nullable=True))
    op.add_column("run", sa.Column("budget_usd", sa.Text(), nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        # SQLite's are 64 bits anyway; a thousand reports a second use up 32 in 25 days
        for table, column in (("event", "id"), ("node", "id"), ("attempt", "id"), ("attempt", "intent")):
            op.alter_column(table, column, type_=sa.BigInteger())
            if column == "id":
                op.execute(f"ALTER SEQUENCE {table}_id_seq AS bigint")
    _seats()
    _reports()
    _checkpoints()
    _requests()
    _markets()


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _whole(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def _big(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _real(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Float(), nullable=True) for name in names]


def _maybe(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=True) for name in names]


def _serial(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
    ]


def _seat() -> list[sa.Column[str] | sa.Column[int]]:
    return [*_text("project", "job"), *_whole("generation", "rank")]


def _run() -> list[sa.Column[str] | sa.Column[int]]:
    return [*_text("project", "job"), *_whole("generation")]


def _key(table: str, *names: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*names, name=f"pk_{table}")


def _of_run(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(*RUN, name=f"fk_{table}_run")


def _index(table: str, *names: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(names)}", table, list(names))


def _seats() -> None:
    op.create_table("run_key", *_run(), *_text("key"), _key("run_key", *SEAT[:3]), _of_run("run_key"))
    op.create_table("seat", *_seat(), *_text("instance_id", "key_sha256", "at"), _key("seat", *SEAT), _of_run("seat"))
    op.create_table(
        "session",
        *_text("token_sha256", "instance_id", "key_sha256", "expires_at"),
        *_seat(),
        _key("session", "project", "token_sha256"),
        _of_run("session"),
    )
    _index("session", *SEAT)
    op.create_table(
        "proof",
        *_text("project", "proof_sha256", "key_sha256", "expires_at", "at"),
        _key("proof", "project", "proof_sha256"),
    )
    op.create_table(
        "one_time",
        *_text("token_sha256", "expires_at", "used_by", "at"),
        *_seat(),
        _key("one_time", "project", "token_sha256"),
        _of_run("one_time"),
    )
    op.create_table(
        "member",
        *_run(),
        *_text("name", "document", "public_key", "endpoint", "at"),
        _key("member", *SEAT[:3], "name"),
        _of_run("member"),
    )


def _reports() -> None:
    op.create_table("delivery", *_seat(), *_text("stream", "at"), *_big("through"), _key("delivery", *SEAT, "stream"))
    op.create_table(
        "seen",
        *_seat(),
        *_text("at"),
        *_maybe("gpu_memory_mib", "exit_code"),
        *_real("gpu_utilization_percent"),
        *_big("logged"),
        _key("seen", *SEAT),
    )
    op.create_table(
        "progress", *_serial("progress"), *_seat(), *_big("step"), *_text("at", "metrics"), *_real("loss", "rate")
    )
    _index("progress", *SEAT, "id")
    op.create_table("log", *_serial("log"), *_seat(), *_text("at", "text"), *_big("ends"))
    _index("log", *SEAT, "ends")


def _checkpoints() -> None:
    op.create_table(
        "checkpoint",
        *_serial("checkpoint"),
        *_run(),
        *_big("step", "bytes"),
        *_text("uri", "digest", "mac", "at", "source"),
        sa.UniqueConstraint("project", "job", "uri", name="uq_checkpoint_project_job_uri"),
        _of_run("checkpoint"),
    )
    op.create_table(
        "candidate",
        *_text("project", "job", "uri", "digest", "mac", "rejected"),
        *_whole("cut", "generation"),
        *_big("step", "bytes"),
        _key("candidate", "project", "job", "cut", "uri"),
        sa.ForeignKeyConstraint(["project", "job", "cut"], RUN[1], name="fk_candidate_run"),
    )


def _requests() -> None:
    op.create_table(
        "credential",
        *_serial("credential"),
        *_seat(),
        *_text("lease", "store", "uri", "access", "identity", "issued_at", "expires_at", "at"),
        sa.UniqueConstraint("project", "lease", name="uq_credential_project_lease"),
        _of_run("credential"),
    )
    _index("credential", "project", "job")
    op.create_table(
        "request",
        *_serial("request"),
        *_run(),
        *_text("word", "reason", "deadline", "at"),
        _of_run("request"),
    )
    _index("request", *SEAT[:3])


def _markets() -> None:
    op.create_table(
        "price",
        *_text("series", "observed_at", "source"),
        *_big("micro_usd"),
        _key("price", "series", "observed_at"),
    )
    op.create_table(
        "availability",
        *_text("pool", "observed_at", "source", "word", "detail"),
        _key("availability", "pool", "observed_at", "source"),
    )
    op.create_table(
        "migration",
        *_serial("migration"),
        *_text("project", "job", "reason", "status", "document", "at"),
        *_whole("from_generation", "version"),
        *_maybe("to_generation"),
        sa.ForeignKeyConstraint(["project", "job"], ["job.project", "job.name"], name="fk_migration_job"),
    )
    _index("migration", "project", "job")
