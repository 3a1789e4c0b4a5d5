"""Writing readings of prices and capacity into the record: changes only, each once, in whatever order and from however many watchers they come.

Decides what is new.  A price equal to the one before it (of its series and source) is no change; of two that one source tells of one moment the first stands; a price
that comes late for a time after which the older one was seen again lasts only until then.  Writers take turns, so what is read here stays so until it is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from planner.model.diagnostic import Diagnostic, Severity
from planner.model.readings import CapacityReading, PriceReading
from planner.state.history_values import DAY, EPOCH, FAILED, HOUR, SECOND, Recorded, micros, us

if TYPE_CHECKING:
    from sqlalchemy import Connection

BATCH: Final = 50_000
"""Readings held at a time."""
SKEW: Final = 60 * SECOND
"""What other clocks may be ahead."""
MOST_TOLD: Final = 1000
"""Refusals that are told one by one."""
TURN: Final = 0x53594849
"""Key of PostgreSQL's advisory lock under which writers take turns; SQLite has one writer anyway."""

_TEXT: Final = frozenset({"series", "source", "word", "detail"})

Line = tuple[str, str]
Point = tuple[int, int, int]
"""Line, moment, micro-USD."""


class Recording:
    """One call's readings, in the transaction of `connection`.  `lines` is what is known of numbers by (series, source), and grows.

    `live`: they hold now, as their source says at `now`.  Otherwise they are history, taken as if it had been known when it happened.
    """

    def __init__(self, connection: Connection, lines: dict[Line, int], *, now: datetime, live: bool) -> None:
        self._connection = connection
        self._postgresql = connection.dialect.name == "postgresql"
        self._lines = lines
        self._numbers: dict[tuple[str, ...], int] = {}
        self._now = us(now)
        self._live = live
        self._new = self._unchanged = self._silent = 0
        self._refused: list[Diagnostic] = []
        self._looked = False
        self._made: list[tuple[int, str, str]] = []
        if self._postgresql:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": TURN})
        else:
            connection.exec_driver_sql("PRAGMA cache_size = -32768")

    def take(self, readings: Iterable[PriceReading | CapacityReading]) -> Recorded:
        """All of them, a batch at a time."""
        it = iter(readings)
        latest, numbers = self._now + SKEW, self._numbers
        while batch := list(islice(it, BATCH)):
            prices: list[Point] = []
            seen: list[tuple[int, int, str, str]] = []
            for r in batch:
                at = moment(r.observed_at)
                if at > latest:
                    self._refuse("SKY-CAT-117", f"{r.series} {r.observed_at} ({r.source}): later than this clock")
                    continue
                key = (r.cloud, r.region, r.zone, r.instance_type, r.capacity, r.source)
                line = numbers.get(key)
                if line is None:
                    if not f"{r.series}{r.source}".isprintable():
                        self._refuse("SKY-CAT-116", f"{r.series!r} ({r.source!r}): signs that are not written")
                        continue
                    line = numbers[key] = self._numbered((r.series, r.source))
                if isinstance(r, PriceReading):
                    price = micros(r.usd_per_hour)
                    if price is None:
                        self._refuse("SKY-CAT-102", f"{r.series} {r.observed_at} ({r.source}): {r.usd_per_hour}")
                    else:
                        prices.append((line, at, price))
                else:
                    seen.append((line, at, r.word.value, _written(r.detail)))
            self._put("line", ("ix", "series", "source"), self._made)
            self._made.clear()
            self._prices(prices)
            self._capacity(seen)
        if self._silent:
            self._refused.append(_refusal("SKY-CAT-116", f"{self._silent:,} more readings were refused"))
        return Recorded(new=self._new, unchanged=self._unchanged, refused=tuple(self._refused))

    def _refuse(self, code: str, summary: str) -> None:
        if len(self._refused) < MOST_TOLD:
            self._refused.append(_refusal(code, summary))
        else:
            self._silent += 1

    def _numbered(self, line: Line) -> int:
        """A new one gets the next number; its row is written with the batch."""
        if not self._looked and line not in self._lines:
            self._looked = True
            query = "SELECT series, source, ix FROM line WHERE ix >= :known"
            for series, source, ix in self._connection.execute(text(query), {"known": len(self._lines)}):
                self._lines[series, source] = ix
        number = self._lines.get(line)
        if number is None:
            number = self._lines[line] = len(self._lines)
            self._made.append((number, *line))
        return number

    def _prices(self, rows: list[Point]) -> None:
        rows.sort()
        before = _Standing.of(self, sorted({row[0] for row in rows}))
        late = [(ix, at) for ix, at, _ in rows if (s := before.get(ix)) and at <= s.told_at]
        earlier = dict(zip(late, self._before("price", "micro_usd", late), strict=True))
        kept: list[Point] = []
        closed: list[Point] = []
        for ix, found in groupby(rows, key=itemgetter(0)):
            told = list(found)
            standing = before.get(ix)
            if standing is None:
                standing = before[ix] = _Standing(ix, told[0][1], told[0][2], self._lag(told[0][1]), fresh=True)
                first, told = told[0], told[1:]
                kept.append(first)
                closed += standing.confirmed([self._now if self._live else first[1]])
            self._of_line(standing, told, earlier, kept)
            if told:
                closed += standing.confirmed([self._now] if self._live else [at for _, at, _ in told])
        self._new += len(kept)
        self._unchanged += len(rows) - len(kept)
        now, live = self._now, self._live
        told = [(ix, at, micro, max(0, now - at) if live else 0) for ix, at, micro in kept]
        self._put("price", ("line_ix", "at", "micro_usd", "lag"), told)
        self._put("price_now", _Standing.COLUMNS, [s.row() for s in before.values()], _upsert(_Standing.COLUMNS))
        self._put("price_seen", ("line_ix", "since", "until"), closed, self._longer())

    def _of_line(
        self,
        standing: _Standing,
        told: Sequence[Point],
        earlier: dict[tuple[int, int], tuple[int, Any] | None],
        kept: list[Point],
    ) -> None:
        """Keep what is a change among one line's readings, oldest first."""
        last: tuple[int, int] | None = None  # what this batch kept among the late ones
        newest, told_at, price = standing.at, standing.told_at, standing.micro_usd
        for ix, at, micro in told:
            if at > told_at:
                if at == standing.told_at:
                    self._same_moment(standing.micro_usd, micro, ix, at)
                    continue
                standing.told_at = at
                if micro != standing.micro_usd:
                    kept.append((ix, at, micro))
                    standing.at, standing.micro_usd, standing.lag = at, micro, self._lag(at)
                continue
            found = earlier.get((ix, at))
            if last and (found is None or last[0] >= found[0]):
                found = last
            if found and found[0] == at:
                self._same_moment(found[1], micro, ix, at)
            elif found is None or found[1] != micro:
                if at == told_at:
                    # the newest price was confirmed at that very moment
                    self._same_moment(price, micro, ix, at)
                    continue
                kept.append((ix, at, micro))
                last = (at, micro)
                if newest < at and standing.at == newest:
                    kept.append((ix, told_at, price))
                    standing.at, standing.lag = told_at, self._lag(told_at)
                    self._unchanged += 1  # a row of its own, not a reading
                    self._new -= 1

    def _same_moment(self, stands: int, told: int, ix: int, at: int) -> None:
        if stands != told:
            series, source = next(line for line, number in self._lines.items() if number == ix)
            summary = f"{series} ({source}): {stands} and {told} micro-USD at one moment, {at} us; the first stands"
            self._refuse("SKY-CAT-116", summary)
            self._unchanged -= 1

    def _capacity(self, rows: list[tuple[int, int, str, str]]) -> None:
        rows.sort()
        earlier = self._before("capacity", "word || ' ' || detail", [(ix, at) for ix, at, _, _ in rows])
        kept: list[tuple[int, int, str, str, int]] = []
        last: tuple[int, int, str] | None = None
        for (ix, at, word, detail), found in zip(rows, earlier, strict=True):
            said = f"{word} {detail}"
            if last and last[0] == ix and (found is None or last[1] >= found[0]):
                found = last[1:]  # noqa: PLW2901 - the nearer of two
            again = word in FAILED and found and at - found[0] >= HOUR
            if found and (found[0] == at or (found[1] == said and not again)):
                self._unchanged += 1
                continue
            kept.append((ix, at, word, detail, self._lag(at)))
            last = (ix, at, said)
        self._new += len(kept)
        self._put("capacity", ("line_ix", "at", "word", "detail", "lag"), kept)

    def _lag(self, at: int) -> int:
        return max(0, self._now - at) if self._live else 0

    # the two databases

    def _before(self, table: str, value: str, keys: Sequence[tuple[int, int]]) -> list[tuple[int, Any] | None]:
        """By key (line, moment): the newest row of that moment or before, as (moment, value)."""
        out: list[tuple[int, Any] | None] = []
        row = f"SELECT at, {value} AS told FROM {table} WHERE line_ix = %s AND at <= %s ORDER BY at DESC LIMIT 1"  # noqa: S608 - our own names
        for begin in range(0, len(keys), 5000):
            listed = json.dumps(keys[begin : begin + 5000])
            if self._postgresql:
                found = row % ("CAST(k.value ->> 0 AS integer)", "CAST(k.value ->> 1 AS bigint)")
                query = (
                    f"SELECT p.at, p.told FROM json_array_elements(CAST(:keys AS json)) WITH ORDINALITY AS k(value, n) "  # noqa: S608
                    f"LEFT JOIN LATERAL ({found}) AS p ON true ORDER BY k.n"
                )
                rows = self._connection.execute(text(query), {"keys": listed}).all()
            else:
                inner = row % ("json_extract(k.value, '$[0]')", "json_extract(k.value, '$[1]')")
                # as one value, so that the row is looked for once
                query = f"SELECT (SELECT at || ' ' || told FROM ({inner})) FROM json_each(?) AS k ORDER BY k.key"  # noqa: S608
                rows = [_split(r[0], table) for r in self._connection.exec_driver_sql(query, (listed,))]
            out += [None if r is None or r[0] is None else (r[0], r[1]) for r in rows]
        return out

    def standing(self, lines: Sequence[int]) -> Iterator[Sequence[int]]:
        """Rows of `price_now`."""
        columns = ", ".join(_Standing.COLUMNS)
        wanted = "SELECT CAST(value AS integer) FROM json_array_elements_text(CAST(:keys AS json))"
        if not self._postgresql:
            wanted = "SELECT value FROM json_each(:keys)"
        query = f"SELECT {columns} FROM price_now WHERE line_ix IN ({wanted})"  # noqa: S608 - our own names
        yield from self._connection.execute(text(query), {"keys": json.dumps(lines)})

    def _longer(self) -> str:
        most = "greatest" if self._postgresql else "max"
        return f"ON CONFLICT (line_ix, since) DO UPDATE SET until = {most}(price_seen.until, excluded.until)"

    def _put(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], conflict: str = "") -> None:
        if not rows:
            return
        into = f"INSERT INTO {table} ({', '.join(columns)})"
        if not self._postgresql:
            query = f"{into} VALUES ({', '.join('?' * len(columns))}) {conflict}"
            self._connection.exec_driver_sql(query, list(rows))
            return
        kinds = [("text" if name in _TEXT else "bigint") for name in columns]
        arrays = ", ".join(f"CAST(%s AS {kind}[])" for kind in kinds)
        values = tuple(
            list(column) if kind == "text" else "{" + ",".join(map(str, column)) + "}"
            for kind, column in zip(kinds, zip(*rows, strict=True), strict=True)
        )
        self._connection.exec_driver_sql(f"{into} SELECT * FROM unnest({arrays}) {conflict}", values)  # noqa: S608 - our own names


class _Standing:
    """A line's present."""

    COLUMNS: Final = ("line_ix", "at", "micro_usd", "lag", "told_at", "since", "until")
    __slots__ = ("at", "ix", "lag", "micro_usd", "since", "told_at", "until")

    def __init__(self, ix: int, at: int, micro_usd: int, lag: int, *, fresh: bool = False) -> None:
        self.ix, self.at, self.micro_usd, self.lag = ix, at, micro_usd, lag
        self.told_at = at
        self.since = self.until = 0 if fresh else at

    @classmethod
    def of(cls, recording: Recording, lines: Sequence[int]) -> dict[int, _Standing]:
        """By number."""
        out: dict[int, _Standing] = {}
        for ix, at, micro_usd, lag, told_at, since, until in recording.standing(lines):
            one = out[ix] = cls(ix, at, micro_usd, lag)
            one.told_at, one.since, one.until = told_at, since, until
        return out

    def row(self) -> tuple[int, ...]:
        """As COLUMNS."""
        return (self.ix, self.at, self.micro_usd, self.lag, self.told_at, self.since, self.until)

    def confirmed(self, moments: Sequence[int]) -> list[Point]:
        """Confirmed at those moments, oldest first; spans that are over, as (line, since, until)."""
        over: list[Point] = []
        early: list[int] = []  # the span before the present one that is being told of
        for at in moments:
            if not self.until:
                self.since = self.until = at
            elif at >= self.since:
                if at - self.until > DAY:
                    over.append((self.ix, self.since, self.until))
                    self.since = at
                self.until = max(self.until, at)
            elif early and at - early[1] <= DAY:
                early[1] = at
            else:
                if early:
                    over.append((self.ix, early[0], early[1]))
                early = [at, at]
        if early and self.since - early[1] <= DAY:
            self.since = early[0]
        elif early:
            over.append((self.ix, early[0], early[1]))
        return over


@lru_cache(maxsize=65_536)
def moment(text_: str) -> int:
    """ISO text, UTC where it does not say, in microseconds.  Raises ValueError."""
    at = datetime.fromisoformat(text_)
    return us(at if at.tzinfo else at.replace(tzinfo=EPOCH.tzinfo))


def _written(detail: str) -> str:
    """A cloud's own words without what neither database nor terminal takes."""
    return detail if detail.isprintable() else "".join(c if c.isprintable() else "?" for c in detail)


def _split(found: str | None, table: str) -> tuple[int, Any] | None:
    if found is None:
        return None
    at, _, told = found.partition(" ")
    return int(at), int(told) if table == "price" else told


def _upsert(columns: Sequence[str]) -> str:
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
    return f"ON CONFLICT ({columns[0]}) DO UPDATE SET {changed}"


def _refusal(code: str, summary: str) -> Diagnostic:
    return Diagnostic(code=code, summary=summary, severity=Severity.WARNING)
