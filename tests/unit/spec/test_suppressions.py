"""Findings of the audit are accepted in skyplan.yaml alone, with a reason and an end; a job file cannot."""

from __future__ import annotations

import pytest

from planner.model.project import Project, Suppression
from planner.spec.job import parse_jobs
from planner.spec.project import parse_project
from tests.unit.spec.spec_words import WORDS

JOB = """
name: train
resources: {accelerators: "A100-80GB:8"}
work: {hours: 24, on: "A100-80GB:8"}
run: python train.py
"""


def project(rule: str, **fields: str) -> str:
    named = {"reason": "reviewed in ML-12", "expires": "2027-01-01"} | fields
    lines = "".join(f"\n      {key}: {value}" for key, value in named.items() if value)
    return f"project: acme\niam:\n  suppressions:\n    - rule: {rule}{lines}\n"


def codes(text: str) -> list[tuple[str, int]]:
    return [(d.code, d.location.line) for d in parse_project(text, "skyplan.yaml", WORDS)[1] if d.location]


def test_a_suppression_is_read_with_its_glob() -> None:
    found, problems = parse_project(project("SKY-IAM-301", grant="'acc-train--* node-data/*'"), "skyplan.yaml", WORDS)
    assert problems == ()
    assert found.suppressions == (
        Suppression(
            rule="SKY-IAM-301", reason="reviewed in ML-12", expires="2027-01-01", grant="acc-train--* node-data/*"
        ),
    )


@pytest.mark.parametrize("rule", ["SKY-IAM-999", "SKY-IAM-901", "SKY-IAM-902", "SKY-IAM-904", "SKY-APPLY-301", "all"])
def test_only_rules_that_there_are_can_be_accepted(rule: str) -> None:
    assert codes(project(rule)) == [("SKY-SPEC-105", 4)]


@pytest.mark.parametrize(("field", "code"), [("reason", "SKY-SPEC-103"), ("expires", "SKY-SPEC-103")])
def test_reason_and_end_are_mandatory(field: str, code: str) -> None:
    assert codes(project("SKY-IAM-301", **{field: ""})) == [(code, 4)]


@pytest.mark.parametrize("key", ["iam", "suppressions"])
@pytest.mark.parametrize("where", ["", "constraints: {max_usd_total: 100, %s}\n"])
def test_a_job_file_cannot_accept_anything(key: str, where: str) -> None:
    line = f"{key}: [{{rule: SKY-IAM-301, reason: x, expires: 2027-01-01}}]"
    text = JOB + (where % line if where else line + "\n")
    _, problems = parse_jobs(text, "job.yaml", WORDS, Project())
    assert [d.code for d in problems if d.severity.value == "error"] == ["SKY-SPEC-102"]
