"""Two plans of one job -> its Change: what becomes of it, why, and what that costs.  Pure: reads plans and nothing else.

Decides the action: the placement id says whether anything changes, the offers say whether it moves.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from planner.model.change import Action, Altered, Amount, Change, Sides, TermChange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.app.diff_read import Held
    from planner.model.grants import Grant
    from planner.model.plan import Placement, PlacementPlan

_PLACE = ("cloud", "target", "region", "zone", "instance_type", "capacity", "gpu", "gpu_count", "nodes", "reservation")
_UNNAMED = frozenset({"env", "secrets"})
"""Fields of a job whose values are told to nobody: that they changed is enough."""
_INPUTS = {"method": "skyplan", "catalog": "market", "market": "market", "job": "job", "project": "project"}
_OTHERS = ("ledger", "availability")


def change(name: str, before: Held | None, after: Held | None) -> Change:
    """What becomes of the job `name`."""
    old, new = _choice(before), _choice(after)
    action = _action(old, new, before, after)
    present = after or before
    assert present is not None  # noqa: S101 - a job of one side at least
    inputs = _inputs_changed(before.plan, after.plan) if before and after else ()
    added, removed = _grants(before, after)
    # a job that finds no place is no saving: what it will cost is not known
    lost = Amount(at_least=True) if after and new is None and old is not None else None
    return Change(
        job=name,
        action=action,
        before=old,
        after=new,
        reason=_reason(action, before, after, inputs),
        runner_up=after.plan.ranked[1] if after and len(after.plan.ranked) > 1 else None,
        terms=() if lost else tuple(_terms(old, new)),
        hourly=Sides(before=_hourly(old), after=lost or _hourly(new)),
        total=Sides(before=_total(old), after=lost or _total(new)),
        egress=Sides(before=_egress(old), after=lost or _egress(new)),
        altered=tuple(_altered(before, after)) if before and after else (),
        caveats_added=_caveats(old, new),
        grants_added=added,
        grants_removed=removed,
        inputs_changed=inputs,
        other_figures=action is Action.KEEP and _figures(before) != _figures(after),
        replanned=tuple(side for side, one in (("base", before), ("head", after)) if one and one.replanned),
        file=str(present.plan.inputs.get("job", {}).get("file", "")),
    )


def _choice(side: Held | None) -> Placement | None:
    return side.plan.ranked[0] if side and side.plan.ranked else None


def _action(old: Placement | None, new: Placement | None, before: Held | None, after: Held | None) -> Action:
    if new is None:
        if old is None:
            return Action.KEEP if before and after else Action.CREATE if after else Action.RETIRE
        return Action.UPDATE if after else Action.RETIRE
    if old is None:
        return Action.CREATE
    if old.placement_id == new.placement_id:
        return Action.KEEP
    places = [[p.offer_id for p in one.pieces] for one in (old, new)]
    return Action.UPDATE if places[0] == places[1] else Action.MIGRATE


def _reason(action: Action, before: Held | None, after: Held | None, inputs: tuple[str, ...]) -> str:
    old, new = _choice(before), _choice(after)
    if after and new is None:
        return _without_place(after)
    match action:
        case Action.CREATE:
            assert new is not None  # noqa: S101 - else refused above
            return f"new: the cheapest of {len(after.standings) if after else 0} ranked places"
        case Action.RETIRE:
            return "neither a job nor a plan of it is left"
        case Action.KEEP:
            return "the same placement" + (f"; changed: {', '.join(inputs)}" if inputs else "")
        case Action.UPDATE:
            names = [a.name for a in _altered(before, after)] if before and after else []
            return f"stays where it is; {', '.join(names) or 'what its stacks are made of'} changed"
        case Action.MIGRATE:
            assert before is not None  # noqa: S101 - it moves from there
            assert after is not None  # noqa: S101 - and to there
            assert old is not None  # noqa: S101 - as above
            assert new is not None  # noqa: S101 - as above
            return _moved(old, new, after)


def _without_place(after: Held) -> str:
    if after.plan.waits:
        return f"waits: {after.plan.waits}"
    counted = ", ".join(f"{r.code} {r.count:,}" for r in after.plan.rejected)
    return f"no feasible placement: {sum(r.count for r in after.plan.rejected):,} offers rejected ({counted})"


def _moved(old: Placement, new: Placement, after: Held) -> str:
    """Where the place it leaves stands in the new ranking."""
    found = after.standings.get(old.offer_id)
    if found is None:
        return f"{old.offer_id} is not among the {len(after.standings)} ranked places any more"
    rank, total, lower = found
    gap = total - new.total_usd
    share = f" (+{gap / new.total_usd:.1%})" if new.total_usd and not (lower or new.lower_bound) else ""
    word = "at least " if lower else ""
    return f"{old.offer_id} is #{rank + 1} now: {word}${total:,.2f} there, ${gap:,.2f} more{share}"


def total_of(plan: PlacementPlan) -> Amount:
    """Of the choice; nothing where there is none."""
    return _total(plan.ranked[0] if plan.ranked else None)


def _terms(old: Placement | None, new: Placement | None) -> Iterator[TermChange]:
    was = {t.name: t for t in old.terms} if old else {}
    now = {t.name: t for t in new.terms} if new else {}
    for name in sorted({*now, *was}):  # a plan file's are sorted, a new plan's are not
        before, after = was.get(name), now.get(name)
        shown = after or before
        assert shown is not None  # noqa: S101 - the name is of one of them
        found = TermChange(
            name=name,
            before=before.usd if before else Decimal(0),
            after=after.usd if after else Decimal(0),
            detail=shown.detail,
        )
        if found.before != 0 or found.after != 0:
            yield found


def _hourly(p: Placement | None) -> Amount:
    return Amount(usd=p.usd_per_hour) if p else Amount()


def _total(p: Placement | None) -> Amount:
    return Amount(usd=p.total_usd, at_least=p.lower_bound) if p else Amount()


def _egress(p: Placement | None) -> Amount:
    out = Amount()
    for term in p.terms if p else ():
        if term.name.endswith("egress"):
            out = out.plus(Amount(usd=term.usd or Decimal(0), at_least=term.usd is None))
    return out


def _caveats(old: Placement | None, new: Placement | None) -> tuple[str, ...]:
    known = {c.code for c in old.caveats} if old else set[str]()
    return tuple(f"{c.text} [{c.code}]" for c in new.caveats if c.code not in known) if new else ()


def _rights(side: Held | None) -> set[Grant]:
    p = _choice(side)
    return set(side.plan.grants.get(p.grants_digest, ())) if side and p else set()


def _grants(before: Held | None, after: Held | None) -> tuple[tuple[Grant, ...], tuple[Grant, ...]]:
    if before and after and after.plan.grants == before.plan.grants and _choice(before) == _choice(after):
        return (), ()
    old, new = _rights(before), _rights(after)
    return tuple(sorted(new - old)), tuple(sorted(old - new))


def _figures(side: Held | None) -> Any:
    """What a reader sees of a plan besides its placement id."""
    p = _choice(side)
    if side is None or p is None:
        return None
    second = side.plan.ranked[1].offer_id if len(side.plan.ranked) > 1 else ""
    codes = sorted(c.code for c in p.caveats)
    return (p.usd_per_hour, p.total_usd, p.lower_bound, p.finish_hours, p.terms, codes, second, side.plan.job)


def _altered(before: Held, after: Held) -> Iterator[Altered]:
    old, new = _choice(before), _choice(after)
    if old and new:
        for name in _PLACE:
            was, now = _spelled(old, name), _spelled(new, name)
            if was != now:
                yield Altered(name=name.replace("_", " "), before=was, after=now)
        if len(old.pieces) != len(new.pieces):
            yield Altered(name="clouds", before=str(len(old.pieces)), after=str(len(new.pieces)))
    if before.plan.job == after.plan.job:
        return
    was_job, now_job = dict(_flat(before.plan.job)), dict(_flat(after.plan.job))
    for name in sorted({*was_job, *now_job}):
        if (was := was_job.get(name, "")) == (now := now_job.get(name, "")):
            continue
        if name.partition(".")[0] in _UNNAMED:
            was, now = ("set" if was else ""), ("set anew" if now else "")
        yield Altered(name=f"job.{name}", before=was, after=now)


def _spelled(p: Placement, name: str) -> str:
    if name == "nodes":
        return str(p.nodes)
    return " + ".join(dict.fromkeys(str(getattr(piece, name)) for piece in p.pieces))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            yield from _flat(one, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):  # pyright: ignore[reportUnknownVariableType]
        for number, one in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _flat(one, f"{name}[{number}]")
    elif isinstance(value, list):
        yield name, ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    else:
        yield name, "" if value is None else str(value)


def _inputs_changed(before: PlacementPlan, after: PlacementPlan) -> tuple[str, ...]:
    """By the digests that both name: which of the things that a plan is made of are others."""
    found: list[str] = []
    for key, word in _INPUTS.items():
        if _digest(before.inputs.get(key)) != _digest(after.inputs.get(key)) and word not in found:
            found.append(word)
    if before.inputs.get("as_of") != after.inputs.get("as_of") and "market" not in found:
        found.append("market")
    if any(before.inputs.get(key) != after.inputs.get(key) for key in _OTHERS):
        found.append("others")
    return tuple(found)


def _digest(value: Any) -> Any:
    """Of an input: a file's name is no part of what it says."""
    return cast("dict[str, Any]", value).get("digest", value) if isinstance(value, dict) else value
