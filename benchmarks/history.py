"""The history's figures: `python benchmarks/history.py [--points N] [--series N] [--url URL]`.  Measures into a folder of its own and removes it; judges nothing.

The market is made up: every series changes its price `points / series` times, once an hour, told in order of time as a watcher would tell it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median

from planner.model.readings import PriceReading
from planner.model.record import stamp
from planner.state.history import History

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
PRICES = [Decimal(3000 + k) / 100 for k in range(997)]


def readings(series: int, first: int, hours: int) -> Iterator[PriceReading]:
    """All series, hour after hour; each hour another price."""
    regions = [f"region-{k}" for k in range(40)]
    zones = [f"z{k}" for k in range(3)]
    types = [f"type.{k}xlarge" for k in range(series // 120 + 1)]
    names = [(r, z, t) for t in types for r in regions for z in zones][:series]
    for hour in range(first, first + hours):
        at = stamp(BEGIN + hour * HOUR)
        for k, (region, zone, kind) in enumerate(names):
            yield PriceReading(
                cloud="aws",
                region=region,
                zone=zone,
                instance_type=kind,
                capacity="spot",
                usd_per_hour=PRICES[(hour * 7 + k) % 997],
                observed_at=at,
                source="made up",
            )


def spent(act: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Median and least seconds, and the median of this process's own CPU time."""
    took: list[float] = []
    own: list[float] = []
    for _ in range(repeats):
        began, busy = time.perf_counter(), time.process_time()
        act()
        took.append(time.perf_counter() - began)
        own.append(time.process_time() - busy)
    return median(took), min(took), median(own)


def row(what: str, value: str, reach: str = "") -> None:
    """One figure."""
    print(f"{what:<58} {value:>44}   {reach}", flush=True)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--points", type=int, default=10_000_000)
    asked.add_argument("--series", type=int, default=8000)
    asked.add_argument("--chunk", type=int, default=500_000, help="Readings per call.")
    asked.add_argument("--url", help="A database of your own, empty; its tables stay.")
    given = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="history", dir=os.environ.get("TMPDIR")))
    try:
        measure(given, given.url or f"sqlite:///{folder / 'record.sqlite'}", folder)
    finally:
        shutil.rmtree(folder)


def measure(given: argparse.Namespace, url: str, folder: Path) -> None:
    """Fill, then ask."""
    history = History.open(url, "benchmark")
    per_call = max(1, given.chunk // given.series)
    hours = given.points // given.series
    told = own = 0.0
    rates: list[float] = []
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in readings(given.series, 0, per_call):
        pass
    # what making up the readings takes is none of the history's
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for first in range(0, hours, per_call):
        count = min(per_call, hours - first)
        share = count / per_call
        now = BEGIN + (first + count) * HOUR
        began, busy = time.perf_counter(), time.process_time()
        done = history.record(readings(given.series, first, count), now=now, live=False)
        took = time.perf_counter() - began - wall * share
        told, own = told + took, own + time.process_time() - busy - cpu * share
        rates.append(done.new / took)
    points = hours * given.series
    row(
        f"ingest of {points:,} changes in calls of {per_call * given.series:,}",
        f"{points / told:,.0f} points/s",
        ">= 100,000",
    )
    row("… by this process's own CPU time", f"{points / own:,.0f} points/s")
    row("… slowest and last call", f"{min(rates):,.0f}, {rates[-1]:,.0f} points/s")
    row("… peak memory of this process", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if size := sum(f.stat().st_size for f in folder.iterdir()):
        row("… bytes per point on disk", f"{size / points:.1f}")
    ask(history, given, hours, now)
    history.close()


def ask(history: History, given: argparse.Namespace, hours: int, now: datetime) -> None:
    """What plans, charts and decisions ask."""
    name = "aws/region-7/z1/type.0xlarge/spot"
    past = BEGIN + hours // 2 * HOUR + timedelta(minutes=7)

    def ms(act: Callable[[], object], repeats: int) -> str:
        middle, least, own = spent(act, repeats)
        return f"{middle * 1e3:.2f} ms (least {least * 1e3:.2f}, CPU {own * 1e3:.2f})"

    row(f"{given.series:,} series as of a moment in the past", ms(lambda: history.as_of(past), 9), "<= 100 ms")
    row(f"{given.series:,} series now", ms(history.as_of, 9), "<= 100 ms")
    row("one series as of a moment in the past", ms(lambda: history.as_of(past, [name]), 200), "<= 1 ms")
    row("one series now", ms(lambda: history.as_of(None, [name]), 200), "<= 1 ms")
    week = timedelta(days=7)
    row("one series over a week: least, median, volatility", ms(lambda: history.window(name, past - week, past), 100))
    row("… its last failure", ms(lambda: history.last_failure(name, past), 100))
    names = history.as_of().series[:100]
    row(
        "changes of 100 series over 60 days", ms(lambda: history.changes(names, past - 60 * timedelta(days=1), past), 9)
    )
    small = min(given.series, 8000)
    again = list(readings(small, hours - 1, 1))
    row(f"a poll of {small:,} series without a change", ms(lambda: history.record(again, now=now), 9))


if __name__ == "__main__":
    main()
