"""The tables of a report: the market, why not, regions, terms, the fleet, inputs.  Rows as a browser without script shows them; decides how many those are."""

from __future__ import annotations

from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, Final

from planner.model.report import GROUPS
from planner.render.plan_text import what, where
from planner.render.report_bars import TERM_WORDS
from planner.render.report_data import words_of
from planner.render.report_words import (
    GROUP_WORDS,
    NONE,
    capacity,
    cell,
    counted,
    hardware,
    hint,
    key_of,
    meaning,
    table,
    tag,
    text,
    ticks,
)
from planner.render.text import duration, usd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from planner.model.fleet import FleetSummary
    from planner.model.plan import Placement
    from planner.model.report import JobReport, Rate, RegionRow, Report, Row

FIRST_ROWS: Final = 50
MARKET_HEAD: Final = (
    "#",
    "place",
    "type",
    "capacity",
    "GPUs",
    "per hour",
    "total",
    "gap",
    "finish",
    *GROUPS,
)
MARKET_KINDS: Final = "nttttnnnnnnnn"


def first_rows(job: JobReport) -> tuple[Row, ...]:
    """What is there without script: the cheapest, and all on the edge of cost and finish."""
    return tuple(row for row in job.rows if row.position < FIRST_ROWS or row.edge)


def market(job: JobReport, key: str) -> str:
    """The head of the market and its first rows."""
    rows = first_rows(job)
    best = job.plan.choice.total_usd if job.plan.ranked else None
    chosen = job.choice_row
    caption = f"Feasible offers of {text(job.plan.name)}.  Of the total, lost: {GROUP_WORDS['lost']}; other: {GROUP_WORDS['other']}."
    return table(
        caption,
        MARKET_HEAD,
        (_market_row(row, key, best, chosen=row is chosen) for row in rows),
        kinds=MARKET_KINDS,
        css="market",
        name=f"{key}-offers",
    )


def _market_row(row: Row, key: str, best: Decimal | None, *, chosen: bool) -> str:
    w = words_of(row)
    marks = (' <span class="mark-choice">choice</span>' if chosen else "") + (
        ' <span class="mark-edge">edge</span>' if row.edge else ""
    )
    gap = None if best is None else row.total_usd - best
    cells = [
        cell(str(row.position + 1), value=row.position, kind="n"),
        cell(f"{text(w['place'])}{marks}"),
        *(cell(text(w[name])) for name in ("what", "capacity", "gpu")),
        cell(usd(row.usd_per_hour), value=ticks(row.usd_per_hour), kind="n"),
        cell(usd(row.total_usd, lower_bound=row.lower_bound), value=ticks(row.total_usd), kind="n"),
        cell(gapped(gap), value=ticks(gap), kind="n"),
        cell(duration(row.finish_hours), value=ticks(row.finish_hours), kind="n"),
        *(cell(usd(g), value=ticks(g), kind="n") for g in row.groups),
    ]
    return tag("tr", *cells, id=f"{key}-r{row.position}", class_="choice" if chosen else None)


def gapped(gap: Decimal | None) -> str:
    """`+$1.00`, `-$1.00`; a dash for the choice itself."""
    if gap is None or gap == 0:
        return NONE
    return f"{'+' if gap > 0 else '-'}{usd(abs(gap))}"


def reasons(job: JobReport) -> str:
    """By code, the most first."""
    rows = [
        tag(
            "tr",
            cell(tag("code", text(r.code))),
            cell(f"{r.count:,}", value=r.count, kind="n"),
            cell(f"{text(meaning(r.code))}<br><small>{text(hint(r.code))}</small>"),
            cell("<br>".join(text(one) for one in r.examples)),
        )
        for r in sorted(job.reasons, key=lambda r: (-r.count, r.code))
    ]
    head = ("code", "offers", "meaning, and what may be done", "the nearest examples")
    return table(
        f"Why other offers cannot run {text(job.plan.name)}", head, rows, kinds="tntt", css="sortable filtered why"
    )


AREAS: Final = ("na", "eu", "asia", "oceania", "sa", "me", "africa")
AREA_WORDS: Final = {
    "na": "North America",
    "eu": "Europe",
    "asia": "Asia",
    "oceania": "Oceania",
    "sa": "South America",
    "me": "Middle East",
    "africa": "Africa",
}


def area_matrix(job: JobReport) -> str:
    """The cheapest of each cloud in each part of the world."""
    best: dict[tuple[str, str], RegionRow] = {}
    for r in job.regions:
        if r.best is not None:
            best.setdefault((r.cloud, r.area), r)
    clouds = sorted({r.cloud for r in job.regions})
    areas = [a for a in AREAS if any(r.area == a for r in job.regions)]
    there = {(r.cloud, r.area) for r in job.regions}
    least = min((r.best.total_usd for r in best.values() if r.best), default=None)
    rows: list[str] = []
    for cloud in clouds:
        cells = [tag("th", text(cloud), scope="row")]
        for area in areas:
            found = best.get((cloud, area))
            if found is None or found.best is None:
                cells.append(tag("td", "none feasible" if (cloud, area) in there else NONE, class_="none"))
                continue
            total = usd(found.best.total_usd, lower_bound=found.best.lower_bound)
            cells.append(
                tag(
                    "td",
                    f"{tag('strong', total)}<br><small>{text(found.region)}</small>",
                    class_="least" if found.best.total_usd == least else None,
                )
            )
        rows.append(tag("tr", *cells))
    head = ("cloud", *(AREA_WORDS.get(a, a) for a in areas))
    return table(f"Least total by cloud and part of the world for {text(job.plan.name)}", head, rows, css="matrix")


def regions(job: JobReport) -> str:
    """Those with a feasible offer."""
    rows = [_region(r, r.best) for r in job.regions if r.best is not None]
    head = ("region", "cheapest there", "offers", "per hour", "total", "finish", "egress", "reads at", "writes at")
    return table(f"Regions for {text(job.plan.name)}", head, rows, kinds="ttnnnnnnn", css="sortable filtered")


def _region(r: RegionRow, best: Row) -> str:
    egress = best.groups[list(GROUPS).index("egress")]
    return tag(
        "tr",
        cell(text(f"{r.cloud} {r.region}")),
        cell(text(f"{best.what} {capacity(best.capacity)}")),
        cell(f"{r.feasible:,}", value=r.feasible, kind="n"),
        cell(usd(best.usd_per_hour), value=ticks(best.usd_per_hour), kind="n"),
        cell(usd(best.total_usd, lower_bound=best.lower_bound), value=ticks(best.total_usd), kind="n"),
        cell(duration(best.finish_hours), value=ticks(best.finish_hours), kind="n"),
        cell(usd(egress), value=ticks(egress), kind="n"),
        _rate(r.read),
        _rate(r.write),
    )


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return cell(NONE, value=None, kind="n")
    return cell(f"{rate.gbps:g} Gbit/s{' est.' if rate.estimated else ''}", value=rate.gbps, kind="n")


def barren(job: JobReport) -> str:
    """Regions without a feasible offer, by their main reason."""
    none = sorted((r.code, f"{r.cloud} {r.region}") for r in job.regions if r.best is None)
    items = [
        tag("li", f"{tag('code', code)} {text(meaning(code))}: {', '.join(text(name) for _, name in of)}")
        for code, of in ((code, list(of)) for code, of in groupby(none, key=lambda one: one[0]))
    ]
    if not items:
        return ""
    told = f"{counted(len(none), 'region has', 'regions have')} no feasible offer; the reason of most offers there:"
    return f'<p class="note">{told}</p>{tag("ul", *items, class_="plain")}'


def terms(ranked: Sequence[Placement], name: str) -> str:
    """Each term of each placement, and how the choice's came about."""
    names = [n for n in TERM_WORDS if any(t.name == n and (t.usd is None or t.usd) for p in ranked for t in p.terms)]
    details = {t.name: t.detail for t in ranked[0].terms}
    rows: list[str] = []
    for term in names:
        amounts = [next((t.usd for t in p.terms if t.name == term), None) for p in ranked]
        has = [any(t.name == term for t in p.terms) for p in ranked]
        rows.append(
            tag(
                "tr",
                tag(
                    "th",
                    key_of(f'<rect class="t-{term}" width="12" height="12" rx="2"/>'),
                    f" {TERM_WORDS[term]}",
                    scope="row",
                ),
                *(
                    cell(usd(amount) if there else NONE, kind="n", sorts=False)
                    for amount, there in zip(amounts, has, strict=True)
                ),
                cell(text(details.get(term, ""))),
            )
        )
    total = tag(
        "tr",
        tag("th", "total", scope="row"),
        *(cell(tag("strong", usd(p.total_usd, lower_bound=p.lower_bound)), kind="n", sorts=False) for p in ranked),
        cell(""),
    )
    head = ("term", *(f"{p.rank + 1}." for p in ranked), "how the first comes about")
    kinds = "t" + "n" * len(ranked) + "t"
    return table(
        f"Terms of the first {len(ranked)} of {text(name)}, in USD", head, [*rows, total], kinds=kinds, css="terms"
    )


def jobs(report: Report, keys: Sequence[str]) -> str:
    """All jobs in one table; `keys` of the first of them, which have sections of their own."""
    waiting = {w.job: w for w in report.fleet.waiting} if report.fleet else {}
    rows: list[str] = []
    for key, job in zip_longest(keys, report.jobs):
        name = f'<a href="#{key}">{text(job.plan.name)}</a>' if key else text(job.plan.name)
        if not job.plan.ranked:
            why = waiting.get(job.plan.name)
            told = f"waits: {text(why.text)} {tag('code', why.code)}" if why else "no feasible placement"
            rows.append(
                tag("tr", cell(name), cell(told), cell(""), *(cell(NONE, value=None, kind="n") for _ in range(3)))
            )
            continue
        p = job.plan.choice
        rows.append(
            tag(
                "tr",
                cell(name),
                cell(text(f"{where(p)}, {what(p)}")),
                cell(text(hardware(p))),
                cell(usd(p.usd_per_hour), value=ticks(p.usd_per_hour), kind="n"),
                cell(usd(p.total_usd, lower_bound=p.lower_bound), value=ticks(p.total_usd), kind="n"),
                cell(duration(p.finish_hours), value=ticks(p.finish_hours), kind="n"),
            )
        )
    head = ("job", "place", "GPUs", "per hour", "total", "finish")
    return table("Jobs", head, rows, kinds="tttnnn", css="sortable filtered")


def fleet_tables(f: FleetSummary) -> list[str]:
    """Who waits, who was kept, pools and budgets: each where there is one."""
    out: list[str] = []
    if f.waiting:
        rows = [
            tag(
                "tr",
                cell(text(w.job)),
                cell(str(w.priority), value=w.priority, kind="n"),
                cell(text(w.team)),
                cell(tag("code", w.code)),
                cell(text(w.text)),
                cell(text(", ".join(w.behind))),
            )
            for w in f.waiting
        ]
        out.append(
            table(
                "Jobs that wait",
                ("job", "priority", "team", "code", "why", "behind"),
                rows,
                kinds="tntttt",
                css="sortable",
            )
        )
    if f.kept:
        rows = [
            tag(
                "tr",
                cell(text(k.job)),
                cell(text(k.offer_id)),
                cell(text(k.better_offer_id)),
                cell(usd(k.saving_usd), value=ticks(k.saving_usd), kind="n"),
            )
            for k in f.kept
        ]
        out.append(
            table(
                "Jobs that stay where their earlier plan put them",
                ("job", "stays at", "better would be", "would save"),
                rows,
                kinds="tttn",
                css="sortable",
            )
        )
    if f.pools:
        rows = [
            tag(
                "tr",
                cell(text(p.pool)),
                cell(str(p.held), value=p.held, kind="n"),
                cell(str(p.planned), value=p.planned, kind="n"),
                cell("no cap" if p.cap is None else str(p.cap), value=p.cap, kind="n"),
            )
            for p in f.pools
        ]
        out.append(
            table(
                "Pools, in nodes",
                ("pool", "held by others", "planned here", "most"),
                rows,
                kinds="tnnn",
                css="sortable",
            )
        )
    if f.budgets:
        rows = [
            tag(
                "tr",
                cell(text(", ".join(b.teams) or "all")),
                cell("per hour" if b.kind == "per_hour" else "in total"),
                *(cell(usd(v), value=ticks(v), kind="n") for v in (b.held_usd, b.planned_usd, b.limit_usd)),
            )
            for b in f.budgets
        ]
        out.append(
            table(
                "Budgets",
                ("teams", "counted", "held by others", "planned here", "limit"),
                rows,
                kinds="ttnnn",
                css="sortable",
            )
        )
    return out


def inputs(told: Mapping[str, Any], file: str) -> str:
    """What the plan was made of, as it names it."""
    rows = [("file read", text(file))]
    rows += [(text(name), value) for name, value in _flat(told)]
    markup = (tag("tr", tag("th", name, scope="row"), cell(value)) for name, value in rows)
    return table("Inputs", ("input", "value"), markup, css="inputs")


def _flat(told: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for name, value in told.items():
        if isinstance(value, dict):
            out += _flat(value, f"{before}{name} ")  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            out.append((f"{before}{name}", text(", ".join(map(str, value)))))  # pyright: ignore[reportUnknownArgumentType]
        else:
            shown = NONE if value is None else str(value)
            out.append((f"{before}{name}", tag("code", text(shown)) if shown.startswith("sha256:") else text(shown)))
    return out
