"""`prices` and `reserved` of the project file: what the company pays instead of the list.

Decides whether each is well formed.  An expired reservation is none of its business: that depends on the moment planned for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from planner.model.offer import Cloud
from planner.model.project import PriceOverride, Reservation
from planner.spec import units
from planner.spec.constraints import all_regions, clouds, patterns
from planner.spec.dates import moment
from planner.spec.near import did_you_mean
from planner.spec.secret import shown
from planner.spec.targets import CAPACITIES, REGIONAL, one_region

KINDS: Final = ("capacity_block",)

if TYPE_CHECKING:
    from planner.model.project import Target
    from planner.model.words import Words
    from planner.spec.fields import Fields


def price_overrides(project: Fields, words: Words) -> tuple[PriceOverride, ...]:
    """In the order written: the last that matches wins."""
    out: list[PriceOverride] = []
    for f in project.records("prices"):
        rate = f.read("usd_per_hour", _rate)
        discount = f.read("discount", _discount)
        found = PriceOverride(
            clouds=clouds(f),
            instance_types=patterns(f, "instance_types", words.instance_types, "instance type", strict=False) or ("*",),
            regions=patterns(f, "regions", all_regions(words), "region", strict=False) or ("*",),
            capacity=f.choice("capacity", CAPACITIES),
            usd_per_hour=rate,
            discount=discount,
        )
        named = {"usd_per_hour", "discount"} & f.node.entries.keys()
        if not named:
            f.missing(
                "`discount` or `usd_per_hour`", "write discount: 0.12 for 12 % off, or usd_per_hour: 55.04 per node"
            )
        elif len(named) > 1:
            f.report.error(f.node.at, "SKY-SPEC-113", f"`{f.path}` gives both a rate and a discount", "keep one")
        f.finish()
        if (rate is None) != (discount is None):
            out.append(found)
    return tuple(out)


def _rate(text: str) -> float:
    hint = "write US dollars per node and hour, above 0; capacity already paid for goes under `reserved`"
    try:
        return units.real(text.strip().removeprefix("$"))
    except units.Malformed as problem:
        raise units.Malformed(str(problem), hint) from None


def _discount(text: str) -> float:
    try:
        found = units.real(text)
    except units.Malformed as problem:
        raise units.Malformed(str(problem), "write a fraction, such as 0.12 for 12 % off") from None
    if found >= 1:
        raise units.Malformed("is out of range", "write a fraction below 1, such as 0.12 for 12 % off")
    return found


def reservations(project: Fields, targets: tuple[Target, ...], words: Words) -> tuple[Reservation, ...]:
    """In the order written."""
    out: list[Reservation] = []
    for f in project.records("reserved"):
        target = f.choice("target", sorted({t.name for t in targets}), required="name the target that holds it")
        region = one_region(f, "region", all_regions(words), required="say its region")
        zone = _zone(f, target, targets)
        kind = _type(f, words)
        nodes = f.read("nodes", lambda text: units.integer(text, 1, 100_000), required="say how many nodes it holds")
        identity = f.text("id", required="say its id, such as cr-0abc")
        in_group, block = f.boolean("in_placement_group"), _block(f, target, region, targets, words)
        starts = f.read("starts", moment, required="say when it opens, such as 2026-09-01")
        expires = f.read("expires", moment, required="say when it ends, such as 2026-10-01")
        f.finish()
        if starts and expires and starts >= expires:
            at = f.report.places[f.name("expires")]
            f.report.error(at, "SKY-SPEC-113", f"`{f.path}` ends before it starts", "`starts` must be before `expires`")
        elif target and region and zone is not None and kind and nodes and identity and starts and expires:
            made = Reservation(
                target=target,
                region=region,
                zone=zone,
                instance_type=kind,
                nodes=nodes,
                id=identity,
                starts=starts,
                expires=expires,
                in_group=in_group or False,
                capacity_block=block,
            )
            out.append(made)
    return tuple(out)


def _zone(f: Fields, target: str | None, targets: tuple[Target, ...]) -> str | None:
    """Its zone; "" on clouds whose offers are regional."""
    holders = {t.cloud.value for t in targets if t.name == target}
    if holders and holders <= set(REGIONAL):
        if f.text("zone") not in {None, "-"}:
            at = f.report.places[f.name("zone")]
            f.report.error(at, "SKY-SPEC-113", f"`{f.path}`: offers are regional there", "leave `zone` out")
        return ""
    return f.text("zone", required="say its zone, such as use1-az4")


def _block(f: Fields, target: str | None, region: str | None, targets: tuple[Target, ...], words: Words) -> bool:
    """`kind: capacity_block`, which only AWS sells."""
    if f.choice("kind", KINDS) is None:
        return False
    holders = {t.cloud for t in targets if t.name == target}
    there = words.regions.get(Cloud.AWS.value, ())
    if holders and (Cloud.AWS not in holders or (region is not None and there and region not in there)):
        at = f.report.places[f.name("kind")]
        summary = f"`{f.path}`: capacity blocks are AWS's; the target is not there"
        f.report.error(at, "SKY-SPEC-113", summary, "leave `kind` out")
        return False
    return True


def _type(f: Fields, words: Words) -> str | None:
    kind = f.text("instance_type", required="say its instance type, such as p5.48xlarge")
    if kind is None or kind in words.instance_types or not words.instance_types:
        return kind
    at = f.report.places[f.name("instance_type")]
    hint = did_you_mean(kind, words.instance_types)
    f.report.error(
        at, "SKY-SPEC-105", f"`{f.name('instance_type')}`: {shown(kind)} is no instance type that is known", hint
    )
    return None
