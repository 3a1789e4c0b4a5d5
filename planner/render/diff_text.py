"""A placement diff for the terminal: rights first, then what Terraform destroys, then each job.  Decides nothing; meaning never rests on colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.change import GLYPHS, Action
from planner.render.audit_words import what as granted
from planner.render.audit_words import who
from planner.render.diff_words import (
    amount,
    counted,
    delta,
    finish,
    headline,
    inputs_words,
    mask,
    money,
    notes,
    place,
    runner_up,
    said,
)
from planner.render.migration_text import minutes
from planner.render.text import Paint, columns, usd

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    rows = [("!", mask(who(f)), mask(granted(f)), mask(f.message)) for f in diff.widenings]
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
    p = c.after or c.before
    head = f"{paint(GLYPHS[c.action], 'bold', _COLOURS[c.action])} {paint(mask(c.job), 'bold')}  {place(p)}  ({c.action.value})"
    rows = list(_rows(c))
    out = [head, f"    {mask(c.reason)}", *columns(rows, indent="    ")]
    terms = [
        (t.name, amount(t.before), "->", amount(t.after), delta(t.sides.difference), mask(t.detail)) for t in c.terms
    ]
    out += ["", *columns(terms, right=frozenset({1, 3, 4}), indent="    ")]
    rights = [("+", g) for g in c.grants_added] + [("-", g) for g in c.grants_removed]
    if rights:
        out += ["", "    grants of the nodes"]
        out += [f"      {sign} {mask(f'{g.permission.value} {g.resource}: {g.reason}')}" for sign, g in rights]
    if c.migration is not None:
        m = c.migration
        out += ["", f"    migration ({m.reason.value}, {m.code}): the job stops for {minutes(m.stop_minutes)}"]
        steps = [
            (str(k), mask(s.title), minutes(s.minutes), "stops" if s.stops else "") for k, s in enumerate(m.steps, 1)
        ]
        out += columns(steps, right=frozenset({0, 2}), indent="      ")
    return out


def _rows(c: Change) -> Iterator[tuple[str, str]]:
    if c.before is not None and c.after is not None:
        yield "from", f"{place(c.before)} ({c.before.placement_id})"
        yield "to", f"{place(c.after)} ({c.after.placement_id})"
    if c.migration is not None:
        to = c.migration.to[0]
        yield "moves to", f"{place(to)} ({usd(to.usd_per_hour)}/h)"
    for a in c.altered:
        yield mask(a.name), f"{mask(a.before) or '-'} -> {mask(a.after) or '-'}"
    yield "per hour", money(c.hourly)
    yield "to finish", money(c.total)
    yield "egress", money(c.egress)
    yield "finish", finish(c)
    if beside := runner_up(c):
        yield "runner-up", beside
    if because := inputs_words(c):
        yield "told apart" if c.causes else "inputs", mask(because)
    if c.replanned:
        yield "planned", f"for this diff: {' and '.join(c.replanned)}"
    for caveat in c.caveats_added:
        yield "caveat", mask(caveat)


def warning_lines(diff: PlacementDiff, paint: Paint) -> list[str]:
    """For stderr."""
    return [paint(said(d), "yellow") for d in diff.warnings]
