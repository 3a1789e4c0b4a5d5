"""Every rule finds something in each of its failing fixtures, and nothing in the passing ones."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import RULES
from tests.unit.iam.audit.fixture_files import files, judged, load

CASES = [(rule, outcome, path) for rule in RULES for outcome in ("fail", "pass") for path in files(rule, outcome)]


@pytest.mark.parametrize(("rule", "outcome", "path"), CASES, ids=[path.name for _, _, path in CASES])
def test_fixture(rule, outcome, path):
    found = judged(rule, load(path))
    if outcome == "pass":
        assert found == ()
        return
    assert found
    for one in found:
        assert one.rule == rule
        assert one.level is RULES[rule].level
        assert one.message
        assert one.evidence
        assert one.fix


def test_every_rule_has_both():
    without = [(rule, outcome) for rule in RULES for outcome in ("fail", "pass") if not files(rule, outcome)]
    assert without == []
