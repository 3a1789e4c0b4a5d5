"""Who is let in, who is not, and what is said about it: the rules alone, with clocks that the test moves."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest

from planner.server.peers_file import Expected, Member
from planner.server.proof import Claim, JoinSecret
from planner.server.rendezvous import Answer, Clock, Rendezvous, Request

NOW = 1_800_000_000
SECRETS = {f"r{rank:02d}": f"one-time-secret-of-rank-{rank}" for rank in range(3)}


def key(of: str) -> bytes:
    return hashlib.sha256(SECRETS[of].encode()).digest()


def public_key(seed: int) -> str:
    return base64.b64encode(bytes([seed]) * 32).decode()


def expected(**endpoints: str) -> Expected:
    members = tuple(
        Member(name=name, tunnel_address=f"10.251.0.{rank + 1}", key=key(name), endpoint=endpoints.get(name))
        for rank, name in enumerate(SECRETS)
    )
    return Expected(job="train", generation=3, members=members)


class Meeting:
    """A rendezvous and the hands of its clocks."""

    def __init__(self, who: Expected | None = None, **more: Any) -> None:
        self.wall, self.steady = float(NOW), 0.0
        clock = Clock(wall=lambda: self.wall, steady=lambda: self.steady)
        self.rendezvous = Rendezvous(who or expected(), clock=clock, timeout_seconds=600, **more)
        self.nonces = 0

    def claim(self, name: str, purpose: str = "join", **more: Any) -> Claim:
        self.nonces += 1
        rank = int(name[1:])
        said: dict[str, Any] = {"public_key": public_key(rank + 1), "endpoint": f"192.0.2.{rank + 1}:51820"}
        said = {
            "job": "train",
            "generation": 3,
            "nonce": f"{self.nonces:032x}",
            "time": int(self.wall),
            **(said if purpose == "join" else {}),
            **more,
        }
        return Claim(purpose=purpose, name=name, **said)

    def request(self, claim: Claim, secret_of: str | None = None) -> Request:
        mac = hmac.new(key(secret_of or claim.name), claim.message, hashlib.sha256).hexdigest()
        return Request(claim=claim, proof=f"hmac-sha256 {mac}")

    def join(self, name: str, **more: Any) -> Answer:
        return self.rendezvous.join(self.request(self.claim(name, **more)))


def error(answer: Answer | None) -> tuple[int, str]:
    assert answer
    return answer.status, answer.body["error"]


def test_all_come_and_get_the_whole_set_in_rank_order() -> None:
    meeting = Meeting()
    for name in ("r02", "r00"):
        assert meeting.join(name).status == 200
    assert meeting.rendezvous.peers().body["missing"] == ["r01"]
    last = meeting.join("r01")
    assert last.body == {"name": "r01", "tunnel_address": "10.251.0.2", "missing": []}
    assert meeting.rendezvous.admit(meeting.request(meeting.claim("r01", "peers"))) is None
    answer = meeting.rendezvous.peers()
    assert answer.status == 200
    assert [(p["name"], p["tunnel_address"], p["endpoint"]) for p in answer.body["peers"]] == [
        ("r00", "10.251.0.1", "192.0.2.1:51820"),
        ("r01", "10.251.0.2", "192.0.2.2:51820"),
        ("r02", "10.251.0.3", "192.0.2.3:51820"),
    ]
    assert [p["public_key"] for p in answer.body["peers"]] == [public_key(1), public_key(2), public_key(3)]


def test_after_the_timeout_the_missing_are_named_and_nobody_joins_any_more() -> None:
    meeting = Meeting()
    meeting.join("r01")
    meeting.steady = 600
    answer = meeting.rendezvous.peers()
    assert (answer.status, answer.body["missing"]) == (410, ["r00", "r02"])
    assert "missing: r00, r02" in answer.body["reason"]
    assert error(meeting.join("r00")) == (410, "timed-out")
    assert meeting.rendezvous.admit(meeting.request(meeting.claim("r00", "peers"))) is None, (
        "it may learn that all is over"
    )


def test_a_complete_set_outlives_the_timeout() -> None:
    meeting = Meeting()
    for name in SECRETS:
        meeting.join(name)
    meeting.steady = 10_000
    assert meeting.rendezvous.peers().status == 200


def test_the_same_request_again_and_the_same_join_again_are_one_join() -> None:
    meeting = Meeting()
    request = meeting.request(meeting.claim("r00"))
    assert meeting.rendezvous.join(request).status == 200
    assert meeting.rendezvous.join(request).status == 200
    assert meeting.join("r00").status == 200, "a fresh nonce, the same key and endpoint: the agent was started again"


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"public_key": public_key(9)}, 409, "key-conflict"),
        ({"endpoint": "192.0.2.77:51820"}, 409, "endpoint-conflict"),
    ],
)
def test_who_joined_keeps_the_key_and_the_endpoint(change: dict[str, str], status: int, word: str) -> None:
    meeting = Meeting()
    meeting.join("r00")
    assert error(meeting.join("r00", **change)) == (status, word)
    assert meeting.rendezvous.missing == ("r01", "r02")


@pytest.mark.parametrize(
    ("change", "word"),
    [({"public_key": public_key(1)}, "key-conflict"), ({"endpoint": "192.0.2.1:51820"}, "endpoint-conflict")],
)
def test_two_members_cannot_be_one(change: dict[str, str], word: str) -> None:
    meeting = Meeting()
    meeting.join("r00")
    assert error(meeting.join("r01", **change)) == (409, word)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "r01"},
        {"job": "other"},
        {"generation": 4},
        {"public_key": public_key(9)},
        {"endpoint": "192.0.2.9:51820"},
        {"nonce": "f" * 32},
        {"time": NOW + 1},
        {"purpose": "peers"},
    ],
)
def test_a_proof_is_of_every_word_of_its_claim(change: dict[str, Any]) -> None:
    """Whatever is changed after signing, the proof no longer holds."""
    meeting = Meeting(replace(expected(), **{k: v for k, v in change.items() if k in {"job", "generation"}}))
    signed = meeting.request(meeting.claim("r00"))
    request = replace(signed, claim=replace(signed.claim, **change))
    refused = meeting.rendezvous.admit(request) if "purpose" in change else meeting.rendezvous.join(request)
    assert error(refused) == (403, "wrong-proof")
    assert meeting.rendezvous.missing == ("r00", "r01", "r02")


@pytest.mark.parametrize("proof", ["", "hmac-sha256", "hmac-sha256 " + "0" * 64, "hmac-sha256 xyz", "none 0", "a  b"])
def test_a_wrong_proof_is_refused_with_a_reason(proof: str) -> None:
    meeting = Meeting()
    answer = meeting.rendezvous.join(Request(claim=meeting.claim("r00"), proof=proof))
    assert error(answer) == (403, "wrong-proof")
    assert answer.body["reason"]


def test_anothers_secret_is_no_proof() -> None:
    meeting = Meeting()
    assert error(meeting.rendezvous.join(meeting.request(meeting.claim("r00"), "r01"))) == (403, "wrong-proof")


def test_a_wrong_proof_uses_up_no_nonce() -> None:
    meeting = Meeting()
    claim = meeting.claim("r00")
    meeting.rendezvous.join(meeting.request(claim, "r01"))
    assert meeting.rendezvous.join(meeting.request(claim)).status == 200


def test_a_nonce_counts_once() -> None:
    meeting = Meeting()
    meeting.join("r00", nonce="a" * 32)
    asked = meeting.request(meeting.claim("r00", "peers", nonce="b" * 32))
    assert meeting.rendezvous.admit(asked) is None
    assert error(meeting.rendezvous.admit(asked)) == (409, "replayed")
    assert error(meeting.join("r00", nonce="a" * 32, time=NOW + 1)) == (409, "replayed")
    assert meeting.join("r01", nonce="a" * 32).status == 200, "another node's nonce is another nonce"


def test_a_nonce_is_remembered_while_its_time_would_be_accepted_and_no_longer() -> None:
    meeting = Meeting()
    meeting.join("r00")
    early = meeting.request(meeting.claim("r00", "peers", time=NOW + 300))
    assert meeting.rendezvous.admit(early) is None
    meeting.wall = NOW + 600.0
    assert error(meeting.rendezvous.admit(early)) == (409, "replayed")
    meeting.wall = NOW + 601.0
    assert error(meeting.rendezvous.admit(early)) == (403, "clock-skew")
    meeting.rendezvous.admit(meeting.request(meeting.claim("r00", "peers")))
    assert len(meeting.rendezvous._nonces) == 1


@pytest.mark.parametrize(("skew", "status"), [(300, 200), (-300, 200), (301, 403), (-301, 403)])
def test_the_clocks_may_differ_by_five_minutes(skew: int, status: int) -> None:
    answer = Meeting().join("r00", time=NOW + skew)
    assert answer.status == status
    if status == 403:
        assert answer.body["error"] == "clock-skew"
        assert ("ahead of" if skew > 0 else "behind") in answer.body["reason"]


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"name": "r09"}, 404, "unknown-member"),
        ({"job": "other"}, 404, "unknown-rendezvous"),
        ({"generation": 2}, 404, "unknown-rendezvous"),
        ({"name": "r00\nr01"}, 400, "malformed"),
        ({"name": ""}, 400, "malformed"),
        ({"nonce": "short"}, 400, "malformed"),
        ({"time": 10**400}, 400, "malformed"),
        ({"time": 0}, 400, "malformed"),
        ({"public_key": ""}, 400, "malformed"),
        ({"public_key": base64.b64encode(bytes([7]) * 31).decode()}, 400, "malformed"),
        ({"public_key": base64.b64encode(bytes(32)).decode()}, 400, "malformed"),
        ({"public_key": public_key(1)[:-2] + "F="}, 400, "malformed"),
        ({"public_key": "\ud800" * 44}, 400, "malformed"),
        ({"endpoint": "node.example:51820"}, 400, "malformed"),
        ({"endpoint": "[2001:db8::1]:51820"}, 400, "malformed"),
        ({"endpoint": "192.0.2.1"}, 400, "malformed"),
        ({"endpoint": "192.0.2.1:0"}, 400, "malformed"),
        ({"endpoint": "192.0.2.1:65536"}, 400, "malformed"),
        ({"endpoint": "192.0.2.1:51820\n"}, 400, "malformed"),
        ({"endpoint": "0.0.0.0:51820"}, 400, "malformed"),
        ({"endpoint": "127.0.0.1:51820"}, 400, "malformed"),
        ({"endpoint": "224.0.0.1:51820"}, 400, "malformed"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], status: int, word: str) -> None:
    meeting = Meeting()
    request = meeting.request(meeting.claim("r00"))
    assert error(meeting.rendezvous.join(replace(request, claim=replace(request.claim, **change)))) == (status, word)
    assert meeting.rendezvous.missing == ("r00", "r01", "r02")


def test_a_reserved_endpoint_is_the_only_one() -> None:
    meeting = Meeting(expected(r00="192.0.2.50:51820"))
    assert error(meeting.join("r00")) == (403, "endpoint-not-reserved")
    assert meeting.join("r00", endpoint="192.0.2.50:51820").status == 200


def test_who_has_not_joined_gets_no_peers() -> None:
    meeting = Meeting()
    assert error(meeting.rendezvous.admit(meeting.request(meeting.claim("r00", "peers")))) == (409, "not-joined")


def test_a_seal_is_bound_to_the_question_and_to_every_byte_of_the_answer() -> None:
    meeting = Meeting()
    claim = meeting.claim("r00", "peers")
    seals = {
        meeting.rendezvous.seal(claim, 200, b"{}"),
        meeting.rendezvous.seal(claim, 202, b"{}"),
        meeting.rendezvous.seal(claim, 200, b"{ }"),
        meeting.rendezvous.seal(replace(claim, nonce="0" * 32), 200, b"{}"),
        meeting.rendezvous.seal(replace(claim, purpose="join"), 200, b"{}"),
        meeting.rendezvous.seal(replace(claim, name="r01"), 200, b"{}"),
        f"hmac-sha256 {hmac.new(key('r00'), claim.message, hashlib.sha256).hexdigest()}",
    }
    assert len(seals) == 7
    assert meeting.rendezvous.seal(replace(claim, name="r09"), 200, b"{}") is None


def test_another_scheme_stands_beside_the_first() -> None:
    class Platform:
        def refuse(self, member: Member, claim: Claim, value: str) -> str | None:
            return None if value == f"document-of-{member.name}" else "not signed by the platform"

        def seal(self, member: Member, message: bytes) -> str | None:
            return None

    meeting = Meeting(proofs={"hmac-sha256": JoinSecret(), "aws-identity-document": Platform()})
    by = {
        name: Request(claim=meeting.claim("r00"), proof=f"aws-identity-document document-of-{name}") for name in SECRETS
    }
    assert error(meeting.rendezvous.join(by["r01"])) == (403, "wrong-proof")
    assert meeting.rendezvous.join(by["r00"]).status == 200


def test_a_secret_shows_nowhere() -> None:
    member = expected().members[0]
    assert key("r00").hex() not in repr(member)
    assert str(key("r00")) not in repr(member)
