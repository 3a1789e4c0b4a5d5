"""Rotating credentials with real SDKs: a day of leases in seconds, the same process and the same client object throughout, and not one failed reading (R02, R03)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from tests.e2e.judges.ministack import Ministack
from tests.e2e.rotation import stage
from tests.emulators.azurite import Azurite
from tests.emulators.gcs import Gcs
from tests.emulators.issuers import rsa_key

ROOT = Path(__file__).parents[2]
ROTATIONS = 25

pytestmark = [
    pytest.mark.skipif(stage.library() is None, reason="no libfaketime here: apt-get install faketime"),
    pytest.mark.usefixtures("socket_enabled"),
    pytest.mark.xdist_group("rotation"),
]


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    file = tmp_path / "clock"
    stage.move(file, 0)
    return file


def node(module: str, *arguments: str, clock: Path) -> dict:
    """The node's side, under the moved clock; what it saw."""
    environment = stage.faked({**os.environ, "PYTHONPATH": str(ROOT)}, clock)
    command = [sys.executable, "-m", module, *arguments, str(clock)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def a_day_went_well(result: dict) -> None:
    assert result["failed"] == []
    assert result["rotations"] >= ROTATIONS
    assert result["pids"], "the job was never started anew"
    assert result["exit"] == 0
    assert set(result["told"]) == {"minted"}
    assert not result["checkpoints"]


@pytest.fixture
def ministack(tmp_path: Path, clock: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = started(lambda: Ministack(tmp_path), clock, monkeypatch)
    yield server.url
    server.close()


def started(begin: Callable[[], Any], clock: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An emulator under the moved clock."""
    with monkeypatch.context() as patch:
        for name, value in stage.faked({}, clock).items():
            patch.setenv(name, value)
        return begin()


def test_boto3_over_a_day(ministack: str, tmp_path: Path, clock: Path) -> None:
    result = node("tests.e2e.rotation.s3", ministack, str(tmp_path / "credentials"), clock=clock)
    a_day_went_well(result)
    # what has ended is refused: by its end, or as unknown once ministack has swept it away
    assert result["frozen"] in {"ExpiredToken", "InvalidAccessKeyId"}
    allowed = {name for name, came in result["stolen"].items() if came == "done"}
    assert allowed == {"mine", "list mine"}, "a stolen lease reads its prefix and does nothing else"
    assert {came for name, came in result["stolen"].items() if name not in allowed} == {"AccessDenied"}
    assert result["minted"] < 2 * 62


def test_a_broker_away_for_three_hours(ministack: str, tmp_path: Path, clock: Path) -> None:
    """The job writes its checkpoint by the lease that still holds, waits, and reads on with the client that it had."""
    away = ("36000", str(36000 + 3 * 3600))
    result = node("tests.e2e.rotation.s3", ministack, str(tmp_path / "credentials"), *away, clock=clock)
    assert result["failed"] == []
    assert sorted(state for state in result["told"] if state != "minted") == ["critical"] * 2 + ["degraded"] * 2
    assert len(result["checkpoints"]) == 2, "one a grant"
    assert result["pids"]
    assert result["exit"] == 0
    assert result["rotations"] >= 20


def test_google_cloud_storage_over_a_day(tmp_path: Path, clock: Path) -> None:
    """Case 16: the client's token ends every hour, and its `external_account` file brings it the next from the node."""
    pytest.importorskip("google.cloud.storage")
    server = Gcs(tmp_path)
    try:
        result = node("tests.e2e.rotation.gcs", server.url, str(tmp_path / "credentials"), clock=clock)
    finally:
        server.close()
    a_day_went_well(result)
    assert result["exchanges"] == result["minted"], "google-auth's own downscoping, once a lease"
    assert result["frozen"] == 401, "the gate refuses what has ended"
    assert not [row for row in result["refused"] if "POST" in row], "and nothing of the job's"
    assert result["stolen"] == {"mine": 200, "other": 403, "list mine": 200, "list all": 403, "buckets": 403}


def test_azure_storage_blob_over_a_day(tmp_path: Path, clock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("azure.storage.blob")
    certificate, key = self_signed(tmp_path)
    server = started(lambda: Azurite(tmp_path, tls=(certificate, key)), clock, monkeypatch)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    try:
        result = node(
            "tests.e2e.rotation.azure", server.url, str(tmp_path / "credentials"), str(certificate), clock=clock
        )
    finally:
        server.close()
    a_day_went_well(result)
    assert result["frozen"] == 403
    assert result["stolen"] == {"mine": 200, "other": 403, "write": 403, "delete": 403}


def self_signed(folder: Path) -> tuple[Path, Path]:
    """For loopback, longer than any test's clock goes."""
    key = rsa_key("tls")
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return certificate, private
