"""Which findings the platform team accepts: `iam.suppressions` of skyplan.yaml, each with a reason and an end.

A job file has no say.  What has expired accepts nothing and is an error; what matches nothing is a warning, so that no dead line stays, and so is what
accepts a rule's findings everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic, Location, Severity

if TYPE_CHECKING:
    from planner.model.finding import Finding
    from planner.model.project import Suppression


def accept(
    findings: Sequence[Finding], suppressions: Sequence[Suppression], now: datetime, places: Sequence[Location] = ()
) -> tuple[tuple[Finding, ...], tuple[Diagnostic, ...]]:
    """The findings, accepted ones with their reason and its end; and what is wrong with the suppressions.  `places`: where each one stands."""
    told: list[Diagnostic] = []
    live: list[tuple[int, Suppression]] = []
    for number, s in enumerate(suppressions):
        if _moment(s.expires) <= now:
            summary = f"the suppression of {s.rule} ({s.reason}) expired on {s.expires[:10]}"
            told.append(Diagnostic(code="SKY-IAM-901", summary=summary, location=_at(places, number)))
        else:
            live.append((number, s))
    used: set[int] = set()
    out: list[Finding] = []
    for finding in findings:
        matching = [(number, s) for number, s in live if _matches(s, finding)]
        used.update(number for number, _ in matching)
        out.append(replace(finding, accepted=_said(matching[0][1])) if matching else finding)
    for number, s in live:
        if number not in used:
            summary = f"the suppression of {s.rule} for `{s.grant}` matches no finding"
            told.append(
                Diagnostic(code="SKY-IAM-904", summary=summary, location=_at(places, number), severity=Severity.WARNING)
            )
        elif not s.grant.strip("*"):
            summary = (
                f"the suppression of {s.rule} ({s.reason}) names no grant: it accepts whatever the rule finds, anywhere"
            )
            told.append(
                Diagnostic(code="SKY-IAM-905", summary=summary, location=_at(places, number), severity=Severity.WARNING)
            )
    return tuple(out), tuple(told)


def _said(s: Suppression) -> str:
    """`ML-12, until 2027-01-01`."""
    return f"{s.reason}, until {s.expires[:10]}"


def _matches(s: Suppression, finding: Finding) -> bool:
    """By where the finding stands, alone or with its statement (`ORIGIN GRANT`), or by whose right it is."""
    places = (finding.origin, f"{finding.origin} {finding.grant}", finding.identity)
    glob = s.grant.replace("[", "[[]")  # of addresses such as `x.y["k"]`: brackets are themselves
    return s.rule == finding.rule and any(fnmatchcase(place, glob) for place in places)


def _moment(text: str) -> datetime:
    """A date is its first moment in UTC, as the spec writes it."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _at(places: Sequence[Location], number: int) -> Location | None:
    return places[number] if number < len(places) else None
