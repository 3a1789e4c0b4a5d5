"""A rule of the audit in words: how bad, what is wrong, why it matters, what to do, and what other tools call it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from planner.render.audit_words import rule_page

if TYPE_CHECKING:
    from planner.model.audit_report import RuleText

_WIDTH = 100


def rule_lines(rule: RuleText) -> list[str]:
    """Lines for a terminal."""
    out = [f"{rule.id} ({rule.level.value}): {rule.title}"]
    parts = (("why", rule.why), ("fix", rule.fix), ("elsewhere", ", ".join(rule.maps)), ("page", rule_page(rule.id)))
    for word, text in parts:
        if text:
            lead = f"{word}: "
            out += wrap(text, _WIDTH, initial_indent=lead, subsequent_indent="  ", break_long_words=False)
    return out


def rule_document(rule: RuleText) -> dict[str, Any]:
    """The same, JSON-ready."""
    return {"level": rule.level.value, "why": rule.why, "fix": rule.fix, "maps": list(rule.maps)}
