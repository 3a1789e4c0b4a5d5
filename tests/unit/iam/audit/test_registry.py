"""The registry: every code of the audit has a rule and every rule a code; results are sorted, stamped and each once."""

from __future__ import annotations

import pytest

from planner.iam.audit import registry
from planner.iam.audit.registry import RULES, Rule, run
from planner.model.finding import Finding, Level
from planner.model.iam_codes import ROWS
from planner.model.policy import Audited


def finding(**fields):
    base = {"rule": "", "level": Level.INFO, "cloud": "aws", "identity": "x", "origin": "o", "message": "m"}
    return Finding(**{**base, **fields})


def test_every_code_has_a_rule_and_every_rule_a_code():
    assert set(RULES) == {row[0] for row in ROWS if row[0] < "SKY-IAM-900"}


def test_every_rule_says_what_a_page_needs():
    for rule in RULES.values():
        assert rule.why.strip(), rule.id
        assert rule.fix.strip(), rule.id
        assert rule.title.strip(), rule.id


def test_rule_and_level_are_stamped_on():
    rule = Rule(id="SKY-IAM-201", level=Level.CRITICAL, why="w", fix="f", check=lambda _: iter([finding()]))
    (made,) = rule.judge(Audited())
    assert (made.rule, made.level) == ("SKY-IAM-201", Level.CRITICAL)


def test_the_code_gives_the_title():
    rule = Rule(id="SKY-IAM-216", level=Level.CRITICAL, why="w", fix="f", check=lambda _: iter(()))
    assert rule.title == "administrator"


def test_worst_comes_first_and_each_once(monkeypatch):
    low = Rule(id="SKY-IAM-109", level=Level.LOW, why="w", fix="f", check=lambda _: iter([finding(), finding()]))
    bad = Rule(id="SKY-IAM-216", level=Level.CRITICAL, why="w", fix="f", check=lambda _: iter([finding()]))
    monkeypatch.setattr(registry, "_gathered", lambda: {"SKY-IAM-109": low, "SKY-IAM-216": bad})
    assert [made.rule for made in run(Audited())] == ["SKY-IAM-216", "SKY-IAM-109"]
    assert [made.rule for made in run(Audited(), ["SKY-IAM-109"])] == ["SKY-IAM-109"]


def test_an_unknown_rule_is_an_error():
    with pytest.raises(KeyError):
        run(Audited(), ["SKY-IAM-999"])


def test_nothing_to_audit_gives_nothing():
    assert run(Audited()) == ()
