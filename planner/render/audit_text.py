"""An audit for people at a terminal.  Levels are words first; colour only repeats them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.audit_report import WIDENING
from planner.model.finding import Level
from planner.render.audit_words import indented, printable, summary, what, where, who

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport
    from planner.model.finding import Finding
    from planner.render.text import Paint

_FIX_LINES = 60
_EVIDENCE_LINES = 3
"""A list of actions may run over pages, and the evidence of one change over an account; other outputs have all of it."""
_STYLES: dict[Level, tuple[str, ...]] = {
    Level.CRITICAL: ("bold", "red"),
    Level.HIGH: ("red",),
    Level.MEDIUM: ("yellow",),
    Level.LOW: ("cyan",),
    Level.INFO: ("dim",),
}


def audit_lines(report: AuditReport, paint: Paint) -> list[str]:
    """Widenings, then the rest, worst first; accepted ones with their reason; a summary last."""
    out: list[str] = []
    widened = [f for f in report.findings if f.rule == WIDENING]
    rest = [f for f in report.findings if f.rule != WIDENING]
    if report.base:
        head = f"Beyond {printable(report.base)}" if widened else f"Nothing is granted beyond {printable(report.base)}"
        out += [paint(head, "bold"), ""]
    widths = _widths(report.findings)
    shown: dict[str, Finding] = {}
    for finding in (*widened, *rest):
        first = shown.setdefault(finding.fix, finding) if not finding.accepted else finding
        out += [*_lines(finding, widths, paint, first), ""]
    out.append(paint(summary(report), "bold"))
    return out


def _widths(findings: tuple[Finding, ...]) -> tuple[int, int]:
    return (
        max((len(_word(f)) for f in findings), default=0),
        max((len(who(f)) for f in findings), default=0),
    )


def _word(finding: Finding) -> str:
    return "accepted" if finding.accepted else finding.level.value


def _lines(finding: Finding, widths: tuple[int, int], paint: Paint, first: Finding) -> list[str]:
    """`first`: the one above, or itself, with whose fix this one is settled too."""
    style = ("dim",) if finding.accepted else _STYLES[finding.level]
    word = paint(_word(finding).ljust(widths[0]), *style)
    place = where(finding)
    out = [f"{word}  {finding.rule}  {who(finding).ljust(widths[1])}  {place}".rstrip()]
    out.append(f"  {printable(finding.message)}")
    if finding.location and finding.origin:
        out.append(f"  {paint('in', 'dim')}: {printable(finding.origin)}")
    if shown := what(finding):
        out.append(f"  {paint('grant', 'dim')}: {shown}")
    if finding.accepted:
        out.append(f"  {paint('accepted', 'dim')}: {printable(finding.accepted)}")
        return out
    evidence = finding.evidence.splitlines()
    out += [f"  {paint('|', 'dim')} {indented(line)}" for line in evidence[:_EVIDENCE_LINES]]
    if len(evidence) > _EVIDENCE_LINES:
        out.append(f"  {paint('|', 'dim')} … and {len(evidence) - _EVIDENCE_LINES} lines more, in --json")
    return [*out, *_fix(finding, paint, first)]


def _fix(finding: Finding, paint: Paint, first: Finding) -> list[str]:
    label = paint("fix", "cyan") + ":"
    lines = finding.fix.splitlines()
    if first is not finding and len(lines) > 1:
        return [f"  {label} the one of {first.rule} above, of {what(first).partition(': ')[0]}, settles this too"]
    out = [f"  {'    ' if number else label} {indented(line)}" for number, line in enumerate(lines[:_FIX_LINES])]
    if len(lines) > _FIX_LINES:
        out.append(f"       … and {len(lines) - _FIX_LINES} lines more, in --json")
    return out
