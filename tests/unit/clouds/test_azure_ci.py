"""Azure from a CI job: whence the token comes, and that a job without one is left to the usual credentials."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from planner.clouds import azure_ci
from planner.clouds.azure_ci import AUDIENCE, ci_credential
from planner.model.errors import CloudError, PermissionDenied

pytest.importorskip("azure.identity")
CLIENT, TENANT, KEY = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000", "job-key"
BASE = {"ARM_USE_OIDC": "true", "ARM_TENANT_ID": TENANT}


@pytest.fixture
def made(monkeypatch):
    """What azure-identity is made with."""
    import azure.identity

    monkeypatch.setattr(azure.identity, "ClientAssertionCredential", lambda *given: given)
    return lambda environment: ci_credential(CLIENT, environment)


@pytest.fixture
def ci():
    """A CI's token service on loopback: `answer` is (status, body), `asked` what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            owner = self.server
            owner.asked.append((urlsplit(self.path).query, self.headers["Authorization"]))
            status, body = owner.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.answer = [], (200, b"")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def github(ci):
    url = f"http://127.0.0.1:{ci.server_address[1]}/token?api-version=2.0"
    return {**BASE, "ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": KEY}


def test_each_token_is_asked_for_anew(made, ci):
    tenant, client, token = made(github(ci))
    assert (tenant, client) == (TENANT, CLIENT)
    assert ci.asked == []
    for said in ("one", "two"):
        ci.answer = (200, json.dumps({"value": said}).encode())
        assert token() == said
    for query, key in ci.asked:
        assert parse_qs(query) == {"api-version": ["2.0"], "audience": [AUDIENCE]}
        assert key == f"Bearer {KEY}"


def test_other_names_of_the_same_win(made, ci):
    environment = github(ci)
    url = environment.pop("ACTIONS_ID_TOKEN_REQUEST_URL")
    other = {"ARM_OIDC_REQUEST_URL": url, "ARM_OIDC_REQUEST_TOKEN": "other"}
    ci.answer = (200, b'{"value": "t"}')
    assert made({**environment, **other})[2]() == "t"
    assert ci.asked[0][1] == "Bearer other"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"ARM_TENANT_ID": TENANT, "ACTIONS_ID_TOKEN_REQUEST_URL": "u", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": KEY},
        {**BASE, "ARM_USE_OIDC": "false", "ARM_OIDC_TOKEN": "t"},
        BASE,
        {**BASE, "ACTIONS_ID_TOKEN_REQUEST_URL": "u"},
    ],
)
def test_where_the_ci_is_not_asked_for_the_usual_credentials_are(made, environment):
    assert made(environment) is None


def test_a_ready_token_and_one_in_a_file_are_taken(made, tmp_path):
    assert made({**BASE, "ARM_OIDC_TOKEN": "ready"})[2]() == "ready"
    file = tmp_path / "token"
    token = made({**BASE, "AZURE_FEDERATED_TOKEN_FILE": str(file)})[2]
    with pytest.raises(PermissionDenied):
        token()
    for said in ("first", "renewed"):
        file.write_text(f"{said}\n", encoding="ascii")
        assert token() == said


def test_without_a_tenant_nothing_is_tried(made):
    with pytest.raises(PermissionDenied, match="tenant"):
        made({"ARM_USE_OIDC": "1", "ARM_OIDC_TOKEN": "t"})


@pytest.mark.parametrize("answer", [(403, b'{"message": "no"}'), (200, b"<html>"), (200, b"{}"), (200, b"[]")])
def test_a_refusal_is_told_without_the_key(made, ci, answer, monkeypatch):
    monkeypatch.setattr(azure_ci, "RETRIES", 0)
    ci.answer = answer
    with pytest.raises(CloudError) as caught:
        made(github(ci))[2]()
    assert KEY not in str(caught.value)


def test_the_lister_takes_the_credential_of_its_role(made, ci, monkeypatch):
    from planner.clouds import azure
    from planner.clouds.port import Where

    for name, value in github(ci).items():
        monkeypatch.setenv(name, value)
    held = []
    monkeypatch.setattr(azure, "session_of", held.append)
    where = Where(cloud="azure", target="prod", region="eastus", account="s", role=CLIENT)
    azure.AzureLister(where)
    assert held[0][:2] == (TENANT, CLIENT)
