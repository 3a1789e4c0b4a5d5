"""One alternative of SkyPilot's `resources`: which GPUs, where, how bought, how large.

Decides what each of these fields means in every form its reference documents, and whether a cloud of skyplan's can serve it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.spec.foreign.filling import filled
from planner.spec.foreign.shelf import CLOUDS, region_of_zone
from planner.spec.gpus import MAX_COUNT
from planner.spec.near import did_you_mean
from planner.spec.secret import shown

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

NO_GPU: Final = "it asks for no GPU"
_AT_LEAST: Final = re.compile(r"(?:([A-Za-z]+):)?([0-9]+(?:\.[0-9]+)?)\s*(GB|MB|TB)?\s*(\+)", re.IGNORECASE)
_FIGURE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(KB|MB|GB|TB|PB|KI?B?|MI?B?|GI?B?|TI?B?)?\s*(\+)?", re.IGNORECASE)
_PER_CPU: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)x(\+)?", re.IGNORECASE)
_GIB: Final = {"K": 1 / (1 << 20), "M": 1 / 1024, "G": 1.0, "T": 1024.0, "P": 1024.0 * 1024}
_CLOUD_HINT: Final = f"skyplan plans for {', '.join(CLOUDS)}: name one of them, or take the cloud out"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """GPUs per node: a model, or any with that much memory each."""

    count: int
    model: str | None = None
    memory_gib: float = 0.0

    @property
    def written(self) -> str | dict[str, str | int]:
        """As a job file has it."""
        return (
            f"{self.model}:{self.count}"
            if self.model
            else {"gpu_memory": f"{self.memory_gib:.12g}GiB+", "count": self.count}
        )

    def __hash__(self) -> int:
        return hash((self.count, self.model, self.memory_gib))

    def __str__(self) -> str:
        return f"{self.model}:{self.count}" if self.model else f"{self.memory_gib:g}GiB+:{self.count}"


@dataclass(frozen=True, slots=True)
class Place:
    """A cloud and a region of it; None is any."""

    cloud: str | None
    region: str | None

    @property
    def words(self) -> str:
        """For a message."""
        return f" in {'/'.join(x for x in (self.cloud, self.region) if x)}" if self.cloud or self.region else ""


@dataclass(slots=True)
class Choice:
    """What an alternative asks for.  `why_not` says why it cannot be served, at `why_at`."""

    source: Part
    parts: dict[str, Part]
    accelerators: tuple[Accelerator, ...] = ()
    unknown: dict[str, str] = field(default_factory=dict[str, str])
    place: Place = field(default_factory=lambda: Place(None, None))
    spot: bool = False
    figures: dict[str, float] = field(default_factory=dict[str, float])
    exact: set[str] = field(default_factory=set[str])
    types: tuple[str, ...] = ()
    odd: dict[str, str] = field(default_factory=dict[str, str])
    why_not: str = ""
    why_at: Location = field(default=None)  # type: ignore[assignment]
    hint: str = _CLOUD_HINT
    about_gpu: bool = False

    def at_part(self, key: str, other: Part) -> Part:
        """The part of a field, `other` where it is absent."""
        return self.parts.get(key, other)

    def at_of(self, key: str, other: Part) -> Location:
        """The place of a field."""
        return self.at_part(key, other).at

    def drop(self, key: str, why: str, hint: str = _CLOUD_HINT, *, about_gpu: bool = False) -> None:
        """It cannot be served."""
        if not self.why_not:
            self.why_not, self.hint, self.about_gpu = why, hint, about_gpu
            self.why_at = self.at_of(key, self.source)

    def account(self, part: Part, *, most: dict[str, float], ordered: bool, limits: set[str]) -> None:
        """Say what became of one field of it.  `limits` are the job file's constraints that stand there."""
        key = part.key
        if key == "accelerators":
            self._account_gpus(part, ordered=ordered)
        elif key in _PLACES and not part.is_null and not limits & {"constraints.clouds", "constraints.regions"}:
            anywhere = self.place == Place(None, None)
            part.leave(
                "it says any place" if anywhere else "another alternative may be anywhere: places are not limited"
            )
        elif key == "instance_type" and self.types and _TARGET[key] not in limits:
            why = "another alternative names no type, so types are not limited"
            if key in self.odd:
                part.change("resources.accelerators", f"{self.odd[key]}; {why}")
            else:
                part.leave(why)
        elif key in self.odd:
            part.change(_TARGET[key], self.odd[key])
        elif key in {"cpus", "memory", "disk_size"} and (key in self.exact or self.figures.get(key, 0.0) < most[key]):
            why = "exactly that much there, at least that much here" if key in self.exact else ""
            larger = (
                f"alternatives differ: the largest, {most[key]:g}, holds for all"
                if self.figures.get(key, 0.0) < most[key]
                else ""
            )
            part.change(_TARGET[key], "; ".join(text for text in (why, larger) if text))
        elif part.is_null:
            part.leave("it is empty")
        else:
            part.carry(_TARGET[key])

    def _account_gpus(self, part: Part, *, ordered: bool) -> None:
        children = [child for child, _ in _written(part)] or [part]
        listed = part.items() != (part,) and len(children) > 1
        for child in children:
            why_not = self.unknown.get(child.path)
            if why_not:
                child.leave(why_not)
            elif child.path in self.odd:
                child.change("resources.accelerators", self.odd[child.path])
            else:
                child.carry("resources.accelerators")
        if listed and not ordered:
            part.book.note(
                part.path, part.at, "a list is tried in its order there; skyplan ranks all by cost and time", ""
            )


_PLACES: Final = frozenset({"infra", "cloud", "region", "zone"})
_TARGET: Final = {
    "cpus": "resources.cpus",
    "memory": "resources.memory",
    "disk_size": "resources.disk",
    "use_spot": "resources.capacity",
    "infra": "constraints",
    "cloud": "constraints.clouds",
    "region": "constraints.regions",
    "zone": "constraints.regions",
    "instance_type": "constraints.instance_types",
}


def choice_of(
    job: Job, parts: dict[str, Part], own: dict[str, Part], known: dict[str, str | None], source: Part
) -> Choice:
    """Read an alternative.  `parts` are its own fields over those that stand for all."""
    choice = Choice(source, parts, why_at=source.at)
    _place(job, choice, own, known)
    _gpus(job, choice, known)
    spot = parts.get("use_spot")
    if spot is not None and not spot.is_null:
        word = (spot.scalar or "").lower()
        if word not in {"true", "false", "yes", "no", "on", "off"}:
            spot.refuse(f"`{spot.path}` must be true or false, not {spot.shown}", "write true or false")
        choice.spot = word in {"true", "yes", "on"}
    for key in ("cpus", "memory", "disk_size"):
        part = parts.get(key)
        if part is not None and not part.is_null:
            _figure(choice, key, part)
    return choice


def _figure(choice: Choice, key: str, part: Part) -> None:
    text = (part.scalar or "").strip()
    per_cpu = _PER_CPU.fullmatch(text)
    if key == "memory" and per_cpu and "cpus" in choice.figures:
        choice.figures[key] = float(per_cpu[1]) * choice.figures["cpus"]
        choice.odd[key] = (
            f"so many GiB per vCPU there: {choice.figures[key]:g} GiB for {choice.figures['cpus']:g} vCPUs"
        )
        return
    found = _FIGURE.fullmatch(text)
    if found is None or float(found[1]) <= 0 or (key == "cpus" and found[2]):
        example = {"cpus": "4+", "memory": "64+", "disk_size": "256"}[key]
        part.refuse(f"`{part.path}`: {part.shown} is no such figure", f"write it like {example}")
        return
    value = float(found[1]) * (_GIB[found[2][0].upper()] if found[2] else 1.0)
    if key == "cpus" and not value.is_integer():
        choice.odd[key] = "made a whole number of vCPUs"
        value = float(int(value) + 1)
    choice.figures[key] = value
    if not found[3] and key != "disk_size":
        choice.exact.add(key)


def _place(job: Job, choice: Choice, own: dict[str, Part], known: dict[str, str | None]) -> None:
    """`infra: cloud/region/zone`, or the three by themselves; an alternative's own `infra` wins over a cloud that stands for all, and the reverse."""
    said = {key: _filled(choice, key, known) for key in ("infra", "cloud", "region", "zone")}
    if "infra" in own:
        said |= {key: None for key in ("cloud", "region", "zone") if key not in own}
    elif {"cloud", "region", "zone"} & own.keys():
        said["infra"] = None
    by_infra = bool(said["infra"])
    if said["infra"]:
        first, *rest = said["infra"].split("/")
        rest = [] if first.lower() in {"k8s", "kubernetes", "ssh"} else rest
        said["cloud"], said["region"], said["zone"] = [first, *rest, None, None][:3]
    cloud, region, zone = (
        None if text in {None, "*"} else text for text in (said["cloud"], said["region"], said["zone"])
    )
    cloud = cloud.lower() if cloud else None
    if cloud in {"k8s", "kubernetes"}:
        choice.drop("infra" if by_infra else "cloud", "Kubernetes is no cloud that skyplan plans for")
    elif cloud is not None and cloud not in CLOUDS:
        choice.drop("infra" if by_infra else "cloud", f"cloud {shown(cloud)} is none that skyplan plans for")
    else:
        _region(job, choice, (cloud, region, zone), by_infra=by_infra)


def _region(job: Job, choice: Choice, said: tuple[str | None, str | None, str | None], *, by_infra: bool) -> None:
    cloud, region, zone = said
    regions = job.shelf.words.regions
    if zone and not region:
        found = region_of_zone(zone, job.shelf)
        if found is None or cloud not in {None, found[0]}:
            why = f"zone {shown(zone)} is none that the catalog knows"
            choice.drop("infra" if by_infra else "zone", why, "name a region of the catalog")
            return
        cloud, region = found
    if zone:
        odd = "infra" if by_infra else "zone"
        choice.odd[odd] = f"zone {zone} becomes its region {region}: zones are the planner's to choose"
    owners = [c for c in CLOUDS if region in regions.get(c, ())]
    if region and (not owners or cloud not in {None, *owners}):
        names = regions.get(cloud or "", ()) or tuple(r for rs in regions.values() for r in rs)
        where = f"of {cloud} " if cloud else ""
        hint = did_you_mean(region, names) or f"regions are such as {', '.join(names[:3])}"
        why = f"{shown(region)} is no region {where}that the catalog knows"
        choice.drop("infra" if by_infra else "region", why, hint)
        return
    choice.place = Place(cloud, region)


def _filled(choice: Choice, key: str, known: dict[str, str | None]) -> str | None:
    part = choice.parts.get(key)
    if part is None or part.is_null:
        return None
    if part.scalar is None:
        hint = f"write an alternative for each under `any_of`, such as - {key}: gcp"
        part.refuse(f"`{part.path}` must be a single value", hint if key in {"cloud", "infra"} else "name one")
        return None
    text, unknown = filled(part.scalar.strip(), known)
    if unknown:
        part.refuse(f"`{part.path}` needs ${unknown}, which is given at launch", f"import with --env {unknown}=…")
        return None
    return text


def _gpus(job: Job, choice: Choice, known: dict[str, str | None]) -> None:
    part, machine = choice.parts.get("accelerators"), choice.parts.get("instance_type")
    if machine is not None and not machine.is_null:
        _machine(job, choice, machine, alone=part is None or part.is_null, known=known)
    if part is None or part.is_null:
        if not choice.accelerators:
            choice.drop("accelerators", NO_GPU)
        return
    found: list[Accelerator] = []
    for child, text in _written(part):
        text, unknown = filled(text, known)  # noqa: PLW2901 - filled in
        if unknown:
            child.refuse(f"`{child.path}` needs ${unknown}, which is given at launch", f"import with --env {unknown}=…")
            return
        one = _accelerator(job, choice, child, text)
        if one is not None:
            found.append(one)
    choice.accelerators = tuple(dict.fromkeys(found))
    sold = job.shelf.machines.get(choice.types[0]) if choice.types and found else None
    if sold is not None and not any(one.count == sold.count and one.model in {None, sold.gpu} for one in found):
        asked = " or ".join(map(str, choice.accelerators))
        why = f"{choice.types[0]} has {sold.gpu}:{sold.count}, not {asked}"
        choice.drop("instance_type", why, "take out `instance_type` or `accelerators`")
    if not found and not job.book.failed:
        whys = "; ".join(dict.fromkeys(choice.unknown.values())) or NO_GPU
        choice.drop("accelerators", whys, "name a GPU that `skyplan offers` lists", about_gpu=bool(choice.unknown))


def _machine(job: Job, choice: Choice, part: Part, *, alone: bool, known: dict[str, str | None]) -> None:
    name, unknown = filled((part.scalar or "").strip(), known)
    if unknown:
        part.refuse(f"`{part.path}` needs ${unknown}, which is given at launch", f"import with --env {unknown}=…")
        return
    machine = job.shelf.machines.get(name)
    if machine is None and name not in job.shelf.words.instance_types:
        hint = (
            did_you_mean(name, job.shelf.words.instance_types)
            or "say `accelerators` instead, or a type with GPUs that `skyplan catalog` lists"
        )
        choice.drop("instance_type", f"{part.shown} is no machine type with GPUs that the catalog knows", hint)
        return
    choice.types = (name,)
    if machine is not None and choice.place.cloud not in {None, machine.cloud}:
        choice.drop(
            "instance_type",
            f"{part.shown} is a type of {machine.cloud}, not of {choice.place.cloud}",
            "correct one of them",
        )
    elif machine is not None and alone:
        choice.accelerators = (Accelerator(machine.count, machine.gpu),)
        choice.odd["instance_type"] = f"its GPUs, {machine.gpu}:{machine.count}, are asked for as well"


def _written(part: Part) -> list[tuple[Part, str]]:
    """(where, NAME:COUNT) for each accelerator: a text, a set (keys without values), a mapping of name to count, or a list of those."""
    if part.scalar is not None:
        return [(part, part.scalar)]
    if part.entries():
        return [(child, key if child.is_null else f"{key}:{child.scalar}") for key, child in part.entries().items()]
    return [pair for item in part.items() if item != part for pair in _written(item)]


def _accelerator(job: Job, choice: Choice, part: Part, text: str) -> Accelerator | None:
    text = text.strip()
    least = _AT_LEAST.match(text)
    name, _, count_text = text.rpartition(":") if re.search(r":\s*[0-9.]+\s*$", text) else (text, "", "1")
    name = name.strip()
    if not re.fullmatch(r"\s*[0-9]+(?:\.0*)?\s*", count_text):
        part.refuse(f"`{part.path}`: {shown(text)} asks for a part of a GPU", "ask for a whole number of GPUs")
        return None
    count = int(float(count_text))
    if not 1 <= count <= MAX_COUNT or not name:
        part.refuse(
            f"`{part.path}`: {shown(text)} is no accelerator and count", "write NAME:COUNT, such as A100-80GB:8"
        )
        return None
    if least and least.end() in {len(text), len(name)}:
        maker = (least[1] or "nvidia").lower()
        gib = float(least[2]) * {"M": 1 / 1024, "G": 1.0, "T": 1024.0}[(least[3] or "GB")[0].upper()]
        if maker != "nvidia":
            choice.unknown[part.path] = f"{shown(text)} asks for GPUs of {maker}: name a model of theirs instead"
            return None
        choice.odd[part.path] = _admits(job, gib)
        return Accelerator(count, None, gib)
    models = job.shelf.models(name)
    if len(models) == 1:
        return Accelerator(count, models[0])
    if models:
        choice.unknown[part.path] = f"{shown(name)} may mean {', '.join(models)}: write one of them"
    else:
        choice.unknown[part.path] = f"{shown(name)} {job.shelf.why_not(name)}"
    return None


def _admits(job: Job, gib: float) -> str:
    """What `80GB+` means by the catalog's memories."""
    below = [m for m in sorted(job.shelf.words.gpus) if job.shelf.sold_gb(m) >= gib > job.shelf.words.gpus[m]]
    out = (
        f"; {', '.join(f'{m} ({job.shelf.words.gpus[m]:g} GiB usable)' for m in below)} fall below it" if below else ""
    )
    return f"any GPU of the catalog with at least {gib:g} GiB{out}"
