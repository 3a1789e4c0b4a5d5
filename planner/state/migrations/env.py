"""Alembic's entry: runs the migrations on the connection that `planner.state.engine` hands over, in its transaction."""

from __future__ import annotations

from alembic import context

from planner.state.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
