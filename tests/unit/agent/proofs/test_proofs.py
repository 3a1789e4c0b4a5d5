"""Proofs of identity: made on emulated metadata services, judged by the verifiers that the control plane uses and by botocore."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from modules.agent import proofs
from modules.agent.proofs import NoAnswer, aws, metadata
from planner.model.runtime import Refused
from planner.model.server import IdentityTrust, TokenIssuer
from planner.server.identity import verifiers
from planner.server.identity.port import Answer
from tests.emulators.imds import Metadata
from tests.emulators.issuers import GOOGLE, MICROSOFT, SUBSCRIPTION

US = "https://plane.example"


@pytest.fixture
def imds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    with Metadata() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def judge(imds: Metadata, made: dict, audience: str = US):
    """As the control plane does, with the emulator's keys."""

    def fetch(asked):
        if "sts." in asked.url:
            status, body = imds.sts.answer(asked.url, dict(asked.headers), asked.body, datetime.now(UTC))
            return Answer(status=status, body=body)
        signer = imds.google if "google" in asked.url else imds.microsoft
        return Answer(status=200, body=json.dumps(signer.keys).encode())

    trust = IdentityTrust(
        audience=audience,
        aws_certificates=(("us-east-1", imds.documents.certificate),),
        aws_sts=("sts.*.amazonaws.com",),
        gcp=(TokenIssuer(issuer=GOOGLE, keys_url="https://google.example/keys", audience=audience),),
        azure=(TokenIssuer(issuer=MICROSOFT, keys_url="https://microsoft.example/keys", audience=audience),),
    )
    found = verifiers(trust, fetch=fetch)
    return found[made["scheme"]].verify(json.loads(json.dumps(made["value"])), datetime.now(UTC))


def test_aws_by_the_instance_role(imds: Metadata) -> None:
    found = judge(imds, proofs.proof("aws", US))
    assert (found.scheme, found.account, found.instance_id) == ("aws-sts", "111122223333", "i-0123456789abcdef0")
    assert found.principal == "arn:aws:iam::111122223333:role/job-train"
    assert imds.sts.asked == 1


def test_an_aws_proof_for_another_is_none_for_us(imds: Metadata) -> None:
    made = proofs.proof("aws", "https://evil.example")
    with pytest.raises(Refused):
        judge(imds, made)
    made["value"]["headers"][aws.AUDIENCE_HEADER] = US
    with pytest.raises(Refused, match="STS"):
        judge(imds, made)


def test_aws_by_its_document_where_it_has_no_role(imds: Metadata) -> None:
    imds.role = None
    found = judge(imds, proofs.proof("aws", US))
    assert (found.scheme, found.instance_id, found.where) == ("aws-iid", "i-0123456789abcdef0", "us-east-1")


def test_each_aws_exchange_has_a_session_and_keys_of_its_own(imds: Metadata) -> None:
    """Case 17 of the notes: a session that was kept has run out when the next proof is made."""
    now = 1_793_000_000.0
    imds.clock = lambda: now
    first = aws.caller(US, now=now)
    now += 7 * 3600
    second = aws.caller(US, now=now)
    assert first["value"]["headers"] != second["value"]["headers"]
    assert sum("api/token" in path for path in imds.paths) == 2
    assert min(imds.sessions.values()) < now < max(imds.sessions.values())


def test_gcp(imds: Metadata) -> None:
    found = judge(imds, proofs.proof("gcp", US))
    assert (found.account, found.instance_id, found.where) == ("acme-gpu", "train-g3-r0", "us-central1-a")
    with pytest.raises(Refused):
        judge(imds, proofs.proof("gcp", "https://evil.example"))


def test_azure(imds: Metadata) -> None:
    found = judge(imds, proofs.proof("azure", "api://skyplan"), "api://skyplan")
    assert (found.account, found.instance_id) == (SUBSCRIPTION, "train-g3-r0")
    assert found.principal.endswith("/job-train")


def test_nebius_reads_its_file_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    monkeypatch.setenv("SKYPLAN_NEBIUS_TOKEN_FILE", str(file))
    with pytest.raises(NoAnswer):
        proofs.proof("nebius", US)
    for text in ("one", "two"):
        file.write_text(text + "\n")
        assert proofs.proof("nebius", US) == {"scheme": "nebius-jwt", "value": text}


def test_a_proxy_of_the_environment_sees_nothing(imds: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert proofs.proof("gcp", US)["scheme"] == "gcp-jwt"


def test_what_is_not_google_does_not_answer_for_it(imds: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imds, "_gcp", lambda _path, _query: (200, "eyJ", {}))
    with pytest.raises(NoAnswer):
        proofs.proof("gcp", US)


def test_there_is_no_answer_where_there_is_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(NoAnswer, match="no answer"):
        proofs.proof("aws", US)
    with pytest.raises(NoAnswer):
        proofs.proof("elsewhere", US)


def test_an_error_shows_neither_keys_nor_audience(imds: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imds.sts, "give", lambda _role, **_: {"SecretAccessKey": "hunter2"})
    with pytest.raises(NoAnswer) as error:
        proofs.proof("aws", US)
    assert "hunter2" not in str(error.value)
    with pytest.raises(NoAnswer) as error:
        metadata.azure("nothing?resource=hunter2")
    assert str(error.value).endswith("HTTP 404")
    assert "hunter2" not in str(error.value)
