"""Which machine image a GPU instance type boots: an NVIDIA driver that fits the GPU, Docker, the container toolkit, EFA.

Packaged choice: AWS's Deep Learning Base GPU AMI (Ubuntu 22.04), by its public SSM parameter.  AMI ids differ by region and cannot be known
without an account; the parameter is resolved when the access stack is first applied, and that stack then keeps the resolved id (it ignores
later values), so a job's nodes all boot one image until its stack is made anew.  A pin in skyplan.yaml (`images:`) wins.

Not verified against a live account: AWS documents the `latest` parameters; parameters that name a release were not found, so none is used.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.offer import InstanceType

_PATH = "/aws/service/deeplearning/ami/{arch}/{name}/latest/ami-id"

#: the open kernel module drives Turing and later; V100, K80 and older need the proprietary one
_OPEN = "base-oss-nvidia-driver-gpu-ubuntu-22.04"
_PROPRIETARY = "base-proprietary-nvidia-driver-gpu-ubuntu-22.04"

#: instance families by driver
_FAMILIES: dict[str, str] = {
    **dict.fromkeys(("p3", "p3dn"), _PROPRIETARY),
    **dict.fromkeys(("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300"), _OPEN),
    **dict.fromkeys(("g4dn", "g5", "g5g", "g6", "gr6", "g6f", "gr6f", "g6e", "g7", "g7e"), _OPEN),
}
_ARCHES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "arm64"}


def machine_image(kind: InstanceType, region: str, pins: Sequence[tuple[str, str]] = ()) -> str:
    """An SSM parameter path (starts with `/`), or the image of the first pin whose `CLOUD/REGION/TYPE` pattern matches.

    Raises InputError where none is known.
    """
    place = f"{kind.cloud.value}/{region}/{kind.name}"
    for pattern, image in pins:
        if fnmatch.fnmatchcase(place, pattern):
            return image
    family = kind.name.split(".", 1)[0]
    if family not in _FAMILIES or kind.arch not in _ARCHES:
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-105",
                    summary=f"no machine image with a driver is known for {place} ({kind.arch})",
                    hint=f"pin one in skyplan.yaml: `images: {{{place}: ami-…}}`",
                )
            ]
        )
    return _PATH.format(arch=_ARCHES[kind.arch], name=_FAMILIES[family])
