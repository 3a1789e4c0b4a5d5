"""Between rows and values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.model.project import Backend
from planner.model.record import (
    Action,
    Attempt,
    Event,
    Job,
    Node,
    NodeStatus,
    Outcome,
    Run,
    RunStatus,
    Stack,
    StackStatus,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_FIELDS = (
    "plan_digest",
    "rank",
    "placement_id",
    "offer_id",
    "cloud",
    "target",
    "region",
    "zone",
    "pool",
    "instance_type",
    "capacity",
    "nodes",
    "gpus",
    "vcpus",
)


def job_from(row: Mapping[str, Any]) -> Job:
    """A `job` row."""
    return Job(
        name=row["name"],
        generation=row["generation"],
        first_applied_at=row["first_applied_at"],
        version=row["version"],
    )


def run_from(row: Mapping[str, Any]) -> Run:
    """A `run` row."""
    return Run(
        job=row["job"],
        generation=row["generation"],
        **{name: row[name] for name in RUN_FIELDS},
        addresses=tuple(json.loads(row["addresses"])),
        usd_per_hour=Decimal(row["usd_per_hour"]),
        status=RunStatus(row["status"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        fenced_at=row["fenced_at"],
        cut=row["cut"],
        version=row["version"],
        stop_after_hours=row["stop_after_hours"],
        budget_usd=Decimal(row["budget_usd"]) if row["budget_usd"] is not None else None,
    )


def run_values(run: Run) -> dict[str, Any]:
    """The columns of a new `run` row, less its keys."""
    return {
        **{name: getattr(run, name) for name in RUN_FIELDS},
        "addresses": json.dumps(list(run.addresses)),
        "usd_per_hour": f"{run.usd_per_hour:.4f}",
        "stop_after_hours": run.stop_after_hours,
        "budget_usd": f"{run.budget_usd:.4f}" if run.budget_usd is not None else None,
    }


def node_from(row: Mapping[str, Any]) -> Node:
    """A `node` row."""
    return Node(
        rank=row["rank"],
        instance_id=row["instance_id"],
        address=row["address"],
        status=NodeStatus(row["status"]),
        at=row["at"],
    )


def attempt_from(intent: Mapping[str, Any], result: Mapping[str, Any] | None) -> Attempt:
    """An intent's row and its result's, where there is one."""
    end = result or {}
    return Attempt(
        id=intent["id"],
        job=intent["job"],
        stack=intent["stack"],
        action=Action(intent["action"]),
        generation=intent["generation"],
        at=intent["at"],
        outcome=Outcome(end["outcome"]) if end else None,
        code=end.get("code", ""),
        kind=end.get("kind", ""),
        scope=end.get("scope", "") or intent["scope"],
        detail=end.get("detail", ""),
        ended_at=end.get("at"),
    )


def stack_from(row: Mapping[str, Any]) -> Stack:
    """A `stack` row."""
    return Stack(
        name=row["name"],
        kind=row["kind"],
        job=row["job"],
        cloud=row["cloud"],
        target=row["target"],
        region=row["region"],
        generation=row["generation"],
        backend=_backend(json.loads(row["backend"])),
        document=json.loads(row["document"]),
        variables=json.loads(row["variables"]),
        outputs=json.loads(row["outputs"]) if row["outputs"] is not None else None,
        status=StackStatus(row["status"]),
        at=row["at"],
        version=row["version"],
    )


def stack_values(stack: Stack) -> dict[str, Any]:
    """The columns of a `stack` row that its content is in."""
    backend = {"kind": stack.backend.kind, "settings": dict(stack.backend.settings)}
    content = {"backend": backend, "document": stack.document, "variables": stack.variables}
    outputs = None if stack.outputs is None else json.dumps(stack.outputs, sort_keys=True)
    return {**{name: json.dumps(value, sort_keys=True) for name, value in content.items()}, "outputs": outputs}


def _backend(value: dict[str, Any]) -> Backend:
    return Backend(kind=value["kind"], settings=tuple(sorted(value["settings"].items())))


def event_from(row: Mapping[str, Any]) -> Event:
    """An `event` row."""
    return Event(job=row["job"], generation=row["generation"], at=row["at"], kind=row["kind"], text=row["text"])
