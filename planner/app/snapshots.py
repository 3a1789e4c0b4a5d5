"""Market snapshots: prices and capacity words as of one moment, in a file that is reviewed and committed like any other.

Decides the file's form: JSON, one row per series, sorted, so that two snapshots differ where markets do.  A broken one is refused whole.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from planner.app.markets import Told
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError
from planner.model.readings import CapacityWord
from planner.model.record import moment, stamp
from planner.state.history_values import Quotes, Seen, micros, us, when

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT: Final = "1.0"
_SERIES_PARTS: Final = 5
_END: Final = us(datetime(2100, 1, 1, tzinfo=UTC))


def snapshot_text(told: Told) -> str:
    """The file."""
    quotes = told.quotes
    prices = [
        {
            "series": quotes.series[k],
            "usd_per_hour": f"{Decimal(int(quotes.micro_usd[k])) / 1_000_000:f}",
            "least_usd_per_hour": f"{Decimal(int(quotes.least_micro_usd[k])) / 1_000_000:f}",
            "at": stamp(when(int(quotes.at[k]))),
            "seen": stamp(when(int(quotes.seen[k]))),
            "source": quotes.source[k],
        }
        for k in range(len(quotes))
    ]
    parts = [
        f'"as_of": {json.dumps(stamp(told.at))}',
        f'"capacity": {_rows([_word(s) for _, s in sorted(told.capacity.items())])}',
        f'"failures": {_rows([_word(s) for s in told.failures])}',
        f'"format_version": {json.dumps(FORMAT)}',
        '"kind": "skyplan market snapshot"',
        f'"prices": {_rows(prices)}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rows(rows: Sequence[Mapping[str, str]]) -> str:
    """One per line."""
    if not rows:
        return "[]"
    return "[\n" + ",\n".join(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows) + "\n]"


def _word(seen: Seen) -> dict[str, str]:
    return {
        "series": seen.series,
        "word": seen.word.value,
        "at": seen.at,
        "detail": seen.detail,
        "source": seen.source,
    }


def read_snapshot(path: Path, *, shown: str, at: datetime | None, least: str) -> Told:
    """What it says, at its own moment: that of the catalog if later, `at` where given.  Raises InputError (SKY-SPEC-101, SKY-CAT-101)."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary=why, location=Location(shown))]) from error
    except (ValueError, RecursionError) as error:  # also a number that is too long to be read
        where = Location(shown, getattr(error, "lineno", 1), getattr(error, "colno", 1))
        raise InputError([Diagnostic(code="SKY-CAT-101", summary="not JSON", location=where)]) from error
    try:
        found = _parsed(body, shown)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise _broken(shown, f"no market snapshot of format {FORMAT}: {error!r}") from error
    known = datetime.fromisoformat(least)
    own = max(found.at, known if known.tzinfo else known.replace(tzinfo=UTC))
    return Told(
        at=at or own, source=found.source, quotes=found.quotes, capacity=found.capacity, failures=found.failures
    )


def _parsed(body: Any, shown: str) -> Told:
    if body["kind"] != "skyplan market snapshot" or body["format_version"] != FORMAT:
        raise ValueError(f"kind {body['kind']!r}, version {body['format_version']!r}")
    prices = cast("list[dict[str, str]]", body["prices"])
    rows = sorted(
        (
            _series(p["series"]),
            _micros(p["usd_per_hour"]),
            _micros(p["least_usd_per_hour"]),
            _us(p["at"]),
            _us(p["seen"]),
            str(p["source"]),
        )
        for p in prices
    )
    if len({row[0] for row in rows}) != len(rows):
        raise ValueError("a series stands twice")
    known = _us(body["as_of"])
    told = [at for row in rows for at in row[3:5]] + [_us(s["at"]) for s in (*body["capacity"], *body["failures"])]
    if not all(0 <= at <= known < _END for at in (*told, 0)):
        raise ValueError("a moment before 1970 or after `as_of`, or that after 2099")
    columns = [np.array([row[k] for row in rows], dtype=np.int64) for k in range(1, 5)]
    return Told(
        at=moment(body["as_of"]),
        source=shown,
        quotes=Quotes(
            series=tuple(row[0] for row in rows),
            source=tuple(row[5] for row in rows),
            micro_usd=columns[0],
            least_micro_usd=columns[1],
            at=columns[2],
            seen=columns[3],
        ),
        capacity={s.series: s for s in map(_seen, body["capacity"])},
        failures=tuple(map(_seen, body["failures"])),
    )


def _seen(row: Mapping[str, str]) -> Seen:
    return Seen(
        series=_series(row["series"]),
        word=CapacityWord(row["word"]),
        at=stamp(moment(row["at"])),
        detail=str(row["detail"]),
        source=str(row["source"]),
    )


def _series(text: str) -> str:
    if len(text.split("/")) != _SERIES_PARTS or not text.isprintable():
        raise ValueError(f"{text!r} is no series")
    return text


def _micros(text: str) -> int:
    try:
        found = micros(Decimal(text))
    except InvalidOperation:
        found = None
    if found is None:
        raise ValueError(f"{text!r} is no price")
    return found


def _us(text: str) -> int:
    return us(moment(text))


def _broken(shown: str, why: str) -> InputError:
    return InputError([Diagnostic(code="SKY-CAT-101", summary=why, location=Location(shown))])
