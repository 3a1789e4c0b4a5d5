"""The agent's stores against the emulators of the clouds: one contract for all, then what each refuses.

ministack judges signatures, session tokens and policies of S3; Azurite signatures, rights and expiry of shared access signatures; fake-gcs-server knows no identities.
"""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from modules.agent.ckpt.azure import AzureStore
from modules.agent.ckpt.errors import Absent, CredentialRefused, Exists, StoreError
from modules.agent.ckpt.gcs import GcsStore
from modules.agent.ckpt.local import LocalStore
from modules.agent.ckpt.resume import resume
from modules.agent.ckpt.s3 import S3Store
from modules.agent.ckpt.store import Content, read_small
from modules.agent.ckpt.upload import Uploader
from tests.e2e.judges.ministack import Ministack
from tests.emulators.aws import CREDENTIALS, AwsProcess
from tests.emulators.azurite import ACCOUNT, Azurite, container_sas
from tests.emulators.gcs import Gcs
from tests.unit.agent.ckpt.jobs import Plane, Seat, key, make

pytestmark = [pytest.mark.usefixtures("socket_enabled"), pytest.mark.xdist_group("stores")]
MIB = 1 << 20
ROOT_LEASE = {"id": "root", "aws": {"access_key_id": "test", "secret_access_key": "root", "session_token": ""}}
MOTO_LEASE = {
    "id": "m",
    "nebius": {
        "access_key_id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "secret_access_key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    },
}
Open = Callable[[str], Any]


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    started = Ministack(tmp_path_factory.mktemp("ministack"))
    started.client("s3").create_bucket(Bucket="ckpt")
    yield started
    started.close()


@pytest.fixture(scope="module")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gcs]:
    started = Gcs(tmp_path_factory.mktemp("gcs"))
    started.create_bucket("ckpt")
    yield started
    started.close()


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    started = Azurite(tmp_path_factory.mktemp("azurite"))
    started.create_container("ckpt")
    yield started
    started.close()


def always(lease: dict[str, Any]) -> Callable[[str, str], dict[str, Any]]:
    return lambda access, refused: lease


@pytest.fixture(params=["local", "s3", "nebius", "gs", "az"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """`open_store(prefix)`: a store there; each test has its own part of the bucket."""
    own = uuid4().hex
    made: list[Any] = []

    def kind(prefix: str) -> Any:
        match request.param:
            case "local":
                return LocalStore(f"file://{tmp_path}/{prefix}")
            case "s3":
                url = request.getfixturevalue("ministack").url
                return S3Store(f"s3://ckpt/{own}/{prefix}", always(ROOT_LEASE), region="us-east-1", endpoint=url)
            case "nebius":
                process: AwsProcess = request.getfixturevalue("aws_process")
                lease = {
                    **MOTO_LEASE,
                    "nebius": {**MOTO_LEASE["nebius"], "endpoint": f"http://127.0.0.1:{process.port}"},
                }  # type: ignore[dict-item]
                return S3Store(f"nebius://ckpt/{own}/{prefix}", always(lease))
            case "gs":
                url = request.getfixturevalue("gcs").url
                return GcsStore(
                    f"gs://ckpt/{own}/{prefix}", always({"id": "g", "gcp": {"access_token": "t"}}), endpoint=url
                )
            case _:
                url = request.getfixturevalue("azurite").url
                lease = {"id": "a", "azure": {"sas": container_sas("ckpt", "rwlc")}}
                return AzureStore(f"az://{ACCOUNT}/ckpt/{own}/{prefix}", always(lease), endpoint=url)

    def make(prefix: str) -> Any:
        store = kind(prefix)
        if isinstance(store, S3Store | GcsStore | AzureStore):
            store.part_bytes = 5 * MIB  # S3 takes no smaller part but the last
            store._sleep = lambda seconds: None
        made.append(store)
        return store

    if request.param == "nebius":
        from tests.emulators.aws import Aws

        aws = Aws(request.getfixturevalue("aws_process"))
        aws.client("s3").create_bucket(Bucket="ckpt")
        aws.close()
    yield make
    for store in made:
        if hasattr(store, "close"):
            store.close()


def large(folder: Path, size: int) -> Content:
    path = folder / f"large-{size}"
    with path.open("wb") as opened:
        for n in range(0, size, MIB):
            opened.write(hashlib.sha256(str(n).encode()).digest() * (MIB // 32))
        opened.truncate(size)
    with path.open("rb") as opened:
        return Content(path, size, hashlib.file_digest(opened, "sha256").hexdigest())


class TestContract:
    def test_what_is_put_is_listed_and_read(self, open_store: Open) -> None:
        store = open_store("train/")
        store.put("g1/step-000000000001/a.pt", Content.of(b"hello"))
        store.put("g1/step-000000000001/sub/empty", Content.of(b""))
        store.put("g2/x", Content.of(b"2"))
        listed = [(entry.name, entry.bytes) for entry in store.entries("g1/")]
        assert listed == [("g1/step-000000000001/a.pt", 5), ("g1/step-000000000001/sub/empty", 0)]
        assert read_small(store, "g1/step-000000000001/a.pt", 100) == b"hello"
        assert read_small(store, "g1/step-000000000001/sub/empty", 100) == b""
        with pytest.raises(StoreError, match="more than 3 bytes"):
            read_small(store, "g1/step-000000000001/a.pt", 3)

    def test_names_are_taken_as_they_are(self, open_store: Open) -> None:
        store = open_store("train/")
        names = ["a b", "a+b", "a%20b", "ü/é", "a&b=c", "q?x#y", "~t'(!)*", ".metadata"]
        for name in names:
            store.put(f"g1/{name}", Content.of(name.encode()))
        assert sorted(entry.name for entry in store.entries("g1/")) == sorted(f"g1/{name}" for name in names)
        for name in names:
            assert read_small(store, f"g1/{name}", 100) == name.encode()

    @pytest.mark.parametrize("size", [12 * MIB + 7, 10 * MIB])
    def test_a_large_file_goes_in_parts_and_is_never_held_whole(
        self, open_store: Open, tmp_path: Path, size: int
    ) -> None:
        store, content = open_store("train/"), large(tmp_path, size)
        tracemalloc.start()
        try:
            store.put("g1/large", content)
            hashed, read = hashlib.sha256(), 0
            with store.opened("g1/large") as reader:
                while some := reader.read(1 << 18):
                    hashed.update(some)
                    read += len(some)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (read, hashed.hexdigest()) == (content.bytes, content.sha256)
        assert peak < 5 * MIB
        if not isinstance(
            store, GcsStore
        ):  # fake-gcs-server looks at ifGenerationMatch in uploads at once only; that it is sent: test_object_stores.py
            with pytest.raises(Exists):
                store.put("g1/large", large(tmp_path, size + 1))
        assert [entry.bytes for entry in store.entries("g1/")] == [content.bytes]

    def test_no_name_is_written_twice(self, open_store: Open) -> None:
        store = open_store("train/")
        store.put("g1/m", Content.of(b"first"))
        with pytest.raises(Exists):
            store.put("g1/m", Content.of(b"other"))
        assert read_small(store, "g1/m", 100) == b"first"

    def test_what_is_not_there_is_absent_and_an_empty_prefix_is_empty(self, open_store: Open) -> None:
        store = open_store("train/")
        with pytest.raises(Absent):
            read_small(store, "g1/none", 100)
        assert list(store.entries("g9/")) == []

    def test_a_neighbour_with_the_same_beginning_is_not_listed(self, open_store: Open) -> None:
        open_store("train-2/").put("g1/x", Content.of(b"x"))
        store = open_store("train/")
        store.put("g11/x", Content.of(b"x"))
        assert list(store.entries("g1/")) == []


class TestCheckpoints:
    """The whole way on each store."""

    def test_put_away_listed_and_brought_back(self, open_store: Open, tmp_path: Path) -> None:
        store, told = open_store("train/"), []
        for generation, step in ((1, 100), (1, 200), (2, 150)):
            node = tmp_path / f"n{generation}-{step}"
            node.mkdir()
            make(node, store.uri, Seat(generation), step, files={"model.pt": b"m" * step, "sub/.metadata": b""})
            up = Uploader(store, Seat(generation), lambda *one: told.append(one), folder=node, key=key(generation))
            assert up.once()
        assert [kind for kind, _ in told] == ["checkpoint"] * 3
        store.put("g2/step-000000000900/model.pt", Content.of(b"torn"))
        plane = Plane((1, 2, 3))
        found = resume(store, plane, Seat(3), tmp_path / "here", key=key(3))
        assert found
        assert (found.step, found.generation) == (200, 1)
        assert (found.folder / "model.pt").read_bytes() == b"m" * 200
        assert plane.skipped == [(f"{store.uri}g2/step-000000000900/", "it has no manifest: it was never whole")]

    def test_what_is_altered_in_the_store_is_rejected_for_the_next(self, open_store: Open, tmp_path: Path) -> None:
        store = open_store("train/")
        for step in (100, 200):
            (tmp_path / f"n{step}").mkdir()
            make(tmp_path / f"n{step}", store.uri, Seat(1), step, files={"model.pt": b"m" * step})
            if step == 200:  # another content of the same size came first
                described = tmp_path / "n200" / "step-000000000200"
                store.put("g1/step-000000000200/model.pt", Content.of(b"x" * 200))
                store.put(
                    "g1/step-000000000200/skyplan-checkpoint.json",
                    Content.of((described / "skyplan-checkpoint.json").read_bytes()),
                )
            else:
                assert Uploader(store, Seat(1), lambda *_: None, folder=tmp_path / "n100", key=key(1)).once()
        plane = Plane((1, 2))
        found = resume(store, plane, Seat(2), tmp_path / "here", key=key(2))
        assert found
        assert found.step == 100
        assert plane.skipped == [
            (f"{store.uri}g1/step-000000000200/", "model.pt has another content than its manifest says")
        ]


def test_a_bucket_that_is_not_there_is_no_empty_listing(ministack: Ministack, gcs: Gcs) -> None:
    for store in (
        S3Store("s3://none/t/", always(ROOT_LEASE), region="us-east-1", endpoint=ministack.url),
        GcsStore("gs://none/t/", always({"gcp": {"access_token": "t"}}), endpoint=gcs.url),
    ):
        with pytest.raises(StoreError) as caught:
            list(store.entries("g1/"))
        assert not isinstance(caught.value, Absent)
        store.close()


def test_a_container_that_is_not_there_is_no_empty_listing(azurite: Azurite) -> None:
    lease = {"azure": {"sas": container_sas("none", "rl")}}
    store = AzureStore(f"az://{ACCOUNT}/none/t/", always(lease), endpoint=azurite.url)
    with pytest.raises(StoreError) as caught:
        list(store.entries("g1/"))
    assert not isinstance(caught.value, Absent)
    store.close()


class Leases:
    """Gives the next lease each time one is refused."""

    def __init__(self, *leases: dict[str, Any]) -> None:
        self.left = list(leases)
        self.asked: list[tuple[str, str]] = []

    def __call__(self, access: str, refused: str) -> dict[str, Any]:
        self.asked.append((access, refused))
        if refused and len(self.left) > 1:
            self.left.pop(0)
        return self.left[0]


class TestRefusedCredentials:
    """Case 3 of the public issues: an expired lease is told apart and replaced, whatever status the store gives it."""

    def lease(self, ministack: Ministack, name: str, **cut: Any) -> dict[str, Any]:
        iam, trust = ministack.client("iam"), {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        role = f"data-{uuid4().hex[:8]}"
        arn = iam.create_role(
            RoleName=role, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        )["Role"]["Arn"]
        everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        iam.put_role_policy(
            RoleName=role,
            PolicyName="p",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everything]}),
        )
        policy = {"Policy": json.dumps({"Version": "2012-10-17", "Statement": [cut]})} if cut else {}
        given = ministack.client("sts").assume_role(RoleArn=arn, RoleSessionName="node", **policy)["Credentials"]
        keys = {"access_key_id": given["AccessKeyId"], "secret_access_key": given["SecretAccessKey"]}
        return {"id": name, "aws": {**keys, "session_token": given["SessionToken"]}}

    def test_s3_goes_on_with_a_fresh_lease(self, ministack: Ministack) -> None:
        good = self.lease(ministack, "new")
        bad = {"id": "old", "aws": {**good["aws"], "session_token": "over"}}
        leases = Leases(bad, good)
        store = S3Store(f"s3://ckpt/{uuid4().hex}/", leases, region="us-east-1", endpoint=ministack.url)
        store.put("g1/x", Content.of(b"x"))
        assert store.size("g1/x") == 1
        assert leases.asked[:2] == [("write", ""), ("write", "old")]
        assert leases.asked[2:] == [("read", "")]
        store.close()

    def test_s3_gives_up_as_a_credential_failure(self, ministack: Ministack) -> None:
        bad = {"id": "old", "aws": {"access_key_id": "AKIAOLD", "secret_access_key": "x", "session_token": ""}}
        store = S3Store("s3://ckpt/t/", Leases(bad), region="us-east-1", endpoint=ministack.url)
        with pytest.raises(CredentialRefused) as caught:
            list(store.entries("g1/"))
        assert "AKIAOLD" not in str(caught.value).replace("The AWS Access Key Id", "")
        with pytest.raises(CredentialRefused):
            store.size("g1/x")
        store.close()

    def test_s3_lease_cut_to_a_generation_writes_no_other(self, ministack: Ministack) -> None:
        own = uuid4().hex
        lease = self.lease(
            ministack, "cut", Effect="Allow", Action="s3:PutObject", Resource=f"arn:aws:s3:::ckpt/{own}/g2/*"
        )
        store = S3Store(f"s3://ckpt/{own}/", Leases(lease), region="us-east-1", endpoint=ministack.url)
        store.put("g2/x", Content.of(b"x"))
        with pytest.raises(CredentialRefused):
            store.put("g1/x", Content.of(b"x"))
        with pytest.raises(CredentialRefused):
            list(store.entries("g2/"))
        store.close()

    def test_azure_goes_on_with_a_fresh_signature(self, azurite: Azurite) -> None:
        old = {"id": "old", "azure": {"sas": container_sas("ckpt", "rwlc", seconds=-60)}}
        new = {"id": "new", "azure": {"sas": container_sas("ckpt", "rwlc")}}
        leases = Leases(old, new)
        store = AzureStore(f"az://{ACCOUNT}/ckpt/{uuid4().hex}/", leases, endpoint=azurite.url)
        store.put("g1/x", Content.of(b"x"))
        assert leases.asked == [("write", ""), ("write", "old")]
        assert read_small(store, "g1/x", 9) == b"x"
        store.close()

    def test_azure_lease_to_read_writes_nothing(self, azurite: Azurite) -> None:
        lease = {"id": "r", "azure": {"sas": container_sas("ckpt", "rl")}}
        store = AzureStore(f"az://{ACCOUNT}/ckpt/{uuid4().hex}/", Leases(lease), endpoint=azurite.url)
        with pytest.raises(CredentialRefused):
            store.put("g1/x", Content.of(b"x"))
        assert list(store.entries("g1/")) == []
        store.close()
