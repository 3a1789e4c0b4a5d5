"""Migration diffs, and the jobs that stay, for the terminal.  Decides nothing; meaning never rests on colour alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.codes import CODES
from planner.render.plan_text import what, where
from planner.render.text import Paint, columns, duration, usd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from planner.model.migration import Kept, MigrationDiff, MigrationStep
    from planner.model.plan import ScoreTerm


def signed(amount: Decimal | None) -> str:
    """`+$27.51`, `-$2.02`, `unknown`."""
    if amount is None:
        return "unknown"
    return f"{'-' if amount < 0 else '+'}{usd(abs(amount))}"


def minutes(value: Decimal | None) -> str:
    """`11.0 min`, or a dash where it is not known."""
    return "-" if value is None else f"{value:.1f} min"


def standing_words(diff: MigrationDiff) -> str:
    """`train-g3 aws:prod/… (running, $14.00/h, step 12,000, checkpoint 11,900)`."""
    s = diff.standing
    facts = [s.status, f"{usd(s.usd_per_hour)}/h" if s.usd_per_hour is not None else "price unknown"]
    if s.step is not None:
        facts.append(f"step {s.step:,}")
    facts.append(f"checkpoint {s.checkpoint_step:,}" if s.checkpoint_step is not None else "no checkpoint")
    return f"{diff.job}-g{s.generation} on {s.offer_id} ({', '.join(facts)})"


def bound_words(diff: MigrationDiff) -> str:
    """What may be done with it, and by whom."""
    if not diff.reviewed:
        return "not in the reviewed plan: a new plan file goes with it, to be reviewed first"
    if not diff.prepared:
        return "in the reviewed plan, but not prepared: `skyplan apply PLAN --prepare-only`, by who may deploy, then migrate"
    return "in the reviewed plan, and prepared: `skyplan migrate` may carry it out"


def left_words(diff: MigrationDiff) -> str:
    """How much work is left, and how that was counted."""
    s = diff.standing
    words = f"{duration(s.remaining_hours)} where it runs" if s.remaining_hours is not None else "unknown"
    return f"{words}; counted by {diff.inputs.get('counted_by', 'clock')}: {diff.inputs.get('work_left', '')}"


def diff_lines(diff: MigrationDiff, paint: Paint) -> list[str]:
    """One move."""
    first = diff.to[0]
    out = [
        f"{paint('>', 'bold', 'yellow')} {paint(diff.job, 'bold')}  {where(first)}  {what(first)}  (migrate: {diff.reason.value}) [{diff.code}]",
        f"    {diff.text}",
        f"    from   {standing_words(diff)}",
        f"    to     {first.offer_id} ({usd(first.usd_per_hour)}/h, {first.placement_id})",
        *(f"    then   {p.offer_id} ({usd(p.usd_per_hour)}/h)" for p in diff.to[1:]),
    ]
    if diff.runner_up:
        out.append(f"    beside {diff.runner_up}")
    out += [f"    left   {left_words(diff)}", f"    {bound_words(diff)}", ""]
    out += term_lines(diff.terms)
    out += ["", "  steps", *step_lines(diff.steps)]
    out += _listed("resources", [f"+ {r}" for r in diff.resources_added] + [f"- {r}" for r in diff.resources_removed])
    grants = [("+", g) for g in diff.grants_added] + [("-", g) for g in diff.grants_removed]
    out += _listed(
        "grants of the nodes",
        [f"{s} {g.permission.value} {g.resource}: {g.reason}" for s, g in grants] or ["= unchanged"],
    )
    return [*out, ""]


def term_lines(terms: Sequence[ScoreTerm]) -> list[str]:
    """The table that adds up."""
    return columns([(t.name, signed(t.usd), t.detail) for t in terms], right=frozenset({1}), indent="    ")


def step_lines(steps: Sequence[MigrationStep]) -> list[str]:
    """In order; `stops` marks where the job makes no progress."""
    rows = [(str(k), s.title, minutes(s.minutes), "stops" if s.stops else "") for k, s in enumerate(steps, 1)]
    return columns(rows, right=frozenset({0, 2}), indent="    ")


def kept_lines(kept: Kept, paint: Paint, *, explain: bool) -> list[str]:
    """A job that stays: one line, and the terms where they are asked for."""
    out = [f"{paint('=', 'bold')} {paint(kept.job, 'bold')}  stays: {kept.text} [{kept.code}]"]
    if explain:
        out.append(f"    {CODES[kept.code].meaning}")
        out += term_lines(kept.terms)
    return out


def summary(diffs: Sequence[MigrationDiff], kept: Sequence[Kept]) -> str:
    """`2 to move, 5 stay`."""
    return f"{len(diffs)} to move, {len(kept)} stay"


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"  {title}", *(f"    {line}" for line in lines)] if lines else []
