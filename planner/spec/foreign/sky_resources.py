"""SkyPilot's `resources`, with `any_of` and `ordered` -> what a node needs and where it may be.

Decides how alternatives become one request.  A job here names acceptable GPUs, places and ways of buying, each with each; where that admits a combination
the alternatives did not list, it is told which.  An alternative that no cloud of skyplan's can serve falls away, and is told; none left is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.spec.foreign import common
from planner.spec.foreign.sky_choice import Choice, Place, choice_of
from planner.spec.foreign.sky_plain import FIELDS as PLAIN
from planner.spec.foreign.sky_plain import image, plain
from planner.spec.near import did_you_mean

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

#: what may differ between alternatives
AXES: Final = (
    *("accelerators", "cpus", "memory", "use_spot", "infra", "cloud", "region", "zone", "instance_type", "disk_size"),
)
#: documented fields of `resources`
FIELDS: Final = (*AXES, *PLAIN, "any_of", "ordered")
#: what a node's disk holds there where nothing is said, in GB (SkyPilot's reference of `disk_size`, read 2026-11)
_DISK: Final = 256.0
_SHOWN: Final = 4


@dataclass(slots=True)
class _Seen:
    """The alternatives that remain, and what became of the parts they were read from."""

    choices: list[Choice] = field(default_factory=list[Choice])
    dropped: list[Choice] = field(default_factory=list[Choice])


def resources(job: Job, root: Part, known: dict[str, str | None]) -> int | None:
    """Fill the draft's `resources` and `constraints`; returns the GPUs per node where all alternatives have one number."""
    part = root.get("resources")
    if part is None or not part.entries():
        if part is not None:
            part.leave("it says nothing")
        common.no_gpu(job, part.at if part else root.at)
        return None
    lists = [found for key in ("any_of", "ordered") if (found := part.get(key)) is not None]
    if len(lists) > 1:
        lists[1].refuse("`any_of` and `ordered` stand together", "keep one of them")
    alternatives = [one for found in lists for one in found.items() if one.entries()]
    base = {key: value for key, value in part.entries().items() if key not in {"any_of", "ordered"}}
    seen = _Seen()
    for one in alternatives or [part]:
        own = one.entries() if alternatives else {}
        read = choice_of(job, base | own, own, known, one)
        (seen.dropped if read.why_not else seen.choices).append(read)
    if job.book.failed:
        job.book.taken.update(part.leaves())
        return None
    if not seen.choices:
        _none_left(job, part, seen)
        return None
    _merge(job, part, seen, ordered=part.get("ordered") is not None)
    for key, value in base.items():
        if key not in AXES:
            plain(job, key, value, known)
    if not base.get("image_id"):
        image(job, [c.parts["image_id"] for c in seen.choices if "image_id" in c.parts], len(seen.choices), known)
    _leave_rest(seen if alternatives else _Seen(), lists)
    counts = {accelerator.count for read in seen.choices for accelerator in read.accelerators}
    return counts.pop() if len(counts) == 1 else None


def _leave_rest(seen: _Seen, lists: list[Part]) -> None:
    """What alternatives say that a job says for all, and all of those that fell away."""
    for read in (*seen.choices, *seen.dropped):
        read.source.leave_rest(read.why_not or "it stands in one alternative only; a job says it for all")
    for found in lists:
        found.leave_rest("it lists no alternative")


def _none_left(job: Job, part: Part, seen: _Seen) -> None:
    """Say for each alternative why it falls away; the first one's place is where the error stands.  What is no field explains it better than what lacks."""
    strange = [value for key, value in part.entries().items() if key not in FIELDS]
    for value in strange:
        old = "an old name of `any_of`: write that" if value.key == "candidates" else ""
        hint = old or did_you_mean(value.key, FIELDS) or "take it out, or see SkyPilot's YAML reference"
        value.refuse(f"`{value.path}` is no field of SkyPilot that is known", hint, "SKY-SPEC-102")
    job.book.taken.update(part.leaves())
    whys = dict.fromkeys(read.why_not for read in seen.dropped)
    first = seen.dropped[0]
    if strange:
        return
    if list(whys) == [NO_GPU]:
        common.no_gpu(job, first.why_at)
        return
    code = "SKY-SPEC-106" if first.about_gpu else "SKY-SPEC-105"
    job.book.error(first.why_at, "; ".join(whys), first.hint, code)


NO_GPU: Final = "it asks for no GPU"


def _merge(job: Job, part: Part, seen: _Seen, *, ordered: bool) -> None:
    draft, choices = job.draft, seen.choices
    accelerators = list(dict.fromkeys(a for read in choices for a in read.accelerators))
    at = choices[0].at_of("accelerators", part)
    draft.put("resources.accelerators", [a.written for a in accelerators], at)
    spot = [read.spot for read in choices]
    if any(spot):
        draft.put(
            "resources.capacity",
            ["spot", "on_demand"] if not all(spot) else ["spot"],
            choices[0].at_of("use_spot", part),
        )
    for key, target, unit in (("cpus", "cpus", ""), ("memory", "memory", "GiB"), ("disk_size", "disk", "GiB")):
        figures = [f for read in choices if (f := read.figures.get(key)) is not None]
        if key == "disk_size" and len(figures) < len(choices):
            why = f"SkyPilot gives a node {_DISK:g} GB where nothing is said"
            figures.append(_DISK)
            stated = f"{max(figures):.12g}GiB"
            todo = job.say("resources.disk", part.at, stated, why)
            draft.put("resources.disk", stated, part.at, todo if len(figures) == 1 else "")
        elif figures:
            draft.put(f"resources.{target}", f"{max(figures):.12g}{unit}", choices[0].at_of(key, part))
    _places(job, part, choices)
    types = {t for read in choices for t in read.types}
    if types and all(read.types for read in choices):
        draft.put("constraints.instance_types", sorted(types), choices[0].at_of("instance_type", part))
    _work(job, at, choices)
    _account(part, choices, seen.dropped, ordered=ordered, limits=set(draft.items))
    _wider(job, part, choices)


def _work(job: Job, at: Location, choices: list[Choice]) -> None:
    first = choices[0].accelerators[0]
    many = len({a for read in choices for a in read.accelerators}) > 1
    if first.model:
        common.work(job, at, str(first), of_many=many)
    else:
        common.work(job, at, None)
        common.work_on_memory(job, at, first.memory_gib, first.count)


def _places(job: Job, part: Part, choices: list[Choice]) -> None:
    """Clouds and regions; where one alternative names regions and another a cloud alone, all of that cloud's are written out."""
    places = [read.place for read in choices]
    clouds = {p.cloud for p in places}
    regions = {p.region for p in places}
    at = choices[0].at_of("infra", choices[0].at_part("cloud", part))
    if None not in clouds:
        job.draft.put("constraints.clouds", sorted(c for c in clouds if c), at)
    if regions == {None} or Place(None, None) in places:
        return
    known = job.shelf.words.regions
    named = {p.region for p in places if p.region}
    for place in places:
        if place.region is None:
            named |= set(known.get(place.cloud or "", ()))
    job.draft.put(
        "constraints.regions",
        sorted(r for r in named if r),
        choices[0].at_of("region", choices[0].at_part("infra", part)),
    )


def _account(part: Part, choices: list[Choice], dropped: list[Choice], *, ordered: bool, limits: set[str]) -> None:
    """Each axis of each alternative, and of what stands for all."""
    used: dict[str, list[Choice]] = {}
    parts: dict[str, Part] = {}
    for read in (*choices, *dropped):
        for key, value in read.parts.items():
            if key in AXES and (
                not read.why_not or not value.path.startswith(read.source.path) or read.source.path == part.path
            ):
                used.setdefault(value.path, []).append(read)
                parts[value.path] = value
    most = {
        key: max(r.figures.get(key, _DISK if key == "disk_size" else 0.0) for r in choices)
        for key in ("cpus", "memory", "disk_size")
    }
    for path, value in parts.items():
        readers = [read for read in used[path] if not read.why_not] or used[path]
        readers[0].account(value, most=most, ordered=ordered and value.key == "accelerators", limits=limits)
    for key in AXES:
        value = part.get(key)
        if value is not None and value.path not in parts:
            value.leave("each alternative says its own")
    if ordered:
        source = part.get("ordered")
        if source is not None:
            part.book.note(
                source.path,
                source.at,
                "the order is not kept: skyplan ranks all by cost and time",
                "limit `constraints` where one must come first",
            )


def _wider(job: Job, part: Part, choices: list[Choice]) -> None:
    """Tell of combinations that the request admits and no alternative named."""
    known = job.shelf.words.regions
    place_sets = {c.place for c in choices}
    clouds = {p.cloud for p in place_sets}
    named = {p.region for p in place_sets if p.region}
    places = set(place_sets)
    for cloud in clouds - {None}:
        places |= {Place(cloud, region) for region in named if region in known.get(cloud or "", ())}
    asked = {(a, p, s) for c in choices for a in c.accelerators for p in {c.place} for s in {c.spot}}
    covered = asked | {
        (a, Place(p.cloud, r), s) for a, p, s in asked if p.region is None for r in known.get(p.cloud or "", ())
    }
    admitted = {
        (a, p, s)
        for a in {x for c in choices for x in c.accelerators}
        for p in places
        for s in {c.spot for c in choices}
    }
    anywhere = {(a, s) for a, p, s in asked if p == Place(None, None)}
    more = sorted(
        f"{a} {'spot' if s else 'on demand'}{p.words}" for a, p, s in admitted - covered if (a, s) not in anywhere
    )
    source = part.get("any_of") or part.get("ordered")
    if more and source is not None:
        rest = f" and {len(more) - _SHOWN} more" if len(more) > _SHOWN else ""
        job.book.note(
            source.path,
            source.at,
            f"GPUs, places and ways of buying combine each with each: this also admits {', '.join(more[:_SHOWN])}{rest}",
            "write one job per alternative where that matters",
        )
