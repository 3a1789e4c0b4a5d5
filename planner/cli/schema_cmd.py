"""`skyplan schema`: the published JSON Schemas."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument(
    "which", type=click.Choice(["job", "project", "server", "broker", "audit", "diff", "migration"]), default="job"
)
def command(which: str) -> None:
    """Print the JSON Schema of a job file (default), of skyplan.yaml, of server.yaml, of broker.yaml, of what `skyplan audit --json` and `skyplan diff --json` print or of a migration diff."""
    from planner.cli import view
    from planner.spec import schema

    if which == "audit":
        from planner.render import audit_json

        view.put_json(audit_json.schema())
        return
    if which == "diff":
        from planner.render import diff_json

        view.put_json(diff_json.schema())
        return
    if which == "migration":
        from planner.render import migration_json

        view.put_json(migration_json.schema())
        return
    if which in {"server", "broker"}:
        from planner.spec import schema_server

        view.put_json(schema_server.server_schema() if which == "server" else schema_server.broker_schema())
        return
    view.put_json(schema.job_schema() if which == "job" else schema.project_schema())
