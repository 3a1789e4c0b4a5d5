"""What an audit found, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.model.diagnostic import Location
from planner.model.digest import digest


class Level(StrEnum):
    """How bad, in order."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def weight(self) -> int:
        """4 for critical … 0 for info."""
        return list(Level)[::-1].index(self)

    def reaches(self, threshold: Level) -> bool:
        """At or above it."""
        return self.weight >= threshold.weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of one rule.

    rule      `SKY-IAM-201`
    cloud     "" where the finding is in no one cloud
    identity  skyplan's word for who holds the right, or the subject's own name
    origin    where: stack and resource, ARN, or file, without line numbers
    grant     the statement, binding or assignment, by the name its owner knows
    action    the action concerned, "" for none
    resource  the resource concerned, "" for none
    evidence  the lines that show it
    fix       the exact lines to write instead
    accepted  reason of the suppression that accepts it, "" = it stands
    """

    rule: str
    level: Level
    cloud: str
    identity: str
    origin: str
    message: str
    grant: str = ""
    action: str = ""
    resource: str = ""
    evidence: str = ""
    fix: str = ""
    location: Location | None = None
    accepted: str = ""

    @property
    def fingerprint(self) -> str:
        """Stable over moved lines and reworded messages: of rule, identity, origin, grant, action and resource."""
        return digest([self.rule, self.cloud, self.identity, self.origin, self.grant, self.action, self.resource])

    def sort_key(self) -> tuple[int, str, str, str, str, str, str]:
        """Worst first, then rule, place, words: a total order."""
        return (-self.level.weight, self.rule, self.origin, self.grant, self.action, self.resource, self.message)
