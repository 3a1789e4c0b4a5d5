"""SkyPilot's side of `peer.py`; runs in SkyPilot's venv: requests as JSON on stdin, choices and times as JSON on stdout.

Starts no server and talks to no cloud: its optimizer works on the catalogs in ~/.sky, and the four clouds count as enabled, as in SkyPilot's own tests.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import resource
import statistics
import sys
import time
from typing import Any

Request = dict[str, Any]
_candidates: dict[str, Any] = {}


def prepare() -> float:
    """Import SkyPilot, enable the clouds, catch what its optimizer costs each candidate at.  The seconds that the imports took."""
    start = time.perf_counter()
    import pandas  # noqa: F401, ICN001 - SkyPilot imports it at the first request
    import sky.catalog  # noqa: F401 - what is timed
    from sky import check, clouds, optimizer
    from sky.utils import rich_utils

    took = time.perf_counter() - start
    logging.disable(logging.CRITICAL)
    enabled = [clouds.AWS(), clouds.GCP(), clouds.Azure(), clouds.Nebius()]
    check.get_cached_enabled_clouds_or_refresh = lambda *_, **__: list(enabled)
    check.check_capability = lambda *_, **__: None
    rich_utils.safe_status = lambda *_, **__: contextlib.nullcontext()
    original = optimizer.Optimizer._estimate_nodes_cost_or_time  # noqa: SLF001 - the only place with every candidate's cost

    def watched(*args: Any, **named: Any) -> Any:
        found = original(*args, **named)
        _candidates["cost"] = found[0]
        return found

    optimizer.Optimizer._estimate_nodes_cost_or_time = staticmethod(watched)  # noqa: SLF001 - as above
    return took


def graph(request: Request) -> Any:
    """The request as SkyPilot's Python API takes it.  `hours` goes in as its time estimator, which its YAML has no word for."""
    from sky import dag, resources, task

    made = dag.Dag()
    with made:
        one = task.Task("t", run="true", num_nodes=request["nodes"])
        one.set_resources(
            resources.Resources(
                accelerators=f"{request['gpu']}:{request['count']}",
                use_spot=request["spot"],
                memory=request["memory"] or None,
            )
        )
        if request["data_gb"]:
            one.set_inputs(request["data"], request["data_gb"])
        if request["hours"]:
            one.set_time_estimator(lambda _: request["hours"] * 3600)
    return made


def ask(request: Request) -> tuple[float, dict[str, Any]]:
    """Seconds, and the choice or the error."""
    from sky import optimizer

    made = graph(request)
    gc.collect()
    start = time.perf_counter()
    try:
        optimizer.Optimizer.optimize(made, quiet=True)
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        return time.perf_counter() - start, {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"}
    took = time.perf_counter() - start
    best = made.tasks[0].best_resources
    costs = next(found for node, found in _candidates["cost"].items() if node.name == "t")
    return took, {
        "cloud": str(best.cloud).lower(),
        "region": best.region,
        "zone": best.zone or "",
        "instance_type": best.instance_type,
        "usd_per_hour": best.get_cost(3600) * request["nodes"],
        "candidates": len(costs),
    }


def answer(request: Request, repeats: int) -> dict[str, Any]:
    """The choice; warm times, and times with the caches cleared that its API server clears between requests."""
    from sky.utils import annotations

    fresh: list[float] = []
    warm: list[float] = []
    choice: dict[str, Any] = {}
    for _ in range(repeats):
        annotations.clear_request_level_cache()
        took, choice = ask(request)
        fresh.append(took)
    for _ in range(repeats):
        took, choice = ask(request)
        warm.append(took)
    return {
        "request": request,
        "choice": choice,
        "warm_s": statistics.median(warm),
        "warm_least_s": min(warm),
        "new_request_s": statistics.median(fresh),
    }


def main() -> None:
    """Answer every request."""
    asked = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        imports = prepare()
        first, _ = ask(asked["requests"][0])
        answers = [answer(r, asked["repeats"]) for r in asked["requests"]]
        import sky
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(
        {
            "version": sky.__version__,
            "import_s": imports,
            "first_s": first,
            "peak_mib": peak,
            "answers": answers,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
