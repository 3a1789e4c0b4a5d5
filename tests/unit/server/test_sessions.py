"""Sessions: asked for together, remembered for half a minute, never beyond their end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from planner.model.record import stamp
from planner.model.runtime import Refused, Seat, Session
from planner.server.joining import proof_digest
from planner.server.sessions import MAX_TOKEN, Sessions, bearer, digest
from tests.unit.server.server_bed import NOW, Clock


class Known:
    def __init__(self, count: int, *, lasts: timedelta = timedelta(hours=1)) -> None:
        self.sessions = {
            f"t{k}": Session(
                seat=Seat(job="train", generation=1, rank=k), instance_id=f"i-{k}", expires_at=stamp(NOW + lasts)
            )
            for k in range(count)
        }
        self.asked: list[list[str]] = []

    def __call__(self, tokens: Sequence[str], at: datetime) -> Mapping[str, Session]:
        self.asked.append(list(tokens))
        return {t: self.sessions[t] for t in tokens if t in self.sessions}


def test_thousands_are_asked_for_together_and_then_remembered() -> None:
    known, clock = Known(2500), Clock()
    sessions = Sessions(known, clock)

    async def run() -> None:
        for _ in range(2):
            found = await asyncio.gather(*(sessions.find(f"t{k}", clock()) for k in range(2500)))
            assert [s.seat.rank for s in found] == list(range(2500))

    asyncio.run(run())
    assert len(known.asked) == 3
    clock.pass_(seconds=31)
    asyncio.run(run())
    assert len(known.asked) == 6


def test_one_that_is_not_known_is_refused_and_not_remembered() -> None:
    known, clock = Known(1), Clock()
    sessions = Sessions(known, clock)

    async def run(token: str) -> None:
        await sessions.find(token, clock())

    for _ in range(2):
        with pytest.raises(Refused):
            asyncio.run(run("t9"))
    assert known.asked == [["t9"], ["t9"]]


def test_it_ends_when_it_ends_and_is_forgotten_when_its_seat_is_taken() -> None:
    known, clock = Known(2, lasts=timedelta(seconds=10)), Clock()
    sessions = Sessions(known, clock)

    async def run(token: str) -> None:
        await sessions.find(token, clock())

    asyncio.run(run("t0"))
    asyncio.run(run("t1"))
    sessions.forget(Seat(job="train", generation=1, rank=0))
    assert sessions.remembered("t0", clock()) is None
    assert sessions.remembered("t1", clock()) is not None
    clock.pass_(seconds=10)
    assert sessions.remembered("t1", clock()) is None
    with pytest.raises(Refused):
        asyncio.run(run("t1"))


def test_a_seat_that_is_taken_while_its_session_is_looked_up_is_not_remembered() -> None:
    known, clock = Known(2), Clock()

    def lookup(tokens: Sequence[str], at: datetime) -> Mapping[str, Session]:
        sessions.forget(Seat(job="train", generation=1, rank=0))
        return known(tokens, at)

    sessions = Sessions(lookup, clock)

    async def run() -> None:
        await asyncio.gather(sessions.find("t0", clock()), sessions.find("t1", clock()))

    asyncio.run(run())
    assert sessions.remembered("t0", clock()) is None
    assert sessions.remembered("t1", clock()) is not None


def test_a_record_that_fails_is_everybodys_answer() -> None:
    def lookup(tokens: Sequence[str], at: datetime) -> Mapping[str, Session]:
        raise OSError

    sessions = Sessions(lookup, Clock())

    async def run() -> list[object]:
        return await asyncio.gather(*(sessions.find(f"t{k}", NOW) for k in range(3)), return_exceptions=True)

    assert [type(e) for e in asyncio.run(run())] == [OSError] * 3


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic eDp5", "Bearer " + "x" * (MAX_TOKEN + 1)])
def test_what_is_no_bearer_token(header: str | None) -> None:
    with pytest.raises(Refused):
        bearer(header)


def test_another_writing_of_a_proof_is_the_same_proof() -> None:
    assert proof_digest("gcp-jwt", "a.b.sig") == proof_digest("gcp-jwt", "a.b.gis")
    assert proof_digest("gcp-jwt", "a.b.sig") != proof_digest("gcp-jwt", "a.c.sig")
    one = {"document": "d", "signature": "s"}
    assert proof_digest("aws-iid", one) == proof_digest("aws-iid", {**one, "signature": "s=", "more": 1})
    signed = "AWS4-HMAC-SHA256 Credential=c, SignedHeaders=h, Signature=" + "a" * 64
    sts = {"headers": {"Authorization": signed}, "body": "b"}
    assert proof_digest("aws-sts", sts) == proof_digest("aws-sts", {"headers": {"authorization": signed + " "}})
    assert proof_digest("one-time", "t") == digest("t")
    assert len(proof_digest("aws-sts", ["nonsense"])) == 64
