"""`foundation` in skyplan.yaml: who may become what, and every refusal at its line."""

from __future__ import annotations

import pytest

from planner.model.diagnostic import Severity
from planner.model.project import CiSettings, FoundationSettings
from planner.spec.project import parse_project
from tests.unit.spec.spec_words import WORDS

HEAD = "project: acme\n"
ROLE = "arn:aws:iam::123456789012:role/ci"


def parsed(text):
    project, found = parse_project(HEAD + text, "skyplan.yaml", WORDS)
    return project, [d for d in found if d.severity is Severity.ERROR]


def ci(text):
    return parsed(f"foundation:\n  ci: {{{text}}}\n")


def target(text, cloud="aws"):
    return parsed(f"targets:\n  - name: prod\n    cloud: {cloud}\n    foundation: {{{text}}}\n")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "provider: github, repository: acme/infra, branch: main",
            CiSettings(provider="github", issuer="https://token.actions.githubusercontent.com", repository="acme/infra", branch="main"),
        ),
        (
            "provider: gitlab, issuer: 'https://gitlab.acme.example/', repository: acme/ml/infra, branch: release/1.x, audience: skyplan",
            CiSettings(provider="gitlab", issuer="https://gitlab.acme.example", repository="acme/ml/infra", branch="release/1.x", audience="skyplan"),
        ),
        (
            "provider: other, issuer: https://ci.acme.example, audience: a, pull_request_subject: 'p:1', branch_subject: 'b:1'",
            CiSettings(provider="other", issuer="https://ci.acme.example", audience="a", pull_request_subject="p:1", branch_subject="b:1"),
        ),
    ],
)  # fmt: skip
def test_the_ci_is_read(text, wanted):
    project, errors = ci(text)
    assert errors == []
    assert project.ci == wanted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("provider: jenkins", "SKY-SPEC-105"),
        ("repository: acme/infra, branch: main", "SKY-SPEC-103"),
        ("provider: github, branch: main", "SKY-SPEC-103"),
        ("provider: github, repository: acme/infra", "SKY-SPEC-103"),
        ("provider: github, repository: 'acme/*', branch: main", "SKY-SPEC-105"),
        ("provider: github, repository: '*', branch: main", "SKY-SPEC-105"),
        ("provider: github, repository: acme/infra, branch: '*'", "SKY-SPEC-105"),
        ("provider: github, repository: acme/infra, branch: 'main:x'", "SKY-SPEC-105"),
        ("provider: github, repository: acme/infra, branch: main, issuer: 'http://x'", "SKY-SPEC-105"),
        ("provider: github, repository: acme/infra, branch: main, audience: '*'", "SKY-SPEC-105"),
        ("provider: github, repository: acme/infra, branch: main, branch_subject: b", "SKY-SPEC-102"),
        ("provider: other, issuer: https://x, audience: a, branch_subject: b", "SKY-SPEC-103"),
        ("provider: other, issuer: https://x, audience: a, branch_subject: b, pull_request_subject: b", "SKY-SPEC-113"),
        ("provider: other, issuer: https://x, audience: a, branch_subject: 'b*', pull_request_subject: p", "SKY-SPEC-105"),
    ],
)  # fmt: skip
def test_a_ci_that_is_not_whole_or_too_wide_is_refused_at_its_line(text, code):
    project, errors = ci(text)
    assert [error.code for error in errors] in ([code], [code, code])
    assert errors[0].location
    assert errors[0].location.line in {2, 3}
    if code != "SKY-SPEC-113" and "branch_subject: b" not in text:
        assert project.ci is None


def test_who_is_trusted_is_read_in_order():
    project, errors = target(f"trusted: {{orchestrator: ['{ROLE}2', '{ROLE}'], planner: '{ROLE}'}}, tag_keys: [team]")
    assert errors == []
    assert project.targets[0].foundation == FoundationSettings(
        trusted=(("planner", ROLE), ("orchestrator", ROLE), ("orchestrator", f"{ROLE}2")), tag_keys=("team",)
    )


@pytest.mark.parametrize(
    ("cloud", "identity", "who"),
    [
        ("aws", "deployer", "*"),
        ("aws", "deployer", "arn:aws:iam::123456789012:root"),
        ("aws", "deployer", "123456789012"),
        ("aws", "deployer", "arn:aws:iam::123456789012:role/*"),
        ("aws", "deployer", "deployer"),
        ("aws", "planner", "deployer"),
        ("aws", "orchestrator", "deployer"),
        ("gcp", "deployer", "allUsers"),
        ("gcp", "deployer", "allAuthenticatedUsers"),
        ("gcp", "deployer", "domain:acme.example"),
        ("gcp", "orchestrator", "deployer"),
        ("azure", "deployer", "someone"),
        ("nebius", "deployer", "*"),
    ],
)
def test_nobody_wide_is_trusted(cloud, identity, who):
    project, errors = target(f"trusted: {{{identity}: ['{who}']}}", cloud)
    assert [error.code for error in errors] == ["SKY-SPEC-105"]
    assert errors[0].location
    assert errors[0].location.line == 5
    assert project.targets[0].foundation == FoundationSettings()


@pytest.mark.parametrize(
    ("cloud", "who"),
    [
        ("gcp", "group:platform@acme.example"),
        ("azure", "00000000-0000-0000-0000-00000000000a"),
        ("nebius", "serviceaccount-e00acme"),
    ],
)
def test_each_cloud_names_people_its_way(cloud, who):
    project, errors = target(f"trusted: {{deployer: ['{who}']}}", cloud)
    assert errors == []
    assert project.targets[0].foundation == FoundationSettings(trusted=(("deployer", who),))


@pytest.mark.parametrize(
    "text", ["trusted: {node: [x]}", "surprise: 1", "ci_provider: arn:aws:iam::123456789012:role/x"]
)
def test_what_is_not_known_is_refused(text):
    assert target(text)[1]


@pytest.mark.parametrize("text", ["tag_keys: [x]", "state_account: '123456789012'"])
def test_settings_of_aws_are_unknown_elsewhere(text):
    assert [error.code for error in target(text, "gcp")[1]] == ["SKY-SPEC-102"]


@pytest.mark.parametrize("text", ["'012345678901'", "012345678901"])
def test_whose_bucket_keeps_the_state_is_read_as_it_is_written(text):
    project, errors = target(f"state_account: {text}")
    assert errors == []
    assert project.targets[0].foundation == FoundationSettings(state_account="012345678901")


@pytest.mark.parametrize("text", ["acme", "'*'", "12345678901", "arn:aws:iam::123456789012:root"])
def test_whose_bucket_is_twelve_digits(text):
    project, errors = target(f"state_account: {text}")
    assert [error.code for error in errors] == ["SKY-SPEC-105"]
    assert project.targets[0].foundation == FoundationSettings()
