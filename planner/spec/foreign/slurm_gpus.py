"""Which GPUs a batch script asks for, and how many per node: --gres, --gpus and their kin, and what a cluster calls a GPU in --constraint.

Decides what a cluster's own spelling of a GPU means (`a100-80`, `nvidia_h100_80gb_hbm3`), and that a slice of one is none.  Where a script says only how
many, any GPU with a usual memory is asked for, and that is marked as not said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.spec.foreign import common
from planner.spec.gpus import MAX_COUNT
from planner.spec.secret import shown

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job
    from planner.spec.foreign.shelf import Shelf

#: the options that ask for GPUs
ASKING: Final = ("gres", "gpus", "gpus-per-node", "gpus-per-task")
_ASKED: Final = re.compile(r"gpu(?::([A-Za-z0-9][\w.-]*))??(?::(\d+))?(?:\(.*\))?", re.ASCII)
#: NVIDIA's names of slices, such as 1g.10gb or a100_3g.20gb
_SLICE: Final = re.compile(r"\d+g\.\d+gb", re.IGNORECASE)
#: what clusters put before and after a model's name
_MAKER: Final = re.compile(r"^(?:nvidia|tesla|geforce|gpu)[_-]?", re.IGNORECASE)
_CHIPS: Final = re.compile(r"[_-]?hbm\d\w*$", re.IGNORECASE)
_BARE_GB: Final = re.compile(r"[_-](\d{2,3})$")
_NAMELESS: Final = "a number without a kind: which GPU the cluster has is not said"


@dataclass(slots=True)
class _Asked:
    """One option: the GPU's kind if it says one, GPUs per node, and what differs."""

    part: Part
    kind: str | None
    count: int
    whys: list[str] = field(default_factory=list[str])


def gpus(job: Job, root: Part, tasks: int) -> int:
    """GPUs per node into the draft, of whichever option says them; 0 with an error where none does."""
    found: list[_Asked] = []
    for key, factor in (
        ("gres", 1.0),
        ("gpus-per-node", 1.0),
        ("gpus", 1 / job.nodes),
        ("gpus-per-task", float(tasks)),
    ):
        part = root.get(key)
        spread = key == "gpus" or (key == "gpus-per-task" and tasks > 1)
        one = _read(part, factor, many=spread and root.get("nodes") is None) if part else None
        if one is not None:
            found.append(one)
    socket = root.get("gpus-per-socket")
    if socket is not None:
        socket.refuse("GPUs per socket: skyplan counts per node", "say --gpus-per-node")
    features = root.get("constraint")
    if not found:
        if features is not None:
            features.leave(*_FEATURES)
        if not job.book.failed:
            common.no_gpu(job, root.at)
        return 0
    return _put(job, found, features)


_FEATURES: Final = ("features are names of the cluster's own", "name the GPU under `accelerators`")


def _read(part: Part, factor: float, *, many: bool) -> _Asked | None:
    """One option; None where it asks for none, or with an error."""
    text = part.scalar or ""
    kinds = text.split(",") if part.key == "gres" else [f"gpu:{text}"]
    others = [one for one in kinds if one.split(":")[0] != "gpu"]
    kinds = [one for one in kinds if one not in others]
    if not kinds:
        part.leave(f"{part.shown} asks for what no cloud machine names so")
        return None
    read = _ASKED.fullmatch(kinds[0])
    each = float(read[2] or 1) * factor if read else -1.0
    if each == 0 and len(kinds) == 1:
        part.leave("it asks for no GPU")
        return None
    if read is not None and read[1] and _SLICE.search(read[1]):
        part.refuse(
            f"--{part.key}: {shown(read[1])} is a slice of a GPU (MIG): skyplan buys whole GPUs",
            "ask for a whole one, such as --gres=gpu:a100:1",
            "SKY-SPEC-106",
        )
        return None
    if read is None or len(kinds) > 1 or each != int(each) or not 1 <= each <= MAX_COUNT:
        part.refuse(
            f"--{part.key}: {part.shown} is no number of GPUs of one kind per node", "write it like --gres=gpu:a100:4"
        )
        return None
    out = _Asked(part, read[1], int(each))
    if others:
        out.whys.append(f"{', '.join(map(shown, others))} is left out: no cloud machine names what it asks for so")
    if many and each > 1:
        out.whys.append(f"all {int(each)} on one node here, as no number of nodes is said")
    elif factor != 1 and read[2]:
        of = "for the whole job" if part.key == "gpus" else "per task"
        out.whys.append(f"{read[2]} {of} there, {int(each)} per node here")
    return out


def _models(shelf: Shelf, name: str) -> tuple[str, ...]:
    """The catalog's models of a name as clusters write it."""
    plain = _CHIPS.sub("", _MAKER.sub("", name))
    tries = (name, plain, _BARE_GB.sub(r"-\1gb", plain))
    return next((found for one in tries if one and (found := shelf.models(one))), ())


def _put(job: Job, found: list[_Asked], features: Part | None) -> int:
    count, kind = found[0].count, job.options.gpu or next((one.kind for one in found if one.kind), None)
    if any(one.count != count for one in found):
        job.book.taken.update(leaf for one in found for leaf in one.part.leaves())
        found[-1].part.refuse(
            "two options ask for different numbers of GPUs per node", "keep one of them", "SKY-SPEC-113"
        )
        return 0
    models = list(_models(job.shelf, kind)) if kind else _of_features(job.shelf, features)
    if kind and len(models) != 1:
        why = f"may mean {', '.join(models)}: say which (--gpu)" if models else job.shelf.why_not(kind)
        for one in found:
            one.part.refuse(
                f"--{one.part.key}: {shown(kind)} {why}", "say which GPU is meant: --gpu NAME", "SKY-SPEC-106"
            )
        return 0
    if features is not None:
        if kind or not models:
            features.leave(*_FEATURES)
        else:
            features.change("resources.accelerators", f"a feature of the cluster's, taken for {' or '.join(models)}")
    at = found[0].part.at
    if not models:
        why = f"any GPU with {common.LEAST_GB:g} GB is asked for: name the cluster's (--gpu)"
        todo = job.say("resources.accelerators", at, f">={common.LEAST_GB:g}GiB:{count}", why)
        asked = [{"gpu_memory": f"{common.LEAST_GB:g}GiB+", "count": count}]
        job.draft.put("resources.accelerators", asked, at, todo)
    else:
        job.draft.put("resources.accelerators", [f"{model}:{count}" for model in models], at)
    _account(job, found, models)
    return count


def _of_features(shelf: Shelf, features: Part | None) -> list[str]:
    """The GPUs that --constraint names, one or several to choose of: `h100`, `a100|h100`, `gpu&a100-80gb`."""
    words = re.split(r"[&|,()\[\]]+", features.scalar or "") if features is not None else []
    return list(dict.fromkeys(model for word in words if word for model in _models(shelf, word)))


def _account(job: Job, found: list[_Asked], models: list[str]) -> None:
    larger = [m for m in job.shelf.family(models[0]) if m != models[0]] if len(models) == 1 else []
    # `a100-40gb` says its memory, `a100` does not
    said = job.options.gpu or next((one.kind for one in found if one.kind), None) or ""
    if larger and not job.options.gpu and not re.search(r"\d+gb|[_-]\d{2,3}$", said, re.IGNORECASE):
        usable = f"{job.shelf.words.gpus[models[0]]:g} GiB"
        unsure = f"taken for {models[0]} ({usable}): the cluster's may be {' or '.join(larger)}"
    else:
        unsure = "" if models else _NAMELESS
    for one in found:
        whys = [*([unsure] if unsure else []), *one.whys]
        if whys:
            one.part.change("resources.accelerators", "; ".join(whys), "say which with --gpu" if unsure else "")
        else:
            one.part.carry("resources.accelerators")
