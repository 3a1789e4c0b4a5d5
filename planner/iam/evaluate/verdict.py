"""The answer of an evaluator, the same for all clouds: what was decided, and by what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    """An explicit deny is written down somewhere; an implicit one is the want of an allow."""

    ALLOW = "allow"
    EXPLICIT_DENY = "explicit-deny"
    IMPLICIT_DENY = "implicit-deny"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision; `by` names the statement, binding or assignment that decided, or says what is missing.  True where it allows."""

    decision: Decision
    by: str

    def __bool__(self) -> bool:
        return self.decision is Decision.ALLOW

    @property
    def allowed(self) -> bool:
        """Whether the request may pass."""
        return self.decision is Decision.ALLOW
