"""Which machine image an Azure GPU size boots: NVIDIA driver, Docker, the container toolkit, InfiniBand drivers.

Packaged choice: Microsoft's Ubuntu-HPC images (marketplace `microsoft-dsvm:ubuntu-hpc`, generation 2, no plan to accept), by exact version.  The
plain one has NVIDIA's open kernel modules, which drive Turing and later; V100 has an image of its own (Azure/azhpc-images issue 406).  The
images allow Trusted Launch for no driver of theirs (unsigned modules), so secure boot and vTPM stay off.  A pin in skyplan.yaml (`images:`) wins:
`PUBLISHER:OFFER:SKU:VERSION` or a resource id.

Refused: A10 and M60 (their driver is GRID, which no image brings: azhpc-images issue 398), AMD (a ROCm image exists,
`microsoft-dsvm:ubuntu-hpc:2204-rocm`, but what boots a skyplan node speaks to NVIDIA), and confidential VMs (another kind of image and disk).

Versions were read in public repositories that list them (2026-08 for 2204, 2026-05 for the V100 one), not seen in a live account; Microsoft
retires old ones.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.offer import InstanceType

_OPEN = "microsoft-dsvm:ubuntu-hpc:2204:22.04.2026080501"
_VOLTA = "microsoft-dsvm:ubuntu-hpc:2404-v100:24.04.2026052501"

#: GPU -> image
_IMAGES: dict[str, str] = {
    **dict.fromkeys(("T4", "A100", "A100-40GB", "A100-80GB", "A100-80GB-PCIe", "H100", "H100-NVL", "H200"), _OPEN),
    **dict.fromkeys(("V100", "V100-32GB"), _VOLTA),
}
#: GPU -> why there is none
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("A10", "M60"), "its driver is NVIDIA's GRID, which no image of Azure's brings"),
    **dict.fromkeys(("MI25", "MI300X"), "skyplan's nodes drive NVIDIA GPUs only"),
}
#: sizes of confidential VMs: Standard_NCC40ads_H100_v5
_CONFIDENTIAL = "Standard_NCC"
_ARCHES = frozenset({"amd64", "x86_64"})
_URN = re.compile(r"[^\s:/]+(?::[^\s:/]+){3}")
_IDS = ("/subscriptions/", "/sharedGalleries/", "/communityGalleries/")


def machine_image(kind: InstanceType, region: str, pins: Sequence[tuple[str, str]] = ()) -> str:
    """`PUBLISHER:OFFER:SKU:VERSION`, or the image of the first pin whose `CLOUD/REGION/TYPE` pattern matches.

    Raises InputError where none is known, or where the pin names none.
    """
    place = f"{kind.cloud.value}/{region}/{kind.name}"
    for pattern, image in pins:
        if fnmatch.fnmatchcase(place, pattern):
            image_reference(image)
            return image
    if why := no_image(kind):
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"no machine image with a driver is known for {place}: {why}",
                    hint=f"pin one in skyplan.yaml: `images: {{{place}: PUBLISHER:OFFER:SKU:VERSION}}`",
                )
            ]
        )
    return _IMAGES[kind.gpu]


def no_image(kind: InstanceType) -> str:
    """Why no packaged image boots the type; "" where one does.  For planning, which may rather choose another type."""
    if kind.arch not in _ARCHES:
        return f"{kind.arch} is not supported"
    if kind.name.startswith(_CONFIDENTIAL):
        return "confidential VMs are not supported"
    return _REFUSED.get(kind.gpu, "" if kind.gpu in _IMAGES else f"{kind.gpu} is not known")


def image_reference(image: str) -> dict[str, str] | str:
    """The four parts of a marketplace image, as Terraform names them, or the resource id.  Raises InputError for neither."""
    if image.startswith(_IDS):
        return image
    if _URN.fullmatch(image) is None:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"`images`: {image!r} is no Azure image",
                    hint="write PUBLISHER:OFFER:SKU:VERSION, or the resource id of an image",
                )
            ]
        )
    return dict(zip(("publisher", "offer", "sku", "version"), image.split(":"), strict=True))
