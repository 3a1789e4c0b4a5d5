"""`control_plane` of the project file: where nodes report, and who mints their credentials; `broker_role` of a target."""

from __future__ import annotations

import pytest

from planner.model.project import ControlPlane
from tests.unit.spec.spec_words import project_of

FILE = """\
project: acme
control_plane:
  url: https://skyplan.example.com/
  ca_file: /etc/ssl/acme.pem
  broker: https://broker.example.com
agent: {url: "https://skyplan.example.com/agent.pyz", sha256: "abababababababababababababababababababababababababababababababab"}
targets:
  - {name: prod, cloud: aws, broker_role: "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-broker"}
  - {name: prod, cloud: gcp, broker_role: broker@acme-ml.iam.gserviceaccount.com}
"""


def test_it_is_read() -> None:
    project, problems = project_of(FILE)
    assert problems == ()
    assert project.control_plane == ControlPlane(
        url="https://skyplan.example.com", ca_file="/etc/ssl/acme.pem", broker="https://broker.example.com"
    )
    assert project.broker == "https://broker.example.com"
    assert [target.broker_role for target in project.targets] == [
        "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-broker",
        "broker@acme-ml.iam.gserviceaccount.com",
    ]


def test_without_a_broker_nothing_is_minted() -> None:
    project, problems = project_of(FILE.replace("  broker: https://broker.example.com\n", ""))
    assert problems == ()
    assert project.control_plane is not None
    assert project.broker is None
    assert project_of("project: acme\n")[0].broker is None


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("https://skyplan.example.com/\n", "http://skyplan.example.com/\n", "SKY-SPEC-105", 3),
        ("https://skyplan.example.com/\n", "https://user:pass@skyplan.example.com/\n", "SKY-SPEC-105", 3),
        ("https://broker.example.com", "http://broker.example.com", "SKY-SPEC-105", 5),
        ("https://broker.example.com", "https://broker.example.com:8443", "SKY-SPEC-105", 5),
        ("/etc/ssl/acme.pem", "ca.pem", "SKY-SPEC-105", 4),
        ("/etc/ssl/acme.pem", "/etc/../ca.pem", "SKY-SPEC-105", 4),
        ("  url: https://skyplan.example.com/", "  # no url", "SKY-SPEC-103", 4),
        ("  broker:", "  brokers:", "SKY-SPEC-102", 5),
        ("agent: {", "tags: {", "SKY-SPEC-103", 1),
        ("123456789012:role/", "123456789012:user/", "SKY-SPEC-105", 8),
    ],
)
def test_what_is_wrong_is_named_at_its_line(old: str, new: str, code: str, line: int) -> None:
    _, problems = project_of(FILE.replace(old, new))
    assert (code, line) in [(d.code, d.location and d.location.line) for d in problems], problems
    assert "pass@" not in str(problems)


AZURE = FILE + "  - {name: prod, cloud: azure}\n"
NAMED = AZURE.replace(
    "  broker: ", "  azure_audience: api://skyplan\n  azure_broker_audience: api://skyplan-broker\n  broker: "
)


def test_azures_nodes_are_told_for_which_applications_their_tokens_are() -> None:
    project, problems = project_of(NAMED)
    assert problems == ()
    assert project.control_plane is not None
    assert project.control_plane.azure_audience == "api://skyplan"
    assert project.control_plane.azure_broker_audience == "api://skyplan-broker"


@pytest.mark.parametrize(
    ("text", "words", "code", "line"),
    [
        (AZURE, "azure_audience", "SKY-SPEC-103", 3),
        (AZURE, "azure_broker_audience", "SKY-SPEC-103", 3),
        (FILE[: FILE.index("targets:")], "azure_audience", "SKY-SPEC-103", 3),  # one target of each cloud then stands
        (NAMED.replace("api://skyplan-broker", "api://skyplan"), "one audience for both", "SKY-SPEC-105", 6),
        (NAMED.replace("api://skyplan-broker", "api skyplan"), "azure_broker_audience", "SKY-SPEC-105", 6),
    ],
)
def test_an_audience_of_azure_that_is_missing_or_wrong(text: str, words: str, code: str, line: int) -> None:
    _, problems = project_of(text)
    found = [d for d in problems if d.code == code and words in d.summary]
    assert [d.location and d.location.line for d in found] == [line], problems


def test_no_broker_needs_no_audience() -> None:
    without = NAMED.replace("  broker: https://broker.example.com\n", "").replace(
        "  azure_broker_audience: api://skyplan-broker\n", ""
    )
    assert project_of(without)[1] == ()
