"""dstack's `resources` -> what a node needs.

Decides which models of the catalog a GPU request means.  dstack names a family and, apart from it, a memory; here memory is part of a model's name, so a
request becomes the list of all models it admits, and memory is never lowered.  Where no maker is said, NVIDIA is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.spec.foreign import common
from planner.spec.secret import shown

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

#: documented fields of `resources`
FIELDS: Final = ("gpu", "cpu", "memory", "disk", "shm_size")
_VENDORS: Final = {
    "nvidia": "nvidia",
    "amd": "amd",
    "google": "google",
    "tpu": "google",
    "intel": "intel",
    "tenstorrent": "tenstorrent",
}
_MEMORY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(MB|GB|TB)?", re.IGNORECASE)
_GB: Final = {"M": 1 / 1024, "G": 1.0, "T": 1024.0}
_INFINITE: Final = 1e9
#: how many GPUs machines of the clouds have, where nothing is known of a model's
_COUNTS: Final = (1, 2, 4, 8)


@dataclass(slots=True)
class _Gpu:
    """A request: makers and families, memory in GB, count; each a range."""

    vendor: str | None = None
    names: tuple[str, ...] = ()
    memory: tuple[float, float] = (0.0, _INFINITE)
    total: tuple[float, float] = (0.0, _INFINITE)
    count: tuple[float, float] = (1.0, 1.0)
    counted: bool = False


class _Wrong(ValueError):
    """It cannot be read; the text says why."""


def resources(job: Job, root: Part) -> int | None:
    """Fill the draft's `resources`; returns the GPUs per node where that is one number."""
    part = root.get("resources")
    gpu = part.get("gpu") if part else None
    if part is not None and not part.entries():
        part.leave("it says nothing")
    if part is not None:
        _cpu(job, part.get("cpu"))
        _size(job, part.get("memory"), "memory")
        disk = part.get("disk")
        _size(job, disk.get("size") or disk if disk else None, "disk")
        shared = part.get("shm_size")
        if shared is not None:
            shared.leave("the container shares the node's memory (--ipc host): there is no limit of its own")
    if gpu is None or gpu.is_null:
        if gpu is not None:
            gpu.leave("it is empty")
        common.no_gpu(job, gpu.at if gpu else part.at if part else root.at)
        return None
    try:
        wanted = _read_fields(gpu) if gpu.entries() else _read_text(gpu.scalar)
    except _Wrong as wrong:
        gpu.refuse(
            f"`{gpu.path}`: {gpu.shown} {wrong}",
            "write it like A100:80GB:8, 24GB.. or {name: A100, memory: 80GB, count: 8}",
        )
        return None
    return _asked(job, gpu, wanted)


def _asked(job: Job, part: Part, wanted: _Gpu) -> int | None:
    why_not = {
        "google": "asks for TPUs",
        "intel": "asks for Intel Gaudi chips",
        "tenstorrent": "asks for Tenstorrent chips",
    }
    if wanted.vendor in why_not:
        part.refuse(
            f"`{part.path}` {why_not[wanted.vendor]}: skyplan plans for GPUs only", "name a GPU", "SKY-SPEC-106"
        )
        return None
    if wanted.count[1] == 0:
        job.book.taken.update(part.leaves())
        common.no_gpu(job, part.at)
        return None
    models, unknown = _models(job, wanted)
    pairs = _pairs(job, models, wanted)
    if not pairs:
        whys = "; ".join(unknown) or f"no GPU of the catalog has {_words(wanted)}"
        part.refuse(f"`{part.path}`: {whys}", "see `skyplan offers` for what there is", "SKY-SPEC-106")
        return None
    _account(part, wanted, pairs, unknown)
    job.draft.put("resources.accelerators", [f"{model}:{count}" for model, count in pairs], part.at)
    counts = {count for _, count in pairs}
    return counts.pop() if len(counts) == 1 else None


def _models(job: Job, wanted: _Gpu) -> tuple[tuple[str, ...], list[str]]:
    """The catalog's models that are admitted, and why names were none."""
    shelf, unknown = job.shelf, list[str]()
    if wanted.names:
        found: set[str] = set()
        for name in wanted.names:
            family = shelf.family(name)
            if not family:
                unknown.append(f"{shown(name)} {shelf.why_not(name)}")
            found |= set(family)
    else:
        found = {m for m in shelf.words.gpus if shelf.x86(m) and shelf.amd(m) == (wanted.vendor == "amd")}
    low, high = wanted.memory
    fitting = [m for m in sorted(found) if low - 0.5 <= shelf.sold_gb(m) <= high + 0.5]
    return tuple(sorted(fitting, key=lambda m: (shelf.words.gpus[m], m))), unknown


def _pairs(job: Job, models: tuple[str, ...], wanted: _Gpu) -> list[tuple[str, int]]:
    low, high = wanted.count
    every = {model: job.shelf.counts((model,)) or _COUNTS for model in models}
    if low == high:
        # those that machines have so many of; where none has, the request stands as it is and the plan says so
        having = tuple(model for model in models if low in every[model]) or models
        asked = [(model, int(low)) for model in having]
    else:
        asked = [(model, count) for model in models for count in every[model] if max(low, 1) <= count <= high]
    least, most = wanted.total
    fitting = [(m, c) for m, c in asked if least - 0.5 <= job.shelf.sold_gb(m) * c <= most + 0.5]
    return sorted(fitting, key=lambda pair: (pair[1], models.index(pair[0])))


def _account(part: Part, wanted: _Gpu, pairs: list[tuple[str, int]], unknown: list[str]) -> None:
    says: list[str] = []
    if len({model for model, _ in pairs}) > 1:
        says.append(f"any of {', '.join(dict.fromkeys(model for model, _ in pairs))}")
    if wanted.count[0] != wanted.count[1]:
        says.append(f"as many per node as machines have: {', '.join(str(c) for c in sorted({c for _, c in pairs}))}")
    if not wanted.counted:
        says.append("one per node, as no count is said: dstack takes machines with more as well")
    if not wanted.vendor and not wanted.names:
        says.append("NVIDIA is meant where no maker is said")
    says += [f"{why}, so it falls away" for why in unknown]
    children = part.entries() or {"": part}
    for key, child in children.items():
        if key == "compute_capability":
            child.leave("the catalog does not know compute capabilities", "name the models under `accelerators`")
        elif says:
            child.change("resources.accelerators", "; ".join(says))
        else:
            child.carry("resources.accelerators")


def _words(wanted: _Gpu) -> str:
    low, high = wanted.memory
    memory = (
        "" if (low, high) == (0.0, _INFINITE) else f" with {low:g} to {'any' if high >= _INFINITE else f'{high:g}'} GB"
    )
    return f"{wanted.count[0]:g} to {wanted.count[1]:g} cards of {', '.join(wanted.names) or 'any name'}{memory}"


def _read_text(text: str | None) -> _Gpu:
    """VENDOR:NAME,NAME:MEMORY:COUNT, each optional, in any order."""
    found = _Gpu()
    seen: set[str] = set()
    for token in re.sub(r"\s", "", text or "").split(":"):
        if not token:
            raise _Wrong("holds an empty part")
        kind = (
            "vendor"
            if token.lower() in _VENDORS
            else "names"
            if token[0].isalpha()
            else "memory"
            if re.search("[A-Za-z]", token)
            else "count"
        )
        if kind in seen:
            raise _Wrong("says one thing twice")
        seen.add(kind)
        if kind == "vendor":
            found.vendor = _VENDORS[token.lower()]
        elif kind == "names":
            _name(found, token.split(","))
        elif kind == "memory":
            found.memory = _range(token, memory=True)
        else:
            found.count, found.counted = _range(token, memory=False), True
    return found


def _read_fields(part: Part) -> _Gpu:
    found = _Gpu()
    for key, value in part.entries().items():
        if key == "vendor" and value.scalar:
            if value.scalar.lower() not in _VENDORS:
                raise _Wrong(f"names a maker that is not known: {value.shown}")
            found.vendor = _VENDORS[value.scalar.lower()]
        elif key == "name":
            _name(found, [text for item in value.items() for text in (item.scalar or "").split(",") if text])
        elif key in {"memory", "total_memory"} and not value.is_null:
            bounds = _bounds(value, memory=True)
            found.memory, found.total = (bounds, found.total) if key == "memory" else (found.memory, bounds)
        elif key == "count" and not value.is_null:
            found.count, found.counted = _bounds(value, memory=False), True
        elif key not in {"vendor", "memory", "total_memory", "count", "compute_capability"}:
            raise _Wrong(f"has a field that is not known: {shown(key)}")
    return found


def _name(found: _Gpu, names: list[str]) -> None:
    if any(name.lower().startswith("tpu-") for name in names):
        found.vendor = "google"
    found.names = tuple(name.strip() for name in names)
    if not all(found.names):
        raise _Wrong("holds an empty name")


def _bounds(part: Part, *, memory: bool) -> tuple[float, float]:
    if part.entries():
        low, high = (value.scalar if (value := part.get(key)) else None for key in ("min", "max"))
        if set(part.entries()) - {"min", "max"}:
            raise _Wrong("has a range with fields that are not known")
        return _range(f"{low or ''}..{high or ''}", memory=memory)
    return _range(part.scalar or "", memory=memory)


def _range(text: str, *, memory: bool) -> tuple[float, float]:
    """`80GB`, `16GB..`, `..80GB`, `1..8` -> lowest and highest."""
    low_text, dots, high_text = re.sub(r"\s", "", text).partition("..")
    if not low_text and not high_text:
        raise _Wrong("is an empty range")
    low = _number(low_text, memory=memory) if low_text else 0.0
    high = (_number(high_text, memory=memory) if high_text else _INFINITE) if dots else low
    if low > high:
        raise _Wrong("is a range whose end lies before its start")
    return low, high


def _number(text: str, *, memory: bool) -> float:
    found = _MEMORY.fullmatch(text)
    if found is None or (not memory and (found[2] or not text.isdigit())):
        raise _Wrong("is no size" if memory else "is no whole number")
    return float(found[1]) * (_GB[found[2][0].upper()] if found[2] else 1.0)


def _cpu(job: Job, part: Part | None) -> None:
    if part is None:
        return
    counted = part.get("count") if part.entries() and "count" in part.entries() else None
    text = part.scalar or ""
    arch, colon, rest = text.partition(":")
    text = rest if colon else text
    if "arm" in arch.lower() or (counted and "arm" in ((a.scalar or "") if (a := part.get("arch")) else "").lower()):
        part.refuse(
            f"`{part.path}` asks for Arm processors: images and GPUs are x86 here", "ask for x86, or for a count alone"
        )
        return
    try:
        bounds = (
            _bounds(counted, memory=False)
            if counted
            else _bounds(part, memory=False)
            if part.entries()
            else _range(text, memory=False)
        )
    except _Wrong as wrong:
        part.refuse(f"`{part.path}`: {part.shown} {wrong}", "write it like 8 or 8..")
        return
    _least(job, part, bounds, "cpus", "")


def _size(job: Job, part: Part | None, target: str) -> None:
    if part is None:
        return
    if part.is_null:
        part.leave("it is empty")
        return
    try:
        bounds = _bounds(part, memory=True)
    except _Wrong as wrong:
        part.refuse(f"`{part.path}`: {part.shown} {wrong}", "write it like 64GB or 64GB..")
        return
    _least(job, part, bounds, target, "GiB")


def _least(job: Job, part: Part, bounds: tuple[float, float], target: str, unit: str) -> None:
    low, high = bounds
    if low > 0:
        job.draft.put(f"resources.{target}", f"{low:.12g}{unit}", part.at)
    if high >= _INFINITE and low > 0:
        part.carry(f"resources.{target}")
    elif low > 0:
        part.change(f"resources.{target}", "at least that much here: there is no upper limit")
    else:
        part.leave("an upper limit: skyplan has least amounts only")
