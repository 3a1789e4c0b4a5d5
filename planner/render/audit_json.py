"""An audit as JSON, by the schema that `skyplan schema audit` prints.  Fields are only ever added within a major version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
