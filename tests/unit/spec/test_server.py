"""server.yaml: what it may say, every problem at its line, and that the schema and the parser agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from planner.model.server import GOOGLE_ISSUER, GOOGLE_KEYS, Role, ServerSettings
from planner.spec.schema_server import server_schema
from planner.spec.server import parse_server

ROOT = Path(__file__).parents[3]
EXAMPLE = (ROOT / "examples" / "server.yaml").read_text()
SCHEMA = Draft202012Validator(server_schema())


def good(text: str) -> ServerSettings:
    settings, problems = parse_server(text, "server.yaml")
    assert not problems, problems
    assert settings is not None
    assert SCHEMA.is_valid(yaml.safe_load(text))
    return settings


def wrong(text: str) -> list[tuple[str, int]]:
    settings, problems = parse_server(text, "server.yaml")
    assert settings is None
    assert all(p.location and p.location.file == "server.yaml" and p.hint for p in problems)
    return [(p.code, p.location.line if p.location else 0) for p in problems]


def test_the_example() -> None:
    settings = good(EXAMPLE)
    assert settings.listen == ("0.0.0.0", 443)
    assert settings.tls == ("tls/server.pem", "tls/server.key")
    assert settings.identity.audience == settings.url == "https://skyplan.example.com"
    (google,) = settings.identity.gcp
    assert (google.issuer, google.keys_url, google.audience) == (GOOGLE_ISSUER, GOOGLE_KEYS, settings.url)
    assert {i.issuer.split("/")[2] for i in settings.identity.azure} == {"sts.windows.net", "login.microsoftonline.com"}
    assert {i.audience for i in settings.identity.azure} == {"api://skyplan"}
    assert settings.people is not None
    assert settings.people.audience == "skyplan"
    assert [b.role for b in settings.people.bindings] == [Role.OPERATOR, Role.VIEWER, Role.AUDITOR]
    assert settings.people.bindings[1].jobs == ("llama-*",)
    assert dict(settings.rates) == {"join": 1.0, "node": 20.0, "people": 20.0}


def test_the_least_is_for_this_machine_alone() -> None:
    settings = good("url: http://127.0.0.1:8443\n")
    assert settings.listen == ("127.0.0.1", 8443)
    assert (settings.tls, settings.people, settings.broker_url) == (None, None, None)
    assert settings.identity.one_time
    assert not settings.identity.gcp


PEOPLE = "people: {issuer: https://i.example.com, client_id: c, bindings: [{claim: g, value: v, role: viewer}]}\n"
BASE = "url: http://127.0.0.1\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [("SKY-SPEC-104", 1)]),
        ("- x\n", [("SKY-SPEC-104", 1)]),
        ("{}\n", [("SKY-SPEC-103", 1)]),
        ("url: http://skyplan.example.com\n", [("SKY-SPEC-105", 1)]),
        ("url: https://user:hunter2@x.example.com\n" + PEOPLE, [("SKY-SPEC-105", 1)]),
        ("url: https://skyplan.example.com\n", [("SKY-RUN-520", 1)]),
        ("url: https://x.example.com/path\n" + PEOPLE, [("SKY-SPEC-105", 1)]),
        (BASE + "listen: 0.0.0.0:80\n", [("SKY-RUN-520", 2), ("SKY-RUN-520", 2)]),
        (BASE + "listen: 0.0.0.0:80\n" + PEOPLE, [("SKY-RUN-520", 2)]),
        (BASE + "listen: '[::]:80'\ntls: {certificate: c, key: k}\n", [("SKY-RUN-520", 2)]),
        (BASE + "listen: 8080\n", [("SKY-SPEC-105", 2)]),
        (BASE + "listen: 127.0.0.1:70000\n", [("SKY-SPEC-105", 2)]),
        (BASE + "tls: {certificate: c}\n", [("SKY-SPEC-103", 2)]),
        (BASE + "tls: {certificate: c, key: k, password: p}\n", [("SKY-SPEC-102", 2)]),
        (BASE + "broker: http://b.example.com\n", [("SKY-SPEC-105", 2)]),
        (BASE + "identity:\n  aws:\n    certificates: {US: x}\n", [("SKY-SPEC-105", 4)]),
        (BASE + "identity:\n  aws: {sts: ['https://x']}\n", [("SKY-SPEC-105", 3)]),
        (BASE + "identity:\n  azure: {tenant: acme}\n", [("SKY-SPEC-105", 3)]),
        (BASE + "identity:\n  nebius: {}\n", [("SKY-SPEC-103", 3)] * 2),
        (BASE + "identity:\n  gcp: {keys_url: http://x.example.com/k}\n", [("SKY-SPEC-105", 3)]),
        (BASE + "identity: {one_time: 'yes'}\n", [("SKY-SPEC-104", 2)]),
        (BASE + "people: {}\n", [("SKY-SPEC-103", 2)] * 3),
        (BASE + PEOPLE.replace("viewer", "admin"), [("SKY-SPEC-105", 2)]),
        (BASE + PEOPLE.replace("role: viewer", "role: viewer, jobs: ['a b']"), [("SKY-SPEC-105", 2)]),
        (BASE + PEOPLE.replace("client_id: c", "client_id: c, scopes: [email]"), [("SKY-SPEC-105", 2)]),
        (BASE + PEOPLE.replace("client_id: c", "client_id: c, client_secret: x"), [("SKY-SPEC-102", 2)]),
        (BASE + "rates: {join: 0}\n", [("SKY-SPEC-105", 2)]),
        (BASE + "rates: {joins: 1}\n", [("SKY-SPEC-102", 2)]),
        (BASE + "---\n" + BASE, [("SKY-SPEC-110", 3)]),
    ],
)
def test_what_is_wrong_is_told_at_its_line(text: str, found: list[tuple[str, int]]) -> None:
    assert wrong(text) == found


def test_no_secret_is_shown() -> None:
    text = BASE + PEOPLE.replace("client_id: c", "client_id: ghp_0123456789abcdefghij0123456789abcdef")
    _, problems = parse_server(text, "server.yaml")
    assert [p.code for p in problems] == ["SKY-SPEC-111"]
    assert "ghp_" not in str(problems)


def test_the_schema_refuses_what_has_another_form() -> None:
    document: dict[str, Any] = yaml.safe_load(EXAMPLE)
    for change in ({"tls": {"certificate": "c"}}, {"more": 1}, {"rates": {"join": 0}}, {"people": {"issuer": "x"}}):
        assert not SCHEMA.is_valid({**document, **change})
