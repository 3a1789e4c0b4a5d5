"""`skyplan doctor`: checks that run at once, each with a time of its own, none hiding another.

Decides how checks are run and what an end that nobody expected looks like.  What is checked stands in `doctor_tools`, `doctor_files`, `doctor_record`,
`doctor_services` and `doctor_clouds`; nothing that any of them does changes anything, and a test holds them to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from queue import Empty, SimpleQueue
from typing import Any, Final

from planner.model.errors import SkyplanError

MOST_AT_ONCE: Final = 24
"""Threads: most of them wait for somebody else."""


class State(StrEnum):
    """How it is: `warn` may do, `fail` will not, `skipped` was not looked at."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fact in one sentence.  `mend`: a command, or what to do where there is none; `code`: for `skyplan explain`."""

    check: str
    state: State
    fact: str
    mend: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """`run` gives its rows.  What it raises becomes one."""

    name: str
    run: Callable[[], Sequence[Row]]


def ok(check: str, fact: str) -> Row:
    """As it should be."""
    return Row(check=check, state=State.OK, fact=fact)


def warn(check: str, fact: str, mend: str, code: str = "") -> Row:
    """It may do."""
    return Row(check=check, state=State.WARN, fact=fact, mend=mend, code=code)


def fail(check: str, fact: str, mend: str, code: str = "") -> Row:
    """It will not do."""
    return Row(check=check, state=State.FAIL, fact=fact, mend=mend, code=code)


def skipped(check: str, why: str) -> Row:
    """It was not looked at."""
    return Row(check=check, state=State.SKIPPED, fact=why)


def from_error(check: str, error: SkyplanError, mend: str = "", state: State = State.FAIL) -> Row:
    """An expected problem; of several the first, and how many more there are."""
    first = error.diagnostics[0] if error.diagnostics else None
    if first is None:
        return Row(check=check, state=state, fact=str(error), mend=mend)
    more = len(error.diagnostics) - 1
    place = f"{first.location}: " if first.location else ""
    fact = f"{place}{first.summary}" + (f" (and {more} more)" if more else "")
    return Row(check=check, state=state, fact=" ".join(fact.split()), mend=mend or first.hint, code=first.code)


def examine(
    checks: Sequence[Check],
    *,
    seconds: float,
    advance: Callable[[str], object] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Row, ...]:
    """The rows of all checks, in their order.  A check that takes longer than `seconds` is one row, and is left behind: nobody waits for its thread."""
    done: SimpleQueue[tuple[int, tuple[Row, ...]]] = SimpleQueue()
    gate = threading.Semaphore(MOST_AT_ONCE)
    begun: dict[int, float] = {}

    def one(number: int, check: Check) -> None:
        with gate:
            begun[number] = clock()
            done.put((number, _rows(check)))

    for number, check in enumerate(checks):
        threading.Thread(target=one, args=(number, check), daemon=True).start()
    rows: dict[int, tuple[Row, ...]] = {}
    while len(rows) < len(checks):
        try:
            number, found = done.get(timeout=0.05)
        except Empty:
            late = [n for n, at in begun.copy().items() if n not in rows and clock() - at > seconds]
            for n in late:
                rows[n] = (_late(checks[n].name, seconds),)
                gate.release()  # its thread keeps its place for good: the others go on
                advance(checks[n].name)
            continue
        if number not in rows:
            rows[number] = found
            advance(checks[number].name)
    return tuple(row for number in range(len(checks)) for row in rows[number])


def _late(name: str, seconds: float) -> Row:
    mend = f"skyplan doctor --timeout {max(60, int(seconds * 4))}"
    return fail(name, f"no answer in {seconds:g} s", mend, "SKY-APPLY-346")


def _rows(check: Check) -> tuple[Row, ...]:
    try:
        return tuple(check.run())
    except SkyplanError as error:
        return (from_error(check.name, error),)
    except Exception as error:  # noqa: BLE001 - one check's fault must not hide the others
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return (fail(check.name, f"the check itself failed: {words}", "report it with these words"),)


def worst(rows: Iterable[Row]) -> State:
    """Of all; ok where there is none."""
    found = {row.state for row in rows}
    return next((s for s in (State.FAIL, State.WARN) if s in found), State.OK)


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """For `--json`."""
    counts = {state.value: sum(row.state is state for row in rows) for state in State}
    return {
        "format_version": "1.0",
        "state": worst(rows).value,
        "counts": counts,
        "checks": [
            {
                "check": row.check,
                "state": row.state.value,
                "fact": row.fact,
                "mend": row.mend or None,
                "code": row.code or None,
            }
            for row in rows
        ],
    }
