"""What an audit tells its reader, as a value: findings, what a change grants beyond its base, and why a right is there.

Renderers see this and nothing else of an audit.  Decides when a report fails, and how findings are counted; finds nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.diagnostic import Diagnostic
from planner.model.finding import Finding, Level

WIDENING = "SKY-IAM-605"
"""The rule that a change is reviewed by: it stands first in every output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """A rule as its reader sees it.  `maps`: the closest checks of other tools."""

    id: str
    level: Level
    title: str
    why: str = ""
    fix: str = ""
    maps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Change:
    """One right that a change adds, removes or widens.  `kind`: `added`, `removed`, `widened`, `changed` (otherwise)."""

    cloud: str
    identity: str
    kind: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """One audit.

    sources      what was read, as the user named it
    identities   who was looked at: (cloud, name), sorted
    findings     accepted ones included, widenings first, then the worst
    base         what it was held against, "" = nothing; then only findings that the base does not have are here
    standing     how many findings the base has too
    changes      rights that the base does not have alike
    unread       how many things that hold rights could not be read
    refused      how many accounts or regions could not be held against the plans
    diagnostics  of suppressions, and of what could not be read
    fail_on      the lowest level that fails; None = none does
    """

    project: str
    sources: tuple[str, ...]
    identities: tuple[tuple[str, str], ...]
    rules: tuple[RuleText, ...]
    findings: tuple[Finding, ...]
    base: str = ""
    standing: int = 0
    changes: tuple[Change, ...] = ()
    unread: int = 0
    refused: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    fail_on: Level | None = Level.HIGH

    @property
    def open(self) -> tuple[Finding, ...]:
        """What nobody has accepted."""
        return tuple(f for f in self.findings if not f.accepted)

    @property
    def failing(self) -> tuple[Finding, ...]:
        """Open findings at or above `fail_on`."""
        return tuple(f for f in self.open if self.fail_on is not None and f.level.reaches(self.fail_on))

    def counts(self) -> dict[Level, int]:
        """Open findings by level, worst first; every level is there."""
        return {level: sum(f.level is level for f in self.open) for level in Level}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Right:
    """One permission of one identity, with what needs it.

    place      where the subject is: the stack, the file or the account
    bounds     what keeps it small, in the cloud's own words
    needed_by  planned operations: `create aws_instance (compute)`
    reason     of a node's right: why the job needs it
    used       by what is audited; None = nothing audited speaks of this identity's work
    """

    cloud: str
    subject: str
    grant: str
    action: str
    resources: tuple[str, ...]
    bounds: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    reason: str = ""
    used: bool | None = None
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Who:
    """One whose rights are explained; of one name there may be several, in several clouds and accounts.

    trusted  who may become it
    limits   what takes away of the rights, or bounds whom
    """

    cloud: str
    subject: str
    place: str = ""
    trusted: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Who can do what, and why.  Each right is of one of `who`."""

    identity: str
    rights: tuple[Right, ...]
    who: tuple[Who, ...] = ()

    def of(self, one: Who) -> tuple[Right, ...]:
        """The rights of that one, in order."""
        key = (one.cloud, one.subject, one.place)
        return tuple(r for r in self.rights if (r.cloud, r.subject, r.place) == key)
