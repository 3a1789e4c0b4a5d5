"""Azure leases by the real SDK on Azurite: what a flat account is refused, and that a directory's signature opens nothing where directories are no more than names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("azure.storage.blob")

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient

from planner.clouds.mint.azure import AzureMinter
from planner.clouds.mint.port import Order, Scope, TooWide
from planner.model.errors import Unavailable
from tests.e2e.rotation.azure import Identity
from tests.e2e.test_rotation import self_signed
from tests.emulators.azurite import ACCOUNT, Azurite

pytestmark = pytest.mark.usefixtures("socket_enabled")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    certificate, key = self_signed(tmp_path)
    server = Azurite(tmp_path, tls=(certificate, key))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    with BlobServiceClient(server.url, credential=Identity()) as service:
        for container in ("ckpt", "data"):
            service.create_container(container)
            service.get_blob_client(container, "train/a").upload_blob(b"a")
    yield server.url
    server.close()


def order(*, container: str = "data", reads: tuple[str, ...] = ("",), writes: tuple[str, ...] = ()) -> Order:
    scope = Scope(store="az", bucket=f"{ACCOUNT}/{container}", reads=reads, writes=writes)
    now = datetime.now(UTC)
    return Order(scope=scope, identity=ACCOUNT, name="lease-1", lifetime_seconds=1800, now=now)


def status(ask) -> int:
    try:
        ask()
    except HttpResponseError as error:
        return error.status_code or 0
    return 200


def test_a_flat_account_says_so_and_is_not_cut(url: str) -> None:
    minter = AzureMinter(credential=Identity(), endpoint=url)
    for change in ({"reads": ("train/",)}, {"writes": ("g3/",)}, {"reads": ("ckpt/",), "writes": ("ckpt/g3/",)}):
        with pytest.raises(TooWide, match="no hierarchical namespace"):
            minter.mint(order(**change))


def test_a_whole_container_is_read_and_nothing_else(url: str) -> None:
    made = AzureMinter(credential=Identity(), endpoint=url).mint(order())
    with ContainerClient(url, "data", credential=made.secret["sas"]) as mine:
        assert mine.download_blob("train/a").readall() == b"a"
        assert [b.name for b in mine.list_blobs()] == ["train/a"]
        assert status(lambda: mine.upload_blob("train/x", b"")) == 403
        assert status(lambda: mine.delete_blob("train/a")) == 403
        assert status(mine.delete_container) == 403
    with ContainerClient(url, "ckpt", credential=made.secret["sas"]) as other:
        assert status(lambda: other.download_blob("train/a").readall()) == 403


def test_a_lease_that_has_ended_opens_nothing(url: str) -> None:
    minter = AzureMinter(credential=Identity(), endpoint=url)
    past = replace(order(), now=datetime.now(UTC) - timedelta(minutes=31))
    made = minter.mint(past)
    with ContainerClient(url, "data", credential=made.secret["sas"]) as late:
        assert status(lambda: late.download_blob("train/a").readall()) == 403


def test_an_account_wrongly_called_hierarchical_gives_nothing_wider(url: str) -> None:
    made = AzureMinter(known=[ACCOUNT], credential=Identity(), endpoint=url).mint(order(writes=("train/g3/",)))
    with ContainerClient(url, "data", credential=made.secret["sas"]) as thief:
        assert status(lambda: thief.download_blob("train/a").readall()) == 403
        assert status(lambda: thief.upload_blob("train/g2/x", b"")) == 403
        assert status(lambda: thief.upload_blob("x", b"")) == 403


def test_a_store_that_is_away_is_unavailable(tmp_path: Path) -> None:
    minter = AzureMinter(credential=Identity(), endpoint="https://127.0.0.1:1/acct", options={"retry_total": 0})
    with pytest.raises(Unavailable):
        minter.mint(order())
