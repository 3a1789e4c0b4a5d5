"""The fields of SkyPilot's `resources` that do not choose hardware: image, ports, labels, recovery, prices.

Decides what becomes of each, and why the rest is not carried over.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.spec import units
from planner.spec.foreign import common
from planner.spec.foreign.filling import filled

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?", re.ASCII)
_REGISTRY: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?/.+")
_MACHINE_IMAGE: Final = "a machine image: nodes boot the image that skyplan.yaml names per cloud, with the GPU drivers"
#: field -> why it is not carried over, and what it would need
_LEFT: Final = {
    "ports": ("nodes take no connection from outside", "use `access: session`, or move what serves out of the job"),
    "job_recovery": (
        "recovery is `skyplan replan` and `watch`: they weigh every place, not the next region",
        "give `checkpoint` so that a job resumes",
    ),
    "spot_recovery": (
        "recovery is `skyplan replan` and `watch`: they weigh every place, not the next region",
        "give `checkpoint` so that a job resumes",
    ),
    "autostop": (
        "nodes end when the job does; there is no idle cluster",
        "give `constraints.stop_after` for a hard end",
    ),
    "autodown": (
        "nodes end when the job does; there is no idle cluster",
        "give `constraints.stop_after` for a hard end",
    ),
    "disk_tier": ("the disk's kind is the planner's to choose", ""),
    "ephemeral_storage": ("an old name of `disk_size`", "say `resources.disk`"),
    "local_disk": (
        "local NVMe is at /scratch where a machine has it; it cannot be asked for",
        "choose `constraints.instance_types` that have it",
    ),
    "accelerator_args": ("settings of TPUs", ""),
    "volumes": ("a volume of SkyPilot's: skyplan knows buckets, not volumes", "put the data in a bucket under `data`"),
    "priority_class": ("a class of Kubernetes", "say `priority`"),
    "_cluster_config_overrides": ("written by SkyPilot for itself", ""),
    "_no_missing_accel_warnings": ("written by SkyPilot for itself", ""),
}
#: documented fields that choose no hardware
FIELDS: Final = ("image_id", "labels", "network_tier", "max_hourly_cost", "priority", *_LEFT)


def plain(job: Job, key: str, part: Part, known: dict[str, str | None]) -> None:
    """One field that stands for all alternatives."""
    if key == "image_id":
        image(job, [part], 1, known)
    elif key == "labels":
        common.tags(job, part)
    elif key == "network_tier":
        _network(job, part)
    elif key == "max_hourly_cost":
        _price(job, part)
    elif key == "priority":
        _priority(job, part)
    elif key in _LEFT:
        part.leave(*_LEFT[key])


def _network(job: Job, part: Part) -> None:
    if (part.scalar or "").lower() == "best" and job.nodes > 1:
        job.draft.put("resources.interconnect_sensitive", value=True, at=part.at)
        part.change(
            "resources.interconnect_sensitive", "skyplan keeps such a job on machines with a fabric between nodes"
        )
    else:
        part.leave(
            "one node needs no network between nodes" if job.nodes == 1 else "the standard network is assumed anyway"
        )


def _price(job: Job, part: Part) -> None:
    try:
        usd = units.real((part.scalar or "").strip(), example="write US dollars, such as 12.5")
    except units.Malformed as problem:
        part.refuse(f"`{part.path}`: {part.shown} {problem}", problem.hint)
        return
    job.draft.put("constraints.max_usd_per_hour", usd * job.nodes, part.at)
    why = f"the price of one node there, of the whole job here: {usd:g} times {job.nodes}"
    part.change("constraints.max_usd_per_hour", f"{why}; disks and addresses count here too")


def _priority(job: Job, part: Part) -> None:
    try:
        value = units.integer((part.scalar or "").strip(), -1_000_000, 1_000_000)
    except units.Malformed as problem:
        part.refuse(f"`{part.path}`: {part.shown} {problem}", problem.hint)
        return
    job.draft.put("priority", value, part.at)
    part.carry("priority")


def image(job: Job, parts: list[Part], alternatives: int, known: dict[str, str | None]) -> None:
    """`docker:REF` becomes the image, where it holds for every alternative."""
    texts = {part.scalar for part in parts}
    if not parts or len(parts) < alternatives or len(texts) > 1:
        for part in parts:
            part.leave("alternatives have images of their own; a job has one", "write one job per image")
        return
    text, unknown = filled((parts[0].scalar or "").strip(), known)
    ref = text.removeprefix("docker:")
    for at, part in enumerate(parts):
        if unknown:
            part.leave(
                f"it needs ${unknown}, which is given at launch", f"import with --env {unknown}=…, or write `image`"
            )
        elif part.scalar is None:
            part.leave(
                "machine images per region" if part.entries() else "it is empty",
                "" if part.is_null else "give `image`, a container",
            )
        elif not text.startswith("docker:") and _REGISTRY.fullmatch(text) and _IMAGE.fullmatch(text):
            part.change("image", "without `docker:` it is taken for a container image by its registry")
            job.draft.put("image", text, part.at)
        elif not text.startswith("docker:"):
            part.leave(_MACHINE_IMAGE, "give `image`, a container, where the job needs what is in it")
        elif not _IMAGE.fullmatch(ref):
            part.leave(f"{part.shown} is no image by tag or digest", "write `image: NAME:TAG`")
        else:
            part.carry("image")
            if at == 0:
                job.draft.put("image", ref, part.at)
