"""What a plan of several jobs says as a whole, for people: who is placed, who waits and why, what it costs and against what.  Decides nothing."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from planner.render.plan_text import glyph_of, what, where
from planner.render.text import Paint, columns, duration, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.fleet import BudgetUse, FleetSummary, PoolUse, Waiting
    from planner.model.plan import PlacementPlan

IN_FULL: Final = 10
"""Jobs up to which each is told in full."""
_SHOWN: Final = 12
"""Pools, waiting and kept jobs that are told one by one; of more the rest is counted, and all are in `--json`."""
_KINDS: Final = {"per_hour": "per hour", "total": "in total"}

Told = tuple["PlacementPlan", "str | None"]
"""A plan, and the placement id that stands, or None."""


def fleet_lines(fleet: FleetSummary, told: Sequence[Told], paint: Paint) -> list[str]:
    """The summary: counts, money, pools, budgets, who waits, who stays."""
    lost = fleet.jobs - fleet.placed - len(fleet.waiting)
    head = [f"{fleet.placed:,} of {fleet.jobs:,} jobs placed"]
    if fleet.waiting:
        head.append(paint(f"{len(fleet.waiting):,} wait{'s' if len(fleet.waiting) == 1 else ''}", "yellow"))
    if lost:
        head.append(paint(f"{lost:,} without a feasible placement", "red"))
    return [
        f"{paint('fleet', 'bold')}  {', '.join(head)}",
        *columns(_money(fleet, [plan for plan, _ in told]), right=frozenset({1}), indent="    "),
        "",
        *_pools(fleet.pools, paint),
        *_budgets(fleet.budgets, paint),
        *_waiting(fleet.waiting, paint),
        *_kept(fleet, paint),
    ]


def _money(fleet: FleetSummary, plans: Iterable[PlacementPlan]) -> list[tuple[str, str, str]]:
    chosen = [plan.choice for plan in plans if plan.ranked]
    lower = any(p.lower_bound for p in chosen)
    hourly = sum((p.usd_per_hour for p in chosen), Decimal(0))
    rows = [
        ("total", usd(fleet.total_usd, lower_bound=lower), f"to finish, {usd(hourly)}/h while all run; {fleet.method}")
    ]
    if fleet.one_by_one_usd is not None and fleet.method != "one by one":
        gain = fleet.one_by_one_usd - fleet.total_usd
        words = (
            "the same"
            if not gain
            else f"{usd(abs(gain))} {'more' if gain > 0 else 'less'}{_share(gain, fleet.total_usd)}"
        )
        rows.append(("one by one", usd(fleet.one_by_one_usd), f"the same jobs in order of priority and name: {words}"))
    if fleet.bound_usd is not None:
        gap = fleet.total_usd - fleet.bound_usd
        words = f"the total is {usd(gap)}{_share(gap, fleet.bound_usd)} above" if gap > 0 else "the total is that"
        rows.append(("bound", usd(fleet.bound_usd), f"no assignment of these jobs costs less; {words}"))
    return rows


def _share(part: Decimal, whole: Decimal) -> str:
    return f" ({abs(part) / whole:.2%})" if whole > 0 else ""


def _pools(pools: Sequence[PoolUse], paint: Paint) -> list[str]:
    """Those that are full first, then by what is planned there."""
    if not pools:
        return []

    def full(use: PoolUse) -> bool:
        return use.cap is not None and use.held + use.planned >= use.cap

    order = sorted(pools, key=lambda use: (not full(use), -use.planned, use.pool))
    rows = [("pool", "planned", "held", "cap", "")]
    rows += [
        (
            use.pool,
            f"{use.planned:,}",
            f"{use.held:,}",
            "none" if use.cap is None else f"{use.cap:,}",
            "full" if full(use) else "",
        )
        for use in order[:_SHOWN]
    ]
    lines = columns(rows, right=frozenset({1, 2, 3}), indent="    ")
    return [f"  pools: {len(pools):,}, nodes of each", paint(lines[0], "dim"), *lines[1:], *_more(len(pools)), ""]


def _budgets(budgets: Sequence[BudgetUse], paint: Paint) -> list[str]:
    if not budgets:
        return []
    rows = [("teams", "", "planned", "held", "limit", "left")]
    for use in budgets:
        left = use.limit_usd - use.held_usd - use.planned_usd
        kind = _KINDS.get(use.kind, use.kind)
        rows.append(
            (", ".join(use.teams), kind, usd(use.planned_usd), usd(use.held_usd), usd(use.limit_usd), usd(left))
        )
    lines = columns(rows, right=frozenset({2, 3, 4, 5}), indent="    ")
    return ["  budgets", paint(lines[0], "dim"), *lines[1:], ""]


def _waiting(waiting: Sequence[Waiting], paint: Paint) -> list[str]:
    if not waiting:
        return []
    counts = Counter(one.code for one in waiting)
    out = [f"  waiting: {len(waiting):,} ({', '.join(f'{code} {count:,}' for code, count in sorted(counts.items()))})"]
    for one in waiting[:_SHOWN]:
        team = f", team {one.team}" if one.team else ""
        out.append(f"    {paint('.', 'bold', 'yellow')} {paint(one.job, 'bold')}  priority {one.priority}{team}")
        out.append(f"        {one.text} [{one.code}]")
        if one.behind:
            out.append(f"        before it: {', '.join(one.behind)}")
    return [*out, *_more(len(waiting)), ""]


def _kept(fleet: FleetSummary, paint: Paint) -> list[str]:
    if not fleet.kept:
        return []
    order = sorted(fleet.kept, key=lambda kept: (-kept.saving_usd, kept.job))
    rows = [("job", "would save", "at")]
    rows += [(kept.job, usd(kept.saving_usd), kept.better_offer_id) for kept in order[:_SHOWN]]
    lines = columns(rows, right=frozenset({1}), indent="    ")
    title = f"  kept where they are, as moving saves too little: {len(fleet.kept):,}"
    return [title, paint(lines[0], "dim"), *lines[1:], *_more(len(fleet.kept)), ""]


def _more(count: int) -> list[str]:
    return [f"    … and {count - _SHOWN:,} more"] if count > _SHOWN else []


def job_table(told: Sequence[Told], paint: Paint) -> list[str]:
    """One line per job."""
    rows = [("", "job", "where", "what", "total", "per hour", "finish", "")]
    for plan, before in told:
        glyph, word, _ = glyph_of(plan, before)
        if not plan.ranked:
            why = f"{word}: {plan.waits}" if plan.waits else word
            rows.append((glyph, plan.name, "-", "-", "-", "-", "-", why))
            continue
        p = plan.choice
        total = usd(p.total_usd, lower_bound=p.lower_bound)
        rows.append((glyph, plan.name, where(p), what(p), total, usd(p.usd_per_hour), duration(p.finish_hours), word))
    lines = columns(rows, right=frozenset({4, 5, 6}))
    return [paint(lines[0], "dim"), *lines[1:], ""]
