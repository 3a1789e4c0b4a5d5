"""All timing of credentials, on generated leases and outages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.agent.cred import timing
from modules.agent.cred.lease import Lease
from modules.agent.cred.timing import CHECKPOINT, DEGRADED, MINT, WAIT, Tried, choose, next_action
from planner.model import runtime

MINUTE = 60.0
jitters = st.floats(-1, 1)


def lease(begins: float = 0, life: float = 3600, name: str = "l") -> Lease:
    return Lease(
        id=name,
        uri="s3://data/",
        access="read",
        begins=begins,
        ends=begins + life,
        shape="aws",
        secret={"k": "v"},
        document={},
    )


leases = st.builds(lease, st.floats(0, 1e5), st.floats(60, 12 * 3600))


def drive(begin: Lease | None, until: float, jitter: float, *, broker=lambda at: True, life: float = 3600):
    """One grant's life as the holder would lead it: every action with its time."""
    now, held, tried, seen = 0.0, begin, Tried(), []
    while now < until:
        word, again = next_action(held, now, jitter, tried)
        seen.append((now, word))
        if word in {CHECKPOINT, DEGRADED}:
            tried = replace(tried, told=word)
        elif word == MINT and broker(now):
            held = lease(now, life, f"l{len(seen)}")
            tried = Tried(0, now, timing.told_after(tried.told, held, now))
        elif word == MINT:
            tried = replace(tried, failures=tried.failures + 1, at=now)
        else:
            assert again > now
            now = again
        assert len(seen) < 20_000
    return seen


def test_the_floor_is_the_records() -> None:
    assert timing.FLOOR_SECONDS == runtime.LEASE_FLOOR_SECONDS


@given(jitters)
def test_an_hour_is_renewed_at_half_of_it(jitter: float) -> None:
    assert 27 * MINUTE - 1e-6 <= timing.mint_at(lease(), jitter) <= 33 * MINUTE + 1e-6


@given(st.floats(timing.FLOOR_SECONDS, 12 * 3600), jitters)
def test_a_broker_that_answers_never_leaves_a_lease_to_worry_about(life: float, jitter: float) -> None:
    words = {word for _, word in drive(lease(0, life), 24 * 3600, jitter, life=life)}
    assert words == {WAIT, MINT}


@given(st.floats(timing.FLOOR_SECONDS, 12 * 3600), jitters)
def test_there_is_time_for_attempts_before_it_is_degraded(life: float, jitter: float) -> None:
    one = lease(0, life)
    assert one.left(timing.mint_at(one, jitter)) >= timing.DEGRADED_SECONDS + timing.TRIES_SECONDS - 1e-6


@given(jitters)
def test_a_day_takes_about_two_mints_an_hour(jitter: float) -> None:
    mints = [at for at, word in drive(None, 24 * 3600, jitter) if word == MINT]
    assert 43 <= len(mints) <= 55


@given(jitters, st.floats(timing.FLOOR_SECONDS, 4 * 3600))
def test_a_broker_that_is_away_is_told_of_once_and_asked_for_a_checkpoint_before_the_end(
    jitter: float, life: float
) -> None:
    seen = drive(lease(0, life), life + 3600, jitter, broker=lambda _at: False)
    told = [(word, life - at) for at, word in seen if word in {CHECKPOINT, DEGRADED}]
    assert [word for word, _ in told] == [DEGRADED, CHECKPOINT]
    assert [left for _, left in told] == pytest.approx([20 * MINUTE, 16 * MINUTE])


@given(jitters)
def test_attempts_are_apart_and_never_give_up(jitter: float) -> None:
    mints = [at for at, word in drive(None, 6 * 3600, jitter, broker=lambda _at: False) if word == MINT]
    gaps = [b - a for a, b in pairwise(mints)]
    assert min(gaps) >= timing.FIRST_PAUSE_SECONDS / 2 - 1e-6
    assert max(gaps) <= timing.LONGEST_PAUSE_SECONDS + 1e-6
    assert mints[-1] > 6 * 3600 - 2 * timing.LONGEST_PAUSE_SECONDS


@given(jitters, st.floats(3600, 5 * 3600))
def test_it_goes_on_by_itself_when_the_broker_returns(jitter: float, back: float) -> None:
    seen = drive(lease(), back + 7200, jitter, broker=lambda at: at >= back)
    assert next(at for at, word in seen if word == MINT and at >= back) <= back + timing.LONGEST_PAUSE_SECONDS
    assert not [word for at, word in seen if word in {CHECKPOINT, DEGRADED} and at > back]


def test_every_outage_is_told_of_anew() -> None:
    away = ((3600, 3 * 3600), (6 * 3600, 8 * 3600))
    seen = drive(lease(), 10 * 3600, 0, broker=lambda at: not any(a <= at < b for a, b in away))
    assert [word for _, word in seen if word in {CHECKPOINT, DEGRADED}] == [DEGRADED, CHECKPOINT] * 2


@given(jitters, st.floats(60, timing.FLOOR_SECONDS - 1))
def test_leases_under_the_floor_make_no_storm_and_one_request_for_a_checkpoint(jitter: float, life: float) -> None:
    seen = drive(None, 3600, jitter, life=life)
    assert sum(word == MINT for _, word in seen) <= 2 * 3600 / timing.LONGEST_PAUSE_SECONDS + 1
    assert sum(word == CHECKPOINT for _, word in seen) <= 1


def test_a_broker_that_never_answered_is_told_of_once() -> None:
    words = [word for _, word in drive(None, 3600, 0, broker=lambda _at: False) if word in {CHECKPOINT, DEGRADED}]
    assert words == [DEGRADED]


def test_a_clock_set_back_does_not_stop_the_attempts() -> None:
    assert next_action(None, 100.0, 0, Tried(failures=9, at=1e9, told=DEGRADED)).word == MINT


@given(st.lists(leases, min_size=1, max_size=4), st.floats(0, 2e5))
def test_nothing_near_its_end_is_served_while_there_is_better(held: list[Lease], now: float) -> None:
    chosen = choose(held, now)
    living = [one for one in held if one.left(now) > 0]
    good = [one for one in living if one.left(now) >= timing.CHECKPOINT_SECONDS]
    if good:
        assert chosen in good
        assert chosen.begins == max(one.begins for one in good)
    elif living:
        assert chosen is not None
        assert chosen.ends == max(one.ends for one in living)
    else:
        assert chosen is None
