"""Identity tokens of three platforms: what holds, and that nothing else does.  Signed by keys of the test; the verifiers see no network."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.errors import Unavailable
from planner.model.runtime import NodeIdentity, Refusal, Refused
from planner.model.server import IdentityTrust, TokenIssuer
from planner.server.identity import Answer, Asked, verifiers
from planner.server.identity.port import unavailable
from tests.emulators.issuers import (
    GOOGLE,
    MICROSOFT,
    NEBIUS,
    SUBSCRIPTION,
    TokenSigner,
    azure_claims,
    google_claims,
    nebius_claims,
    rsa_key,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BROKER = "https://broker.acme.example:8444"
CLAIMS = {"gcp-jwt": google_claims, "azure-jwt": azure_claims, "nebius-jwt": nebius_claims}
ISSUERS = {"gcp-jwt": GOOGLE, "azure-jwt": MICROSOFT, "nebius-jwt": NEBIUS}
SCHEMES = sorted(CLAIMS)


class Platforms:
    """Serves each issuer's keys; counts; can be down."""

    def __init__(self) -> None:
        self.signers = {scheme: TokenSigner(issuer) for scheme, issuer in ISSUERS.items()}
        self.asked: list[str] = []
        self.down = False

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append(asked.url)
        if self.down:
            raise unavailable("down")
        scheme = asked.url.rpartition("/")[2]
        return Answer(status=200, body=json.dumps(self.signers[scheme].keys).encode())

    @property
    def trust(self) -> IdentityTrust:
        def issuer(scheme: str) -> tuple[TokenIssuer, ...]:
            return (TokenIssuer(issuer=ISSUERS[scheme], keys_url=f"https://keys.example/{scheme}", audience=BROKER),)

        return IdentityTrust(
            audience=BROKER, gcp=issuer("gcp-jwt"), azure=issuer("azure-jwt"), nebius=issuer("nebius-jwt")
        )

    def token(self, scheme: str, *, now: datetime = NOW, seconds: int = 3600, drop: str = "", **change: Any) -> str:
        claims = {**CLAIMS[scheme](BROKER), **change}
        claims.pop(drop, None)
        return self.signers[scheme].token(claims, now, seconds=seconds)


@pytest.fixture
def platforms() -> Platforms:
    return Platforms()


@pytest.fixture
def judges(platforms):
    return verifiers(platforms.trust, fetch=platforms)


def refused(judge, value: Any, now: datetime = NOW) -> str:
    with pytest.raises(Refused) as caught:
        judge.verify(value, now)
    assert caught.value.word is Refusal.IDENTITY
    if isinstance(value, str) and len(value) > 40:
        assert value not in caught.value.reason
        assert (value.rpartition(".")[2] or value) not in caught.value.reason
    return caught.value.reason


def test_a_google_token_names_machine_zone_project_and_account(platforms, judges):
    assert judges["gcp-jwt"].verify(platforms.token("gcp-jwt"), NOW) == NodeIdentity(
        scheme="gcp-jwt",
        cloud="gcp",
        account="acme-gpu",
        instance_id="train-g3-r0",
        principal="job-train@acme-gpu.iam.gserviceaccount.com",
        where="us-central1-a",
        expires_at="2026-11-30T13:00:00.000000Z",
    )


def test_an_azure_token_names_subscription_identity_and_machine(platforms, judges):
    found = judges["azure-jwt"].verify(platforms.token("azure-jwt"), NOW)
    assert (found.cloud, found.account, found.instance_id) == ("azure", SUBSCRIPTION, "train-g3-r0")
    assert found.principal.endswith("/userAssignedIdentities/job-train")


def test_an_azure_token_without_the_machine_still_names_the_identity(platforms, judges):
    found = judges["azure-jwt"].verify(platforms.token("azure-jwt", drop="xms_az_rid"), NOW)
    assert (found.instance_id, found.account) == ("", SUBSCRIPTION)


def test_a_nebius_token_names_the_service_account(platforms, judges):
    assert judges["nebius-jwt"].verify(platforms.token("nebius-jwt"), NOW).principal == "serviceaccount-e00train"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"aud": "https://other.example"}, "another service"),
        ({"aud": [BROKER]}, "another service"),
        ({"aud": [BROKER, "https://other.example"]}, "another service"),
        ({"aud": BROKER + "/"}, "another service"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"exp": "tomorrow"}, "time"),
        ({"exp": True}, "time"),
        ({"exp": float("inf")}, ""),
        ({"iat": -5}, "time"),
        ({"nbf": int(NOW.timestamp()) + 120}, "future"),
    ],
)
def test_claims_that_do_not_fit_are_refused(platforms, judges, scheme, change, words):
    assert words in refused(judges[scheme], platforms.token(scheme, **change))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("claim", ["exp", "iat", "aud", "iss"])
def test_what_must_be_there_must_be_there(platforms, judges, scheme, claim):
    key = platforms.signers[scheme]._key
    claims = {
        **CLAIMS[scheme](BROKER),
        "iss": ISSUERS[scheme],
        "iat": int(NOW.timestamp()),
        "exp": int(NOW.timestamp()) + 600,
    }
    del claims[claim]
    refused(judges[scheme], jwt.encode(claims, key, algorithm="RS256", headers={"kid": "test-key-1"}))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_time_is_judged_by_the_clock_that_is_handed_in(platforms, judges, scheme):
    token = platforms.token(scheme, seconds=600)
    judges[scheme].verify(token, NOW + timedelta(seconds=600 + 59))
    assert "ended" in refused(judges[scheme], token, NOW + timedelta(seconds=600 + 61))
    judges[scheme].verify(token, NOW - timedelta(seconds=59))
    assert "future" in refused(judges[scheme], token, NOW - timedelta(seconds=61))


@pytest.mark.parametrize(("scheme", "longest"), [("gcp-jwt", 3600), ("azure-jwt", 87000), ("nebius-jwt", 43200)])
def test_a_token_lives_no_longer_than_its_platform_gives(platforms, judges, scheme, longest):
    judges[scheme].verify(platforms.token(scheme, seconds=longest), NOW)
    assert "longer" in refused(judges[scheme], platforms.token(scheme, seconds=longest + 120))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_rs256_by_a_published_key(platforms, judges, scheme):
    signer = platforms.signers[scheme]
    claims = {
        **CLAIMS[scheme](BROKER),
        "iss": ISSUERS[scheme],
        "iat": int(NOW.timestamp()),
        "exp": int(NOW.timestamp()) + 600,
    }
    kid = {"kid": signer.kid}
    public = signer._key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT", **kid}).encode()).rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    import hashlib
    import hmac

    mac = base64.urlsafe_b64encode(hmac.new(public, header + b"." + body, hashlib.sha256).digest()).rstrip(b"=")
    bad = {
        "none": jwt.encode(claims, None, algorithm="none", headers=kid),
        "hmac with the public key": b".".join((header, body, mac)).decode(),
        "rs512": jwt.encode(claims, signer._key, algorithm="RS512", headers=kid),
        "ps256": jwt.encode(claims, signer._key, algorithm="PS256", headers=kid),
        "strange key, known id": jwt.encode(claims, rsa_key("thief"), algorithm="RS256", headers=kid),
        "no key id": jwt.encode(claims, signer._key, algorithm="RS256"),
        "unknown key id": jwt.encode(claims, signer._key, algorithm="RS256", headers={"kid": "other"}),
        "its own key": jwt.encode(
            claims, signer._key, algorithm="RS256", headers={**kid, "jku": "https://evil.example"}
        ),
        "its own key inside": jwt.encode(
            claims, signer._key, algorithm="RS256", headers={**kid, "jwk": {"kty": "RSA"}}
        ),
        "long key id": jwt.encode(claims, signer._key, algorithm="RS256", headers={"kid": "k" * 300}),
    }
    for name, token in bad.items():
        assert refused(judges[scheme], token), name
    judges[scheme].verify(jwt.encode(claims, signer._key, algorithm="RS256", headers=kid), NOW)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_changed_token_does_not_hold(platforms, judges, scheme):
    head, body, signature = platforms.token(scheme).split(".")
    other = platforms.token(scheme, sub="somebody-else").split(".")[1]
    assert "signature" in refused(judges[scheme], f"{head}.{other}.{signature}")
    flipped = signature[:-10] + ("A" if signature[-10] != "A" else "B") + signature[-9:]
    assert "signature" in refused(judges[scheme], f"{head}.{body}.{flipped}")


@pytest.mark.parametrize(
    "value", [None, 7, {}, [], "", "x", "a.b", "a.b.c", "a.b.c.d", "é.é.é", "." * 9000, "x" * 9000, "\ud800.a.b"]
)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_no_token_is_refused(judges, scheme, value):
    refused(judges[scheme], value)


@given(
    st.one_of(
        st.text(max_size=200), st.recursive(st.none() | st.integers() | st.text(max_size=9), st.lists, max_leaves=5)
    )
)
@settings(max_examples=60, deadline=None)
def test_nothing_makes_a_verifier_fall_over(value):
    platforms = Platforms()
    for judge in verifiers(platforms.trust, fetch=platforms).values():
        with pytest.raises(Refused):
            judge.verify(value, NOW)
    assert platforms.asked == []


@pytest.mark.parametrize("depth", [2000])
def test_a_deep_header_is_refused(judges, depth):
    deep = base64.urlsafe_b64encode(b"[" * depth).rstrip(b"=").decode()
    refused(judges["gcp-jwt"], f"{deep}.{deep}.AA")


@pytest.mark.parametrize(
    "change",
    [
        {"google": {}},
        {"google": {"compute_engine": "x"}},
        {"google": {"compute_engine": {"project_id": "acme-gpu", "zone": "z"}}},
        {"email": None},
        {"email": 7},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email": "a\nb@x.iam.gserviceaccount.com"},
    ],
)
def test_a_google_token_that_names_no_machine_or_account_is_refused(platforms, judges, change):
    refused(judges["gcp-jwt"], platforms.token("gcp-jwt", **change))


@pytest.mark.parametrize(
    "change",
    [
        {"tid": "00000000-0000-4000-8000-000000000000"},
        {"xms_mirid": "/subscriptions/x/resourcegroups/g/providers/Microsoft.Compute/virtualMachines/vm"},
        {"xms_mirid": None},
        {"xms_mirid": f"/subscriptions/{SUBSCRIPTION}/resourcegroups/g/providers/Microsoft.Web/sites/app"},
        {"oid": None},
        {"appid": ""},
    ],
)
def test_an_azure_token_of_no_managed_identity_is_refused(platforms, judges, change):
    refused(judges["azure-jwt"], platforms.token("azure-jwt", **change))


def test_a_system_identity_is_its_machine(platforms, judges):
    vm = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/g/providers/Microsoft.Compute/virtualMachines/one"
    found = judges["azure-jwt"].verify(platforms.token("azure-jwt", xms_mirid=vm, drop="xms_az_rid"), NOW)
    assert found.instance_id == "one"
    other = vm.replace("/one", "/two")
    refused(judges["azure-jwt"], platforms.token("azure-jwt", xms_mirid=vm, xms_az_rid=other))


@pytest.mark.parametrize("sub", ["useraccount-e00x", "serviceaccount-", "serviceaccount-E00", "x" * 600, None])
def test_a_nebius_token_of_no_service_account_is_refused(platforms, judges, sub):
    refused(judges["nebius-jwt"], platforms.token("nebius-jwt", sub=sub))


def test_keys_are_asked_for_once_and_a_strange_id_at_most_once_a_minute(platforms, judges):
    judge = judges["gcp-jwt"]
    for second in range(50):
        judge.verify(platforms.token("gcp-jwt"), NOW + timedelta(seconds=second))
    assert len(platforms.asked) == 1
    strange = TokenSigner(GOOGLE, "2").token(google_claims(BROKER), NOW)
    for second in range(59):
        refused(judge, strange, NOW + timedelta(seconds=second))
    assert len(platforms.asked) == 1
    refused(judge, strange, NOW + timedelta(seconds=61))
    assert len(platforms.asked) == 2


def test_a_key_that_came_new_is_found_and_one_that_went_is_not_believed(platforms, judges):
    judge = judges["gcp-jwt"]
    old = platforms.token("gcp-jwt")
    judge.verify(old, NOW)
    platforms.signers["gcp-jwt"] = TokenSigner(GOOGLE, "2")
    later = NOW + timedelta(minutes=2)
    judge.verify(platforms.token("gcp-jwt", now=later), later)
    assert "publish" in refused(judge, old, later)


def test_keys_hold_for_a_day_while_the_issuer_is_away_and_then_no_more(platforms, judges):
    judge = judges["azure-jwt"]
    judge.verify(platforms.token("azure-jwt"), NOW)
    platforms.down = True
    later = NOW + timedelta(hours=23)
    judge.verify(platforms.token("azure-jwt", now=later), later)
    late = NOW + timedelta(hours=25)
    with pytest.raises(Unavailable):
        judge.verify(platforms.token("azure-jwt", now=late), late)


def test_an_issuer_that_never_answered_is_unavailable_not_a_refusal(platforms, judges):
    platforms.down = True
    with pytest.raises(Unavailable):
        judges["gcp-jwt"].verify(platforms.token("gcp-jwt"), NOW)


def test_short_keys_and_keys_for_other_uses_are_left_out():
    from planner.server.identity.keys import read_keys

    good = TokenSigner(GOOGLE).keys["keys"][0]
    assert set(read_keys(json.dumps({"keys": [good]}).encode())) == {"test-key-1"}
    short = {**good, "n": base64.urlsafe_b64encode((2**1023 + 1).to_bytes(128, "big")).decode().rstrip("=")}
    for bad in (
        short,
        {**good, "use": "enc"},
        {**good, "alg": "RS512"},
        {**good, "kty": "oct"},
        {**good, "kid": 5},
        {**good, "n": "!"},
        7,
        None,
    ):
        assert read_keys(json.dumps({"keys": [bad]}).encode()) == {}
    for body in (b"", b"[]", b"{", b'{"keys": 5}', b"[" * 100_000):
        assert read_keys(body) == {}


def test_a_scheme_that_is_not_set_up_is_not_there():
    assert set(verifiers(IdentityTrust(audience=BROKER, one_time=False))) == set()
    assert set(verifiers(IdentityTrust(audience=BROKER))) == {"one-time"}


def test_a_one_time_token_names_no_machine():
    judge = verifiers(IdentityTrust(audience=BROKER))["one-time"]
    assert judge.verify("A" * 43, NOW) == NodeIdentity(scheme="one-time", cloud="")
    for value in ("A" * 42, "A" * 129, "A" * 42 + "!", None, {}):
        refused(judge, value)
