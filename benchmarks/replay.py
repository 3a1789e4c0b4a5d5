"""How long a replay takes: `python benchmarks/replay.py [TRACE...]`.  The reach: 60 hours of 13 zones in 0.5 s, one policy in one window, everything read and imported.

Without traces it makes one (a random market of 13 zones in 8 regions) so that the figure can be had anywhere.  The baseline is failover on preemption: the same simulator
with a rule that reckons nothing, so that the difference is what the decision costs.  The optimum is timed beside.  Prints a line per figure; nothing is judged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from timing import Row, warm

from planner.app.replay import Request, load
from planner.replay.links import links_of
from planner.replay.market import Terms, market_of, regions_of
from planner.replay.optimum import optimum_usd
from planner.replay.registry import POLICIES
from planner.replay.simulate import simulate
from planner.replay.trace import Trace

HOURS = 60.0
WORK = 40.0
REGIONS = (
    "us-central1",
    "us-east4",
    "us-east5",
    "us-west1",
    "us-west4",
    "europe-west1",
    "europe-west4",
    "asia-southeast1",
)


def made(zones: int = 13, days: int = 10, gap_s: float = 600.0) -> Trace:
    """Pools that come and go every few hours, prices that drift: as much work for a policy as a real market."""
    rng = np.random.default_rng(1)
    ticks = round(days * 86400 / gap_s)
    up = (np.cumsum(rng.random((ticks, zones)) < 0.03, axis=0) + rng.integers(0, 2, zones)) % 2 == 0
    spot = 3 + rng.uniform(0, 2, zones) + np.cumsum(rng.normal(0, 0.02, (ticks, zones)), axis=0)
    names = tuple(f"{REGIONS[k % len(REGIONS)]}-{'abc'[k // len(REGIONS)]}" for k in range(zones))
    return Trace(
        zones=names,
        regions=tuple(n.rsplit("-", 1)[0] for n in names),
        available=up,
        spot_usd_h=np.maximum(spot, 0.5),
        on_demand_usd_h=np.full(spot.shape, 11.0),
        gap_s=gap_s,
        name=f"made, {zones} zones",
    )


def rows(trace: Trace, repeats: int) -> list[Row]:
    terms = Terms(work_hours=WORK, deadline_hours=HOURS)
    market = market_of(trace, terms, links_of(regions_of(trace)))
    begin = max(0, len(market.usd) - market.deadline)
    what = f"{trace.name}: {HOURS:g} h in ticks of {trace.gap_s:g} s"
    found: list[Row] = []
    for policy in POLICIES:
        median, least, cpu = timed(lambda policy=policy: simulate(replace(market, memo={}), policy, begin), repeats)
        note = f"CPU {cpu * 1000:,.1f} ms{'; baseline' if policy.name == 'failover' else ''}"
        found.append(Row(f"{what}, {policy.name}", median, least, "500 ms", note))
    median, least, cpu = timed(lambda: optimum_usd(market, begin), 1)
    return [*found, Row(f"{what}, optimum", median, least, note=f"CPU {cpu * 1000:,.1f} ms")]


def timed(call: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Median and least seconds by the wall clock, and the CPU seconds of one call: on a busy machine the two differ."""
    spent = warm(call, repeats)
    begin = time.process_time()
    call()
    return *spent, time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    request = Request(files=tuple(asked.traces), work_hours=WORK, deadline_hours=HOURS)
    traces = load(request)[0] if asked.traces else (made(), made(gap_s=195.0))
    for trace in traces:
        for row in rows(trace, asked.repeats):
            print(row.cells())


if __name__ == "__main__":
    sys.exit(main())
