"""The page: jobs, and one job with its plots, cost, placements, migrations, checkpoints and nodes.  Rendered here, readable without JavaScript.

Decides how it looks, not who may see what (`people_api` has that), and changes nothing: there is no form on it.  Everything is escaped by the templates; the
plots escape themselves.  The policy allows one style sheet of ours and nothing else, so that even what got through could not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from planner.app import watching
from planner.model.record import moment
from planner.model.server import Role
from planner.render.logs_text import plain
from planner.render.plot_svg import Series, number, plot
from planner.render.runs_text import age
from planner.render.text import usd
from planner.server import people_api
from planner.server.people_api import Generation, JobPath, Who

if TYPE_CHECKING:
    from planner.model.runtime import Progress
    from planner.server.services import Services

JOBS_AT_ONCE: Final = 200
EVENTS: Final = 100
LOG_CHUNKS: Final = 500
MAX_RANKS: Final = 64
"""Links to so many nodes' output."""
EVERY_SECONDS: Final = 30
POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
_KIB: Final = 1024
Refresh = Annotated[int, Query(ge=0, le=3600, description="Seconds between two looks; 0: only this one.")]


def router(services: Services) -> APIRouter:
    """Pages, and the JSON API beside them."""
    routes = APIRouter()
    routes.include_router(people_api.router(services))
    pages = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    _pages(pages, services)
    routes.include_router(pages)
    return routes


def _pages(pages: APIRouter, services: Services) -> None:
    told = services.runtime

    def shown(name: str, who: Who, refresh: int, **given: Any) -> Response:
        kept = {n: given.pop(n) for n in ("after", "rank", "generation") if n in given}
        more = urlencode({n: value for n, value in kept.items() if value not in {None, ""}})
        common = {"project": services.project, "who": who, "refresh_seconds": refresh, "every": EVERY_SECONDS}
        common["kept"] = f"{more}&" if more else ""
        text = _templates().get_template(name).render(**common, **given)
        return HTMLResponse(text, headers=HEADERS)

    @pages.get("/")
    def jobs(who: Who, after: Annotated[str, Query(max_length=63)] = "", refresh: Refresh = 0) -> Response:
        names = people_api.visible(services, who, after, JOBS_AT_ONCE)
        now = services.clock()
        views = watching.view(services.record, told, names, now, points=0, checkpoints=1) if names else ()
        more = names[-1] if len(names) == JOBS_AT_ONCE else None
        return shown(
            "jobs.html", who, refresh, after=after, views=views, next=more, now=now, left_out=watching.LEFT_OUT
        )

    @pages.get("/jobs/{job}")
    def job_(who: Who, job: JobPath, refresh: Refresh = 0) -> Response:
        v = people_api.seen(services, who, job)
        audits = who.may(Role.AUDITOR, job)
        events = [e for _, e in told.events(job, limit=EVENTS)] if audits else None
        issues = told.issues(job, EVENTS) if audits else None
        logs = who.may(Role.OPERATOR, job)
        return shown(
            "job.html", who, refresh, v=v, plots=plots(v.series), now=v.now, events=events, issues=issues, logs=logs
        )

    @pages.get("/jobs/{job}/logs")
    def logs(
        who: Who,
        job: JobPath,
        rank: Annotated[int | None, Query(ge=0, le=65_535)] = None,
        generation: Generation = None,
        refresh: Refresh = 0,
    ) -> Response:
        run = people_api.run_of(services, who, Role.OPERATOR, job, generation)
        chunks = told.logs(job, run.generation, rank=rank, limit=LOG_CHUNKS)
        lines = [f"r{c.seat.rank:02d} {line}" for c in chunks for line in plain(c.text.removesuffix("\n")).split("\n")]
        ranks = min(run.nodes, MAX_RANKS)
        given: dict[str, Any] = {"job": job, "run": run, "ranks": ranks, "lines": lines, "now": services.clock()}
        return shown("logs.html", who, refresh, rank=rank, generation=generation, **given)

    @pages.get("/page.css")
    def style() -> Response:
        return Response(_style(), media_type="text/css", headers={"Cache-Control": "max-age=300"})


def plots(series: Sequence[Progress]) -> dict[str, Markup]:
    """Step, rate and loss over time, a line for each run.  The rate is what the job told, else what its steps say."""
    runs: dict[str, list[Progress]] = {}
    for p in series:
        runs.setdefault(f"g{p.seat.generation}", []).append(p)
    steps = {name: [(p.at, float(p.step)) for p in mine] for name, mine in runs.items()}
    losses = {name: [(p.at, p.loss) for p in mine if p.loss is not None] for name, mine in runs.items()}
    rates = {
        name: [(p.at, p.rate) for p in mine if p.rate is not None] or watching.rates_between(mine)
        for name, mine in runs.items()
    }

    def drawn(lines: dict[str, list[tuple[str, float]]], title: str, unit: str, *, from_zero: bool = False) -> Markup:
        made = [
            Series(name=n, points=tuple((moment(at).timestamp(), y) for at, y in line)) for n, line in lines.items()
        ]
        return Markup(plot(made, title=title, unit=unit, from_zero=from_zero))  # noqa: S704 - it escapes itself

    return {
        "step": drawn(steps, "Step", "steps"),
        "rate": drawn(rates, "Rate", "steps/s", from_zero=True),
        "loss": drawn(losses, "Loss", "as the job tells it"),
    }


@cache
def _style() -> str:
    return files("planner.server").joinpath("templates/page.css").read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    made = Environment(loader=PackageLoader("planner.server"), autoescape=True, undefined=StrictUndefined)
    filters: dict[str, Any] = {
        "time": _time,
        "ago": _ago,
        "since": _since,
        "short": _short,
        "whole": _whole,
        "usd": usd,
        "size": _size,
    }
    made.filters.update(filters)
    return made


def _time(at: str | datetime | None) -> str:
    if not at:
        return "-"
    try:
        when = at if isinstance(at, datetime) else moment(at)
    except ValueError:
        return str(at)  # as somebody else wrote it
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")


def _since(at: str, now: str) -> float:
    return max(0.0, (moment(now) - moment(at)).total_seconds())


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{age(seconds)} ago"


def _short(value: float | Decimal | None) -> str:
    return "-" if value is None else number(float(value))


def _whole(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _KIB:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} TiB"
