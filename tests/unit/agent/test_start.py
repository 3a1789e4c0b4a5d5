"""How long a new attempt pauses before it asks again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

from modules.agent.errors import Away, Denied
from modules.agent.start import Start


class Pauses:
    """Stands for the event that `Start` waits on, and wakes at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def is_set(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return False


def pauses(errors: Iterator[Exception], most: int) -> list[float]:
    """What `Start` waits before each of `most` further attempts, the last of which works."""
    waited, told = Pauses(), list[str]()

    def attempt() -> dict[str, str]:
        if len(waited.seconds) == most:
            return {}
        raise next(errors)

    start = Start(None, None, None, leave=lambda *_: None, told=told.append)
    start._over = waited  # type: ignore[assignment]
    again: Callable[..., Any] = start._again
    assert again("words", attempt) == {}
    assert told
    return waited.seconds


def test_a_held_node_asks_often_enough_that_little_is_done_twice() -> None:
    held = pauses(repeat(Away("HTTP 425 early", word="early")), 400)
    assert max(held) <= 8
    assert min(held[3:]) >= 4, "and not so often that a thousand of them are a load"


def test_who_gets_no_answer_pauses_up_to_a_minute() -> None:
    away = pauses(repeat(Away("HTTP 503 busy", word="busy")), 400)
    assert 30 <= max(away) <= 60
    assert 30 <= max(pauses(repeat(Denied("unknown", "no session")), 40)) <= 60


def test_a_hold_after_an_outage_is_not_waited_for_as_an_outage() -> None:
    errors = chain(repeat(Away("no connection"), 10), repeat(Away("HTTP 425", word="early")))
    assert max(pauses(errors, 20)[10:]) <= 8
