"""Words of a finding that all outputs share, and what makes foreign text safe to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport
    from planner.model.finding import Finding

PAGES = ""
"""Address before the name of a rule's page, with its last slash; "" while the pages have none: a relative link leads nowhere from a user's repository."""
_LISTED = 3


def rule_page(rule: str) -> str:
    """Address of a rule's page, "" where it has none."""
    return f"{PAGES}{rule}.md" if PAGES else ""


def asking(rule: str) -> str:
    """The command that tells about a rule."""
    return f"skyplan explain {rule}"


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
    """`own/ReadData: s3:GetObject on arn:…`, as far as it is known; long lists are cut, JSON has them whole."""
    acts = " on ".join(_some(text) for text in (finding.action, finding.resource) if text)
    grant = finding.grant
    if grant.startswith("arn:"):  # a managed policy's: its name says enough
        grant = "/".join(grant.rsplit("/", 2)[-2:])
    return printable(": ".join(filter(None, (grant, acts))))


def _some(text: str) -> str:
    parts = text.split(", ")
    return text if len(parts) <= _LISTED else f"{', '.join(parts[:_LISTED])} and {len(parts) - _LISTED} more"


def summary(report: AuditReport) -> str:
    """`2 high, 1 medium; 1 accepted; 14 identities, 53 rules`."""
    none = "no findings in what was read" if report.unread or report.refused else "no findings"
    counted = ", ".join(f"{n} {level.value}" for level, n in report.counts().items() if n) or none
    accepted = len(report.findings) - len(report.open)
    parts = [counted]
    if report.unread:
        parts.append(f"{_count(report.unread, 'document', 'documents')} not read")
    if report.refused:
        parts.append(f"{_count(report.refused, 'account or region', 'accounts or regions')} not compared")
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
