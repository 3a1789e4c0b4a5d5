"""An audit as a pull request's comment: what the change grants first, a table per identity, findings folded below.

Every name in it is a stranger's: nothing may open a tag, a link, a mention or a table cell.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from planner.model.audit_report import WIDENING
from planner.render.audit_words import asking, indented, rule_page, summary, what, where, who
from planner.render.comment import cell, html, joined

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport, Change
    from planner.model.finding import Finding

_CUT = "_Cut here, as a comment may be no longer: the SARIF or JSON output has the rest._"
_MARKS = {"added": "+ added", "removed": "- removed", "widened": "! widened", "changed": "~ changed"}


def document(report: AuditReport) -> str:
    """The comment's text; cut between two blocks where it would be too long."""
    widened = [f for f in report.findings if f.rule == WIDENING]
    blocks = ["## skyplan audit", _verdict(report)]
    if report.base:
        blocks += _widenings(widened, report.base)
        blocks += [_changes(list(rows)) for _, rows in groupby(report.changes, key=lambda c: (c.cloud, c.identity))]
    if report.diagnostics:
        said = (f"- **{d.severity.value}**: {cell(d.summary)} ({d.code})" for d in report.diagnostics)
        blocks.append("\n".join(said))
    blocks += [_folded(f) for f in report.findings if f.rule != WIDENING]
    return joined(blocks, _CUT)


def _verdict(report: AuditReport) -> str:
    failing = len(report.failing)
    word = f"**{failing} to settle before this may go in**" if failing else "**Nothing that fails**"
    return f"{word}: {cell(summary(report))}."


def _widenings(widened: list[Finding], base: str) -> list[str]:
    if not widened:
        return [f"### Nothing is granted beyond {cell(base)}"]
    rows = ["| | identity | grant | what is wider |", "|---|---|---|---|"]
    for f in widened:
        mark = f"accepted: {cell(f.accepted)}" if f.accepted else f.level.value
        rows.append(f"| {mark} | {cell(who(f))} | {cell(what(f))} | {cell(f.message)} |")
    return [f"### Granted beyond {cell(base)}", "\n".join(rows)]


def _changes(rows: list[Change]) -> str:
    first = rows[0]
    name = " ".join(filter(None, (first.cloud, first.identity)))
    out = [f"<details><summary>{html(name)}: {_counted(rows)}</summary>", "", "| | right |", "|---|---|"]
    out += [f"| {_MARKS[c.kind]} | {cell(c.right)} |" for c in rows]
    return "\n".join([*out, "", "</details>"])


def _counted(rows: list[Change]) -> str:
    return ", ".join(f"{n} {kind}" for kind in _MARKS if (n := sum(c.kind == kind for c in rows)))


def _folded(f: Finding) -> str:
    head = f"{f.level.value} {f.rule} {who(f)}: {f.message}"
    mark = " (accepted)" if f.accepted else ""
    out = [f"<details><summary>{html(head)}{mark}</summary>", "", f"- where: {cell(where(f))}"]
    if f.origin:
        out.append(f"- in: {cell(f.origin)}")
    if shown := what(f):
        out.append(f"- grant: {cell(shown)}")
    if f.accepted:
        out.append(f"- accepted: {cell(f.accepted)}")
    page = rule_page(f.rule)
    out.append(f"- rule: [{f.rule}]({page})" if page else f"- rule: `{asking(f.rule)}`")
    for label, text in (("evidence", f.evidence), ("fix", f.fix)):
        if text and not f.accepted:
            out += ["", f"{label}:", "", _code(text)]
    return "\n".join([*out, "", "</details>"])


def _code(text: str) -> str:
    """Indented by four spaces, which nothing inside can close, unlike a fence."""
    return "\n".join("    " + line.rstrip() for line in map(indented, text.splitlines()))
