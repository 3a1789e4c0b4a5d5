"""Markets by numbered lines and whole microseconds.  The tables of prices that 0002 made were never written to by any command; they go."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Replace `price` and `availability`."""
    op.drop_table("price")
    op.drop_table("availability")
    op.create_table(
        "line",
        sa.Column("ix", sa.Integer(), autoincrement=False, nullable=False),
        *_text("series", "source"),
        sa.PrimaryKeyConstraint("ix", name="pk_line"),
        sa.UniqueConstraint("series", "source", name="uq_line_series_source"),
    )
    _of_line("price", "line_ix", "at", columns=_at("at", "micro_usd", "lag"))
    _of_line("price_now", "line_ix", columns=_at("at", "micro_usd", "lag", "told_at", "since", "until"))
    _of_line("price_seen", "line_ix", "since", columns=_at("since", "until"))
    _of_line("capacity", "line_ix", "at", columns=[*_at("at", "lag"), *_text("word", "detail")])
    op.create_index("ix_capacity_at", "capacity", ["at"])
    key = ("project", "target", "cloud", "region", "name", "capacity")
    op.create_table(
        "quota",
        *_text(*key, "unit", "source", "instance_types"),
        *_at("at"),
        sa.Column("most", sa.Float(), nullable=False),
        sa.Column("used", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint(*key, "at", name="pk_quota"),
    )


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _at(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=False) for name in names]


def _of_line(name: str, *key: str, columns: list[sa.Column[int]] | list[sa.Column[int] | sa.Column[str]]) -> None:
    line = sa.Column("line_ix", sa.Integer(), autoincrement=False, nullable=False)
    made = (line, *columns, sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"))
    op.create_table(name, *made, sqlite_with_rowid=False)
