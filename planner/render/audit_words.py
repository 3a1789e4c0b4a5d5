"""Words of a finding that all outputs share, and what makes foreign text safe to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport
    from planner.model.finding import Finding

DOCS = "docs/rules"
"""Folder of the rules' pages, in the repository."""


def rule_page(rule: str) -> str:
    """Relative path of a rule's page."""
    return f"{DOCS}/{rule}.md"


def printable(text: str) -> str:
    """One line without control characters: names in an account or a file are a stranger's and may carry terminal codes."""
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "?" for c in text).strip()


def indented(line: str) -> str:
    """Printable, with its indentation."""
    return " " * (len(line) - len(line.lstrip(" "))) + printable(line)


def who(finding: Finding) -> str:
    """`aws node-data`."""
    return printable(" ".join(filter(None, (finding.cloud, finding.identity))))


def where(finding: Finding) -> str:
    """Place in a file where there is one, else the resource's own name."""
    return printable(str(finding.location) if finding.location else finding.origin)


def what(finding: Finding) -> str:
    """`ReadData: s3:GetObject on arn:…`, as far as it is known."""
    acts = " on ".join(filter(None, (finding.action, finding.resource)))
    return printable(": ".join(filter(None, (finding.grant, acts))))


def summary(report: AuditReport) -> str:
    """`2 high, 1 medium; 1 accepted; 14 identities, 53 rules`."""
    counted = ", ".join(f"{n} {level.value}" for level, n in report.counts().items() if n) or "no findings"
    accepted = len(report.findings) - len(report.open)
    parts = [counted]
    if accepted:
        parts.append(f"{accepted} accepted")
    if report.base:
        parts.append(f"{report.standing} stand in {printable(report.base)} too")
    parts.append(
        f"{_count(len(report.identities), 'identity', 'identities')}, {_count(len(report.rules), 'rule', 'rules')}"
    )
    return "; ".join(parts)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
