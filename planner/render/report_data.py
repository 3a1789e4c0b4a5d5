"""A report as JSON: what `--json` prints and what the page's script reads.

Columns hold ten-thousandths of a dollar and of an hour as whole numbers, names as positions in `words`, null where something is unknown: a thousand offers
are some fifty kilobytes.  Every text is masked here; `embedded` makes it safe inside a script element.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planner.model.report import GROUPS
from planner.render.fleet_json import fleet_document
from planner.render.plan_text import where
from planner.render.report_words import capacity, gpus, hint, meaning, plain, ticks, word_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.migration import MigrationDiff
    from planner.model.past import Pasts
    from planner.model.plan import Placement, ScoreTerm
    from planner.model.report import JobReport, Rate, RegionRow, Report, Row

FORMAT_VERSION = "1.0"
TEXT_COLUMNS = ("place", "what", "cloud", "region", "capacity", "gpu")


def document(report: Report) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": FORMAT_VERSION,
        "project": plain(report.project),
        "as_of": plain(report.as_of),
        "fleet": None
        if report.fleet is None
        else _masked(fleet_document(report.fleet, [job.plan for job in report.jobs])),
        "jobs": [_job(job) for job in report.jobs],
        "warnings": [{"code": d.code, "text": plain(d.summary)} for d in report.warnings],
    }


def embedded(data: dict[str, Any]) -> str:
    """For a script element of type application/json: nothing in it can end the element, begin a comment or break a line of script."""
    out = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        out = out.replace(character, f"\\u{ord(character):04x}")
    return out


def _job(job: JobReport) -> dict[str, Any]:
    plan, row = job.plan, job.choice_row
    return {
        "name": plain(plan.name),
        "file": plain(job.file),
        "action": word_of(job),
        "choice": _placement(plan.choice) if plan.ranked else None,
        "choice_position": None if row is None else row.position,
        "notes": [plain(note) for note in plan.notes],
        "market": _market(job),
        "ranked": [_placement(p) for p in plan.ranked],
        "reasons": [
            {
                "code": plain(r.code),
                "count": r.count,
                "meaning": meaning(r.code),
                "hint": hint(r.code),
                "examples": [plain(one) for one in r.examples],
            }
            for r in job.reasons
        ],
        "regions": [_region(one) for one in job.regions],
        "moves": [_move(one) for one in job.moves],
        "prices": None if job.past is None else _prices(job.past),
        "inputs": _masked(plan.inputs),
    }


def _placement(p: Placement) -> dict[str, Any]:
    return {
        "offer": plain(p.offer_id),
        "placement_id": plain(p.placement_id),
        "place": plain(where(p)),
        "usd_per_hour": f"{p.usd_per_hour:.4f}",
        "total_usd": f"{p.total_usd:.4f}",
        "lower_bound": p.lower_bound,
        "finish_hours": f"{p.finish_hours:.4f}",
        "terms": _terms(p.terms),
        "caveats": [{"code": plain(c.code), "text": plain(c.text)} for c in p.caveats],
        "differs": [plain(d) for d in p.differs],
    }


def _terms(terms: Iterable[ScoreTerm]) -> list[dict[str, Any]]:
    return [
        {"name": plain(t.name), "usd": None if t.usd is None else f"{t.usd:.4f}", "detail": plain(t.detail)}
        for t in terms
    ]


def words_of(row: Row) -> dict[str, str]:
    """The texts of a row, by column."""
    return {
        "place": plain(row.place),
        "what": plain(row.what),
        "cloud": plain(row.cloud),
        "region": plain(row.region),
        "capacity": plain(capacity(row.capacity)),
        "gpu": plain(gpus(row)),
    }


def _market(job: JobReport) -> dict[str, Any]:
    texts = [words_of(row) for row in job.rows]
    words = {name: sorted({one[name] for one in texts}) for name in TEXT_COLUMNS}
    at = {name: {word: k for k, word in enumerate(known)} for name, known in words.items()}
    columns: dict[str, list[int | None]] = {name: [at[name][one[name]] for one in texts] for name in TEXT_COLUMNS}
    columns |= {
        "per_hour": [ticks(row.usd_per_hour) for row in job.rows],
        "total": [ticks(row.total_usd) for row in job.rows],
        "finish": [ticks(row.finish_hours) for row in job.rows],
        "at_least": [int(row.lower_bound) for row in job.rows],
        "edge": [int(row.edge) for row in job.rows],
    }
    columns |= {name: [ticks(row.groups[k]) for row in job.rows] for k, name in enumerate(GROUPS)}
    return {
        "feasible": job.feasible,
        "splits": job.splits,
        "whole": job.whole,
        "shown": len(job.rows),
        "words": words,
        "columns": columns,
    }


def _region(r: RegionRow) -> dict[str, Any]:
    return {
        "cloud": plain(r.cloud),
        "region": plain(r.region),
        "area": plain(r.area),
        "offers": r.offers,
        "feasible": r.feasible,
        "cheapest": None if r.best is None else r.best.position,
        "code": plain(r.code),
        "read": _rate(r.read),
        "write": _rate(r.write),
    }


def _rate(rate: Rate | None) -> dict[str, Any] | None:
    return None if rate is None else {"uri": plain(rate.uri), "gbps": rate.gbps, "estimated": rate.estimated}


def _move(m: MigrationDiff) -> dict[str, Any]:
    return {
        "reason": m.reason.value,
        "code": plain(m.code),
        "text": plain(m.text),
        "from": plain(m.standing.offer_id),
        "to": [plain(p.offer_id) for p in m.to],
        "stop_minutes": f"{m.stop_minutes:.4f}",
        "terms": _terms(m.terms),
        "steps": [
            {
                "key": plain(s.key),
                "title": plain(s.title),
                "after": [plain(one) for one in s.after],
                "minutes": None if s.minutes is None else f"{s.minutes:.4f}",
                "stops": s.stops,
            }
            for s in m.steps
        ],
    }


def _prices(past: Pasts) -> dict[str, Any]:
    return {
        "since": past.since.isoformat(),
        "until": past.until.isoformat(),
        "series": [
            {
                "series": plain(one.series),
                "least": f"{one.least:.4f}",
                "median": f"{one.median:.4f}",
                "most": f"{one.most:.4f}",
                "changes": len(one.changes),
            }
            for one in past.found
        ],
        "others": past.others,
    }


def _masked(told: Any) -> Any:
    """The same; texts masked, digests and amounts as they are."""
    if isinstance(told, dict):
        return {plain(str(k)): _masked(v) for k, v in told.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(told, list | tuple):
        return [_masked(one) for one in told]  # pyright: ignore[reportUnknownVariableType]
    return plain(told) if isinstance(told, str) else told
