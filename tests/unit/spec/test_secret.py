"""Secrets are references; what looks like one is refused and never shown."""

from __future__ import annotations

import pytest

from planner.spec.secret import reference, shown
from tests.unit.spec.spec_words import JOB, found, jobs_of, project_of, with_

SECRETS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "hf_" + "abcdefghijklmnopqrstuv",
    "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_" + "0123456789abcdefghijABCD",
    "xoxb-" + "123456789012-abcdef",
    "sk-" + "abcdefghijklmnopqrstuvwx",
    "-----BEGIN " + "RSA PRIVATE KEY-----",
    "postgres://acme:" + "hunter2secret@db.example.com/x",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
]


@pytest.mark.parametrize("value", SECRETS)
@pytest.mark.parametrize(
    "line",
    ["env: {{X: '{}'}}", "secrets: {{X: '{}'}}", "registry_auth: '{}'", "setup: 'login {}'", "tags: {{a: '{}'}}"],
)
def test_what_looks_like_a_secret_is_refused_and_not_shown(line: str, value: str) -> None:
    _, diagnostics = jobs_of(with_(JOB, line.format(value)))
    assert [(d.code, d.location and d.location.line) for d in diagnostics] == [("SKY-SPEC-111", 8)]
    assert value not in str(diagnostics)
    assert value[8:] not in str(diagnostics)


@pytest.mark.parametrize("value", SECRETS)
@pytest.mark.parametrize(
    "line", ["priority: '{}'", "{}: 1", "image: '{}'", "data: '{}'", "constraints: {{clouds: ['{}']}}"]
)
def test_no_message_about_anything_else_shows_one(line: str, value: str) -> None:
    key = '"' + value + '"' if line.startswith("{") else value
    _, diagnostics = jobs_of(with_(JOB, line.format(key)))
    assert diagnostics
    assert value not in str(diagnostics)


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "DB_PASSWORD"])
def test_a_token_under_a_telling_name_is_refused(name: str) -> None:
    value = "0123456789abcdef0123456789abcdef01234567"
    assert found(with_(JOB, "env:", f"  {name}: {value}")) == [("SKY-SPEC-111", 9)]
    assert found(with_(JOB, "env:", f"  GIT_COMMIT: {value}")) == []


@pytest.mark.parametrize(
    "env", ["MAX_TOKENS: 4096", "PAD_TOKEN: <pad>", "MODEL: task-classification-large-v2", "SORT_KEY: name"]
)
def test_ordinary_values_are_no_secrets(env: str) -> None:
    assert found(with_(JOB, f"env: {{{env}}}")) == []


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        "vault://a/b",
        "aws-secretsmanager://",
        "aws-secretsmanager:/a",
        "https://x.example.com/a",
        "",
        "s3://a/b",
    ],
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    assert reference(text, "X") is None
    _, (only,) = jobs_of(with_(JOB, f"secrets: {{X: '{text}'}}"))
    assert only.code == "SKY-SPEC-111"
    assert not text or text not in only.summary
    assert "aws-secretsmanager://acme/hf" in only.hint


@pytest.mark.parametrize(
    "text",
    ["aws-secretsmanager://acme/hf", "gcp-secretmanager://acme/x", "azure-keyvault://v/s", "nebius-mysterybox://m/k"],
)
def test_references_to_all_four_stores_are_read(text: str) -> None:
    ref = reference(text, "X")
    assert ref is not None
    assert f"{ref.store}://{ref.path}" == text


@pytest.mark.parametrize("key", ["access_key", "secret_key", "token", "sas_token", "client_secret", "password"])
def test_a_backend_holds_no_credential(key: str) -> None:
    _, diagnostics = project_of(f"project: acme\nbackend:\n  s3:\n    bucket: b\n    region: r\n    {key}: hunter2\n")
    assert [(d.code, d.location and d.location.line) for d in diagnostics] == [("SKY-SPEC-111", 6)]
    assert "hunter2" not in str(diagnostics)


def test_long_and_unprintable_texts_are_shortened() -> None:
    assert shown("a\x1b[31m" + "b" * 100).startswith("`a?[31mbbb")
    assert len(shown("b" * 100)) == 62
