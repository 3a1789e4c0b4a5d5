"""The figures of docs/benchmarks.md: `python benchmarks/figures.py [--json]`.  Prints medians and minima beside the reach; judges nothing.

Exits 0 whatever it measures: what could not be measured is a row that says so.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from synthetic import market
from timing import Cold, Failed, Row, cold, warm

if TYPE_CHECKING:
    from planner.placement.offers import Offers
    from planner.placement.rank import Ranking

ROOT = Path(__file__).resolve().parents[1]
JOB = ROOT / "examples" / "jobs" / "llama3-8b-sft.yaml"
SKYPLAN = str(Path(sys.executable).with_name("skyplan"))
HEAVY = (
    "numpy",
    "cdktf",
    "cdktn",
    "constructs",
    "jsii",
    "boto3",
    "botocore",
    "google",
    "azure",
    "nebius",
    "sqlalchemy",
)
SIZES = (100_000, 300_000, 1_000_000)


def imported(arguments: str) -> str:
    """Which of HEAVY a run of skyplan has imported when it ends."""
    code = (
        f"import sys; sys.argv = ['skyplan', *{arguments.split()!r}]\nfrom planner.cli.entry import call\n"
        f"call(sys.argv[1:]); sys.stderr.write(' '.join(n for n in {HEAVY!r} if n in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"`skyplan {arguments}` in Python exited {done.returncode}")
    return f"imports {done.stderr or 'none of ' + ', '.join(HEAVY)}"


def ranking() -> Iterator[Row]:
    """In this process, everything imported, the catalog loaded."""
    from planner.app.inputs import load
    from planner.model.ledger import AvailabilityMemory, Ledger
    from planner.placement.fleet import Policy, plan
    from planner.placement.offers import offers_of
    from planner.placement.rank import judge

    read = load([JOB])
    job = read.jobs[0].workload
    policy = Policy(project=read.project, memory=AvailabilityMemory(), as_of=read.market.as_of)
    offers = offers_of(read.market, read.project, as_of=read.market.as_of)
    spent = warm(lambda: judge(offers, job), 300)
    yield Row(f"reject, score and order {len(offers):,} offers, warm", *spent, note="offers joined with targets before")
    spent = warm(lambda: plan([job], read.market, Ledger(), policy), 200)
    note = "the whole call: join, reject, score, order, describe 20"
    yield Row("rank one request over the whole snapshot, warm", *spent, "5 ms", note)


def synthetic() -> Iterator[Row]:
    """As `ranking`, over markets of made-up zones and prices, for any single GPU: as many offers are scored as a request can reach."""
    from planner.app.inputs import load
    from planner.model.ledger import AvailabilityMemory, Ledger
    from planner.model.workload import Constraints, GpuOption
    from planner.placement.fleet import Policy, plan
    from planner.placement.offers import offers_of
    from planner.placement.rank import judge, rank

    read = load([JOB])
    job = replace(read.jobs[0].workload, constraints=Constraints())
    any_gpu = (GpuOption(min_memory_gib=1.0, count=1),)
    job = replace(job, resources=replace(job.resources, accelerators=any_gpu, min_ram_gib=None))
    project = read.project
    before = 0.0
    for size in SIZES:
        big = market(size)
        offers = offers_of(big, project, as_of=big.as_of)
        scored = len(judge(offers, job).order)

        def once(offers: Offers = offers) -> Ranking:
            return rank(offers, job, judge(offers, job), project=project, ledger=Ledger(), cool={})

        spent = warm(once, 9)
        note = f"{scored:,} are scored" + (f"; {spent[0] / before:.1f} x the size before" if before else "")
        yield Row(f"rank over {size:,} synthetic offers, warm", *spent, "250 ms" if size == SIZES[-1] else "", note)
        before = spent[0]
    policy = Policy(project=project, memory=AvailabilityMemory(), as_of=big.as_of)
    spent = warm(lambda: plan([job], big, Ledger(), policy), 5)
    note = "joining with targets, numbering pools and words for 20 placements too"
    yield Row(f"… the whole call over {SIZES[-1]:,}", *spent, note=note)
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Row(f"… peak memory of this process, {SIZES[-1]:,} offers", mib, mib, unit="MiB")


def processes() -> Iterator[Row]:
    """Fresh processes, page cache warm."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = cold([sys.executable, "-c", "pass"], folder)
        numpy = cold([sys.executable, "-c", "import numpy"], folder)
        yield Row("python -c pass", bare.median, bare.least, note="baseline")
        yield Row("python -c 'import numpy'", numpy.median, numpy.least, note="baseline")

        def times(c: Cold) -> str:
            return f"{c.median / bare.median:.1f} x python -c pass, {c.median / numpy.median:.1f} x importing numpy"

        took = cold([SKYPLAN, "--help"], folder)
        yield Row("skyplan --help", took.median, took.least, "0.15 s", f"{times(took)}; {imported('--help')}")
        took = cold([SKYPLAN, "plan", str(JOB)], folder)
        yield Row("skyplan plan, cold process, no stacks", took.median, took.least, "0.4 s", times(took))
        yield Row("… peak memory", took.peak, took.peak, "90 MiB", "largest resident set of the process", "MiB")
        stacks = [SKYPLAN, "plan", str(JOB), "--stacks", "stacks"]
        yield from _guarded(stacks, folder, "… writing the AWS stacks too", "1.8 s", times)
        _record(folder)
        note = "SQLite, read only"
        yield from _guarded(
            [SKYPLAN, "plan", str(JOB)], folder, "… with a record", "0.75 s", lambda c: f"{times(c)}; {note}"
        )


def writing() -> Iterator[Row]:
    """Stacks through the CDK, each in a fresh process: planning, starting Node, writing (`writing.py`)."""
    script = str(Path(__file__).with_name("writing.py"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for cloud in ("aws", "gcp", "azure", "nebius"):
            what = f"plan and write the stacks of 64 nodes on {cloud}, cold process"
            yield from _guarded([sys.executable, script, "nodes", cloud], folder, what, "2 s", _plain, repeats=5)
        what = "plan and write one job's stacks on all four clouds, cold process"
        yield from _guarded([sys.executable, script, "clouds"], folder, what, "2 s", _plain, repeats=5)
        what = "plan and write the stacks of 100 jobs, cold process"
        yield from _guarded([sys.executable, script, "jobs"], folder, what, "15 s", _plain, repeats=3)


def _plain(took: Cold) -> str:
    return f"{took.cpu:.2f} s of CPU, Node's among them; {took.peak:,.0f} MiB"


def _guarded(
    command: list[str], folder: Path, what: str, reach: str, note: Callable[[Cold], str], *, repeats: int = 9
) -> Iterator[Row]:
    """The row of an optional part; where it is not installed, a row that says so."""
    try:
        took = cold(command, folder, repeats)
    except Failed as error:
        yield Row(what, None, None, reach, f"not measured: {error}")
        return
    yield Row(what, took.median, took.least, reach, note(took))


def _record(folder: Path) -> None:
    """A record as the first apply makes it.  Raises Failed."""
    code = "from planner.app.wire import record; from planner.model.project import Project; record(Project()).close()"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode or not (folder / ".skyplan" / "record.sqlite").is_file():
        raise Failed("no record was made; is `skyplan[record]` installed?")


def figures() -> Iterator[Row]:
    """Every row; a part that fails ends with a row that says why, and the next part goes on."""
    for part in (processes, writing, ranking, synthetic):
        try:
            yield from part()
        except Failed as error:
            yield Row(part.__name__, None, None, note=f"not measured: {error}")


def main() -> None:
    """Measure and print."""
    rows = figures()
    if "--json" in sys.argv:
        print(json.dumps([asdict(r) for r in rows], indent=2))
        return
    print("| what | reach | median | minimum | note |\n|---|---|---|---|---|")
    for row in rows:
        print(row.cells(), flush=True)


if __name__ == "__main__":
    main()
