"""How long the diff of two folders of plans takes: `python benchmarks/diff.py [--jobs N] [--repeats N]`.

The reach is two folders of 1,000 jobs within 2 s, a fresh process and reading included.  The plans are one real plan under many names, at its full size
(20 ranked placements); in one pair of folders every tenth job moves, in the other every job does, which is the worst that can be.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from timing import Row, cold

from planner.model.digest import digest, pretty

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tests" / "golden" / "cases" / "l4-batch" / "plan.json"
REACH = "2 s for 1,000"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    (source,) = json.loads(SOURCE.read_text(encoding="utf-8"))["plans"]
    print("| what | reach | median | least | note |\n|---|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _put(folder / "base", source, given.jobs, moves=0)
        for moves, what in ((10, "every tenth job moves"), (1, "every job moves")):
            _put(folder / f"head-{moves}", source, given.jobs, moves=moves)
            for form in ("table", "markdown", "json"):
                print(
                    _row(folder, f"head-{moves}", form, f"{given.jobs:,} jobs, {what}, {form}", given.repeats).cells()
                )


def _put(folder: Path, source: dict[str, Any], jobs: int, *, moves: int) -> None:
    """`jobs` plans; of every `moves`-th one the runner-up is the choice."""
    folder.mkdir()
    for number in range(jobs):
        plan = copy.deepcopy(source)
        del plan["digest"]
        plan["job"]["name"] = f"job-{number:05}"
        if moves and number % moves == 0:
            first, second = plan["ranked"][:2]
            plan["ranked"][:2] = [{**second, "rank": 0}, {**first, "rank": 1}]
        plan["digest"] = digest(plan)
        (folder / f"job-{number:05}.plan.json").write_bytes(pretty(plan))


def _row(folder: Path, head: str, form: str, what: str, repeats: int) -> Row:
    code = "from planner.cli.entry import run; run()"
    command = [sys.executable, "-c", code, "diff", "base", head, "--format", form]
    found = cold(command, folder, repeats)
    return Row(what, found.median, found.least, REACH, f"{found.cpu:.2f} s of CPU, {found.peak:.0f} MiB")


if __name__ == "__main__":
    main()
