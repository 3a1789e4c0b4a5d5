"""A placement diff as one HTML file: no script, no network, works from disk; light, dark and on paper.  Every text is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from planner.model.change import GLYPHS, Action
from planner.render.audit_words import what as granted
from planner.render.audit_words import where, who
from planner.render.diff_words import (
    amount,
    counted,
    delta,
    facts,
    finish,
    headline,
    inputs_words,
    mask,
    money,
    notes,
    said,
    summed,
    ways,
    word,
)
from planner.render.migration_text import minutes, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.change import Change, PlacementDiff

_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884;--warn:#b42318;--dim:#667085}
@media (prefers-color-scheme:dark){:root{--warn:#f97066;--dim:#98a2b3}}
body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0 1rem;width:100%}
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
section.warn h2{color:var(--warn)}
p.note{color:var(--dim)}
summary{cursor:pointer;font-weight:600}
@media print{body{max-width:none;margin:0}details{break-inside:avoid}}
"""
_NUMBER, _WARN = '<td class="n">', '<section class="warn">'
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(diff: PlacementDiff) -> str:
    """The whole file."""
    title = f"skyplan diff: {mask(diff.base)} to {mask(diff.head)}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p><strong>{escape(headline(diff))}</strong></p>",
        *_widenings(diff),
        *_destroying(diff),
        _totals(diff),
        *(f'<p class="note">{escape(note)}</p>' for note in notes(diff)),
        *(f'<p class="note">{escape(said(d))}</p>' for d in diff.warnings),
        *_jobs(diff),
        *map(_job, diff.open),
        *_terraform(diff),
        *_figures(diff),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            *body,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: frozenset[int] = frozenset()) -> str:
    out = ["<table>"]
    if any(head):
        out.append("<thead><tr>" + "".join(f'<th scope="col">{escape(h)}</th>' for h in head) + "</tr></thead>")
    out.append("<tbody>")
    for row in rows:
        cells = (f"{_NUMBER if k in numbers else '<td>'}{escape(mask(text))}</td>" for k, text in enumerate(row))
        out.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join([*out, "</tbody>", "</table>"])


def _section(title: str, table: str, *, warn: bool = False) -> str:
    return f"{_WARN if warn else '<section>'}\n<h2>{escape(title)}</h2>\n{table}\n</section>"


def _folded(title: str, *inner: str) -> str:
    return "\n".join([f"<details><summary>{escape(mask(title))}</summary>", *inner, "</details>"])


def _widenings(diff: PlacementDiff) -> list[str]:
    if not diff.widenings:
        return []
    rows = [(f.level.value, who(f), where(f), granted(f), f.message) for f in diff.widenings]
    table = _table(("level", "identity", "in", "grant", "what is wider"), rows)
    return [_section(f"Warning: {len(rows)} grants widen", table, warn=True)]


def _destroying(diff: PlacementDiff) -> list[str]:
    rows = [
        (r.action, r.address, ", ".join(filter(None, (r.because, *r.paths))))
        for t in diff.terraform
        for r in t.destroying
    ]
    out: list[str] = []
    if rows:
        table = _table(("action", "resource", "because"), rows)
        out.append(_section(f"Warning: Terraform deletes or replaces {len(rows)} resources", table, warn=True))
    out += [f"<p>Terraform's plan ended with an error: {escape(mask(t.file))}</p>" for t in diff.terraform if t.errored]
    return out


def _totals(diff: PlacementDiff) -> str:
    rows = [
        (name, *map(summed, (s.before, s.after)), delta(s.difference))
        for name, s in (("per hour", diff.hourly), ("to finish", diff.total), ("of it egress", diff.egress))
    ]
    head = (f"all jobs ({len(diff.changes)})", "base", "head", "difference")
    return _section("Cost", _table(head, rows, numbers=frozenset({1, 2, 3})))


def _jobs(diff: PlacementDiff) -> list[str]:
    if not diff.open:
        return []
    rows = [
        (
            f"{GLYPHS[c.action]} {word(c)}",
            c.job,
            *ways(c),
            delta(c.hourly.difference),
            delta(c.total.difference),
            finish(c),
        )
        for c in diff.open
    ]
    head = ("action", "job", "from", "to", "per hour", "to finish", "finish")
    return [_section("Jobs", _table(head, rows, numbers=frozenset({4, 5})))]


def _job(c: Change) -> str:
    rows = [("reason", c.reason), *facts(c)]
    inner = [_table(("", ""), rows)]
    if c.terms:
        terms = [(t.name, amount(t.before), amount(t.after), delta(t.difference), t.detail) for t in c.terms]
        inner.append(_table(("term", "base", "head", "difference", "how"), terms, numbers=frozenset({1, 2, 3})))
    rights = [("added", g) for g in c.grants_added] + [("removed", g) for g in c.grants_removed]
    if rights:
        shown = [(word, g.permission.value, g.resource, g.reason) for word, g in rights]
        inner.append(_table(("grant of the nodes", "permission", "resource", "reason"), shown))
    if c.migration is not None:
        m = c.migration
        inner.append(f"<p>{escape(mask(m.text))} <strong>The job stops for {minutes(m.stop_minutes)}.</strong></p>")
        steps = [(str(k), s.title, minutes(s.minutes), "stops" if s.stops else "") for k, s in enumerate(m.steps, 1)]
        if moved := [(t.name, signed(t.usd), t.detail) for t in m.terms]:
            inner.append(_table(("term of the move", "USD", "how"), moved, numbers=frozenset({1})))
        inner.append(_table(("step", "", "expected", ""), steps))
    return _folded(f"{c.job}: {word(c)}", *inner)


def _terraform(diff: PlacementDiff) -> list[str]:
    out: list[str] = []
    for t in diff.terraform:
        rows = [(r.action, r.address, f"from {r.previous}" if r.previous else ", ".join(r.paths)) for r in t.resources]
        rows += [(action, f"output {name}", "") for name, action in t.outputs]
        rows += [("drift", address, "changed outside of Terraform") for address in t.drifted]
        if rows:
            out.append(_folded(f"Terraform {t.file}: {counted([t])}", _table(("action", "resource", ""), rows)))
    return out


def _figures(diff: PlacementDiff) -> list[str]:
    others = [c for c in diff.changes if c.action is Action.KEEP and c.other_figures]
    if not others:
        return []
    rows = [(c.job, money(c.total), finish(c), inputs_words(c)) for c in others]
    table = _table(("job", "to finish", "finish", "inputs changed"), rows)
    return [_folded(f"{len(others)} kept, with other figures", table)]
