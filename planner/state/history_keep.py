"""How much history there is, and letting old parts of it go.

Decides what may go: never the newest price of a line, nor the one that holds where the kept part begins.  Rows go a few lines at a time, so that writers get in between.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from planner.model.record import stamp
from planner.state.history_values import Stored, when
from planner.state.transactions import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LINES: Final = 200
"""Per transaction."""
_MINE: Final = "t.line_ix >= :begin AND t.line_ix < :end AND t.at < :keep"
_OLDER: Final = "SELECT 1 FROM {table} q WHERE q.line_ix = t.line_ix AND q.at > t.at AND q.at {before} :keep"
_MICROSECOND: Final = timedelta(microseconds=1)


def stored(connection: Connection) -> Stored:
    """Counted row by row: for people, not for a plan."""
    counts = [connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in ("price", "capacity")]  # noqa: S608 - our own names
    newest = connection.execute(text("SELECT max(until) FROM price_now")).scalar()
    series = connection.execute(text("SELECT count(DISTINCT series) FROM line")).scalar_one()
    sources = connection.execute(text("SELECT DISTINCT source FROM line ORDER BY source")).scalars()
    return Stored(
        series=series,
        prices=counts[0],
        capacity=counts[1],
        newest=stamp(when(newest)) if newest is not None else "",
        sources=tuple(sources),
    )


def compact(engine: Engine, keep: int, every: timedelta | None, *, dry: bool = False) -> int:
    """See `History.compact`."""
    with reading(engine) as connection:
        lines = connection.execute(text("SELECT coalesce(max(ix) + 1, 0) FROM line")).scalar_one()
    gone = 0
    for begin in range(0, lines, LINES):
        values = {"begin": begin, "end": begin + LINES, "keep": keep}
        with (reading if dry else writing)(engine) as connection:
            for table in ("price", "capacity"):
                newer = _OLDER.format(table=table, before="<=")
                if every is not None:
                    values["every"] = every // _MICROSECOND
                    newer = f"{_OLDER.format(table=table, before='<')} AND q.at / :every = t.at / :every"
                gone += _gone(connection, f"{table} AS t WHERE {_MINE} AND EXISTS ({newer})", values, dry=dry)
            if every is None:
                seen = "price_seen WHERE line_ix >= :begin AND line_ix < :end AND until < :keep"
                gone += _gone(connection, seen, values, dry=dry)
    return gone


def _gone(connection: Connection, rows: str, values: dict[str, int], *, dry: bool) -> int:
    """How many of these rows go, or would."""
    if dry:
        return connection.execute(text(f"SELECT count(*) FROM {rows}"), values).scalar_one()  # noqa: S608 - our own names
    return connection.execute(text(f"DELETE FROM {rows}"), values).rowcount  # noqa: S608 - our own names
