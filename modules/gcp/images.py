"""Which machine image a GPU machine type boots, and whether its kernel modules are signed for Secure Boot.

Packaged choice: Canonical's Ubuntu 22.04 accelerator image with NVIDIA's 580 driver, by family.  It carries the open kernel modules as Ubuntu's
prebuilt `linux-modules-nvidia-…-server-open-gcp` (GoogleCloudPlatform/cloud-image-tests names the package for the families 550 and 570), which
Canonical signs: Secure Boot stays on.  Open modules drive Turing and later.  P4, P100 and V100 are older and boot Google's Deep Learning VM
image, whose modules are not known to be signed: Secure Boot is off there, as it is for every image that somebody else pins.

A family is resolved when the access stack is applied, and the image found is handed to compute: all nodes of one launch boot one image, and a
family that Google has retired fails before anything is paid for.  Applying the access stack again takes the family's newest image; a pin in
skyplan.yaml (`images:`) fixes it.

Not verified against a live account: that the families exist in every project (their names are in use in public scripts of 2025 and 2026); that
the Deep Learning VM's modules drive Pascal and Volta; Docker and NVIDIA's container toolkit, which the Ubuntu image does not bring (public
builds install both on top of it); GPUDirect-TCPX and -TCPXO on Ubuntu: Google documents them on Container-Optimized OS and on its own Debian
builds, so jobs that want these two fabrics should pin an image.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.offer import InstanceType

#: the project of the images whose NVIDIA modules Canonical signs
SIGNED_PROJECT = "ubuntu-os-accelerator-images"
_OPEN = f"projects/{SIGNED_PROJECT}/global/images/family/ubuntu-accelerator-2204-amd64-with-nvidia-580"
_OLDER = "projects/deeplearning-platform-release/global/images/family/common-cu128-ubuntu-2204-nvidia-570"

#: machine families, and for n1 the accelerator
_FAMILIES: dict[str, str] = {
    **dict.fromkeys(("a2", "a3", "a4", "g2", "g4", "n1+t4"), _OPEN),
    **dict.fromkeys(("n1+p4", "n1+p100", "n1+v100"), _OLDER),
}
_FAMILY_MARK = "/global/images/family/"


def machine_image(kind: InstanceType, region: str, pins: Sequence[tuple[str, str]] = ()) -> str:
    """`projects/P/global/images/family/F`, or the image of the first pin whose `CLOUD/REGION/TYPE` pattern matches.

    Raises InputError where none is known.
    """
    place = f"{kind.cloud.value}/{region}/{kind.name}"
    for pattern, image in pins:
        if fnmatch.fnmatchcase(place, pattern):
            return image
    machine, _, accelerator = kind.name.partition("+")
    family = machine.split("-", 1)[0] + (f"+{accelerator.rpartition('x')[0]}" if accelerator else "")
    if family not in _FAMILIES or kind.arch not in {"amd64", "x86_64"}:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"no machine image with a driver is known for {place} ({kind.arch})",
                    hint=f"pin one in skyplan.yaml: `images: {{{place}: projects/PROJECT/global/images/NAME}}`",
                )
            ]
        )
    return _FAMILIES[family]


def family_of(image: str) -> tuple[str, str] | None:
    """Project and family of `projects/P/global/images/family/F`; None for an image that is named outright."""
    before, mark, family = image.partition(_FAMILY_MARK)
    project = before.rpartition("projects/")[2]
    return (project, family) if mark and project and family else None


def secure_boot(image: str) -> bool:
    """Whether the image's NVIDIA modules are known to load under Secure Boot.  One that does not load is a node without a GPU, paid for."""
    return f"projects/{SIGNED_PROJECT}/" in image
