"""An audit as SARIF 2.1.0, for code scanning.  Paths are relative, fingerprints outlive moved lines and reworded messages.

GitHub's reading of the format sets what is here beyond the least: `security-severity` on rules, a region on every result, one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from planner.model.diagnostic import Severity
from planner.model.finding import Level
from planner.render.audit_words import asking, printable, rule_page, what

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport, RuleText
    from planner.model.diagnostic import Diagnostic, Location
    from planner.model.finding import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000
"""GitHub refuses a run with more, and shows the worst 5,000 of them (its documentation of SARIF support, 2026-09)."""
_LEVELS = {
    Level.CRITICAL: "error",
    Level.HIGH: "error",
    Level.MEDIUM: "warning",
    Level.LOW: "note",
    Level.INFO: "note",
}
#: over 9.0 is critical, from 7.0 high, from 4.0 medium to GitHub's code scanning (its documentation, 2026-09)
_SEVERITIES = {Level.CRITICAL: "9.5", Level.HIGH: "8.0", Level.MEDIUM: "5.5", Level.LOW: "3.0", Level.INFO: "1.0"}


def document(report: AuditReport, *, version: str) -> dict[str, Any]:
    """JSON-ready."""
    numbers = {rule.id: k for k, rule in enumerate(report.rules)}
    fallback = report.sources[0] if report.sources else "skyplan.yaml"
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "skyplan audit",
                "semanticVersion": version,
                "rules": [_rule(rule) for rule in report.rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, numbers, fallback) for f in report.findings[:MOST_RESULTS]],
    }
    notes = [_notification(d) for d in report.diagnostics]
    if (more := len(report.findings) - MOST_RESULTS) > 0:
        notes.append(
            {"level": "warning", "message": {"text": f"{more} more findings, none of them worse, are left out"}}
        )
    if notes:
        successful = all(d.severity is Severity.WARNING for d in report.diagnostics)
        run["invocations"] = [{"executionSuccessful": successful, "toolConfigurationNotifications": notes}]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: RuleText) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {
            "security-severity": _SEVERITIES[rule.level],
            "precision": "high",
            "tags": ["security", "iam", *rule.maps],
        },
    }
    if rule.why:
        out["fullDescription"] = {"text": rule.why}
    told = [("Why", rule.why), ("Fix", rule.fix)]
    out["help"] = {
        "text": "\n\n".join([*(f"{word}: {text}" for word, text in told if text), f"More: {asking(rule.id)}"]),
        "markdown": "\n\n".join(
            [*(f"**{word}:** {text}" for word, text in told if text), f"More: `{asking(rule.id)}`"]
        ),
    }
    # it must be absolute, uploads are refused otherwise
    if page := rule_page(rule.id):
        out["helpUri"] = page
    return out


def _result(f: Finding, numbers: dict[str, int], fallback: str) -> dict[str, Any]:
    shown = what(f)
    text = printable(f.message) + (f" [{shown}]" if shown else "") + (f" Fix: {printable(f.fix)}" if f.fix else "")
    out: dict[str, Any] = {
        "ruleId": f.rule,
        "ruleIndex": numbers[f.rule],
        "level": _LEVELS[f.level],
        "message": {"text": text},
        "locations": [_place(f.location, fallback) | _logical(f)],
        # GitHub goes by the second alone; where it is missing, its upload takes the line's text, which is one for all findings of a plan
        "partialFingerprints": {"skyplanFinding/v1": f.fingerprint, "primaryLocationLineHash": f.fingerprint},
        "properties": {"cloud": f.cloud, "identity": f.identity, "level": f.level.value},
    }
    if f.accepted:
        out["suppressions"] = [{"kind": "external", "status": "accepted", "justification": f.accepted}]
    return out


def _logical(f: Finding) -> dict[str, Any]:
    return {"logicalLocations": [{"fullyQualifiedName": printable(f.origin)}]} if f.origin else {}


def _place(at: Location | None, fallback: str) -> dict[str, Any]:
    file = (at.file if at else fallback).replace("\\", "/")
    region: dict[str, Any] = {"startLine": max(1, at.line) if at else 1}
    if at and at.line and at.column:
        region["startColumn"] = at.column
    uri = quote(file.removeprefix("./"), safe="/:@!$&'()*+,;=~-._")
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def _notification(d: Diagnostic) -> dict[str, Any]:
    out: dict[str, Any] = {"level": d.severity.value, "message": {"text": f"{d.summary} [{d.code}]"}}
    if d.location:
        out["locations"] = [_place(d.location, "")]
    return out
