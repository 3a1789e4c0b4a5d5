"""Nebius' expiring keys by the real SDK, against a gRPC server made of its own descriptors: two overlap, old ones go, a key serves all nodes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest

from planner.clouds.mint.nebius import NebiusMinter
from planner.clouds.mint.port import Order, Scope
from planner.model.errors import CloudError, PermissionDenied, Unavailable

pytest.importorskip("nebius", reason="the SDK of Nebius is not installed")

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
ACCOUNT = "serviceaccount-e00dat"
_NAMES = {
    "GetByName": "get_by_name",
    "GetSecret": "get_secret",
    "ListByAccount": "list_by_account",
    "Create": "create",
    "Delete": "delete",
}


class Iam(grpc.GenericRpcHandler):
    """Service accounts by name, access keys that can be made, read once, listed and deleted."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.read: set[str] = set()
        self.asked: list[str] = []
        self.refusing: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.count = 0

    def add(self, name: str, ends: datetime | None) -> str:
        from nebius.api.nebius.common.v1 import ResourceMetadata
        from nebius.api.nebius.iam.v2 import AccessKey, AccessKeySpec

        self.count += 1
        id_ = f"accesskey-e00{self.count}"
        spec = AccessKeySpec(description="x", **({"expires_at": ends} if ends else {}))
        self.keys[id_] = AccessKey(metadata=ResourceMetadata(id=id_, name=name), spec=spec)
        return id_

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]

        def answer(request: bytes, context: Any) -> bytes:
            self.asked.append(method)
            if method in self.refusing:
                context.abort(*self.refusing[method])
            return getattr(self, _NAMES[method])(request, context).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)

    def get_by_name(self, request: bytes, context: Any) -> Any:
        from nebius.api.nebius.common.v1 import ResourceMetadata
        from nebius.api.nebius.iam.v1 import GetServiceAccountByNameRequest, ServiceAccount

        asked = GetServiceAccountByNameRequest.FromString(request)
        if (asked.parent_id, asked.name) != ("project-e00", "skyplan-acme-dat-train"):
            context.abort(grpc.StatusCode.NOT_FOUND, "no such account")
        return ServiceAccount(metadata=ResourceMetadata(id=ACCOUNT, name=asked.name))

    def create(self, request: bytes, context: Any) -> Any:
        from nebius.api.nebius.common.v1 import Operation
        from nebius.api.nebius.iam.v2 import CreateAccessKeyRequest, SecretDeliveryMode
        from nebius.base.protos.dynamic import REGISTRY

        asked = CreateAccessKeyRequest.FromString(request)
        assert asked.spec.account.service_account.id == ACCOUNT
        assert asked.spec.secret_delivery_mode == SecretDeliveryMode.EXPLICIT
        assert asked.metadata.parent_id == "project-e00"
        id_ = self.add(asked.metadata.name, asked.spec.expires_at)
        done = REGISTRY.message_class("google.rpc.Status")(code=0)
        return Operation(id="op-1", resource_id=id_, created_at=NOW, finished_at=NOW, status=done)

    def get_secret(self, request: bytes, context: Any) -> Any:
        from nebius.api.nebius.iam.v2 import GetAccessKeySecretRequest, GetAccessKeySecretResponse

        id_ = GetAccessKeySecretRequest.FromString(request).id
        assert id_ not in self.read, "explicit delivery gives it once"
        self.read.add(id_)
        return GetAccessKeySecretResponse(aws_access_key_id=f"NAKI-{id_}", secret=f"secret-{id_}")

    def list_by_account(self, request: bytes, context: Any) -> Any:
        from nebius.api.nebius.iam.v2 import ListAccessKeysByAccountRequest, ListAccessKeysResponse

        asked = ListAccessKeysByAccountRequest.FromString(request)
        assert asked.account.service_account.id == ACCOUNT
        start = int(asked.page_token or 0)
        found = list(self.keys.values())
        more = str(start + 2) if start + 2 < len(found) else ""
        return ListAccessKeysResponse(items=found[start : start + 2], next_page_token=more)

    def delete(self, request: bytes, context: Any) -> Any:
        from nebius.api.nebius.common.v1 import Operation
        from nebius.api.nebius.iam.v2 import DeleteAccessKeyRequest

        id_ = DeleteAccessKeyRequest.FromString(request).id
        del self.keys[id_]
        return Operation(id="op-2", resource_id=id_, created_at=NOW)


@pytest.fixture
def iam() -> Iterator[Iam]:
    made = Iam()
    pool = ThreadPoolExecutor(2)
    server = grpc.server(pool, handlers=(made,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    made.address = f"127.0.0.1:{port}"  # type: ignore[attr-defined]
    yield made
    server.stop(0).wait()
    pool.shutdown()


@pytest.fixture
def minter(iam) -> NebiusMinter:
    def opened() -> Any:
        from nebius.base.options import INSECURE
        from nebius.base.resolver import Constant
        from nebius.sdk import SDK

        return SDK(
            resolver=Constant(iam.address),
            options=[(INSECURE, True)],
            credentials="broker-token",
            user_agent_prefix="skyplan",
        )

    return NebiusMinter(open_sdk=opened, limits={"retries": 0, "timeout": 5.0})


def order(now: datetime = NOW, **change: Any) -> Order:
    given: dict[str, Any] = {
        "scope": Scope(store="nebius", bucket="all", reads=("ckpt/",), writes=("ckpt/g3/",)),
        "identity": "skyplan-acme-dat-train",
        "name": "lease-1-train-g3-r0",
        "lifetime_seconds": 3600,
        "now": now,
        "region": "eu-north1",
        "account": "project-e00",
        **change,
    }
    return Order(**given)


def test_a_key_ends_by_itself_and_is_read_once(iam, minter):
    made = minter.mint(order())
    (id_,) = iam.keys
    assert iam.keys[id_].spec.expires_at == NOW + 2 * HOUR
    assert iam.keys[id_].metadata.name == "skyplan-lease-1-train-g3-r0"
    assert made.expires_at == NOW + 2 * HOUR
    assert made.secret == {
        "access_key_id": f"NAKI-{id_}",
        "secret_access_key": f"secret-{id_}",
        "endpoint": "https://storage.eu-north1.nebius.cloud",
    }


def test_all_nodes_share_a_key_and_each_has_a_whole_lease_of_it(iam, minter):
    for rank in range(64):
        minter.mint(order(now=NOW + timedelta(seconds=rank), name=f"lease-{rank}"))
    assert len(iam.keys) == 1
    for minutes in range(0, 24 * 60, 7):
        now = NOW + timedelta(minutes=minutes)
        assert minter.mint(order(now=now)).expires_at - now >= HOUR


def test_two_overlap_and_old_ones_are_deleted_after_their_end(iam, minter):
    most = 0
    for half_hour in range(2 * 24):
        now = NOW + half_hour * HOUR / 2
        minter.mint(order(now=now, name=f"lease-{half_hour}"))
        living = [k for k in iam.keys.values() if k.spec.expires_at > now]
        most = max(most, len(living))
        assert len(iam.keys) == len(living), "what has ended is gone by the next making"
    assert most == 2
    assert iam.asked.count("Create") == 24


def test_keys_of_others_are_left_alone(iam, minter):
    theirs = iam.add("by-hand", NOW - HOUR)
    forever = iam.add("skyplan-lease-by-hand", None)
    dead = [iam.add(f"skyplan-lease-{n}", NOW - HOUR) for n in range(5)]
    minter.mint(order())
    assert {theirs, forever} < set(iam.keys)
    assert not set(dead) & set(iam.keys)


def test_a_cleaning_that_fails_stops_no_lease(iam, minter):
    iam.add("skyplan-lease-0", NOW - HOUR)
    iam.refusing["Delete"] = (grpc.StatusCode.UNAVAILABLE, "away")
    assert minter.mint(order()).secret["access_key_id"]


@pytest.mark.parametrize(
    ("method", "status", "kind"),
    [
        ("Create", grpc.StatusCode.PERMISSION_DENIED, PermissionDenied),
        ("Create", grpc.StatusCode.UNAVAILABLE, Unavailable),
        ("GetByName", grpc.StatusCode.NOT_FOUND, CloudError),
        ("GetSecret", grpc.StatusCode.INTERNAL, Unavailable),
    ],
)
def test_errors_are_ours_and_nothing_is_kept(iam, minter, method, status, kind):
    iam.refusing[method] = (status, "words")
    with pytest.raises(kind):
        minter.mint(order())
    iam.refusing.clear()
    assert minter.mint(order()).secret["access_key_id"]


@pytest.mark.parametrize("change", [{"region": ""}, {"account": ""}])
def test_without_region_or_project_nothing_is_asked(iam, minter, change):
    with pytest.raises(PermissionDenied):
        minter.mint(order(**change))
    assert iam.asked == []
