"""The figures of docs/benchmarks.md: `python benchmarks/figures.py [--json]`.  Prints medians and minima beside the reach; judges nothing."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
JOB = ROOT / "examples" / "jobs" / "llama3-8b-sft.yaml"
SKYPLAN = str(Path(sys.executable).with_name("skyplan"))
Row = tuple[str, float, float, str, str]


def warm(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """(median, minimum) seconds of `call`, after one that is not counted."""
    call()
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)


def cold(command: list[str], folder: Path, repeats: int = 7) -> tuple[float, float, float]:
    """(median, minimum) seconds of a fresh process, and its largest resident set in MiB."""
    times: list[float] = []
    peak = 0.0
    for _ in range(repeats + 1):
        start = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        times.append(time.perf_counter() - start)
        peak = max(peak, usage.ru_maxrss / 1024)
        if child.returncode:
            raise SystemExit(f"{command} exited {child.returncode}")
    return statistics.median(times[1:]), min(times[1:]), peak


def ranking() -> list[Row]:
    """In this process, everything imported, the catalog loaded."""
    from benchmarks.synthetic import market
    from planner.app.inputs import load
    from planner.model.ledger import AvailabilityMemory, Ledger
    from planner.model.workload import Constraints, GpuOption
    from planner.placement.fleet import Policy, plan
    from planner.placement.offers import offers_of
    from planner.placement.rank import judge

    read = load([JOB])
    job = read.jobs[0].workload
    policy = Policy(project=read.project, memory=AvailabilityMemory(), as_of=read.market.as_of)
    offers = offers_of(read.market, read.project, as_of=read.market.as_of)
    rows: list[Row] = []
    median, least = warm(lambda: judge(offers, job), 200)
    rows.append(
        (f"score and order {len(offers):,} offers, warm", median, least, "", "offers joined with targets before")
    )
    median, least = warm(lambda: plan([job], read.market, Ledger(), policy), 100)
    rows.append(
        (
            "rank one request over the whole snapshot, warm",
            median,
            least,
            "5 ms",
            "the whole call: join, judge, rank, describe 20",
        )
    )
    # any single GPU: as many offers are scored as a request can reach
    job = replace(
        job, resources=replace(job.resources, accelerators=(GpuOption(min_memory_gib=1.0, count=1),), min_ram_gib=None)
    )
    job = replace(job, constraints=Constraints())
    before = 0.0
    for size in (100_000, 300_000, 1_000_000):
        big = offers_of(market(size), read.project, as_of=read.market.as_of)
        median, least = warm(lambda big=big: judge(big, job), 7)
        note = f"{len(judge(big, job).order):,} are scored"
        note += f"; {median / before:.1f}x of the size before" if before else ""
        rows.append(
            (f"rank over {size:,} synthetic offers, warm", median, least, "250 ms" if size == 1_000_000 else "", note)
        )
        before = median
    return rows


def processes() -> list[Row]:
    """Fresh processes, page cache warm."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare, _, _ = cold([sys.executable, "-c", "pass"], folder)
        numpy, _, _ = cold([sys.executable, "-c", "import numpy"], folder)
        rows.append(("python -c pass", bare, bare, "", "baseline"))
        rows.append(("python -c 'import numpy'", numpy, numpy, "", "baseline"))
        median, least, _ = cold([SKYPLAN, "--help"], folder)
        rows.append(("skyplan --help", median, least, "0.15 s", f"{median / bare:.1f}x of python -c pass"))
        median, least, peak = cold([SKYPLAN, "plan", str(JOB)], folder)
        rows.append(
            (
                "skyplan plan, cold process, no stacks",
                median,
                least,
                "0.4 s",
                f"{median / numpy:.1f}x of importing numpy; {peak:.0f} MiB at its peak (reach 90)",
            )
        )
        median, least, _ = cold([SKYPLAN, "plan", str(JOB), "--stacks", "stacks"], folder)
        rows.append(("… writing the AWS stacks too", median, least, "1.8 s", ""))
        _record(folder)
        median, least, _ = cold([SKYPLAN, "plan", str(JOB)], folder)
        rows.append(("… with a record", median, least, "0.75 s", "SQLite, read only"))
    return rows


def _record(folder: Path) -> None:
    """A record as the first apply makes it."""
    code = "from planner.app.wire import record; from planner.model.project import Project; record(Project())"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    if not (folder / ".skyplan" / "record.sqlite").is_file():
        raise SystemExit("no record was made")


def main() -> None:
    """Measure and print."""
    rows = processes() + ranking()
    if "--json" in sys.argv:
        print(
            json.dumps(
                [dict(zip(("what", "median_s", "least_s", "reach", "note"), r, strict=True)) for r in rows], indent=2
            )
        )
        return
    for what, median, least, reach, note in rows:
        print(f"| {what} | {reach} | {median * 1000:,.1f} ms | {least * 1000:,.1f} ms | {note} |")
    print(f"largest resident set of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
