"""How long `skyplan plan` takes for a fleet's files: `python benchmarks/fleet_files.py [--jobs 1000,3000] [--top N]`.  Judges nothing.

Each job has a file of its own with prefixes, a command and a seed of its own; a twentieth of them, 500 at most, are shapes that differ.  First cold (reading,
placing, twenty ranked places each, plan files flushed to disk), then again over the files that stand, one job changed.  Pools hold so many nodes that nobody waits: who
waits costs less.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from timing import Row, cold

GPUS = ("A100-80GB:8", "H100:8", "L4:1", "A10G:1", "A100-80GB:1", "A100-40GB:8", "H100:1")
TEAMS = ("vision", "nlp-a", "nlp-b", "rl")
PROJECT = """\
project: bench
pool_cap_nodes: 1000
budgets: [{max_usd_per_hour: 1000000}]
"""
JOB = """\
name: {name}
team: {team}
resources: {{accelerators: "{gpu}", nodes: {nodes}, capacity: [spot, on_demand]}}
work: {{hours: {hours}, on: "{gpu}"}}
run: python train.py --seed {number}
env: {{SEED: "{number}"}}
data: [{{uri: "s3://bench-corpus/set-{number}/", region: {region}, size: {size}}}]
checkpoint: {{uri: "s3://bench-ckpt/{name}/", region: {region}, size: 20GB, every: 30m}}
output: {{uri: "s3://bench-out/{name}/", region: {region}, size: 5GB}}
constraints: {{stop_after: 300h}}
"""


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="1000,3000")
    parser.add_argument("--top", type=int, default=20)
    given = parser.parse_args()
    print("| what | reach | median | least | note |\n|---|---|---:|---:|---|")
    for jobs in map(int, given.jobs.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _put(folder, jobs)
            print(_row(folder, f"{jobs:,} jobs, planned and written", given.top, fresh=True).cells(), flush=True)
            first = folder / "jobs" / "job-00000.yaml"
            first.write_text(first.read_text(encoding="utf-8").replace("train.py", "other.py"), encoding="utf-8")
            print(
                _row(folder, f"{jobs:,} jobs, one changed, planned again", given.top, fresh=False).cells(), flush=True
            )


def _put(folder: Path, jobs: int) -> None:
    dice = random.Random(7)
    shapes = [
        {
            "gpu": dice.choice(GPUS),
            "nodes": dice.choice((1, 1, 1, 2)),
            "hours": dice.choice((4, 12, 24, 48, 100)) + k / 100,
            "region": dice.choice(("us-east-1", "us-west-2", "eu-west-1")),
            "size": dice.choice(("100GB", "500GB", "2TB")),
        }
        for k in range(min(500, max(10, jobs // 20)))
    ]
    (folder / "jobs").mkdir()
    (folder / "skyplan.yaml").write_text(PROJECT, encoding="utf-8")
    for number in range(jobs):
        name = f"job-{number:05}"
        text = JOB.format(name=name, number=number, team=TEAMS[number % len(TEAMS)], **shapes[number % len(shapes)])
        (folder / "jobs" / f"{name}.yaml").write_text(text, encoding="utf-8")


def _row(folder: Path, what: str, top: int, *, fresh: bool) -> Row:
    files = [f"jobs/{path.name}" for path in sorted((folder / "jobs").iterdir())]
    code = "from planner.cli.entry import run; run()"
    command = [sys.executable, "-c", code, "plan", *files, "--offline", "--out", "plans", "--top", str(top)]
    if fresh:
        command = ["sh", "-c", 'rm -rf plans && exec "$@"', "sh", *command]
    found = cold(command, folder, 1)
    size = sum(path.stat().st_size for path in (folder / "plans").iterdir()) / 1e6
    return Row(
        what, found.median, found.least, "", f"{found.cpu:.1f} s of CPU, {found.peak:.0f} MiB, {size:.0f} MB of files"
    )


if __name__ == "__main__":
    main()
