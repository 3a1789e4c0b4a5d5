"""People: whose tokens are believed, what they may, signing in, and what a page of another site cannot do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from planner.model.errors import Unavailable
from planner.model.server import PeopleTrust, Role, RoleBinding
from planner.server.identity import Answer, Asked
from tests.unit.server.server_bed import NOW, SETTINGS, Bed, bed, launch, sqlite
from tests.unit.server.test_node_routes import refused

ISSUER = "https://login.example.com"
URL = "https://skyplan.example.com"
TRUST = PeopleTrust(
    issuer=ISSUER,
    client_id="skyplan",
    audience="skyplan-api",
    bindings=(
        RoleBinding(claim="groups", value="ops", role=Role.OPERATOR),
        RoleBinding(claim="groups", value="ml", role=Role.VIEWER, jobs=("tr*",)),
        RoleBinding(claim="email", value="a@example.com", role=Role.AUDITOR),
    ),
)
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = ec.generate_private_key(ec.SECP256R1())


class Idp:
    """The people's issuer."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.down = False
        self.keys = {"k1": RSA.public_key()}
        self.token = ""

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        if self.down:
            raise Unavailable([])
        path = urlsplit(asked.url).path
        body: dict[str, Any] = {}
        if path == "/.well-known/openid-configuration":
            body = {
                "issuer": ISSUER,
                "jwks_uri": f"{ISSUER}/keys",
                "authorization_endpoint": f"{ISSUER}/authorize",
                "token_endpoint": f"{ISSUER}/token",
            }
        elif path == "/keys":
            keys = [json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(k)) | {"kid": i} for i, k in self.keys.items()]
            body = {"keys": [*keys, {"kty": "oct", "k": "c2VjcmV0", "kid": "sym"}]}
        elif path == "/token":
            body = {"id_token": self.token}
        return Answer(status=200, body=json.dumps(body).encode())


def token(*, key: Any = RSA, kid: str = "k1", algorithm: str = "RS256", **claims: Any) -> str:
    said = {
        "iss": ISSUER,
        "aud": "skyplan-api",
        "sub": "u1",
        "iat": NOW,
        "exp": NOW + timedelta(hours=1),
        "email": "u1@example.com",
        "groups": ["ml"],
        **claims,
    }
    return jwt.encode({k: v for k, v in said.items() if v is not None}, key, algorithm=algorithm, headers={"kid": kid})


@pytest.fixture
def idp() -> Idp:
    return Idp()


@pytest.fixture
def b(tmp_path: Path, idp: Idp) -> Iterator[Bed]:
    with bed(sqlite(tmp_path), settings=replace(SETTINGS, url=URL, people=TRUST), fetch=idp) as made:
        launch(made.record)
        made.client.base_url = URL
        yield made


def asked(b: Bed, bearer: str) -> Any:
    return b.client.get("/metrics", headers={"Authorization": f"Bearer {bearer}"})


def test_a_good_token(b: Bed, idp: Idp) -> None:
    for _ in range(3):
        assert asked(b, token()).status_code == 200
    assert len([a for a in idp.asked if a.url.endswith("/keys")]) == 1


BAD = {
    "nonsense": "nonsense",
    "three-parts": "a.b.c",
    "long": "x" * 20_000,
    "audience": token(aud="somebody-else"),
    "issuer": token(iss="https://evil.example.com"),
    "expired": token(exp=NOW - timedelta(seconds=61)),
    "future": token(iat=NOW + timedelta(seconds=61)),
    "not-before": token(nbf=NOW + timedelta(seconds=61)),
    "no-end": token(exp=None),
    "no-subject": token(sub=None),
    "end-is-true": token(exp=True),
    "other-key": token(key=OTHER, algorithm="ES256"),
    "symmetric": token(key="secret-secret-secret-secret-secret", kid="sym", algorithm="HS256"),
    "unknown-key": token(kid="k9"),
    "unsigned": jwt.encode({"iss": ISSUER}, None, algorithm="none"),
    "cut": token()[:-6] + "AAAAAA",
}


@pytest.mark.parametrize("name", BAD)
def test_a_token_that_does_not_hold(b: Bed, name: str) -> None:
    bad = BAD[name]
    answer = asked(b, bad)
    refused(answer, 401, "unsigned")
    assert bad[:40] not in answer.text + b.log.getvalue()


def test_the_public_key_is_no_secret_to_sign_with(b: Bed) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    import base64
    import hashlib
    import hmac

    def b64(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    head, body, _ = token().split(".")
    head = b64(json.dumps({"alg": "HS256", "kid": "k1"}).encode())
    forged = f"{head}.{body}." + b64(hmac.new(pem, f"{head}.{body}".encode(), hashlib.sha256).digest())
    refused(asked(b, forged), 401, "unsigned")


def test_keys_are_fetched_anew_for_an_unknown_one_but_not_for_everybody_who_invents_one(b: Bed, idp: Idp) -> None:
    assert asked(b, token()).status_code == 200
    fresh = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    idp.keys["k2"] = fresh.public_key()
    assert asked(b, token(key=fresh, kid="k2")).status_code == 401
    b.clock.pass_(seconds=61)
    assert asked(b, token(key=fresh, kid="k2")).status_code == 200
    for k in range(5):
        assert asked(b, token(kid=f"x{k}")).status_code == 401
    assert len([a for a in idp.asked if a.url.endswith("/keys")]) == 2


def test_an_issuer_that_is_away(b: Bed, idp: Idp) -> None:
    idp.down = True
    answer = asked(b, token())
    refused(answer, 503, "busy")
    assert answer.headers["retry-after"]
    idp.down = False
    b.clock.pass_(seconds=61)
    assert asked(b, token()).status_code == 200
    idp.down = True
    b.clock.pass_(minutes=70)
    assert asked(b, token(exp=NOW + timedelta(hours=3))).status_code == 200


def test_roles(b: Bed) -> None:
    people = b.app.state.people
    viewer = people.person({"groups": ["ml", "x"], "sub": "s"})
    assert viewer.may(Role.VIEWER, "train")
    assert not viewer.may(Role.VIEWER, "other")
    assert not viewer.may(Role.OPERATOR, "train")
    assert people.person({"groups": "ops"}).may(Role.AUDITOR, "any")
    assert people.person({"email": "a@example.com"}).may(Role.AUDITOR, "any")
    assert people.person({"email": "a@example.com", "email_verified": False}).held == ()
    assert people.person({"groups": [{"ops": 1}, None]}).held == ()


def sign_in(b: Bed, idp: Idp, *, next_: str = "/", nonce: str | None = None, **claims: Any) -> Any:
    away = b.client.get("/login", params={"next": next_}, follow_redirects=False)
    assert away.status_code == 303
    query = {k: v[0] for k, v in parse_qs(urlsplit(away.headers["location"]).query).items()}
    assert away.headers["location"].startswith(f"{ISSUER}/authorize?")
    assert query["code_challenge_method"] == "S256"
    assert query["redirect_uri"] == f"{URL}/callback"
    idp.token = token(aud="skyplan", nonce=nonce or query["nonce"], **claims)
    back = {"code": "the-code", "state": query["state"]}
    return b.client.get("/callback", params=back, follow_redirects=False)


def test_signing_in_and_out(b: Bed, idp: Idp) -> None:
    page = b.client.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=/")
    done = sign_in(b, idp, next_="/jobs/train")
    assert (done.status_code, done.headers["location"]) == (303, "/jobs/train")
    cookie = next(c for c in done.headers.get_list("set-cookie") if c.startswith("__Host-skyplan_session="))
    assert all(word in cookie for word in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"))
    form = parse_qs(next(a.body for a in idp.asked if a.url.endswith("/token")).decode())
    assert (form["code"], form["grant_type"]) == (["the-code"], ["authorization_code"])
    assert len(form["code_verifier"][0]) >= 43
    assert b.client.get("/metrics").status_code == 200
    b.clock.pass_(hours=8, seconds=1)
    assert b.client.get("/metrics").status_code == 401
    b.clock.pass_(hours=-2)
    assert b.client.get("/metrics").status_code == 200
    refused(b.client.post("/logout", headers={"Origin": "https://evil.example.com"}), 403, "denied")
    assert b.client.post("/logout", headers={"Origin": URL}, follow_redirects=False).status_code == 303
    assert b.client.get("/metrics").status_code == 401
    assert "the-code" not in b.log.getvalue()


def test_a_sign_in_that_was_not_begun_here(b: Bed, idp: Idp) -> None:
    refused(b.client.get("/callback", params={"code": "x", "state": "y"}), 403, "denied")
    b.client.get("/login", follow_redirects=False)
    refused(b.client.get("/callback", params={"code": "x", "state": "y"}), 403, "denied")
    refused(sign_in(b, idp, nonce="another"), 401, "unsigned")
    refused(sign_in(b, idp, exp=NOW - timedelta(hours=2)), 401, "unsigned")
    assert sign_in(b, idp, next_="https://evil.example.com/").headers["location"] == "/"
    assert sign_in(b, idp, next_="//evil.example.com/").headers["location"] == "/"
    assert sign_in(b, idp, next_="/\\evil.example.com/").headers["location"] == "/"


def test_a_cookie_of_another_server(b: Bed) -> None:
    forged = jwt.encode(
        {"aud": "skyplan-session", "name": "x", "said": {"groups": ["ops"]}, "exp": NOW + timedelta(hours=1)},
        "k" * 32,
        algorithm="HS256",
    )
    b.client.cookies.set("__Host-skyplan_session", forged)
    refused(b.client.get("/metrics"), 401, "unsigned")
    b.client.get("/login", follow_redirects=False)
    flow = b.client.cookies.get("__Host-skyplan_session_flow")
    assert flow
    b.client.cookies.set("__Host-skyplan_session", flow)
    refused(b.client.get("/metrics"), 401, "unsigned")


def test_without_oidc_this_machine_alone_is_answered(tmp_path: Path) -> None:
    with bed(sqlite(tmp_path)) as b:
        assert b.client.get("/metrics").status_code == 200
        refused(b.client.get("/metrics", headers={"Host": "evil.example.com"}), 403, "denied")
        refused(b.client.get("/login"), 404, "not-found")


def test_people_are_held_to_their_rate(tmp_path: Path) -> None:
    slow = replace(SETTINGS, rates=(("people", 0.1), ("join", 0.1), ("node", 0.1)))
    with bed(sqlite(tmp_path), settings=slow) as b:
        launch(b.record)
        answers = [b.client.get("/healthz") for _ in range(3)]
        assert [a.status_code for a in answers] == [200, 429, 429]
        refused(answers[1], 429, "too-many")
        assert int(answers[1].headers["retry-after"]) >= 9
        from tests.unit.server.server_bed import Agent

        agent = Agent(b.client)
        assert agent.join().status_code == 200
        refused(agent.join(), 429, "too-many")
        assert agent.send(agent.item(step=1)).status_code == 200
        refused(agent.send(agent.item(step=2)), 429, "too-many")
        # another node is not held back by the first
        assert Agent(b.client, rank=1).join().status_code == 200
