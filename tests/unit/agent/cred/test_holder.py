"""The holder on a clock of its own: days of leases, a broker that is away, refuses, or has another clock."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.agent.cred.holder import Holder
from modules.agent.cred.lease import Wanted, read
from modules.agent.errors import Away, Denied
from tests.unit.agent.cred.conftest import Bench

DATA = Wanted("data", "s3://acme-data/train/", "read")
CKPT = Wanted("ckpt", "gs://acme-ckpt/train/", "write")


def test_a_day_of_leases_without_a_word_of_trouble(bench) -> None:
    holder = bench.holder(DATA, CKPT)
    lefts = []
    bench.pass_time(holder, 24 * 3600, each=lambda: lefts.append(holder.lease("data").left(bench.now)))
    assert min(lefts) > 20 * 60
    assert set(bench.states) == {"minted"}
    assert 90 <= bench.broker.asked <= 100, "two grants, each about every half hour"
    assert not bench.checkpoints


def test_a_broker_away_for_longer_than_a_lease(bench) -> None:
    """Told at 20 minutes, a checkpoint asked for at 16, no lease after its end, and all is well by itself when the broker is back."""
    holder = bench.holder(DATA)
    bench.pass_time(holder, 60)
    bench.away()
    ends = holder.lease("data").ends
    bench.pass_time(holder, 2 * 3600)
    assert bench.states == ["minted", "degraded", "critical"]
    assert [deadline for _, deadline in bench.checkpoints] == [ends]
    assert bench.checkpoints[0][0] == "the credential for s3://acme-data/train/ ends in 960 s"
    assert holder.lease("data") is None
    with pytest.raises(Away):
        holder.source(DATA.uri)("read")
    bench.broker.fault = None
    bench.pass_time(holder, 61)
    assert holder.lease("data").id == "lease-2"
    bench.pass_time(holder, 3 * 3600)
    assert "critical" not in bench.states[3:]


def test_a_broker_back_in_time_disturbs_nobody(bench) -> None:
    holder = bench.holder(DATA)
    bench.pass_time(holder, 60)
    bench.away()
    bench.pass_time(holder, 35 * 60)
    bench.broker.fault = None
    bench.pass_time(holder, 60)
    assert bench.states == ["minted", "minted"]


def test_the_newest_is_served_and_the_one_before_outlives_a_newer_that_is_nearly_over(bench) -> None:
    holder = bench.holder(DATA)
    bench.pass_time(holder, 1)
    bench.broker.life = 600  # a broker that lends less than the floor
    bench.pass_time(holder, 30 * 60)
    assert len(bench.broker.minted) > 1
    assert holder.lease("data").id == "lease-1", "29 minutes left, against 10"
    bench.pass_time(holder, 29 * 60)
    assert holder.lease("data").id != "lease-1"


@pytest.mark.parametrize("word", ["fenced", "ended"])
def test_a_final_refusal_is_handed_on_and_nothing_is_asked_again(bench, word) -> None:
    holder = bench.holder(DATA, CKPT)
    bench.broker.fault = Denied(word, word)
    bench.pass_time(holder, 24 * 3600)
    assert bench.finals == [word]
    assert bench.broker.asked == 1


def test_another_refusal_is_told_once_and_tried_again(bench) -> None:
    holder = bench.holder(DATA)
    bench.broker.fault = Denied("identity", "not this role")
    bench.pass_time(holder, 600)
    assert bench.states == ["refused", "degraded"]
    bench.broker.fault = None
    bench.pass_time(holder, 61)
    assert bench.states[2:] == ["minted"]


def test_an_answer_that_is_none_counts_as_a_failure(bench) -> None:
    holder = bench.holder(DATA)
    bench.broker.lease = lambda _uri, _access: {"aws": {"secret_access_key": "hunter2"}}
    bench.pass_time(holder, 60)
    assert bench.states == ["degraded"]
    with pytest.raises(ValueError, match="no lease: KeyError"):
        read({"aws": {"secret_access_key": "hunter2"}}, 0.0)


@pytest.mark.parametrize("off", [-7200, 7200])
def test_the_brokers_clock_does_not_matter(bench, off) -> None:
    bench.broker.clock = lambda: bench.now + off
    holder = bench.holder(DATA)
    bench.pass_time(holder, 5 * 3600)
    assert set(bench.states) == {"minted"}
    assert 9 <= bench.broker.asked <= 12
    assert 1500 < holder.lease("data").left(bench.now) <= 3600


def test_a_lease_that_a_store_refused_is_replaced_at_once(bench) -> None:
    holder = bench.holder(DATA)
    bench.pass_time(holder, 300)
    holder.distrust("lease-1")
    assert holder.lease("data") is None
    holder.step()
    assert holder.lease("data").id == "lease-2"


def test_no_text_of_a_lease_or_holder_shows_a_secret(bench) -> None:
    holder = bench.holder(DATA)
    bench.pass_time(holder, 1)
    for text in (repr(holder.lease("data")), repr(holder), str(bench.told)):
        assert "secret-1" not in text
        assert "token-1" not in text


def test_the_thread_mints_survives_a_fault_of_ours_and_forgets_at_the_end(bench) -> None:
    faults = threading.Event()

    def tell(_body) -> None:
        if not faults.is_set():
            faults.set()
            raise RuntimeError("the spool")

    holder = Holder(bench.broker, [DATA], lambda: bench.now, tell=tell)
    holder.start()
    assert faults.wait(5)
    bench.now += 6
    holder.distrust("nothing")
    assert holder.ready(5)
    assert holder.lease("data") is not None
    holder.stop()
    assert holder.lease("data") is None


def test_a_source_gives_the_document_for_our_own_uploads_and_another_where_one_was_refused(bench) -> None:
    holder = bench.holder(DATA, CKPT)
    bench.pass_time(holder, 120)
    source = holder.source(CKPT.uri)
    assert source("write", "")["gcp"] == source("read", "")["gcp"] == {"access_token": "down-2"}
    assert source("write", "lease-2")["gcp"] == {"access_token": "down-3"}
    with pytest.raises(KeyError):
        holder.source(DATA.uri)("write")
    with pytest.raises(KeyError):
        holder.source("s3://elsewhere/")
    bench.away()
    with pytest.raises(OSError, match="no credential for gs://acme-ckpt/train/ now"):
        holder.source(CKPT.uri, absent=OSError)("write", "lease-3")


def test_a_broker_that_asks_to_be_left_alone_is_and_not_for_ever(bench) -> None:
    holder = bench.holder(DATA)
    bench.broker.fault = Away("429", retry_after=120)
    bench.pass_time(holder, 1000)
    assert 8 <= bench.broker.asked <= 10
    bench.broker.fault = Away("429", retry_after=3600)
    before = bench.broker.asked
    bench.pass_time(holder, 3600)
    assert 11 <= bench.broker.asked - before <= 14, "every five minutes at most"


OUTAGES = st.lists(st.tuples(st.integers(0, 24 * 3600), st.integers(1, 3 * 3600)), max_size=4)


@given(OUTAGES, st.integers(30 * 60, 4 * 3600))
def test_whatever_the_broker_does_a_job_is_warned_before_it_has_nothing(outages, life) -> None:
    """Of any outages in a day: nothing that has ended is served, and where there is nothing a checkpoint was asked for 16 minutes before."""
    bench = Bench()
    bench.broker.life = life
    holder = bench.holder(DATA)
    began = bench.now
    held: list[bool] = []

    def look() -> None:
        gone = any(a <= bench.now - began < a + long for a, long in outages)
        bench.broker.fault = Away("away") if gone else None
        lease = holder.lease("data")
        held.append(lease is not None)
        if lease is not None:
            assert lease.left(bench.now) > 0
        elif any(held):
            assert bench.checkpoints
            assert bench.now - bench.checkpoints[-1][1] <= 3 * 4 * 3600, "a warning of this lease, not of one long ago"

    bench.broker.fault = None
    holder.step()
    bench.pass_time(holder, 24 * 3600, each=look)
    for _, deadline in bench.checkpoints:
        assert deadline - 16 * 60 >= began
    assert bench.states.count("critical") == len(bench.checkpoints)
