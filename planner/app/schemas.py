"""Every JSON Schema that skyplan publishes, by name.  Gives each its `$id`; what is in them stands with what they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.spec import (
    schema,
    schema_audit,
    schema_diff,
    schema_listings,
    schema_migration,
    schema_plan,
    schema_report,
    schema_server,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_MAJOR = 1
_MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "job": schema.job_schema,
    "project": schema.project_schema,
    "server": schema_server.server_schema,
    "broker": schema_server.broker_schema,
    "plan": schema_plan.plan_schema,
    "plans": schema_plan.plans_schema,
    "diff": schema_diff.diff_schema,
    "migration": schema_migration.migration_schema,
    "audit": schema_audit.audit_schema,
    "report": schema_report.report_schema,
    "offers": schema_listings.offers_schema,
    "status": schema_listings.status_schema,
}
SUFFIX = ".schema.json"


def published() -> dict[str, dict[str, Any]]:
    """Name -> schema, draft 2020-12, with a stable `$id`: `urn:skyplan:schema:NAME:1`, the number being the format's major version."""
    return {name: one(name) for name in _MAKERS}


def one(name: str) -> dict[str, Any]:
    """The schema of that name.  Raises KeyError."""
    made = _MAKERS[name]()
    return {"$schema": made["$schema"], "$id": f"urn:skyplan:schema:{name}:{_MAJOR}"} | made
