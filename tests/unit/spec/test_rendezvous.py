"""`rendezvous` of the project file: where nodes in several clouds meet, and with which secret."""

from __future__ import annotations

import pytest

from planner.model.project import Rendezvous
from planner.model.workload import SecretRef
from tests.unit.spec.spec_words import project_of

FILE = """\
project: acme
rendezvous:
  url: https://meet.example.com/
  secrets: {aws: aws-secretsmanager://acme/join, gcp: gcp-secretmanager://acme-ml/join}
"""


def test_it_is_read() -> None:
    project, problems = project_of(FILE)
    assert problems == ()
    assert project.rendezvous == Rendezvous(
        url="https://meet.example.com",
        secrets=(
            ("aws", SecretRef(env="SKYPLAN_JOIN_SECRET", store="aws-secretsmanager", path="acme/join")),
            ("gcp", SecretRef(env="SKYPLAN_JOIN_SECRET", store="gcp-secretmanager", path="acme-ml/join")),
        ),
    )
    assert project.rendezvous.secret("azure") is None


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("https://meet.example.com/", "https://user:pass@meet.example.com/", "SKY-SPEC-105", 3),
        ("https://meet.example.com/", "meet.example.com", "SKY-SPEC-105", 3),
        ("https://meet.example.com/", "https://meet.example.com:8443", "SKY-SPEC-105", 3),
        ("url: https://meet.example.com/", "# no url", "SKY-SPEC-103", 4),
        ("aws-secretsmanager://acme/join", "hunter2", "SKY-SPEC-111", 4),
        ("{aws:", "{oracle:", "SKY-SPEC-102", 4),
        ("  secrets:", "  secret:", "SKY-SPEC-102", 4),
    ],
)
def test_what_is_wrong_is_named_at_its_line(old: str, new: str, code: str, line: int) -> None:
    _, problems = project_of(FILE.replace(old, new))
    assert (code, line) in [(d.code, d.location and d.location.line) for d in problems], problems
    assert "hunter2" not in str(problems)
    assert "pass@" not in str(problems)
