"""Findings that the platform team accepts, with reason and end."""

from __future__ import annotations

import pytest

from planner.app.audit_accept import accept
from planner.model.diagnostic import Location, Severity
from tests.unit.app.auditing import (
    NOW,
    finding,
    suppression,
)


def test_an_accepted_finding_carries_its_reason() -> None:
    (found,), told = accept([finding()], [suppression(grant="ci")], NOW)
    assert (found.accepted, told) == ("ML-12, until 2027-01-01", ())


@pytest.mark.parametrize("given", [{}, {"grant": "*"}])
def test_a_suppression_that_names_no_grant_is_a_warning_at_its_line(given: dict[str, str]) -> None:
    (found,), (told,) = accept([finding()], [suppression(**given)], NOW, [Location("skyplan.yaml", 4, 5)])
    assert found.accepted
    assert (told.code, told.severity, told.location) == (
        "SKY-IAM-905",
        Severity.WARNING,
        Location("skyplan.yaml", 4, 5),
    )


@pytest.mark.parametrize(
    ("grant", "accepted"),
    [
        ("*", True),
        ("main aws_iam_role.ci", True),
        ("main *", True),
        ("main aws_iam_role.ci all/Every*", True),
        ("ci", True),
        ("main aws_iam_role.ci all/Other", False),
        ("main aws_iam_role.c", False),
        ("MAIN *", False),
        ("[m]ain *", False),
    ],
)
def test_the_glob_is_over_place_and_identity(grant: str, accepted: bool) -> None:
    (found,), told = accept([finding()], [suppression(grant=grant)], NOW)
    assert bool(found.accepted) is accepted
    assert [d.code for d in told if d.code != "SKY-IAM-905"] == ([] if accepted else ["SKY-IAM-904"])


@pytest.mark.parametrize("grant", ['plan.json aws_iam_role.r["a.b"]', 'plan.json aws_iam_role.r["a.?"] *'])
def test_brackets_of_an_address_are_themselves(grant: str) -> None:
    (found,), told = accept([finding(origin='plan.json aws_iam_role.r["a.b"]')], [suppression(grant=grant)], NOW)
    assert (bool(found.accepted), told) == (True, ())


def test_another_rules_finding_is_not_accepted() -> None:
    (found,), _ = accept([finding()], [suppression(rule="SKY-IAM-301")], NOW)
    assert not found.accepted


@pytest.mark.parametrize("expires", ["2026-11-30", "2026-11-29T23:59:59Z", "2020-01-01"])
def test_an_expired_suppression_accepts_nothing_and_is_an_error(expires: str) -> None:
    (found,), (told,) = accept([finding()], [suppression(expires=expires)], NOW, [Location("skyplan.yaml", 9)])
    assert not found.accepted
    assert (told.code, told.severity, str(told.location)) == ("SKY-IAM-901", Severity.ERROR, "skyplan.yaml:9")


def test_one_second_before_its_end_a_suppression_holds() -> None:
    (found,), told = accept([finding()], [suppression(expires="2026-11-30T00:00:01Z", grant="ci")], NOW)
    assert found.accepted
    assert not told


def test_a_dead_suppression_is_a_warning_at_its_line() -> None:
    _, (told,) = accept([], [suppression()], NOW, [Location("skyplan.yaml", 4, 5)])
    assert (told.code, told.severity, told.location) == (
        "SKY-IAM-904",
        Severity.WARNING,
        Location("skyplan.yaml", 4, 5),
    )
