"""Which boot image a GPU platform gets: an NVIDIA driver that fits the GPU, and Docker.

Packaged choice: the public family `ubuntu24.04-cuda13.0` (driver 580, which CUDA 12 containers run on too).  Users report that it is in every region
with GPUs, that uk-south1 has no other CUDA family, that Docker with the GPU runtime is in it, and that `ubuntu24.04-cuda12` was withdrawn in April 2026
(read 2026-10).  A family resolves when the disk is made, so two generations of a job may boot different images; an image id pinned in skyplan.yaml
(`images:`) holds still.

Not verified against a live account.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from modules.nebius.names import platform_and_preset
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.offer import InstanceType

#: what an image string begins with when it names a family; anything else is an image id
FAMILY = "family:"
_CUDA = f"{FAMILY}ubuntu24.04-cuda13.0"

#: platforms with amd64 hosts and GPUs that driver 580 drives
_PLATFORMS: dict[str, str] = dict.fromkeys(
    (
        "gpu-h100-sxm",
        "gpu-h200-sxm",
        "gpu-b200-sxm",
        "gpu-b200-sxm-a",
        "gpu-b300-sxm",
        "gpu-l40s-a",
        "gpu-l40s-d",
        "gpu-rtx6000-a",
    ),
    _CUDA,
)


def machine_image(kind: InstanceType, region: str, pins: Sequence[tuple[str, str]] = ()) -> str:
    """`family:NAME` or an image id; the image of the first pin whose `CLOUD/REGION/TYPE` pattern matches wins.

    Raises InputError where none is known.
    """
    place = f"{kind.cloud.value}/{region}/{kind.name}"
    for pattern, image in pins:
        if fnmatch.fnmatchcase(place, pattern):
            return image
    platform = platform_and_preset(kind.name)[0] if "_" in kind.name else kind.name
    if platform not in _PLATFORMS or kind.arch not in {"amd64", "x86_64"}:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"no machine image with a driver is known for {place} ({kind.arch})",
                    hint=f"pin one in skyplan.yaml: `images: {{{place}: {_CUDA}}}`",
                )
            ]
        )
    return _PLATFORMS[platform]


def image_source(image: str) -> dict[str, object]:
    """The disk's arguments for an image string.  A family without a parent is looked for among the public ones."""
    if image.startswith(FAMILY):
        return {"source_image_family": {"image_family": image.removeprefix(FAMILY)}}
    return {"source_image_id": image}
