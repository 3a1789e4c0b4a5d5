"""What a stack's apply left, in the record: whoever moves a job may not read the state of its network and access stacks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Unknown for all that was applied before."""
    op.add_column("stack", sa.Column("outputs", sa.Text(), nullable=True))
