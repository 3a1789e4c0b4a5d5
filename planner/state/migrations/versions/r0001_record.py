"""The record: jobs, leases, runs, nodes, attempts, stacks, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create everything."""
    _jobs()
    _runs()
    _logs()


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _whole(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=False) for name in names]


def _maybe(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=True) for name in names]


def _generation() -> sa.Column[int]:
    return sa.Column("generation", sa.Integer(), nullable=True)


def _of_job(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project", "job"], ["job.project", "job.name"], name=f"fk_{table}_job")


def _jobs() -> None:
    op.create_table(
        "job",
        *_text("project", "name"),
        *_whole("generation"),
        *_text("first_applied_at"),
        *_whole("version"),
        sa.PrimaryKeyConstraint("project", "name", name="pk_job"),
    )
    op.create_table(
        "lease",
        *_text("project", "name"),
        *_maybe("holder"),
        *_whole("token"),
        *_text("heartbeat_at", "expires_at"),
        *_whole("version"),
        sa.PrimaryKeyConstraint("project", "name", name="pk_lease"),
    )
    op.create_table(
        "stack",
        *_text("project", "name", "kind"),
        *_maybe("job"),
        *_text("cloud", "target", "region"),
        _generation(),
        *_text("backend", "document", "variables", "status", "at"),
        *_whole("version"),
        sa.PrimaryKeyConstraint("project", "name", name="pk_stack"),
        _of_job("stack"),
    )


def _runs() -> None:
    op.create_table(
        "run",
        *_text("project", "job"),
        *_whole("generation"),
        *_text("plan_digest"),
        *_whole("rank"),
        *_text("placement_id", "offer_id", "cloud", "target", "region", "zone", "pool", "instance_type", "capacity"),
        *_whole("nodes", "gpus", "vcpus"),
        *_text("addresses", "usd_per_hour", "status", "started_at"),
        *_maybe("ended_at", "fenced_at", "cut"),
        *_whole("version"),
        sa.PrimaryKeyConstraint("project", "job", "generation", name="pk_run"),
        sa.CheckConstraint("generation > 0", name="ck_run_issued"),
        _of_job("run"),
    )
    op.create_index("ix_run_project_status", "run", ["project", "status"])
    op.create_table(
        "node",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        *_text("project", "job"),
        *_whole("generation", "rank"),
        *_text("instance_id", "address", "status", "at"),
        sa.PrimaryKeyConstraint("id", name="pk_node"),
        sa.ForeignKeyConstraint(
            ["project", "job", "generation"], ["run.project", "run.job", "run.generation"], name="fk_node_run"
        ),
    )
    op.create_index("ix_node_project_job_generation", "node", ["project", "job", "generation"])


def _logs() -> None:
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        *_text("project", "job", "stack", "action"),
        _generation(),
        sa.Column("intent", sa.Integer(), nullable=True),
        *_maybe("outcome"),
        *_text("code", "kind", "scope", "detail", "at"),
        sa.PrimaryKeyConstraint("id", name="pk_attempt"),
        sa.UniqueConstraint("intent", name="uq_attempt_intent"),
        sa.ForeignKeyConstraint(["intent"], ["attempt.id"], name="fk_attempt_attempt"),
        _of_job("attempt"),
    )
    op.create_index("ix_attempt_project_job", "attempt", ["project", "job"])
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        *_text("project", "job"),
        _generation(),
        *_text("at", "kind", "text"),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        _of_job("event"),
    )
    op.create_index("ix_event_project_job", "event", ["project", "job"])
