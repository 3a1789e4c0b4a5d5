"""skyplan and SkyPilot on the same requests, side by side: time, choice, $/h.

    python benchmarks/peer.py --peer-python VENV/bin/python --catalogs FOLDER [--repeats 3] [--only N] [--json]

VENV holds `skypilot[aws,gcp,azure]==0.14.1`; FOLDER holds SkyPilot's catalogs (its `v8` folder).  Each side plans with its own prices: the last column says
what skyplan's catalog thinks of the peer's choice.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.load import load_market
from planner.model.ledger import AvailabilityMemory, Ledger
from planner.model.project import Project, default_targets
from planner.model.words import words_of
from planner.placement.explain import verdict
from planner.placement.fleet import Placed, Policy, plan
from planner.spec.job import parse_jobs

if TYPE_CHECKING:
    from planner.model.market import Market

HOURS = 24.0


@dataclass(frozen=True, slots=True)
class Request:
    """What both are asked.  `hours` is 0 where SkyPilot is left with what its YAML can say: it then counts one hour."""

    gpu: str
    count: int = 8
    spot: bool = False
    nodes: int = 1
    data: str = ""
    data_gb: int = 0
    memory: str = ""
    hours: float = HOURS

    def __str__(self) -> str:
        """As a table's first column."""
        parts = [f"{self.nodes} x " * (self.nodes > 1) + f"{self.gpu}:{self.count}", "spot" * self.spot]
        parts.append(f"{self.data_gb:,} GB in {self.data.partition('://')[0]}" * (self.data_gb > 0))
        parts.append(f"RAM {self.memory}" * bool(self.memory))
        parts.append("hours not told to the peer" * (not self.hours))
        return ", ".join(p for p in parts if p)


def requests() -> list[Request]:
    """The shapes of issue trackers and notes: every GPU class, spot or not, data here or there, several nodes."""
    classes = [("A100-80GB", 8), ("A100", 8), ("H100", 8), ("H100", 1), ("L4", 1), ("V100", 4), ("T4", 1), ("H200", 8)]
    out = [Request(gpu, count, spot) for gpu, count in (*classes, ("B200", 8)) for spot in (False, True)]
    out += [Request("A100-80GB", data="s3://data", data_gb=gb) for gb in (100, 1_000, 10_240, 51_200)]
    out += [Request("A100-80GB", spot=True, data=f"{store}://data", data_gb=1_000) for store in ("s3", "gs")]
    out += [Request("H100", spot=spot, data="s3://data", data_gb=500) for spot in (False, True)]
    out += [Request("H100", data="s3://data", data_gb=500, hours=0.0), Request("H100", nodes=4)]
    return [*out, Request("H100", nodes=4, data="s3://data", data_gb=500), Request("A100", memory="1000+")]


def job_file(request: Request) -> str:
    """The request as a job file.

    A bucket's region is given here; SkyPilot has no word for it and takes the cloud's tariff as a whole.  A spot job writes checkpoints, or it would lose all
    its work at each interruption, but small ones, as SkyPilot does not price them.
    """
    wanted: dict[str, Any] = {
        "name": "job",
        "resources": {
            "accelerators": f"{request.gpu}:{request.count}",
            "nodes": request.nodes,
            "capacity": ["spot" if request.spot else "on_demand"],
        },
        "work": {
            "hours": request.hours or HOURS,
            "on": f"{request.gpu}:{request.count}",
            "nodes": request.nodes,
        },
        "run": "true",
    }
    if request.memory:
        wanted["resources"]["memory"] = request.memory.replace("+", "GiB+")
    if request.data_gb:
        region = {"s3": "us-east-1", "gs": "us-central1"}[request.data.partition("://")[0]]
        wanted["data"] = [{"uri": request.data + "/", "region": region, "size": f"{request.data_gb}GB", "reads": 1}]
    if request.spot:
        wanted["checkpoint"] = {"uri": "s3://ckpt/x/", "region": "us-east-1", "size": "1MB", "every": "30m"}
    return json.dumps(wanted)


def ours(request: Request, market: Market, repeats: int) -> tuple[float, Placed]:
    """Median seconds of a warm whole call, and what came out."""
    project = Project(targets=default_targets())
    jobs, problems = parse_jobs(job_file(request), str(request), words_of(market), project)
    if not jobs:
        raise SystemExit(f"{request}: {problems}")
    policy = Policy(project=project, memory=AvailabilityMemory(), as_of=market.as_of)
    (placed,) = plan(jobs, market, Ledger(), policy)
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        (placed,) = plan(jobs, market, Ledger(), policy)
        times.append(time.perf_counter() - start)
    return statistics.median(times), placed


def theirs(asked: list[Request], python: str, catalogs: Path, repeats: int) -> dict[str, Any]:
    """SkyPilot's answers, from a process with a home of its own; fresh copies of the catalogs keep it from fetching newer ones."""
    with tempfile.TemporaryDirectory() as home:
        source = catalogs / "v8" if (catalogs / "v8").is_dir() else catalogs
        shutil.copytree(source, Path(home) / ".sky" / "catalogs" / "v8", copy_function=shutil.copyfile)
        quiet = {"SKYPILOT_DISABLE_USAGE_COLLECTION": "1", "SKYPILOT_MINIMIZE_LOGGING": "1", "NO_COLOR": "1"}
        done = subprocess.run(
            [python, str(Path(__file__).with_name("peer_worker.py"))],
            input=json.dumps({"requests": [asdict(r) for r in asked], "repeats": repeats}),
            env=os.environ | quiet | {"HOME": home},
            cwd=home,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def opinion(choice: dict[str, Any], placed: Placed) -> str:
    """What skyplan's catalog says of the peer's choice: its price there, and the codes of its rejection, if any.

    A regional choice stands for its best zone: one that is not rejected, else the cheapest.
    """
    context, offers = placed.context, placed.context.offers
    asked = placed.workload.resources
    wanted = (choice["cloud"], choice["region"], choice["instance_type"])
    found: list[tuple[tuple[str, ...], float]] = []
    for i in range(len(offers)):
        here = (offers.kind(i).cloud.value, offers.region(i).name, offers.kind(i).name)
        zones = {offers.zone(i), choice["zone"]} - {""}
        if here == wanted and len(zones) < 2 and offers.sold_as(i) in asked.capacity:
            codes = tuple(r.code for r in verdict(context, i).rejections)
            found.append((codes, int(offers.price_micros[i]) / 1e6 * asked.nodes))
    if not found:
        return "not in the catalog"
    codes, usd = min(found, key=lambda f: (bool(f[0]), f[1]))
    return f"{usd:.2f}" + f" ({', '.join(codes)})" * bool(codes)


def row(answer: dict[str, Any], request: Request, seconds: float, placed: Placed) -> dict[str, Any]:
    """One request, both answers."""
    best, choice = (placed.ranked[0] if placed.ranked else None), answer["choice"]
    peer = " ".join(choice[k] for k in ("cloud", "instance_type")) if "cloud" in choice else choice["error"]
    where = (choice["zone"] or choice["region"]) if "cloud" in choice else ""
    return {
        "request": str(request),
        "skyplan_s": seconds,
        "skyplan": f"{best.cloud} {best.instance_type} {best.zone or best.region}" if best else "nothing feasible",
        "skyplan_usd_per_hour": float(best.usd_per_hour) if best else None,
        "peer_s": answer["warm_s"],
        "peer_new_request_s": answer["new_request_s"],
        "peer": f"{peer} {where}".strip(),
        "peer_usd_per_hour": choice.get("usd_per_hour"),
        "candidates": choice.get("candidates", 0),
        "opinion": opinion(choice, placed) if "cloud" in choice else "",
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """As markdown."""
    lines = [
        "| request | skyplan ms | choice | $/h | SkyPilot ms | choice | $/h | the same offer in skyplan's catalog, $/h |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        usd = ["-" if r[k] is None else f"{r[k]:.2f}" for k in ("skyplan_usd_per_hour", "peer_usd_per_hour")]
        ms = [f"{r[k] * 1000:,.1f}" for k in ("skyplan_s", "peer_s")]
        cells = (r["request"], ms[0], r["skyplan"], usd[0], ms[1], r["peer"], usd[1], r["opinion"])
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Ask both, print the table."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--peer-python", required=True, help="the Python of a venv with SkyPilot 0.14.1")
    cli.add_argument("--catalogs", required=True, type=Path, help="a folder with SkyPilot's catalogs, v8")
    cli.add_argument("--repeats", type=int, default=3)
    cli.add_argument("--only", type=int, default=None, help="the first N requests")
    cli.add_argument("--json", action="store_true")
    given = cli.parse_args()
    asked = requests()[: given.only]
    peer = theirs(asked, given.peer_python, given.catalogs, given.repeats)
    market = load_market()
    rows = [
        row(answer, request, *ours(request, market, given.repeats * 7))
        for request, answer in zip(asked, peer["answers"], strict=True)
    ]
    if given.json:
        print(json.dumps({"peer": {k: v for k, v in peer.items() if k != "answers"}, "rows": rows}, indent=2))
        return
    print("\n".join(table(rows)))
    medians = [statistics.median(r[k] for r in rows) * 1000 for k in ("skyplan_s", "peer_s", "peer_new_request_s")]
    print(
        f"\nmedian over {len(rows)} requests: skyplan {medians[0]:.1f} ms, SkyPilot {peer['version']} {medians[1]:,.0f} ms"
        f" ({medians[2]:,.0f} ms with the caches cleared that its server clears between requests)"
    )
    print(
        f"SkyPilot's imports {peer['import_s']:.1f} s, first request {peer['first_s']:.1f} s, peak {peer['peak_mib']:.0f} MiB"
    )


if __name__ == "__main__":
    main()
