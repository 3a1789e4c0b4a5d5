"""Why this, why not that: reasons of rejected offers with their numbers, and sentences on why the choice won.

Reads a Ranking; decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from planner.model.ledger import Ledger
from planner.model.market import MARK_CODES, UNKNOWN_PRICE, Mark
from planner.model.plan import RejectedCount
from planner.model.project import Project
from planner.placement.cost import TICKS_PER_USD
from planner.placement.explain_own import apart_words, funds_of, funds_words
from planner.placement.feasible import CODES, Reject
from planner.placement.networks import allowed_networks, gpu_networks
from planner.placement.offers import blocked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.model.plan import Placement
    from planner.model.workload import Workload
    from planner.placement.crowd import CoolDown
    from planner.placement.offers import Offers
    from planner.placement.rank import Judged, Ranking
    from planner.placement.split import Splits

EXAMPLES = 3
A_CENT = 0.01
"""Nothing below it would a reader call more."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One reason why an offer may not serve a job: code and numbers."""

    code: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One offer's fate: its rejections, or its place among all feasible ones, splits included (0 is the choice)."""

    offer_id: str
    rejections: tuple[Rejection, ...]
    position: int | None
    total_usd: float | None
    finish_hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What reasons need beyond the ranking.  `ledger`: what others hold, those of the same call among them."""

    offers: Offers
    workload: Workload
    ranking: Ranking
    cool: dict[str, CoolDown]
    splits: Splits | None = None
    ledger: Ledger = field(default_factory=Ledger)
    project: Project = field(default_factory=Project)


def rejected_counts(context: Context) -> tuple[RejectedCount, ...]:
    """Offers by main reason (the lowest bit), each with up to three examples: those that came nearest."""
    offers, ranking = context.offers, context.ranking
    bits = ranking.bits
    main = bits & -bits
    out: list[RejectedCount] = []
    for reason in Reject:
        hit = np.flatnonzero(main == reason)
        if not len(hit):
            continue
        nearest = hit[np.lexsort((hit, nearness(offers, ranking.judged)[hit]))[:EXAMPLES]]
        examples = tuple(f"{offers.offer_id(int(i))}: {words(context, int(i), reason)}" for i in nearest)
        out.append(RejectedCount(code=CODES[reason], count=len(hit), examples=examples))
    return tuple(sorted(out, key=lambda r: r.code))


def nearness(offers: Offers, judged: Judged) -> NDArray[np.float64]:
    """How near offers came: by total where it is known, then by price per hour, unknown prices last."""
    scores = judged.scores
    out = np.where(offers.price_micros == UNKNOWN_PRICE, np.inf, offers.price_micros / 1e6 + 1e12)
    out[scores.index] = scores.total / TICKS_PER_USD
    return out


def verdict(context: Context, i: int) -> Verdict:
    """The fate of offer `i`, with every reason."""
    bits, scores = int(context.ranking.bits[i]), context.ranking.judged.scores
    where = np.flatnonzero(scores.index == i)
    at = int(where[0]) if len(where) else None
    position = None
    if not bits and at is not None:
        position = int(np.flatnonzero(context.ranking.alive() == at)[0])
        if context.splits is not None:
            position += context.splits.ahead_of(int(scores.total[at]), float(scores.finish_hours[at]))
    return Verdict(
        offer_id=context.offers.offer_id(i),
        rejections=tuple(Rejection(CODES[r], words(context, i, r)) for r in Reject if bits & r),
        position=position,
        total_usd=None if at is None else int(scores.total[at]) / TICKS_PER_USD,
        finish_hours=None if at is None else float(scores.finish_hours[at]),
    )


def words(c: Context, i: int, reason: Reject) -> str:  # noqa: C901, PLR0911, PLR0912 - one sentence per reason
    """One reason with its numbers."""
    o, w = c.offers, c.workload
    t, r = o.kind(i), w.resources
    asked = " or ".join(str(a) for a in r.accelerators)
    match reason:
        case Reject.GPU:
            return f"has {t.gpu}:{t.gpu_count}, asked for {asked}"
        case Reject.GPU_MEMORY:
            return f"{t.gpu} has {t.gpu_memory_gib:g} GiB per GPU, asked for {asked}"
        case Reject.RAM:
            return f"has {t.ram_gib:g} GiB RAM and {t.vcpus} vCPU, asked for {_least(r.min_ram_gib, r.min_vcpus)}"
        case Reject.LIMITS:
            return "outside the clouds, regions or instance types that the job and the project allow"
        case Reject.NOT_OFFERED:
            return _not_offered(c, i)
        case Reject.PRICE:
            return _price_words(o, i)
        case Reject.FABRIC:
            return f"{r.nodes} interconnect-sensitive nodes need a fabric; {t.name} has {t.fabric.value}"
        case Reject.TOPOLOGY:
            return (
                f"{t.link_note or t.link.value} between the GPUs; an interconnect-sensitive job needs NVLink or better"
            )
        case Reject.NETWORK:
            return _network_words(c, i)
        case Reject.QUOTA:
            return f"the target's quota has no room for {r.nodes} x {t.name}"
        case Reject.FAILURE:
            cool = c.cool.get(o.pool_id(int(o.pool[i]))) or c.cool[o.offer_id(i)]
            return f"{cool.code} {cool.count} time(s) lately; out until {cool.until:%Y-%m-%dT%H:%MZ}"
        case Reject.POOL:
            p = int(o.pool[i])
            return f"pool {o.pool_id(p)} holds {c.ranking.held[p]} of {c.ranking.caps[p]} nodes, {r.nodes} more needed"
        case Reject.BUDGET:
            return _budget_words(c, i)
        case Reject.DEADLINE:
            at = int(np.flatnonzero(c.ranking.judged.scores.index == i)[0])
            ends = (("deadline", w.constraints.deadline_hours), ("hard end", w.constraints.stop_after_hours))
            given = ", ".join(f"{word} {hours:g} h" for word, hours in ends if hours is not None)
            return f"expected finish {c.ranking.judged.scores.finish_hours[at]:.2f} h, {given}"
        case Reject.UNUSABLE:
            key = (o.target(i).name, t.cloud.value, t.name)
            found = c.ranking.unusable
            return found.get((*key, "*")) or found[(*key, o.region(i).name)]
        case Reject.APART:
            return apart_words(o, w, c.ledger, i)
        case Reject.FUNDS:
            at = int(np.flatnonzero(c.ranking.judged.scores.index == i)[0])
            s = c.ranking.judged.scores
            return funds_words(funds_of(c.project, w, c.ledger), int(s.usd_per_hour[at]), int(s.total[at]))
        case _:  # a Flag has combinations too; only single bits are asked for
            raise AssertionError(reason)


def _least(ram: float | None, vcpus: int | None) -> str:
    parts = ([f"{ram:g} GiB+"] if ram else []) + ([f"{vcpus}+ vCPU"] if vcpus else [])
    return " and ".join(parts)


def _not_offered(c: Context, i: int) -> str:
    o = c.offers
    capacity, reserved = o.sold_as(i), o.reserved(i)
    marks = Mark(int(o.marks[i]))
    if marks & Mark.OPT_IN_ZONE:
        return "the zone or its region needs opting in; list either under `opt_in_zones` of the target"
    if marks & Mark.NOT_SOLD:
        return "listed, but not sold on demand"
    if reserved:
        return f"the reservation has {reserved.nodes} node(s)"
    return f"{capacity.value} capacity was not asked for"


def _price_words(o: Offers, i: int) -> str:
    price = int(o.price_micros[i])
    found = blocked(int(o.marks[i]))
    why = ", ".join(MARK_CODES[mark] for mark in Mark if mark is not Mark.NONE and found & mark)
    shown = "no price is known" if price == UNKNOWN_PRICE else f"${price / 1e6:.4f}/h is not believed"
    return f"{shown} ({why})" if why else shown


def _network_words(c: Context, i: int) -> str:
    o, nodes = c.offers, c.workload.resources.nodes
    region, own = o.region(i).name, gpu_networks(o.kind(i), nodes)
    allowed = allowed_networks(o.target(i), region)
    if allowed is None:
        return "the target brings its own networks, and none has a subnet there" + (
            " whose CIDR is given" if nodes > 1 else ""
        )
    held = c.ranking.networks
    k, at = int(o.target_ix[i]), int(o.region_ix[i])
    stands, theirs = bool(held.stands[k, at]), int(held.gpu[k, at])
    parts = ([] if stands and own else ["1 shared"]) + ([f"{own} of its GPUs' own"] if own else [])
    needs = own + (not (stands and own))
    return (
        f"needs {needs} network(s) in {region} ({', '.join(parts)}), where `network_quota` allows {allowed} and other jobs hold "
        f"{stands + theirs}"
    )


def _budget_words(c: Context, i: int) -> str:
    s, limits = c.ranking.judged.scores, c.workload.constraints
    at = int(np.flatnonzero(s.index == i)[0])
    parts: list[str] = []
    if limits.max_usd_per_hour is not None and s.usd_per_hour[at] > limits.max_usd_per_hour * TICKS_PER_USD:
        parts.append(f"${s.usd_per_hour[at] / TICKS_PER_USD:.4f}/h over ${limits.max_usd_per_hour:g}/h")
    if limits.max_usd_total is not None and s.total[at] > limits.max_usd_total * TICKS_PER_USD:
        parts.append(f"${s.total[at] / TICKS_PER_USD:.2f} in total over ${limits.max_usd_total:g}")
    return ", ".join(parts)


def notes(offers: Offers, ranking: Ranking, ranked: Sequence[Placement]) -> tuple[str, ...]:
    """Why the choice, in one place, won: the runner-up's gap, what is cheaper by the hour and why it loses, how far the set is spread."""
    if not ranked:
        return ()
    judged, s = ranking.judged, ranking.judged.scores
    alive = np.flatnonzero(ranking.bits[s.index] == 0)
    first = int(ranking.at[0])
    cheapest = int(alive[np.lexsort((s.index[alive], bare_compute(offers, judged)[alive]))[0]])
    full = ranking.bits == Reject.POOL
    ahead = int((full[s.index] & (s.total < s.total[first])).sum())
    return told(offers, judged, ranked, first=first, cheapest=cheapest, ahead=ahead, feasible=ranking.feasible)


def told(
    offers: Offers,
    judged: Judged,
    ranked: Sequence[Placement],
    *,
    first: int,
    cheapest: int,
    ahead: int,
    feasible: int,
) -> tuple[str, ...]:
    """The sentences of `notes`.  `first` and `cheapest`, positions in the scores: the choice, and of what is feasible the lowest cost of bare compute;
    `ahead`: how many cheaper offers only a full pool keeps out.
    """
    out = list(runner_up(ranked))
    cheaper = _cheapest_rate(offers, judged, cheapest, first)
    if cheaper:
        out.append(cheaper)
    if ahead:
        out.append(f"{ahead} cheaper offer(s) are in pools that other jobs fill")
    return (*out, *spread(f"{feasible} offers are feasible", ranked))


def bare_compute(offers: Offers, judged: Judged) -> NDArray[np.float64]:
    """Per score: what computing alone costs, in ticks."""
    return judged.cells.speed_hours[offers.pair[judged.scores.index]] * judged.scores.usd_per_hour


def spread(feasible: str, ranked: Sequence[Placement]) -> Iterator[str]:
    """How many there are to choose from, and over how many pools."""
    pools = len({piece.pool for p in ranked for piece in p.pieces})
    yield f"{feasible}; the {len(ranked)} ranked ones lie in {pools} pools"
    if pools < 5:  # noqa: PLR2004 - Karpenter warns below 5 too
        yield "fewer than 5 pools: little to fall back on; widen accelerators, regions or capacity"


def runner_up(ranked: Sequence[Placement]) -> Iterator[str]:
    """The second of the ranked set, and its gap."""
    # what stays where an earlier plan put it may have a cheaper runner-up, which a note of its own tells
    if len(ranked) > 1 and ranked[1].total_usd >= ranked[0].total_usd:
        gap = float(ranked[1].total_usd - ranked[0].total_usd)
        share = gap / max(float(ranked[0].total_usd), 1e-9)
        more = f"${gap:.2f} more (+{share:.1%})" if gap >= A_CENT else "less than a cent more" if gap else "the same"
        yield f"runner-up {ranked[1].offer_id} costs {more}"


def _cheapest_rate(offers: Offers, judged: Judged, j: int, first: int) -> str | None:
    """The feasible offer with the lowest cost of bare compute, where another one won: what eats its advantage."""
    s = judged.scores
    if s.terms["compute"][j] >= s.terms["compute"][first] or offers.pair[s.index[j]] == offers.pair[s.index[first]]:
        return None
    worse = {n: (s.terms[n][j] - s.terms[n][first]) / TICKS_PER_USD for n in s.terms if n != "compute"}
    name, usd = max(worse.items(), key=lambda kv: kv[1])
    if usd < A_CENT:
        return None
    pair = offers.pair[s.index[j]]
    slow = judged.cells.hours[pair] / judged.cells.speed_hours[pair]
    link = f"; its data link stretches the run {slow:.1f}x" if slow > 1.01 else ""  # noqa: PLR2004
    return f"{offers.offer_id(int(s.index[j]))} has cheaper compute, but pays ${usd:.2f} more for {name}{link}"
