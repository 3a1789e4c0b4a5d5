"""`skyplan schema`: the published JSON Schemas."""

from __future__ import annotations

import click


@click.command("schema")
@click.argument("which", type=click.Choice(["job", "project"]), default="job")
def command(which: str) -> None:
    """Print the JSON Schema of a job file (default) or of skyplan.yaml."""
    from planner.cli import view
    from planner.spec import schema

    view.put_json(schema.job_schema() if which == "job" else schema.project_schema())
