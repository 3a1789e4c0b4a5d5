"""What there is to know of one rule of the audit, for who asks by its name.  Audits nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.audit_report import RuleText


def rule(code: str) -> RuleText | None:
    """The rule by that code; None for a code of another kind."""
    if not code.startswith("SKY-IAM-"):
        return None
    from planner.iam.audit.registry import RULES  # noqa: PLC0415 - all rules' modules
    from planner.model.audit_report import RuleText  # noqa: PLC0415

    found = RULES.get(code)
    if found is None:
        return None
    return RuleText(
        id=found.id, level=found.level, title=found.title, why=found.why, fix=found.fix, maps=tuple(found.maps)
    )
