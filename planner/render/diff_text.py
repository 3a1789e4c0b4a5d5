"""A placement diff for the terminal: rights first, then what Terraform destroys, then each job.  Decides nothing; meaning never rests on colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    ways,
    word,
)
from planner.render.migration_text import minutes, signed
from planner.render.text import Paint, columns

if TYPE_CHECKING:
    from planner.model.change import Change, PlacementDiff

_COLOURS = {
    Action.CREATE: "green",
    Action.UPDATE: "yellow",
    Action.RETIRE: "red",
    Action.MIGRATE: "yellow",
    Action.KEEP: "dim",
}


def diff_lines(diff: PlacementDiff, paint: Paint, *, kept: bool = False) -> list[str]:
    """`kept`: a line for each job that stays as it is, too."""
    out = [f"{paint(mask(diff.base), 'bold')} -> {paint(mask(diff.head), 'bold')}: {headline(diff)}", ""]
    out += _widenings(diff, paint)
    out += _terraform(diff, paint)
    for change in diff.changes:
        if change.action is not Action.KEEP:
            out += [*_change(change, paint), ""]
    others = [c for c in diff.changes if c.action is Action.KEEP and (c.other_figures or kept)]
    if others:
        rows = [(GLYPHS[Action.KEEP], c.job, money(c.total), finish(c), inputs_words(c)) for c in others]
        out += ["kept" if kept else "kept, with other figures", *columns(rows, indent="  "), ""]
    rows = [("per hour", money(diff.hourly)), ("to finish", money(diff.total)), ("of it egress", money(diff.egress))]
    out += ["all jobs", *columns(rows, indent="  ")]
    out += [f"  {paint('note', 'cyan')}: {note}" for note in notes(diff)]
    return out


def _widenings(diff: PlacementDiff, paint: Paint) -> list[str]:
    if not diff.widenings:
        return []
    rows = [("!", mask(who(f)), mask(where(f)), mask(granted(f)), mask(f.message)) for f in diff.widenings]
    return [paint(f"grants that widen: {len(rows)}", "bold", "red"), *columns(rows, indent="  "), ""]


def _terraform(diff: PlacementDiff, paint: Paint) -> list[str]:
    if not diff.terraform:
        return []
    out: list[str] = []
    destroying = [(t, r) for t in diff.terraform for r in t.destroying]
    if destroying:
        out.append(paint(f"warning: Terraform destroys {len(destroying)} resources", "bold", "red"))
        out += columns(
            [(f"{r.action}", mask(r.address), mask(r.because), mask(", ".join(r.paths))) for _, r in destroying],
            indent="  ",
        )
    out += [
        paint(f"warning: {mask(t.file)}: Terraform's plan ended with an error", "red")
        for t in diff.terraform
        if t.errored
    ]
    out.append(f"Terraform: {counted(diff.terraform)}")
    rows = [
        (r.action, mask(r.address), mask(f"from {r.previous}" if r.previous else ", ".join(r.paths)))
        for t in diff.terraform
        for r in t.resources
        if not r.destroys
    ]
    rows += [(action, f"output {mask(name)}", "") for t in diff.terraform for name, action in t.outputs]
    rows += [("drift", mask(address), "changed outside of Terraform") for t in diff.terraform for address in t.drifted]
    return [*out, *columns(rows, indent="  "), ""]


def _change(c: Change, paint: Paint) -> list[str]:
    here, there = ways(c)
    head = f"{paint(GLYPHS[c.action], 'bold', _COLOURS[c.action])} {paint(mask(c.job), 'bold')}  {there if c.after else here}  ({word(c)})"
    rows = [(mask(name), mask(text)) for name, text in facts(c)]
    out = [head, f"    {mask(c.reason)}", *columns(rows, indent="    ")]
    terms = [(t.name, amount(t.before), "->", amount(t.after), delta(t.difference), mask(t.detail)) for t in c.terms]
    out += ["", *columns(terms, right=frozenset({1, 3, 4}), indent="    ")]
    rights = [("+", g) for g in c.grants_added] + [("-", g) for g in c.grants_removed]
    if rights:
        out += ["", "    grants of the nodes"]
        out += [f"      {sign} {mask(f'{g.permission.value} {g.resource}: {g.reason}')}" for sign, g in rights]
    if c.migration is not None:
        m = c.migration
        out += ["", f"    migration ({m.reason.value}, {mask(m.code)}): the job stops for {minutes(m.stop_minutes)}"]
        steps = [
            (str(k), mask(s.title), minutes(s.minutes), "stops" if s.stops else "") for k, s in enumerate(m.steps, 1)
        ]
        out += columns(
            [(t.name, signed(t.usd), mask(t.detail)) for t in m.terms], right=frozenset({1}), indent="      "
        )
        out += columns(steps, right=frozenset({0, 2}), indent="      ")
    return out


def warning_lines(diff: PlacementDiff, paint: Paint) -> list[str]:
    """For stderr."""
    return [paint(said(d), "yellow") for d in diff.warnings]
