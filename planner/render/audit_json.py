"""An audit as JSON, by the schema that `skyplan schema audit` prints.  Fields are only ever added within a major version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.finding import Level
from planner.render import diagnostics

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport, Explanation
    from planner.model.finding import Finding

FORMAT_VERSION = "1.0"


def document(report: AuditReport) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": FORMAT_VERSION,
        "project": report.project,
        "sources": list(report.sources),
        "base": report.base or None,
        "identities": [{"cloud": cloud, "name": name} for cloud, name in report.identities],
        "summary": {
            "open": {level.value: count for level, count in report.counts().items()},
            "accepted": len(report.findings) - len(report.open),
            "standing": report.standing,
            "failing": len(report.failing),
            "unread": report.unread,
            "refused": report.refused,
            "fail_on": report.fail_on.value if report.fail_on else "none",
        },
        "findings": [_finding(f) for f in report.findings],
        "changes": [
            {"cloud": c.cloud, "identity": c.identity, "kind": c.kind, "right": c.right} for c in report.changes
        ],
        "diagnostics": diagnostics.document(report.diagnostics),
    }


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "rule": f.rule,
        "level": f.level.value,
        "cloud": f.cloud,
        "identity": f.identity,
        "origin": f.origin,
        "grant": f.grant,
        "action": f.action,
        "resource": f.resource,
        "message": f.message,
        "evidence": f.evidence,
        "fix": f.fix,
        "file": f.location.file if f.location else None,
        "line": (f.location.line or None) if f.location else None,
        "accepted": f.accepted or None,
        "fingerprint": f.fingerprint,
    }


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": FORMAT_VERSION,
        "identity": explanation.identity,
        "trusted": [
            {"cloud": w.cloud, "subject": w.subject, "place": w.place, "by": by}
            for w in explanation.who
            for by in w.trusted
        ],
        "limits": [
            {"cloud": w.cloud, "subject": w.subject, "place": w.place, "words": words}
            for w in explanation.who
            for words in w.limits
        ],
        "rights": [
            {
                "cloud": r.cloud,
                "subject": r.subject,
                "place": r.place,
                "grant": r.grant,
                "action": r.action,
                "resources": list(r.resources),
                "bounds": list(r.bounds),
                "needed_by": list(r.needed_by),
                "reason": r.reason,
                "used": r.used,
            }
            for r in explanation.rights
        ],
    }


def schema() -> dict[str, Any]:
    """The JSON Schema of `document`."""
    text: dict[str, Any] = {"type": "string"}
    count: dict[str, Any] = {"type": "integer", "minimum": 0}
    level: dict[str, Any] = {"enum": [level.value for level in Level]}
    maybe: dict[str, Any] = {"type": ["string", "null"]}
    line: dict[str, Any] = {"type": ["integer", "null"], "minimum": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "skyplan audit, format 1",
        **_object(
            format_version={"type": "string", "pattern": r"^1\.[0-9]+$"},
            project=text,
            sources=_list(text),
            base=maybe,
            identities=_list(_object(cloud=text, name=text)),
            summary=_object(
                open=_object(**{one.value: count for one in Level}),
                accepted=count,
                standing=count,
                failing=count,
                unread=count,
                refused=count,
                fail_on={"enum": [*(one.value for one in Level), "none"]},
            ),
            findings=_list(
                _object(
                    rule={"type": "string", "pattern": "^SKY-IAM-[0-9]{3}$"},
                    level=level,
                    **dict.fromkeys(("cloud", "identity", "origin", "grant", "action", "resource"), text),
                    **dict.fromkeys(("message", "evidence", "fix"), text),
                    file=maybe,
                    line=line,
                    accepted=maybe,
                    fingerprint={"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
                )
            ),
            changes=_list(
                _object(
                    cloud=text, identity=text, kind={"enum": ["added", "removed", "widened", "changed"]}, right=text
                )
            ),
            diagnostics=_list(
                _object(
                    code=text,
                    severity={"enum": ["error", "warning"]},
                    summary=text,
                    hint=text,
                    file=maybe,
                    line=line,
                    column=line,
                )
            ),
        ),
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    """All named, and room for what a later minor version adds."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": True}
