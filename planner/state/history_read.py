"""What the history says: prices as of a moment, over a span, and what was seen of capacity.  Writes nothing.

Decides which price stands where sources disagree: of those confirmed within a day the dearer one (as the catalog's check has it), else the one confirmed last.  "As of T"
is what was known at T: a reading that came later than T is not in it, unless it was imported as history.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlalchemy import text

from planner.model.readings import CapacityWord
from planner.model.record import stamp
from planner.state.history_values import DAY, FAILED, SECOND, PriceWindow, Quotes, Seen, Steps, when

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sqlalchemy import Connection

    Whole = NDArray[np.int64]

_SEEN: Final = """CASE WHEN n.since <= :at THEN n.until ELSE coalesce((SELECT e.until FROM price_seen e
 WHERE e.line_ix = l.ix AND e.since <= :at ORDER BY e.since DESC LIMIT 1), p.at) END"""
_NEWEST: Final = """SELECT q.{columns} FROM {table} q WHERE q.line_ix = l.ix AND q.at <= :at AND q.at + q.lag <= :at
 ORDER BY q.at DESC LIMIT 1"""
_NOW: Final = "SELECT l.series, l.source, n.micro_usd, n.at, n.until FROM line l JOIN price_now n ON n.line_ix = l.ix"


def _listed(connection: Connection) -> str:
    """The names of `:series`, a JSON list."""
    if connection.dialect.name == "postgresql":
        return "IN (SELECT json_array_elements_text(CAST(:series AS json)))"
    return "IN (SELECT value FROM json_each(:series))"


def _joined(connection: Connection, table: str, columns: Sequence[str]) -> str:
    """`table` as p: of each line the newest row that was known."""
    if connection.dialect.name == "postgresql":
        known = _NEWEST.format(columns=", q.".join(columns), table=table)
        return f"CROSS JOIN LATERAL ({known}) AS p"
    known = _NEWEST.format(columns="at", table=table)
    return f"CROSS JOIN {table} AS p ON p.line_ix = l.ix AND p.at = ({known})"


def _rows(connection: Connection, query: str, values: dict[str, Any]) -> Sequence[Any]:
    """As the driver gives them: SQLAlchemy's rows would take three times as long as the query."""
    cursor = connection.execute(text(query), values).cursor
    assert cursor is not None  # noqa: S101 - every query here is a SELECT
    return cursor.fetchall()


def newest(connection: Connection) -> int:
    """The moment by which all that is kept was known; 0 where nothing is."""
    query = "SELECT max(until), max(at + lag), (SELECT max(at + lag) FROM capacity) FROM price_now"
    (found,) = _rows(connection, query, {})
    return max(0, *(at or 0 for at in found))


def quotes(connection: Connection, at: int | None, series: Sequence[str] | None) -> Quotes:
    """As of `at`, or now: of all series or of those."""
    values: dict[str, Any] = {}
    if at is None or (series is None and at >= newest(connection)):
        query = _NOW
    else:
        values["at"] = at
        query = (
            f"SELECT l.series, l.source, p.micro_usd, p.at, {_SEEN} FROM line l "  # noqa: S608 - our own names
            f"{_joined(connection, 'price', ('at', 'micro_usd'))} JOIN price_now n ON n.line_ix = l.ix"
        )
    if series is not None:
        values["series"] = json.dumps(list(series))
        query += f" WHERE l.series {_listed(connection)}"
    rows = sorted(_rows(connection, query, values))
    return _standing(rows, at)


def _standing(rows: Sequence[Any], at: int | None) -> Quotes:
    """One price per series, of rows (series, source, micro-USD, at, until) in order."""
    names, sources, micro, since, until = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    prices, began, seen = (np.array(column, dtype=np.int64) for column in (micro, since, until))
    if at is not None:
        seen = np.where(seen + DAY >= at, at, seen)
    first = [k for k, name in enumerate(names) if not k or name != names[k - 1]]
    if len(first) == len(names):
        chosen, least = np.arange(len(names)), prices
    else:
        plain = prices.tolist(), seen.tolist()
        picked = [_of_sources(range(a, b), *plain) for a, b in zip(first, [*first[1:], len(names)], strict=True)]
        chosen = np.array([k for k, _ in picked], dtype=np.int64)
        least = np.array([low for _, low in picked], dtype=np.int64)
    return Quotes(
        series=tuple(names[k] for k in chosen),
        source=tuple(sources[k] for k in chosen),
        micro_usd=prices[chosen],
        at=began[chosen],
        seen=seen[chosen],
        least_micro_usd=least,
    )


def _of_sources(rows: range, prices: list[int], seen: list[int]) -> tuple[int, int]:
    """Which row stands, and the least price of a fresh one."""
    last = max(seen[rows.start : rows.stop])
    fresh = [(prices[k], seen[k], -k) for k in rows if seen[k] + DAY >= last]
    return -max(fresh)[2], min(fresh)[0]


def changes(connection: Connection, series: Sequence[str], since: int, until: int) -> dict[str, Steps]:
    """Prices from `since` to `until` as known at `until`, beginning with the one that held at `since`; a series without any is left out."""
    lines: dict[str, list[tuple[int, tuple[Whole, Whole]]]] = {}
    for name, ix, points in _points(connection, series, since, until):
        lines.setdefault(name, []).append((ix, points))
    out: dict[str, Steps] = {}
    for name, told in lines.items():
        if len(told) == 1:
            at, micro = told[0][1]
        else:
            at, micro = _merged([(*points, _spans(connection, ix)) for ix, points in told], since, until)
        out[name] = Steps(at=at, micro_usd=micro, until=until)
    return out


def _points(
    connection: Connection, series: Sequence[str], since: int, until: int
) -> list[tuple[str, int, tuple[Whole, Whole]]]:
    """(series, line, (at, micro-USD)) of each line that had a price, in order; one question for all, since one each takes longer than the answers."""
    begin = f"coalesce(({_NEWEST.format(columns='at', table='price').replace(':at', ':since')}), :since)"
    query = (
        "SELECT l.ix, p.at, p.micro_usd FROM line l CROSS JOIN price p"  # noqa: S608 - our own names
        f" WHERE l.series {_listed(connection)} AND p.line_ix = l.ix AND p.at >= {begin} AND p.at < :until"
        " AND p.at + p.lag <= :until"
    )
    names = f"SELECT l.ix, l.series FROM line l WHERE l.series {_listed(connection)} ORDER BY l.series, l.ix"  # noqa: S608 - our own names
    listed = {"series": json.dumps(list(series))}
    rows = np.array(_rows(connection, query, {**listed, "since": since, "until": until}), dtype=np.int64).reshape(-1, 3)
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    ix, at, micro = rows[:, 0], np.maximum(rows[:, 1], since), rows[:, 2].copy()
    first = np.flatnonzero(np.diff(ix, prepend=-1)).tolist()
    ends = {int(ix[a]): (a, b) for a, b in zip(first, [*first[1:], len(ix)], strict=False)}
    return [
        (name, line, (at[slice(*ends[line])], micro[slice(*ends[line])]))
        for line, name in _rows(connection, names, listed)
        if line in ends
    ]


def _spans(connection: Connection, line: int) -> tuple[Whole, Whole]:
    """When the line was confirmed, oldest first."""
    query = """SELECT since, until FROM price_seen WHERE line_ix = :line
 UNION ALL SELECT since, until FROM price_now WHERE line_ix = :line ORDER BY since"""
    rows = _rows(connection, query, {"line": line})
    found = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _merged(told: Sequence[tuple[Whole, Whole, tuple[Whole, Whole]]], since: int, until: int) -> tuple[Whole, Whole]:
    """One price over time of several sources' (at, micro-USD, spans), chosen as `quotes` does."""
    seen_at = [edge for _, _, (begin, end) in told for edge in (begin, end + DAY + 1)]
    times = np.unique(np.concatenate([*(at for at, _, _ in told), *seen_at]))
    times = times[(times >= since) & (times < until)]
    prices = np.full((len(told), len(times)), -1, dtype=np.int64)
    seen = np.full_like(prices, -1)
    for row, (at, micro, (begin, end)) in enumerate(told):
        held = np.searchsorted(at, times, side="right") - 1
        prices[row] = np.where(held >= 0, micro[held], -1)
        span = np.searchsorted(begin, times, side="right") - 1
        last = np.where(span >= 0, end[span], at[np.maximum(held, 0)])
        seen[row] = np.where(held >= 0, np.where(last + DAY >= times, times, last), -1)
    standing = np.where(seen + DAY >= seen.max(axis=0), prices, -1).max(axis=0)
    kept = (standing > 0) & np.append(True, standing[1:] != standing[:-1])
    return times[kept], standing[kept]


def window(steps: Steps) -> PriceWindow:
    """Weighted by how long each price held."""
    held = np.diff(np.append(steps.at, steps.until)).astype(np.float64)
    prices = steps.micro_usd.astype(np.float64)
    mean = float((prices * held).sum() / held.sum())
    spread = float((((prices - mean) ** 2) * held).sum() / held.sum()) ** 0.5
    order = np.argsort(prices, kind="stable")
    middle = order[np.searchsorted(np.cumsum(held[order]), held.sum() / 2)]
    return PriceWindow(
        min=usd(int(steps.micro_usd.min())),
        median=usd(int(steps.micro_usd[middle])),
        max=usd(int(steps.micro_usd.max())),
        mean=usd(round(mean)),
        volatility=spread / mean,
        points=len(steps.at),
    )


def usd(micro: int) -> Decimal:
    """Millionths as USD."""
    return Decimal(micro) / SECOND


def capacity(connection: Connection, at: int, series: Sequence[str] | None) -> dict[str, Seen]:
    """By series, what was seen last as known at `at`; of two sources the newer word."""
    columns = ("at", "word", "detail")
    query = f"SELECT l.series, l.source, p.at, p.word, p.detail FROM line l {_joined(connection, 'capacity', columns)}"  # noqa: S608 - our own names
    values: dict[str, Any] = {"at": at}
    if series is not None:
        values["series"] = json.dumps(list(series))
        query += f" WHERE l.series {_listed(connection)}"
    rows = sorted(_rows(connection, query, values), key=lambda r: (r[0], r[2], r[1]))
    return {row[0]: _seen(row) for row in rows}


def capacity_changes(
    connection: Connection, series: Sequence[str], since: int, until: int
) -> dict[str, tuple[Seen, ...]]:
    """What was seen from `since` to before `until` as known at `until`, oldest first, after the last word before `since`."""
    query = (
        "SELECT l.series, l.source, p.at, p.word, p.detail FROM line l JOIN capacity p ON p.line_ix = l.ix "  # noqa: S608 - our own names
        f"WHERE l.series {_listed(connection)} AND p.at < :until AND p.at + p.lag <= :until AND p.at >= coalesce("
        "(SELECT max(q.at) FROM capacity q WHERE q.line_ix = l.ix AND q.at < :since), :since)"
    )
    values = {"series": json.dumps(list(series)), "since": since, "until": until}
    rows = sorted(_rows(connection, query, values), key=lambda r: (r[0], r[2], r[1]))
    out: dict[str, list[Seen]] = {}
    for row in rows:
        out.setdefault(row[0], []).append(_seen(row))
    return {name: tuple(found) for name, found in out.items()}


def failures(connection: Connection, since: int, at: int, series: Sequence[str] | None) -> tuple[Seen, ...]:
    """What could not be had or was taken back from `since` to `at`, as known at `at`, oldest first."""
    words = ", ".join(f"'{word.value}'" for word in sorted(FAILED))
    query = (
        "SELECT l.series, l.source, p.at, p.word, p.detail FROM capacity p JOIN line l ON l.ix = p.line_ix "  # noqa: S608 - our own names
        f"WHERE p.at >= :since AND p.at <= :at AND p.at + p.lag <= :at AND p.word IN ({words})"
    )
    values: dict[str, Any] = {"since": since, "at": at}
    if series is not None:
        values["series"] = json.dumps(list(series))
        query += f" AND l.series {_listed(connection)}"
    rows = sorted(_rows(connection, query, values), key=lambda r: (r[2], r[0], r[1]))
    return tuple(map(_seen, rows))


@lru_cache(maxsize=4096)
def _iso(at: int) -> str:
    """Of one poll many words."""
    return stamp(when(at))


def _seen(row: Any) -> Seen:
    series, source, at, word, detail = row
    return Seen(series=series, word=CapacityWord(word), at=_iso(at), detail=detail, source=source)
