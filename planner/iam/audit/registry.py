"""Which rules there are, and how they are run: each rule is a row of data with one pure function, its module only lists them.

Rules see an `Audited` and nothing else: no file, no network, no clock.  What a rule means in short stands in `planner.model.iam_codes`; this
module must not know any rule by name, and accepts or suppresses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from planner.iam.audit.settled import settled
from planner.model.codes import CODES
from planner.model.finding import Finding, Level
from planner.model.policy import Audited

#: modules with a tuple `RULES`
MODULES = (
    "launch",
    "escalation_aws",
    "writing_aws",
    "escalation_other",
    "data",
    "trust",
    "lifetime",
    "semantics",
    "widening",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    title   what is wrong, in words; default: the code's own meaning
    why     why it matters, with the attack in two sentences, and where the rule draws its line
    fix     what to do, in general; each finding has the exact lines
    maps    the closest checks of other tools: `CKV_AWS_110`, `cloudsplaining CreateEC2WithExistingIP`
    check   yields what it finds; rule and level are stamped on by `judge`, so a check may leave them
    clouds  how each cloud is judged, in a sentence or two; "" = AWS only
    whole   whether a finding of it says all that others say about the same statement or right
    """

    id: str
    level: Level
    title: str = ""
    why: str
    fix: str
    maps: tuple[str, ...] = ()
    check: Callable[[Audited], Iterator[Finding]]
    clouds: str = ""
    whole: Callable[[Finding], bool] | None = None

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", CODES[self.id].meaning)

    def judge(self, audited: Audited) -> Iterator[Finding]:
        """What it finds, each with this rule's id and level."""
        for found in self.check(audited):
            yield replace(found, rule=self.id, level=self.level)


@cache
def _gathered() -> dict[str, Rule]:
    found = [rule for name in MODULES for rule in _rules_of(name)]
    out = {rule.id: rule for rule in sorted(found, key=lambda rule: rule.id)}
    if len(out) != len(found):
        raise AssertionError("a rule is listed twice")
    return out


def _rules_of(name: str) -> tuple[Rule, ...]:
    return import_module(f"planner.iam.audit.{name}").RULES


class _Rules(Mapping[str, Rule]):
    """Rules by id, in order; modules are imported at the first look, since they import `Rule` from here."""

    def __getitem__(self, key: str) -> Rule:
        return _gathered()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_gathered())

    def __len__(self) -> int:
        return len(_gathered())


RULES: Mapping[str, Rule] = _Rules()


def run(audited: Audited, rules: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """What the rules with these ids (None = all) find: worst first, each once, what one statement is about said together (`settled`)."""
    whole = {rule.id: rule.whole for rule in _asked(rules) if rule.whole}
    return settled(every(audited, rules), lambda one: one.rule in whole and whole[one.rule](one))


def every(audited: Audited, rules: Sequence[str] | None = None) -> tuple[Finding, ...]:
    """The same one by one: also what another finding takes in."""
    found = {finding for rule in _asked(rules) for finding in rule.judge(audited)}
    return tuple(sorted(found, key=Finding.sort_key))


def _asked(rules: Sequence[str] | None) -> list[Rule]:
    return list(RULES.values()) if rules is None else [RULES[name] for name in rules]
