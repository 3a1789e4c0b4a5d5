"""An audit as JUnit XML: one test case per rule and identity.  Fails where the report does; what is accepted is skipped, with the reason."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from planner.model.diagnostic import Severity
from planner.render.audit_words import printable, what, where

if TYPE_CHECKING:
    from planner.model.audit_report import AuditReport, RuleText
    from planner.model.finding import Finding


def document(report: AuditReport) -> str:
    """The file's text."""
    found: defaultdict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for f in report.findings:
        found[f.rule, f.cloud, f.identity].append(f)
    who = sorted({*report.identities, *((cloud, name) for _, cloud, name in found)})
    failing = set(report.failing)
    cases: list[str] = []
    failures = skipped = 0
    for cloud, name in who:
        for rule in report.rules:
            here = found.get((rule.id, cloud, name), [])
            bad = [f for f in here if f in failing]
            failures += bool(bad)
            skip = bool(here) and all(f.accepted for f in here)
            skipped += skip
            cases.append(_case(rule, f"{cloud}.{name}" if cloud else name, here, bad, skip=skip))
    errors = [d for d in report.diagnostics if d.severity is Severity.ERROR]
    for d in errors:
        body = f"<error message={_attribute(d.summary)} type={_attribute(d.code)}/>"
        cases.append(f'    <testcase classname="skyplan.yaml" name={_attribute(d.code)}>{body}</testcase>')
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{len(errors)}" skipped="{skipped}"'
    head = f'<testsuites name="skyplan audit" {counts}>'
    suite = f"  <testsuite name={_attribute(report.project)} {counts}>"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, suite, *cases, "  </testsuite>", "</testsuites>", ""]
    return "\n".join(lines)


def _case(rule: RuleText, name: str, here: list[Finding], bad: list[Finding], *, skip: bool) -> str:
    head = f"    <testcase classname={_attribute(name)} name={_attribute(f'{rule.id} {rule.title}')}"
    if not here:
        return head + "/>"
    inner: list[str] = []
    if bad:
        text = "\n\n".join(map(_said, bad))
        inner.append(
            f"<failure message={_attribute(bad[0].message)} type={_attribute(bad[0].level.value)}>{_text(text)}</failure>"
        )
    elif skip:
        inner.append(f"<skipped message={_attribute(here[0].accepted)}/>")
    if others := [f for f in here if f not in bad and not skip]:
        said = "\n\n".join(map(_said, others))
        inner.append(f"<system-out>{_text(said)}</system-out>")
    return f"{head}>{''.join(inner)}</testcase>"


def _said(f: Finding) -> str:
    lines = [
        f"{f.level.value} {where(f)}",
        f.message,
        what(f),
        f.evidence,
        f"accepted: {f.accepted}" if f.accepted else f.fix,
    ]
    return "\n".join(filter(None, lines))


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def _text(text: str) -> str:
    """XML 1.0 admits no control characters but tab and line ends."""
    return escape("\n".join(map(printable, text.split("\n"))))
