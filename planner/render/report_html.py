"""A report as one HTML file: works from disk and without script, asks nothing of any network, prints.

Decides which sections there are and what is said where one is empty.  The style sheet and the script are let in by their digest; everything else is forbidden.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from planner.render import report_data, report_tables
from planner.render.chart_svg import MOST_LINES, steps
from planner.render.diff_words import said
from planner.render.graph_svg import graph
from planner.render.migration_text import minutes, signed
from planner.render.plan_text import what, where
from planner.render.plot_svg import Series, plot
from planner.render.report_bars import SHOWN, TERM_WORDS, bars, present, timeline
from planner.render.report_scatter import CLOUDS, kind_of, scatter
from planner.render.report_words import NONE, counted, hardware, ids, key_of, plain, table, tag, text, word_of
from planner.render.text import duration, usd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.migration import MigrationDiff
    from planner.model.report import Assets, JobReport, Report

_SHAPES: Final = {
    "spot": ('<circle class="shape" cx="6" cy="6" r="4.5"/>', "spot"),
    "fixed": ('<rect class="shape" x="2" y="2" width="8" height="8"/>', "on-demand or reserved"),
    "edge": ('<path class="pareto" d="M0 6H12" fill="none"/>', "the edge: nothing costs less and finishes as early"),
}
"""What a drawing's shapes stand for: the shape in a box of 12, and its words."""


def document(report: Report, assets: Assets) -> str:
    """The whole file."""
    whole, report = report, replace(report, jobs=tuple(job for job in report.jobs if job.detailed))
    keys = ids(job.plan.name for job in report.jobs)
    title = f"skyplan report: {plain(report.project)}"
    if len(report.jobs) == 1:
        title = f"skyplan report: {plain(report.jobs[0].plan.name)}"
    data = report_data.embedded(report_data.document(report))
    policy = f"default-src 'none'; style-src '{digest(assets.css)}'; script-src '{digest(assets.script)}'; base-uri 'none'; form-action 'none'"
    panels = [*([_overview(whole, keys)] if len(whole.jobs) != 1 else [])]
    panels += [_panel(job, key, report) for key, job in zip(keys, report.jobs, strict=True)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{text(title)}</title>",
            f"<style>{assets.css}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#main">Skip to the content</a>',
            _header(report, keys),
            '<main id="main">',
            *panels,
            "</main>",
            _footer(report),
            f'<script type="application/json" id="data">{data}</script>',
            f"<script>{assets.script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def digest(inside: str) -> str:
    """As a content security policy names what is between two tags."""
    return f"sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}"


def _header(report: Report, keys: Sequence[str]) -> str:
    items = [f'<li><a href="#{key}">{text(job.plan.name)}</a></li>' for key, job in zip(keys, report.jobs, strict=True)]
    if len(items) > 1:
        items.insert(0, '<li><a href="#overview">Overview</a></li>')
    nav = f'<nav class="jobs" aria-label="Jobs"><ul>{"".join(items)}</ul></nav>' if len(items) > 1 else ""
    project = tag("span", text(report.project), class_="who") if report.project else ""
    return (
        f'<header><div class="bar"><p class="brand">skyplan <span>report</span></p>{project}'
        f'<p class="when">as of {tag("time", text(_readable(report.as_of)), datetime=plain(report.as_of))}</p></div>{nav}</header>'
    )


def _readable(moment: str) -> str:
    """`2026-09-25 12:00:00 UTC`, the time only where it is not midnight."""
    return moment.removesuffix("T00:00:00Z").replace("T", " ").replace("Z", " UTC")


def _footer(report: Report) -> str:
    told = [tag("li", text(said(d))) for d in report.warnings]
    listed = tag("ul", *told, class_="plain") if told else ""
    return (
        f"<footer>{listed}<p>Made by skyplan from the inputs named above, as of {text(_readable(report.as_of))}. Costs are expected values, no quotation. "
        "Account ids and secrets are cut out.</p></footer>"
    )


def _overview(report: Report, keys: Sequence[str]) -> str:
    placed = [job for job in report.jobs if job.plan.ranked]
    tiles = [
        ("jobs with a place", f"{len(placed):,} of {len(report.jobs):,}"),
        ("to finish, together", _sum(report, total=True)),
        ("per hour, together", _sum(report, total=False)),
    ]
    told: list[str] = []
    if len(keys) < len(report.jobs):
        told.append(
            f'<p class="note">The first {len(keys)} have sections of their own; for others give fewer jobs, or one.</p>'
        )
    if (f := report.fleet) is not None:
        if f.one_by_one_usd is not None:
            tiles.append(("one by one it would cost", usd(f.one_by_one_usd)))
        if f.bound_usd is not None:
            tiles.append(("the least possible", usd(f.bound_usd)))
        told.append(f'<p class="note">Placed together: {text(f.method)}.</p>')
    inner = [
        '<h1 id="overview-h">Overview</h1>',
        _tiles(tiles),
        *told,
        report_tables.jobs(report, keys),
        *(report_tables.fleet_tables(report.fleet) if report.fleet is not None else ()),
    ]
    return f'<article class="panel" id="overview" aria-labelledby="overview-h">{"".join(inner)}</article>'


def _sum(report: Report, *, total: bool) -> str:
    chosen = [job.plan.choice for job in report.jobs if job.plan.ranked]
    if total:
        return usd(sum((p.total_usd for p in chosen), start=Decimal(0)), lower_bound=any(p.lower_bound for p in chosen))
    return usd(sum((p.usd_per_hour for p in chosen), start=Decimal(0)))


def _tiles(facts: Sequence[tuple[str, str]]) -> str:
    inner = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in facts)
    return f'<dl class="tiles">{inner}</dl>'


def _panel(job: JobReport, key: str, report: Report) -> str:
    alone = len(report.jobs) == 1
    level = 1 if alone else 2
    sections = _sections(job, key, level + 1)
    toc = "".join(f'<li><a href="#{key}-{name}">{title}</a></li>' for name, title, _ in sections)
    inner = [
        _headline(job, key, level, report),
        f'<nav class="toc" aria-label="Sections of {text(job.plan.name)}"><ul>{toc}</ul></nav>',
        *(
            f'<section id="{key}-{name}" aria-labelledby="{key}-{name}-h"><h{level + 1} id="{key}-{name}-h">{title}</h{level + 1}>{body}</section>'
            for name, title, body in sections
        ),
    ]
    return f'<article class="panel" id="{key}" aria-labelledby="{key}-h">{"".join(inner)}</article>'


def _headline(job: JobReport, key: str, level: int, report: Report) -> str:
    name = text(job.plan.name)
    head = f'<h{level} id="{key}-h">{name}</h{level}>'
    if not job.plan.ranked:
        waits = next((w for w in report.fleet.waiting if w.job == job.plan.name), None) if report.fleet else None
        told = f"Waits: {text(waits.text)} {tag('code', waits.code)}" if waits else "No feasible placement."
        return f'<div class="head">{head}<p class="lead">{told}</p></div>'
    p = job.plan.choice
    word = word_of(job)
    lead = f"{text(where(p))}, <strong>{text(what(p))}</strong>" + (
        f' <span class="word">{word}</span>' if word else ""
    )
    tiles = [
        ("to finish", usd(p.total_usd, lower_bound=p.lower_bound)),
        ("per hour", f"{usd(p.usd_per_hour)}/h"),
        ("done in", duration(p.finish_hours)),
        ("GPUs", hardware(p)),
        ("placement", p.placement_id or NONE),
    ]
    if len(job.plan.ranked) > 1:
        gap = job.plan.ranked[1].total_usd - p.total_usd
        tiles.insert(3, ("runner-up", report_tables.gapped(gap) if gap else "the same total"))
    return f'<div class="head">{head}<p class="lead">{lead}</p>{_tiles(tiles)}</div>'


def _sections(job: JobReport, key: str, level: int) -> list[tuple[str, str, str]]:
    """Id, title, markup; in the order that people ask in."""
    return [
        ("why", "Why this choice", _why(job, level)),
        ("terms", "What it costs", _terms(job, key)),
        ("market", "The market", _market(job, key)),
        ("whynot", "Why not another", _why_not(job)),
        ("regions", "Regions", _regions(job)),
        ("rights", "Identities and what they reach", _rights(job, key)),
        ("moves", "Moves", _moves(job, key, level)),
        ("prices", "Price history", _prices(job)),
        ("inputs", "Inputs", _inputs(job)),
    ]


def _listed(title: str, items: Sequence[str], level: int) -> str:
    if not items:
        return ""
    return f"<div><h{level + 1}>{title}</h{level + 1}>{tag('ul', *(tag('li', one) for one in items))}</div>"


def _why(job: JobReport, level: int) -> str:
    notes = _listed("Reasons", [text(n) for n in job.plan.notes], level)
    if not job.plan.ranked:
        return notes or '<p class="empty">Nothing is feasible: see why not another.</p>'
    p = job.plan.choice
    parts = [
        notes,
        _listed("How it differs from the hardware named", [text(d) for d in p.differs], level),
        _listed("Caveats", [f"{text(c.text)} {tag('code', text(c.code))}" for c in p.caveats], level),
    ]
    return tag("div", *parts, class_="columns")


def _terms(job: JobReport, key: str) -> str:
    ranked = job.plan.ranked[:SHOWN]
    if not ranked:
        return '<p class="empty">Nothing is ranked.</p>'
    legend = "".join(
        tag("li", key_of(f'<rect class="t-{name}" width="12" height="12" rx="2"/>'), f" {TERM_WORDS[name]}")
        for name in present(ranked)
    )
    return f'<figure>{bars(ranked, key=key)}<ul class="legend">{legend}</ul></figure>{report_tables.terms(ranked, job.plan.name)}'


def _market(job: JobReport, key: str) -> str:
    if not job.rows:
        return '<p class="empty">No offer is feasible.</p>'
    shown = report_tables.first_rows(job)
    told = [f"{counted(job.feasible, 'feasible offer')}"]
    if job.splits:
        told.append(f"{counted(job.splits, 'split')} over several clouds, of which the best are shown")
    words = " and ".join(told) + "."
    if not job.whole:
        words = f"A plan file holds its ranked set alone: {counted(len(job.rows), 'placement')}. Give the job file for the whole market."
    elif len(job.rows) < job.feasible:
        words += f" The {len(job.rows):,} cheapest are in this file."
    static = (
        f'<p class="note static">Without script the first {len(shown):,} are shown, those on the edge among them.</p>'
        if len(shown) < len(job.rows)
        else ""
    )
    row = job.choice_row
    chart = scatter(job.rows, key=key, choice=None if row is None else row.position)
    clouds, sold = ({kind_of(r)[k] for r in job.rows} for k in (0, 1))
    keys = [(f'<circle class="mark {c}" cx="6" cy="6" r="5"/>', CLOUDS[c]) for c in CLOUDS if c in clouds]
    keys += [_SHAPES[name] for name in _SHAPES if name in sold or name == "edge"]
    legend = "".join(tag("li", key_of(shape), f" {word}") for shape, word in keys)
    figure = f'<figure class="chart" data-job="{key}">{chart}<ul class="legend">{legend}</ul></figure>'
    return f'<p class="note">{words}</p>{static}{figure}{report_tables.market(job, key)}'


def _why_not(job: JobReport) -> str:
    if not job.reasons:
        return '<p class="empty">No offer was rejected.</p>'
    total = sum(r.count for r in job.reasons)
    return f'<p class="note">{counted(total, "offer is", "offers are")} rejected, each counted at its main reason.</p>{report_tables.reasons(job)}'


def _regions(job: JobReport) -> str:
    if not job.regions:
        return '<p class="empty">A plan file says nothing of regions: give the job file.</p>'
    none = report_tables.barren(job)
    if not any(r.best for r in job.regions):
        return none
    told = '<p class="note">Egress is what this job pays for traffic at the cheapest offer there; Gbit/s are of one node from, or to, the slowest of the job\'s stores.</p>'
    return f"{report_tables.area_matrix(job)}{told}{report_tables.regions(job)}{none}"


def _rights(job: JobReport, key: str) -> str:
    parts: list[str] = []
    if job.audited is not None and job.audited.subjects:
        title = f"Identities of {job.plan.name}"
        parts.append(f'<figure class="wide">{graph(job.audited, title=title, inside=f"{key}-g", words=plain)}</figure>')
    if job.no_rights:
        parts.append(f'<p class="note">{text(job.no_rights)}</p>')
    if job.plan.ranked:
        grants = job.plan.grants.get(job.plan.choice.grants_digest, ())
        rows = [
            tag(
                "tr", *(f"<td>{text(one)}</td>" for one in (g.identity.value, g.permission.value, g.resource, g.reason))
            )
            for g in grants
        ]
        if rows:
            head = ("identity of the nodes", "may", "on", "why")
            parts.append(table(f"Grants of the nodes of {text(job.plan.name)}", head, rows, css="sortable"))
    return "".join(parts) or '<p class="empty">No identity is needed.</p>'


def _moves(job: JobReport, key: str, level: int) -> str:
    if not job.moves:
        return '<p class="empty">No migration diff was given for this job, and none proposed.</p>'
    return "".join(_move(m, f"{key}-m{k}", level) for k, m in enumerate(job.moves))


def _move(m: MigrationDiff, key: str, level: int) -> str:
    first = m.to[0]
    rows = [
        tag("tr", tag("th", text(t.name), scope="row"), f'<td class="n">{signed(t.usd)}</td><td>{text(t.detail)}</td>')
        for t in m.terms
    ]
    terms = table(f"What decided the move of {text(m.job)}", ("term", "USD", "how"), rows, kinds="tnt") if rows else ""
    return (
        f"<h{level + 1}>{text(m.standing.offer_id)} to {text(first.offer_id)}</h{level + 1}>"
        f"<p>{text(m.text)} <code>{text(m.code)}</code> <strong>The job stops for {minutes(m.stop_minutes)}.</strong></p>"
        f"<figure>{timeline(m, key=key)}</figure>{terms}"
    )


def _prices(job: JobReport) -> str:
    if job.past is None:
        return f'<p class="empty">None: {text(job.no_past)}.</p>'
    found = job.past.found[:MOST_LINES]
    until = job.past.until.timestamp()
    series = [
        Series(
            name=plain(p.series),
            points=steps([at for at, _ in p.changes], [float(price) for _, price in p.changes], until),
        )
        for p in found
    ]
    chart = plot(series, title="Price of a node", unit="USD/h", legend=False)
    rows = [
        tag(
            "tr",
            tag("td", key_of(f'<line class="line{k}" x1="0" y1="6" x2="12" y2="6"/>'), f" {text(p.series)}"),
            *(f'<td class="n">{usd(value)}</td>' for value in (p.least, p.median, p.most)),
            f'<td class="n">{len(p.changes):,}</td>',
        )
        for k, p in enumerate(found)
    ]
    shown = f"{job.past.since:%Y-%m-%d} to {job.past.until:%Y-%m-%d}"
    listed = table(f"Price of a node, {shown}", ("series", "least", "median", "most", "changes"), rows, kinds="tnnnn")
    others = len(job.past.found) - len(found)
    more = (
        f'<p class="note">{counted(others, "more series has", "more series have")} prices: skyplan prices history lists them.</p>'
        if others
        else ""
    )
    return f"<figure>{chart}</figure>{listed}{more}"


def _inputs(job: JobReport) -> str:
    return report_tables.inputs(job.plan.inputs, job.file)
