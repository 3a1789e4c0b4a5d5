"""The platform's own credentials, from emulated metadata services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from modules.agent.ckpt.errors import CredentialRefused, StoreError
from modules.agent.ckpt.platform import MARGIN_SECONDS, platform
from tests.emulators.imds import Metadata


@pytest.fixture
def imds(socket_enabled: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    with Metadata() as service:
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)
        yield service


@pytest.mark.parametrize(
    ("scheme", "shape", "names"),
    [
        ("s3", "aws", {"access_key_id", "secret_access_key", "session_token"}),
        ("gs", "gcp", {"access_token"}),
        ("az", "azure", {"access_token"}),
    ],
)
def test_is_kept_and_replaced_near_its_end_or_when_refused(
    imds: Metadata, scheme: str, shape: str, names: set[str]
) -> None:
    now = [0.0]
    credential = platform(scheme, steady=lambda: now[0])
    first: Any = credential("read", "")
    assert set(first[shape]) == names
    assert all(first[shape].values())
    assert credential("write", "")["id"] == first["id"]
    second = credential("write", str(first["id"]))
    assert second["id"] != first["id"]
    now[0] = 100_000.0 - MARGIN_SECONDS
    assert credential("read", "")["id"] not in {first["id"], second["id"]}


def test_a_platform_that_does_not_answer_is_a_credential_failure(
    monkeypatch: pytest.MonkeyPatch, socket_enabled: None
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(CredentialRefused, match="no credential"):
        platform("s3")("read", "")


def test_nebius_lends_nodes_nothing() -> None:
    with pytest.raises(StoreError, match="takes a broker"):
        platform("nebius")
