"""Waits between calls: drawn, doubled, bounded, or as the cloud asks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.clouds.feeds.again import Again, Busy
from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, PermissionDenied, Unavailable


def failing(times, error):
    calls = []

    def call():
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "answer"

    return call, calls


def error(kind=Unavailable):
    return kind([Diagnostic(code="SKY-APPLY-326", summary="busy")])


def test_an_answer_needs_no_wait():
    waits = []
    assert Again(pause=waits.append).ask(lambda: 7) == 7
    assert waits == []


@given(
    drawn=st.floats(0, 1),
    base=st.floats(0.01, 10),
    most=st.floats(0.01, 60),
    attempts=st.integers(1, 9),
    fails=st.integers(0, 12),
)
def test_waits_are_drawn_from_a_doubling_span_up_to_the_limit(drawn, base, most, attempts, fails):
    waits = []
    again = Again(attempts=attempts, base_seconds=base, most_seconds=most, pause=waits.append, draw=lambda: drawn)
    call, calls = failing(fails, error())
    if fails >= attempts:
        with pytest.raises(Unavailable):
            again.ask(call)
    else:
        assert again.ask(call) == "answer"
    assert len(calls) == min(fails + 1, attempts)
    assert waits == [drawn * min(most, base * 2**n) for n in range(len(calls) - 1)]


def test_what_the_cloud_asks_for_is_waited():
    waits = []
    call, _ = failing(2, Busy(error(), 12.0))
    assert Again(pause=waits.append).ask(call) == "answer"
    assert waits == [12.0, 12.0]


def test_a_wait_beyond_bearing_ends_asking_at_once():
    waits = []
    call, calls = failing(1, Busy(error(), 3600.0))
    with pytest.raises(Unavailable):
        Again(pause=waits.append).ask(call)
    assert (waits, len(calls)) == ([], 1)


def test_busy_to_the_end_is_the_error_that_it_holds():
    call, calls = failing(9, Busy(error(), 1.0))
    with pytest.raises(Unavailable):
        Again(attempts=3, pause=lambda _: None).ask(call)
    assert len(calls) == 3


@pytest.mark.parametrize("kind", [PermissionDenied, CloudError])
def test_a_refusal_is_no_reason_to_ask_again(kind):
    call, calls = failing(1, error(kind))
    with pytest.raises(kind):
        Again(pause=lambda _: None).ask(call)
    assert len(calls) == 1


def test_after_a_call_in_vain_the_next_is_given_up_sooner_until_one_is_answered():
    waits = []
    again = Again(attempts=5, pause=waits.append)
    for calls_made in (5, 2, 2):
        call, calls = failing(99, error())
        with pytest.raises(Unavailable):
            again.ask(call)
        assert len(calls) == calls_made
    assert again.ask(lambda: 7) == 7
    call, calls = failing(4, error())
    assert again.ask(call) == "answer"
    assert len(calls) == 5


def test_a_refusal_makes_nobody_weary():
    again = Again(attempts=3, pause=lambda _: None)
    with pytest.raises(PermissionDenied):
        again.ask(failing(1, error(PermissionDenied))[0])
    call, calls = failing(2, error())
    assert again.ask(call) == "answer"
    assert len(calls) == 3
