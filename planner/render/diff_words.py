"""Words of a placement diff that every output shares, and the mask that nothing secret passes.

A diff goes into pull requests, logs and chats: secrets, account numbers, subscription and project ids are cut out of every text before it is escaped for
where it goes.  Shapes of secrets are `planner.iam.secret_shapes`'.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.iam.secret_shapes import ASSIGNMENT, SHAPES, is_mixed, is_secret_name, looks_secret
from planner.model.change import Action, Bound
from planner.render.audit_words import printable
from planner.render.plan_text import what, where
from planner.render.text import duration, usd

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from planner.model.change import Amount, Change, Difference, PlacementDiff, Sides, TerraformChanges
    from planner.model.diagnostic import Diagnostic
    from planner.model.plan import Placement

LONGEST_TEXT = 600
"""Characters of one text: a rejected job's reason or an error of Terraform may be pages long."""
_SECRET, _ACCOUNT, _ID = "[secret]", "[account]", "[id]"
_NUMBER = re.compile(r"(?<![0-9A-Za-z])\d{12}(?![0-9A-Za-z])")
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])")
_NEBIUS = re.compile(r"\b(?:project|tenant|serviceaccount)-e\d\d[a-z0-9]{6,}\b")
_GCP = re.compile(
    r"(?<=projects/)[a-z][a-z0-9-]{4,28}[a-z0-9](?=/|$)|(?<=@)[a-z][a-z0-9-]{4,28}[a-z0-9](?=\.iam\.gserviceaccount\.com)"
)
#: without one of these a text holds nothing to mask: most texts of a thousand jobs do not
_SUSPECT = re.compile(
    r"\d{12}|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|[A-Za-z0-9+/_.=-]{12,}|[:=]\s*\S{8}|projects/|\.iam\.|KEY|password"
)
_TERMS = {Action.CREATE: "create", Action.UPDATE: "update", Action.RETIRE: "retire", Action.MIGRATE: "migrate"}


@lru_cache(maxsize=65_536)
def mask(text: str) -> str:
    """One printable line, not too long, without secrets and without account, subscription and project ids."""
    text = printable(text)
    if _SUSPECT.search(text):
        for shape in SHAPES:
            if shape.hint in text:
                text = shape.pattern.sub(lambda m, mixed=shape.mixed: _cut(m, mixed=mixed), text)
        text = _without_assigned(text) if "=" in text or ":" in text else text
        text = without_ids(text)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def without_ids(text: str) -> str:
    """Without account, subscription and project ids; of any length and number of lines."""
    return _GCP.sub("[project]", _NEBIUS.sub(_ID, _NUMBER.sub(_ACCOUNT, _UUID.sub(_ID, text))))


def _cut(found: re.Match[str], *, mixed: bool) -> str:
    it = found["it"] if "it" in found.re.groupindex else found[0]
    return found[0] if mixed and not is_mixed(it) else found[0].replace(it, _SECRET)


def _without_assigned(text: str) -> str:
    """Values of names that are secret; the pattern looks at a value without taking it in."""
    cuts = [m.span("it") for m in ASSIGNMENT.finditer(text) if is_secret_name(m["name"]) and looks_secret(m["it"])]
    for start, end in reversed(cuts):
        text = text[:start] + _SECRET + text[end:]
    return text


def headline(diff: PlacementDiff) -> str:
    """`1 to migrate, 2 to create, 197 keep`."""
    parts = [f"{n} to {word}" for action, word in _TERMS.items() if (n := sum(not c.unplaced for c in diff.of(action)))]
    kept = len(diff.of(Action.KEEP))
    if kept:
        parts.append(f"{kept} kept")
    if lost := sum(c.unplaced for c in diff.changes):
        parts.append(f"{lost} without a place")
    return ", ".join(parts) or "no jobs"


def word(change: Change) -> str:
    """The action; of a job that has no place any more, that."""
    return "no place" if change.unplaced else change.action.value


def money(sides: Sides) -> str:
    """`$1.00 -> $2.00 (+$1.00)`; with an unknown in it `at least`."""
    return f"{summed(sides.before)} -> {summed(sides.after)} ({delta(sides.difference)})"


def summed(amount: Amount) -> str:
    """`$1.00`, `at least $1.00`, `unknown` where nothing of it is known."""
    if amount.at_least:
        return f"at least {usd(amount.usd)}" if amount.usd else "unknown"
    return usd(amount.usd)


def delta(difference: Difference) -> str:
    """`+$1.00`, `-$2.00`, `at least +$1.00`, `unknown`, `no change`."""
    if difference.bound is Bound.UNKNOWN:
        return "unknown"
    if difference.usd == 0 and difference.bound is Bound.EXACT:
        return "no change"
    sign = "-" if difference.usd < 0 else "+"
    word = "" if difference.bound is Bound.EXACT else f"{difference.bound.value} "
    return f"{word}{sign}{usd(abs(difference.usd))}"


def amount(value: Decimal | None) -> str:
    """`$1.00`, or `unknown`."""
    return usd(value)


def place(p: Placement | None, nothing: str = "nothing") -> str:
    """`aws us-east-1 use1-az4, 2 x p4d.24xlarge spot`."""
    return nothing if p is None else mask(f"{where(p)}, {what(p)}")


def ways(change: Change) -> tuple[str, str]:
    """From where, to where; of a move by a migration diff, by that."""
    m = change.migration
    if m is not None and change.stands:
        return mask(m.standing.offer_id), place(m.to[0])
    return place(change.before, "-"), place(change.after, "-")


def facts(c: Change) -> list[tuple[str, str]]:
    """Every line of a job's own table, by name."""
    out: list[tuple[str, str]] = []
    here, there = ways(c)
    if c.stands and c.migration is not None:
        out += [("from", here), ("to", f"{there} ({usd(c.migration.to[0].usd_per_hour)}/h)")]
    else:
        out += [(side, f"{place(p)} ({p.placement_id})") for side, p in (("from", c.before), ("to", c.after)) if p]
    out += [(a.name, f"{mask(a.before) or '-'} -> {mask(a.after) or '-'}") for a in c.altered]
    out += [("per hour", money(c.hourly)), ("to finish", money(c.total)), ("egress", money(c.egress))]
    out += [("finish", finish(c)), ("runner-up", runner_up(c) or "none")]
    if because := inputs_words(c):
        out.append(("told apart" if c.causes else "inputs changed", because))
    if c.replanned:
        out.append(("planned", f"for this diff: {' and '.join(c.replanned)}"))
    return [*out, *(("caveat", text) for text in c.caveats_added)]


def finish(change: Change) -> str:
    """`8.0 h -> 6.5 h`, from launch to result."""
    was, now = change.finish_hours
    if was is not None and now is not None:
        return duration(now) if was == now else f"{duration(was)} -> {duration(now)}"
    one = now if now is not None else was
    return "-" if one is None else duration(one)


def runner_up(change: Change) -> str:
    """The second best of the new plan, and how much more it costs; "" where there is none."""
    p = change.runner_up
    if p is None or change.after is None:
        return ""
    gap = p.total_usd - change.after.total_usd
    known = not (p.lower_bound or change.after.lower_bound)
    more = f"+{usd(gap)}" if known else "how much more is unknown"
    return f"{place(p)}, {usd(p.total_usd, lower_bound=p.lower_bound)} ({more})"


def counted(terraform: Iterable[TerraformChanges]) -> str:
    """`2 to create, 1 to replace`; outputs and drift after them."""
    plans = list(terraform)
    resources = [r for t in plans for r in t.resources]
    parts = [
        f"{n} to {word}"
        for word in ("create", "update", "replace", "delete", "forget", "move", "import")
        if (n := sum(r.action == word for r in resources))
    ]
    outputs, drifted = sum(len(t.outputs) for t in plans), sum(len(t.drifted) for t in plans)
    if outputs:
        parts.append(f"{outputs} {'output' if outputs == 1 else 'outputs'} to change")
    if drifted:
        parts.append(f"{drifted} changed outside of Terraform")
    return ", ".join(parts) or "no change"


def notes(diff: PlacementDiff) -> list[str]:
    """What a reader of the totals must know."""
    out: list[str] = []
    if len(diff.snapshots) > 1:
        out.append(
            f"plans were made with prices of {len(diff.snapshots)} moments ({diff.snapshots[0]} to {diff.snapshots[-1]}):"
            " price changes are in these figures; `--replan` leaves them out, `--attribute` tells them apart"
        )
    if any(a.at_least for sides in (diff.hourly, diff.total) for a in (sides.before, sides.after)):
        out.append(
            "a price, a size or a place is unknown: totals with it say `at least`, and no saving is read out of them"
        )
    return out


def said(diagnostic: Diagnostic) -> str:
    """`warning: jobs/a.yaml:3: … [CODE]`."""
    at = f"{diagnostic.location}: " if diagnostic.location else ""
    return mask(f"{diagnostic.severity.value}: {at}{diagnostic.summary} [{diagnostic.code}]")


def inputs_words(change: Change) -> str:
    """Which inputs are others, or what each of them moved."""
    if change.causes:
        return "; ".join(f"{c.what}: {c.text}" for c in change.causes)
    return ", ".join(change.inputs_changed)
