"""Recorded histories of prices and capacity as files: which form each has, and its rows as readings.

Decides what a row must look like; a row that cannot be read is named with its line (SKY-CAT-118), one that tells of something else (another operating system, a price
without an instance type) is counted and left out.  Files are read row by row, gzip or zstd or plain.  Forms are known by their header; the public archive of AWS spot
prices has none and is known by its columns.

  ours      observed_at,cloud,region,zone,instance_type,capacity,usd_per_hour[,word,detail,source]
  GCP       snapshot_utc,machine_type,region,on_demand_usd_h,spot_usd_h
  lists     cloud,instance_type,accelerator,count,region,zone,ts,price,spot
  AWS spot  availability zone, instance type, product, price, time; in any order, with a header or without
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import shutil
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError
from planner.model.offer import Cloud
from planner.model.readings import CapacityReading, CapacityWord, PriceReading
from planner.state.history_values import micros
from planner.state.history_write import SKEW, moment

Reading = PriceReading | CapacityReading
Rows = Callable[[list[str]], tuple[Reading, ...]]

MOST_PROBLEMS: Final = 1000
"""Bad rows that are told one by one."""
OTHER_PRODUCT: Final = "of another operating system"
NO_TYPE: Final = "without an instance type"
_CLOUDS: Final = frozenset(c.value for c in Cloud)
_CAPACITY: Final = frozenset({"on_demand", "spot"})
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_LETTER: Final = re.compile(r"[a-z]")
_AWS: Final = {
    "zone": ("availabilityzoneid", "availabilityzone", "zone", "az"),
    "type": ("instancetype",),
    "product": ("productdescription", "product"),
    "price": ("spotprice", "spotusdh", "price"),
    "time": ("timestamp", "timestamputc", "time"),
}
_SHAPES: Final = {
    "zone": re.compile(r"[a-z]{2,4}[a-z0-9-]*[0-9]-az[0-9]+|[a-z]{2}(-[a-z]+)+-[0-9][a-z]"),
    "type": re.compile(r"[a-z][a-z0-9-]*[0-9][a-z0-9-]*\.[a-z0-9-]+"),
    "product": re.compile(r"(Linux/UNIX|Red Hat|SUSE|Windows).*"),
    "price": re.compile(r"[0-9]*\.?[0-9]+"),
    "time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].*"),
}


class PriceFile:
    """One file.  `zones`: AZ id -> region; `now` in microseconds: what is later is refused.  After reading, `rows`, `left_out` and `problems` say what was found."""

    def __init__(self, path: Path, shown: str, *, source: str | None, zones: Mapping[str, str], now: int) -> None:
        self.path = path
        self.shown = shown
        self.rows = 0
        self.left_out: Counter[str] = Counter()
        self.problems: list[Diagnostic] = []
        self.more_problems = 0
        self._source = source or _stem(path)
        self._zones = zones
        self._latest = now + SKEW

    def readings(self) -> Iterator[Reading]:
        """Row by row; bad ones are gathered.  Raises InputError for a file that cannot be read at all, or has a form that is not known."""
        self.rows, self.more_problems = 0, 0
        self.left_out.clear()
        self.problems.clear()
        if self.path.exists() and not self.path.is_file():
            # it is read twice, to check it and to take it: a pipe would be empty the second time
            raise _unreadable(self.shown, "is no file that can be read again; write what it gives into one")
        try:
            with _opened(self.path, self.shown) as text:
                yield from self._all(text)
        except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise _unreadable(self.shown, why) from error

    def _all(self, text: IO[str]) -> Iterator[Reading]:
        lines = iter(text)
        number = 0
        first = ""
        for first in lines:
            number += 1
            if first.strip() and not first.startswith("#"):
                break
        else:
            return
        delimiter = "\t" if "\t" in first else ","
        head = next(csv.reader([first], delimiter=delimiter))
        parse, has_header = self._form(head)
        rows = csv.reader(lines, delimiter=delimiter)
        if not has_header:
            yield from self._row(parse, head, number)
        for row in rows:
            if row:
                yield from self._row(parse, row, number + rows.line_num)

    def _row(self, parse: Rows, row: list[str], line: int) -> tuple[Reading, ...]:
        self.rows += 1
        try:
            found = parse(row)
            for reading in found:
                if moment(reading.observed_at) > self._latest:
                    self._problem("SKY-CAT-117", f"{reading.observed_at} is later than this machine's clock", line)
        except _LeftOut as why:
            self.left_out[str(why)] += 1
            return ()
        except (ValueError, IndexError) as error:
            self._problem("SKY-CAT-118", str(error) or "too few columns", line)
            return ()
        return found

    def _problem(self, code: str, summary: str, line: int) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Diagnostic(code=code, summary=summary, location=Location(self.shown, line)))
        else:
            self.more_problems += 1

    def _form(self, head: list[str]) -> tuple[Rows, bool]:
        names = {name.strip().lower().lstrip("\ufeff"): k for k, name in enumerate(head)}
        if {"observed_at", "cloud", "region", "instance_type", "capacity"} <= names.keys():
            return self._ours(names), True
        if {"snapshot_utc", "machine_type", "region", "on_demand_usd_h", "spot_usd_h"} <= names.keys():
            return self._gcp(names), True
        if {"cloud", "instance_type", "region", "ts", "price", "spot"} <= names.keys():
            return self._lists(names), True
        if found := _aws_header(names):
            return self._aws(found), True
        if found := _aws_shapes(head):
            return self._aws(found), False
        hint = "the forms that are known: see docs/prices.md"
        summary = f"the first row, `{','.join(head)[:80]}`, is of no known history of prices"
        raise InputError([Diagnostic(code="SKY-CAT-118", summary=summary, location=Location(self.shown, 1), hint=hint)])

    def _ours(self, names: dict[str, int]) -> Rows:
        def cell(row: list[str], name: str) -> str:
            return row[names[name]].strip() if name in names else ""

        def parse(row: list[str]) -> tuple[Reading, ...]:
            usd, said = cell(row, "usd_per_hour"), cell(row, "word")
            if bool(usd) == bool(said):
                raise ValueError("give `usd_per_hour` or `word`, one of the two")
            place = {
                "cloud": _one_of(cell(row, "cloud"), _CLOUDS, "cloud"),
                "region": _word(cell(row, "region")),
                "zone": _zone(cell(row, "zone")),
                "instance_type": _word(cell(row, "instance_type")),
                "capacity": _one_of(cell(row, "capacity"), _CAPACITY, "capacity"),
                "observed_at": _time(cell(row, "observed_at")),
                "source": _text(cell(row, "source")) or self._source,
            }
            if usd:
                return (PriceReading(usd_per_hour=_usd(usd), **place),)
            return (CapacityReading(word=CapacityWord(said), detail=_text(cell(row, "detail")), **place),)

        return parse

    def _gcp(self, names: dict[str, int]) -> Rows:
        at, kind, region = names["snapshot_utc"], names["machine_type"], names["region"]
        prices = (("on_demand", names["on_demand_usd_h"]), ("spot", names["spot_usd_h"]))

        def parse(row: list[str]) -> tuple[Reading, ...]:
            return tuple(
                self._price(("gcp", row[region], "", row[kind]), capacity, row[k], row[at])
                for capacity, k in prices
                if row[k]
            )

        return parse

    def _lists(self, names: dict[str, int]) -> Rows:
        cloud, kind, region, at = (names[n] for n in ("cloud", "instance_type", "region", "ts"))
        prices = (("on_demand", names["price"]), ("spot", names["spot"]))

        def parse(row: list[str]) -> tuple[Reading, ...]:
            _one_of(row[cloud], _CLOUDS, "cloud")
            if not row[kind]:
                raise _LeftOut(NO_TYPE)
            zone = row[names["zone"]] if "zone" in names else ""
            return tuple(
                self._price((row[cloud], row[region], zone, row[kind]), capacity, row[k], row[at])
                for capacity, k in prices
                if row[k]
            )

        return parse

    def _aws(self, names: dict[str, int]) -> Rows:
        zone_at, kind, usd, at = (names[n] for n in ("zone", "type", "price", "time"))
        product = names.get("product")

        def parse(row: list[str]) -> tuple[Reading, ...]:
            if product is not None and not row[product].startswith("Linux/UNIX"):
                raise _LeftOut(OTHER_PRODUCT)
            zone = row[zone_at]
            region = self._zones.get(zone) or (zone[:-1] if _LETTER.fullmatch(zone[-1:]) else "")
            if not region:
                raise ValueError(f"`{zone}` is no zone of AWS that the catalog knows")
            return (self._price(("aws", region, zone, row[kind]), "spot", row[usd], row[at]),)

        return parse

    def _price(self, place: tuple[str, str, str, str], capacity: str, usd: str, at: str) -> PriceReading:
        cloud, region, zone, kind = place
        return PriceReading(
            cloud=cloud,
            region=_word(region),
            zone=_zone(zone),
            instance_type=_word(kind),
            capacity=capacity,
            usd_per_hour=_usd(usd),
            observed_at=_time(at),
            source=self._source,
        )


class _LeftOut(Exception):
    """A row about something else."""


@contextmanager
def _opened(path: Path, shown: str) -> Generator[IO[str]]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
            yield text
    elif path.suffix == ".zst":
        program = shutil.which("zstd")
        if program is None:
            raise _unreadable(shown, "the program `zstd` is not installed; unpack the file first")
        with subprocess.Popen([program, "-dcq", "--", str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            try:
                yield io.TextIOWrapper(process.stdout, encoding="utf-8", newline="")
            finally:
                process.stdout.close()
            if process.wait() > 0:
                raise _unreadable(shown, "`zstd` could not unpack it")
    else:
        with path.open(encoding="utf-8", newline="") as text:
            yield text


def _unreadable(shown: str, why: str) -> InputError:
    hint = "a CSV or TSV of prices, plain, .gz or .zst; docs/prices.md has the forms"
    return InputError([Diagnostic(code="SKY-SPEC-101", summary=why, location=Location(shown), hint=hint)])


def _stem(path: Path) -> str:
    """`gcp.csv.gz` -> `gcp`."""
    name = path.name.split(".", 1)[0] or path.name
    return "".join(c if c.isprintable() else "?" for c in name)


def _aws_header(names: Mapping[str, int]) -> dict[str, int] | None:
    plain = {re.sub(r"[^a-z]", "", name): k for name, k in names.items()}
    found = {
        what: k for what, words in _AWS.items() for k in [next((plain[w] for w in words if w in plain), -1)] if k >= 0
    }
    return found if {"zone", "type", "price", "time"} <= found.keys() else None


def _aws_shapes(row: list[str]) -> dict[str, int] | None:
    """Columns by what stands in them."""
    found = {
        what: k
        for what, shape in _SHAPES.items()
        for k in [next((k for k, c in enumerate(row) if shape.fullmatch(c)), -1)]
        if k >= 0
    }
    return found if {"zone", "type", "price", "time"} <= found.keys() else None


@lru_cache(maxsize=65_536)
def _usd(text: str) -> Decimal:
    try:
        usd = Decimal(text)
    except InvalidOperation:
        usd = Decimal(0)
    if usd.is_snan() or micros(usd) is None:
        raise ValueError(f"`{text}` is no price in USD per hour")
    return usd


@lru_cache(maxsize=65_536)
def _time(text: str) -> str:
    try:
        at = moment(text)
    except (ValueError, OverflowError):
        raise ValueError(f"`{text}` is no ISO time") from None
    if at < 0:
        raise ValueError(f"`{text}` lies before 1970")
    return text


@lru_cache(maxsize=65_536)
def _word(text: str) -> str:
    if not _WORD.fullmatch(text):
        raise ValueError(f"`{text}` is no name of a region, zone or instance type")
    return text


def _text(text: str) -> str:
    """Words of a source that people read.  PostgreSQL keeps no zero, and no terminal wants what moves its cursor."""
    if not text.isprintable():
        raise ValueError(f"{text[:40]!r} holds signs that are not written")
    return text


def _zone(text: str) -> str:
    return "" if text in {"", "-"} else _word(text)


def _one_of(text: str, words: frozenset[str], what: str) -> str:
    if text not in words:
        raise ValueError(f"`{text}` is no {what}: {', '.join(sorted(words))}")
    return text
