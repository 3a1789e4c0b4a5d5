"""What `skyplan diff --json` prints.  Fields are only ever added within a major version; texts are masked as in every output; `planner.spec.schema_diff` has the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.change import FORMAT_VERSION, GLYPHS, Action, Bound
from planner.render.diagnostics import document as diagnostics_document
from planner.render.diff_words import mask

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.model.change import Change, Difference, PlacementDiff, Sides, TerraformChanges
    from planner.model.finding import Finding
    from planner.model.grants import Grant
    from planner.model.migration import MigrationDiff
    from planner.model.plan import Placement


def document(diff: PlacementDiff) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": FORMAT_VERSION,
        "base": mask(diff.base),
        "head": mask(diff.head),
        "project": mask(diff.project),
        "valid_at": diff.valid_at,
        "changed": diff.changed,
        "counts": {action.value: len(diff.of(action)) for action in Action},
        "widenings": [_finding(f) for f in diff.widenings],
        "terraform": [_terraform(t) for t in diff.terraform],
        "changes": [_change(c) for c in diff.changes],
        "hourly_usd": _sides(diff.hourly),
        "total_usd": _sides(diff.total),
        "egress_usd": _sides(diff.egress),
        "price_snapshots": list(diff.snapshots),
        "inputs": diff.inputs,
        "warnings": [
            {**d, "summary": mask(d["summary"]), "hint": mask(d["hint"])} for d in diagnostics_document(diff.warnings)
        ],
    }


def _number(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _difference(found: Difference) -> dict[str, Any]:
    """An unknown difference has no number: who reads the JSON must not read a saving out of it."""
    return {"usd": None if found.bound is Bound.UNKNOWN else _number(found.usd), "bound": found.bound.value}


def _sides(sides: Sides) -> dict[str, Any]:
    return {
        name: {"usd": _number(a.usd), "at_least": a.at_least}
        for name, a in (("before", sides.before), ("after", sides.after))
    } | {"difference": _difference(sides.difference)}


def _placement(p: Placement | None) -> dict[str, Any] | None:
    if p is None:
        return None
    return {
        "offer_id": mask(p.offer_id),
        "placement_id": mask(p.placement_id),
        "cloud": mask(p.cloud),
        "target": mask(p.target),
        "region": mask(p.region),
        "zone": mask(p.zone),
        "instance_type": mask(p.instance_type),
        "capacity": mask(p.capacity),
        "nodes": p.nodes,
        "gpu": mask(p.gpu),
        "gpu_count": p.gpu_count,
        "usd_per_hour": _number(p.usd_per_hour),
        "total_usd": _number(p.total_usd),
        "lower_bound": p.lower_bound,
        "finish_hours": _number(p.finish_hours),
        "parts": [mask(part.offer_id) for part in p.parts],
    }


def _change(c: Change) -> dict[str, Any]:
    return {
        "job": mask(c.job),
        "action": c.action.value,
        "glyph": GLYPHS[c.action],
        "before": _placement(c.before),
        "after": _placement(c.after),
        "reason": mask(c.reason),
        "runner_up": _placement(c.runner_up),
        "terms_usd": [
            {
                "name": t.name,
                "before": _number(t.before),
                "after": _number(t.after),
                "difference": _difference(t.difference),
                "detail": mask(t.detail),
            }
            for t in c.terms
        ],
        "hourly_usd": _sides(c.hourly),
        "total_usd": _sides(c.total),
        "egress_usd": _sides(c.egress),
        "altered": [{"name": mask(a.name), "before": mask(a.before), "after": mask(a.after)} for a in c.altered],
        "caveats_added": list(map(mask, c.caveats_added)),
        "grants_added": [_grant(g) for g in c.grants_added],
        "grants_removed": [_grant(g) for g in c.grants_removed],
        "inputs_changed": list(c.inputs_changed),
        "causes": [
            {"what": k.what, "moved": k.moved, "total_usd": _difference(k.total), "text": mask(k.text)}
            for k in c.causes
        ],
        "other_figures": c.other_figures,
        "replanned": list(c.replanned),
        "migration": _migration(c.migration),
        "file": mask(c.file),
    }


def _grant(g: Grant) -> dict[str, Any]:
    return {
        "identity": g.identity.value,
        "permission": g.permission.value,
        "resource": mask(g.resource),
        "reason": mask(g.reason),
        "conditions": {c.bound.value: list(map(mask, c.values)) for c in g.conditions},
    }


def _migration(m: MigrationDiff | None) -> dict[str, Any] | None:
    if m is None:
        return None
    return {
        "reason": m.reason.value,
        "code": mask(m.code),
        "text": mask(m.text),
        "to": [mask(p.offer_id) for p in m.to],
        "stop_minutes": _number(m.stop_minutes),
        "steps": [
            {"key": mask(s.key), "title": mask(s.title), "minutes": _number(s.minutes), "stops": s.stops}
            for s in m.steps
        ],
        "reviewed": m.reviewed,
        "prepared": m.prepared,
    }


def _finding(f: Finding) -> dict[str, Any]:
    words = ("cloud", "identity", "origin", "grant", "action", "resource", "message", "fix", "accepted")
    return {"rule": f.rule, "level": f.level.value} | {name: mask(getattr(f, name)) for name in words}


def _terraform(t: TerraformChanges) -> dict[str, Any]:
    return {
        "file": mask(t.file),
        "errored": t.errored,
        "resources": [
            {
                "address": mask(r.address),
                "action": r.action,
                "because": mask(r.because),
                "previous_address": mask(r.previous),
                "paths": list(map(mask, r.paths)),
            }
            for r in t.resources
        ],
        "outputs": [{"name": mask(name), "action": action} for name, action in t.outputs],
        "drifted": list(map(mask, t.drifted)),
    }
