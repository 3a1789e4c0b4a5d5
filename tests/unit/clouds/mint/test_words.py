"""How each cloud is told a lease's scope: AWS's session policy by our evaluator, Google's boundary, Azure's SAS.  No cloud is asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.clouds.mint.aws import AwsMinter, session_policy
from planner.clouds.mint.azure import AzureMinter
from planner.clouds.mint.gcp import boundary
from planner.clouds.mint.port import Order, Scope, TooWide
from planner.model.errors import CloudError, PermissionDenied, Unavailable

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role/skyplan/acme/data/skyplan-acme-dat-train"


def order(
    store: str = "s3",
    bucket: str = "all",
    reads: tuple[str, ...] = ("ckpt/",),
    writes: tuple[str, ...] = ("ckpt/g3/",),
    **more: Any,
) -> Order:
    given: dict[str, Any] = {
        "identity": ROLE,
        "name": "lease-1-train-g3-r0",
        "lifetime_seconds": 3600,
        "now": NOW,
        **more,
    }
    return Order(scope=Scope(store=store, bucket=bucket, reads=reads, writes=writes), **given)


class Sts:
    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.asked = error, []

    def assume_role(self, **given: Any) -> Any:
        self.asked.append(given)
        if self.error:
            raise self.error
        ends = NOW + timedelta(seconds=given["DurationSeconds"])
        return {
            "Credentials": {
                "AccessKeyId": "ASIA",
                "SecretAccessKey": "very-secret",
                "SessionToken": "token",
                "Expiration": ends,
            }
        }


# AWS


def test_a_session_is_cut_tagged_named_and_bounded():
    sts = Sts()
    made = AwsMinter(sts=sts).mint(
        order(lifetime_seconds=7200, labels=(("skyplan:job", "train"),), name="lease-1-" + "x" * 90 + "/é")
    )
    (asked,) = sts.asked
    assert asked["RoleArn"] == ROLE
    assert asked["DurationSeconds"] == 3600, "role chaining ends at an hour (notes/iam.md §4, case 5)"
    assert asked["Tags"] == [{"Key": "skyplan:job", "Value": "train"}]
    assert len(asked["RoleSessionName"]) == 64
    assert asked["RoleSessionName"].startswith("lease-1-x")
    assert json.loads(asked["Policy"]) == session_policy(order())
    assert (made.kind, made.expires_at) == ("aws", NOW + timedelta(hours=1))
    assert "very-secret" not in repr(made)


def matches(pattern: str, text: str) -> bool:
    """IAM's own matching: `*`, `?`, and `${*}` for a star itself."""
    import re

    parts = re.split(r"(\$\{[*?$]\}|[*?])", pattern)
    return bool(
        re.fullmatch(
            "".join({"*": ".*", "?": "."}.get(p, re.escape(p[2] if p.startswith("${") else p)) for p in parts),
            text,
            re.DOTALL,
        )
    )


def allows(policy: dict[str, Any], action: str, resource: str, prefix: str | None = None) -> bool:
    for statement in policy["Statement"]:
        listed = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
        fits = listed is None or (prefix is not None and any(matches(p, prefix) for p in listed))
        if action in statement["Action"] and fits and any(matches(r, resource) for r in statement["Resource"]):
            return True
    return False


KEYS = st.text(alphabet="ab/g3*?$.", max_size=12)


@given(KEYS, KEYS)
def test_the_policy_allows_the_scope_and_nothing_else(prefix, key):
    prefix = f"{prefix.strip('/')}/"
    cut = order(reads=(prefix,), writes=(f"{prefix}g3/",))
    policy = session_policy(cut)
    arn = f"arn:aws:s3:::all/{key}"
    assert allows(policy, "s3:GetObject", arn) == key.startswith(prefix)
    assert allows(policy, "s3:PutObject", arn) == key.startswith(f"{prefix}g3/")
    assert allows(policy, "s3:ListBucket", "arn:aws:s3:::all", key) == key.startswith(prefix)
    for action in ("s3:DeleteObject", "s3:PutBucketPolicy", "s3:*", "*", "sts:AssumeRole", "kms:Decrypt"):
        assert not allows(policy, action, arn)
    assert not allows(policy, "s3:GetObject", f"arn:aws:s3:::all2/{key}")
    assert not allows(session_policy(order(reads=(prefix,), writes=())), "s3:PutObject", f"{arn}{prefix}")


def test_a_whole_bucket_and_a_key():
    policy = session_policy(order(reads=("",), writes=(), kms_key="arn:aws:kms:us-east-1:1:key/k"))
    assert allows(policy, "s3:GetObject", "arn:aws:s3:::all/any")
    assert allows(policy, "s3:ListBucket", "arn:aws:s3:::all")
    assert allows(policy, "kms:Decrypt", "arn:aws:kms:us-east-1:1:key/k")
    assert not allows(policy, "kms:GenerateDataKey", "arn:aws:kms:us-east-1:1:key/k")


def test_china_has_its_own_names():
    sts = Sts()
    AwsMinter(sts=sts).mint(order(identity=ROLE.replace("arn:aws:", "arn:aws-cn:")))
    assert "arn:aws-cn:s3:::all/ckpt/*" in sts.asked[0]["Policy"]


def test_a_policy_that_does_not_fit_is_too_wide_and_not_cut_short():
    sts = Sts()
    with pytest.raises(TooWide):
        AwsMinter(sts=sts).mint(order(reads=("x" * 1000 + "/",), writes=("x" * 1000 + "/g3/",)))
    assert sts.asked == []


def test_what_is_no_role_is_not_asked_for():
    sts = Sts()
    with pytest.raises(CloudError):
        AwsMinter(sts=sts).mint(order(identity="skyplan-data"))
    assert sts.asked == []


def test_errors_are_ours():
    from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

    def said(code: str) -> ClientError:
        return ClientError({"Error": {"Code": code, "Message": "words"}}, "AssumeRole")

    for error, kind in (
        (said("AccessDenied"), PermissionDenied),
        (said("Throttling"), Unavailable),
        (said("ValidationError"), CloudError),
        (said("PackedPolicyTooLarge"), CloudError),
        (NoCredentialsError(), PermissionDenied),
        (EndpointConnectionError(endpoint_url="https://sts"), Unavailable),
    ):
        with pytest.raises(kind):
            AwsMinter(sts=Sts(error)).mint(order())


# Google


def test_the_boundary_restricts_names_and_lists():
    """notes/iam.md §4, case 15: a prefix condition without the list attribute makes listing fail, or names leak."""
    read, write = boundary(order("gs"))
    resource = "//storage.googleapis.com/projects/_/buckets/all"
    assert read == {
        "availableResource": resource,
        "availablePermissions": ["inRole:roles/storage.objectViewer"],
        "availabilityCondition": {
            "expression": "resource.name.startsWith('projects/_/buckets/all/objects/ckpt/') || "
            "api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('ckpt/')"
        },
    }
    assert write == {
        "availableResource": resource,
        "availablePermissions": ["inRole:roles/storage.objectCreator"],
        "availabilityCondition": {"expression": "resource.name.startsWith('projects/_/buckets/all/objects/ckpt/g3/')"},
    }


def test_a_quote_stays_inside_its_text():
    (rule,) = boundary(order("gs", reads=("o'b\\/",), writes=()))
    assert r"objects/o\'b\\/')" in rule["availabilityCondition"]["expression"]
    (whole,) = boundary(order("gs", reads=("",), writes=()))
    assert "availabilityCondition" not in whole


# Azure


class Account:
    """A storage account: whether its namespace is hierarchical, and how often its key was asked for."""

    def __init__(self, *, hierarchical: bool) -> None:
        self.hierarchical, self.keys = hierarchical, 0

    def minter(self) -> AzureMinter:
        minter = AzureMinter(credential=object(), hierarchical=lambda _: self.hierarchical)
        minter._client = lambda _: self
        return minter

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_user_delegation_key(self, starts: datetime, ends: datetime) -> Any:
        from azure.storage.blob import UserDelegationKey

        self.keys += 1
        key = UserDelegationKey()
        key.signed_oid = key.signed_tid = "11111111-1111-4111-8111-111111111111"
        key.signed_start, key.signed_expiry = starts.strftime("%Y-%m-%dT%H:%M:%SZ"), ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        key.signed_service, key.signed_version, key.value = "b", "2025-01-01", "c2VjcmV0"
        return key


def sas(**change: Any) -> dict[str, list[str]]:
    made = Account(hierarchical=True).minter().mint(order("az", "acct/all", **change))
    assert (made.secret["account"], made.secret["container"]) == ("acct", "all")
    return parse_qs(made.secret["sas"])


def test_a_writing_lease_is_its_generations_directory():
    said = sas()
    assert {k: said[k] for k in ("sr", "sdd", "sp", "spr", "se")} == {
        "sr": ["d"],
        "sdd": ["2"],
        "sp": ["rcwl"],
        "spr": ["https"],
        "se": ["2026-11-30T13:00:00Z"],
    }
    assert said["st"] == ["2026-11-30T11:55:00Z"]


def test_a_reading_lease_is_the_prefix():
    said = sas(writes=())
    assert (said["sr"], said["sdd"], said["sp"]) == (["d"], ["1"], ["rl"])
    said = sas(reads=("",), writes=())
    assert (said["sr"], said["sp"]) == (["c"], ["rl"])
    assert "sdd" not in said


@pytest.mark.parametrize("change", [{}, {"writes": ()}, {"reads": ("",), "writes": ("g3/",)}])
def test_a_flat_account_cannot_be_cut_and_is_refused(change):
    flat = Account(hierarchical=False)
    with pytest.raises(TooWide) as caught:
        flat.minter().mint(order("az", "acct/all", **change))
    assert caught.value.diagnostics[0].code == "SKY-RUN-515"
    assert flat.keys == 0


def test_a_whole_container_of_a_flat_account_is_read():
    made = Account(hierarchical=False).minter().mint(order("az", "acct/all", reads=("",), writes=()))
    assert "sr=c" in made.secret["sas"]


def test_one_delegation_key_serves_many_leases_and_outlives_each():
    account = Account(hierarchical=True)
    minter = account.minter()
    for hour in range(24):
        minter.mint(order("az", "acct/all", now=NOW + timedelta(hours=hour)))
    assert account.keys == 2, "the first lives a day, which the last lease would outlive"


def test_an_sdk_that_makes_another_sas_is_told(monkeypatch):
    from azure.storage import blob

    from planner.model.errors import MissingPart

    monkeypatch.setattr(blob, "generate_blob_sas", lambda *_, **__: "sr=b&sp=rcwl")
    with pytest.raises(MissingPart):
        sas()


@pytest.mark.parametrize("bucket", ["all", "ACCT/all", "acct/", "a.b/c", "acct.evil.example#/x"])
def test_what_is_no_account_is_not_asked(bucket):
    with pytest.raises(CloudError):
        Account(hierarchical=True).minter().mint(order("az", bucket))
