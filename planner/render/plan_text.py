"""A PlacementPlan for people: the choice, what it is made of, what came next, what to know.  Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.codes import CODES
from planner.render.text import Paint, columns, duration, usd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.plan import Placement, PlacementPlan

RUNNERS_UP = 5
EXAMPLES = 1


def where(p: Placement) -> str:
    """`aws us-east-1 use1-az4`, with the target where it is not the default; of a job in several clouds, each."""
    if p.parts:
        return " + ".join(map(where, p.parts))
    target = "" if p.target == "default" else f":{p.target}"
    return " ".join(filter(None, (f"{p.cloud}{target}", p.region, "" if p.zone == p.region else p.zone)))


def what(p: Placement) -> str:
    """`2 x p4d.24xlarge spot`."""
    if p.parts:
        return " + ".join(map(what, p.parts))
    return f"{f'{p.nodes} x ' if p.nodes > 1 else ''}{p.instance_type} {p.capacity.replace('_', '-')}"


def glyph_of(plan: PlacementPlan, before: str | None) -> tuple[str, str, str]:
    """What would become of the job: a sign, the word for it, a colour that says no more.  `before` is the placement id that stands, or None."""
    if plan.waits:
        return ".", "waits", "yellow"
    if not plan.ranked:
        return "!", "no feasible placement", "red"
    if before is None:
        return "+", "create", "green"
    return ("=", "keep", "green") if before == plan.choice.placement_id else ("~", "change", "green")


def plan_lines(plan: PlacementPlan, *, before: str | None, runners_up: int, explain: bool, paint: Paint) -> list[str]:
    """One job.  `before` is the placement id that stands, or None."""
    glyph, word, colour = glyph_of(plan, before)
    if not plan.ranked:
        return _nothing(plan, glyph, word, colour, paint)
    best = plan.choice
    out = [
        f"{paint(glyph, 'bold', colour)} {paint(plan.name, 'bold')}  {where(best)}  {what(best)}  ({word})",
        (
            f"    {usd(best.total_usd, lower_bound=best.lower_bound)} to finish · {usd(best.usd_per_hour)}/h · done in {duration(best.finish_hours)}"
            f" · {best.nodes * best.gpu_count} x {best.gpu} · {best.placement_id}"
        ),
        "",
    ]
    shown = [t for t in best.terms if t.usd is None or t.usd != 0 or explain]
    out += columns([(t.name, usd(t.usd), t.detail) for t in shown], right=frozenset({1}), indent="    ")
    out += ["", *_runners_up(plan, runners_up, paint)]
    out += _list("why", plan.notes, paint)
    out += _list("differs", best.differs, paint)
    out += _list("caveats", [f"{c.text} [{c.code}]" for c in best.caveats], paint, "yellow")
    grants = plan.grants.get(best.grants_digest, ())
    out += _list("grants", [f"{g.identity.value} {g.permission.value} {g.resource}: {g.reason}" for g in grants], paint)
    places = dict.fromkeys(f"{piece.cloud}:{piece.target}" for piece in best.pieces)
    reached = dict.fromkeys(
        f"{path.uri} by {path.reach.value}: {path.detail}" for place in places for path in plan.access.get(place, ())
    )
    out += _list("stores", reached, paint)
    out += _rejected(plan, paint, explain=explain)
    return out


def _runners_up(plan: PlacementPlan, count: int, paint: Paint) -> list[str]:
    best, rest = plan.choice, plan.ranked[1 : count + 1]
    if not rest:
        return []
    known = {c.code for c in best.caveats}  # told once below; here only what is new
    rows = [("#", "where", "what", "total", "gap", "per hour", "finish", "")]
    rows += [
        (
            str(p.rank + 1),
            where(p),
            what(p),
            usd(p.total_usd, lower_bound=p.lower_bound),
            f"+{usd(p.total_usd - best.total_usd)}",
            usd(p.usd_per_hour),
            duration(p.finish_hours),
            " ".join(sorted({c.code for c in p.caveats} - known)),
        )
        for p in rest
    ]
    lines = columns(rows, right=frozenset({0, 3, 4, 5, 6}), indent="    ")
    more = len(plan.ranked) - 1 - len(rest)
    tail = [f"    … and {more} more in the plan"] if more > 0 else []
    return ["  runners-up", paint(lines[0], "dim"), *lines[1:], *tail, ""]


def _list(title: str, items: Iterable[str], paint: Paint, style: str = "") -> list[str]:
    lines = list(items)
    if not lines:
        return []
    return [f"  {title}", *(f"    {paint(line, style) if style else line}" for line in lines), ""]


def _rejected(plan: PlacementPlan, paint: Paint, *, explain: bool) -> list[str]:
    if not plan.rejected:
        return []
    total = sum(r.count for r in plan.rejected)
    out = [f"  rejected: {total:,} offers"]
    rows = [(r.code, f"{r.count:,}", CODES[r.code].meaning) for r in plan.rejected]
    for line, r in zip(columns(rows, right=frozenset({1}), indent="    "), plan.rejected, strict=True):
        out.append(line)
        if explain or not plan.ranked:
            out += [paint(f"      {e}", "dim") for e in r.examples[: 3 if explain else EXAMPLES]]
    return [*out, ""]


def _nothing(plan: PlacementPlan, glyph: str, word: str, colour: str, paint: Paint) -> list[str]:
    """Why it has no place.  Of a waiting job that is a sentence: the offers that fell for reasons of their own are not what it waits for."""
    head = [f"{paint(glyph, 'bold', colour)} {paint(plan.name, 'bold')}  {word}", ""]
    if plan.waits:
        return [*head, *_list("why", [plan.waits, *plan.notes[1:]], paint)]
    return head + _rejected(plan, paint, explain=True)
