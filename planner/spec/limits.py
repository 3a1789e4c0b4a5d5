"""A job narrowed to what the project allows.

Decides what is outside.  The rule: what a job *names* and the project does not allow is an error (SKY-SPEC-109); what a job leaves open is
narrowed silently.  So
  - a cloud, region, instance type or data location named outright must be allowed; a glob must have something allowed in it, and only that stays;
  - a budget or deadline above the project's is an error, never silently lowered; without one the project's holds;
  - of two hard ends (`stop_after`) the earlier one holds; where that is not the job's own, a warning says so;
  - a tunnel between clouds must be allowed;
  - data, checkpoint and output must lie under one of `data_prefixes`, where there are any.
The result holds only what is allowed, so narrowing it again changes nothing and finds nothing.  Nothing here widens, nothing knows a price.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.workload import Constraints
from planner.spec.patterns import both, intersect, simplest
from planner.spec.stores import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.project import Project
    from planner.model.workload import ObjectPrefix, Workload


class _Found:
    """Diagnostics, each at the place of the field it is about, where `places` knows it."""

    def __init__(self, places: Mapping[str, Location]) -> None:
        self.places = places
        self.all: list[Diagnostic] = []

    def outside(self, summary: str, hint: str, *paths: str, severity: Severity = Severity.ERROR) -> None:
        at = next((self.places[path] for path in paths if path in self.places), None)
        self.all.append(Diagnostic(code="SKY-SPEC-109", summary=summary, hint=hint, location=at, severity=severity))


def narrow(
    workload: Workload, project: Project, places: Mapping[str, Location] | None = None
) -> tuple[Workload, tuple[Diagnostic, ...]]:
    """The part of the workload that the project allows, and an error for each part that was cut.

    `places`: field path -> place, as `parse_jobs` has it; without it the errors have no line.  `parse_jobs` calls this itself.
    """
    found = _Found(places or {})
    prefixes = project.data_prefixes
    checkpoint, output = workload.checkpoint, workload.output
    narrowed = replace(
        workload,
        constraints=_constraints(workload.constraints, project.limits, found),
        data=tuple(d for d in workload.data if _allowed(d.at, "data", prefixes, found)),
        checkpoint=checkpoint if checkpoint and _allowed(checkpoint.at, "checkpoint", prefixes, found) else None,
        output=output if output and _allowed(output.at, "output", prefixes, found) else None,
        tunnel=_tunnel(workload, project, found),
    )
    return narrowed, ordered(found.all)


def _tunnel(workload: Workload, project: Project, found: _Found) -> bool:
    if workload.tunnel and not project.tunnels:
        summary = "`network.across`: the project allows no tunnel between clouds"
        found.outside(summary, "leave `network` out; the job then stays in one zone", "network.across", "network")
    return workload.tunnel and project.tunnels


def _constraints(job: Constraints, project: Constraints, found: _Found) -> Constraints:
    return Constraints(
        deadline_hours=_lower("deadline", job.deadline_hours, project.deadline_hours, "h", found),
        max_usd_per_hour=_lower("max_usd_per_hour", job.max_usd_per_hour, project.max_usd_per_hour, " USD", found),
        max_usd_total=_lower("max_usd_total", job.max_usd_total, project.max_usd_total, " USD", found),
        clouds=_patterns("clouds", job.clouds, project.clouds, found),
        regions=_patterns("regions", job.regions, project.regions, found),
        instance_types=_patterns("instance_types", job.instance_types, project.instance_types, found),
        stop_after_hours=_earlier(job.stop_after_hours, project.stop_after_hours, found),
    )


def _lower(field: str, ours: float | None, cap: float | None, unit: str, found: _Found) -> float | None:
    if ours is None or cap is None:
        return cap if ours is None else ours
    if ours > cap:
        summary = f"`constraints.{field}` is {ours:g}{unit}, the project allows {cap:g}{unit}"
        found.outside(summary, f"write at most {cap:g}, or leave it out", f"constraints.{field}")
    return min(ours, cap)


def _earlier(ours: float | None, cap: float | None, found: _Found) -> float | None:
    """Unlike a budget, a later end is no error: a node may always be ended earlier, and the job's deadline is another matter."""
    if ours is None or cap is None:
        return cap if ours is None else ours
    if ours > cap:
        summary = f"`constraints.stop_after` is {ours:g}h, the project ends nodes after {cap:g}h"
        hint = f"write at most {cap:g}h, or leave it out"
        found.outside(summary, hint, "constraints.stop_after", severity=Severity.WARNING)
    return min(ours, cap)


def _patterns(field: str, ours: tuple[str, ...], allowed: tuple[str, ...], found: _Found) -> tuple[str, ...]:
    if not ours or not allowed:
        return simplest(ours or allowed)
    good = tuple(name for name in ours if any(both(name, other) for other in allowed))
    for name in ours:
        if name not in good:
            summary = f"`constraints.{field}`: `{name}` is not allowed by the project"
            hint = f"allowed are {', '.join(allowed)}"
            found.outside(summary, hint, f"constraints.{field}={name}", f"constraints.{field}")
    return intersect(good, allowed) if good else simplest(allowed)


def _allowed(at: ObjectPrefix, field: str, prefixes: tuple[str, ...], found: _Found) -> bool:
    if not prefixes or any(_under(at, prefix) for prefix in prefixes):
        return True
    hint = f"allowed are {', '.join(prefixes)}"
    found.outside(f"`{field}`: {at.uri} is outside the project's data prefixes", hint, f"uri={at.uri}", field)
    return False


def _under(at: ObjectPrefix, allowed: str) -> bool:
    """The location lies under the allowed one, on a boundary of `/`: `s3://b/team` does not allow `s3://b/team-b`."""
    found = split(allowed)
    if isinstance(found, str) or found[:2] != (at.store, at.bucket):
        return False
    prefix = found[2].rstrip("/")
    return not prefix or f"{at.prefix.rstrip('/')}/".startswith(f"{prefix}/")
