"""Which parts of Google's price list a machine type is billed as.  Pure: names only.

A machine's price is that of its vCPUs, its memory, its GPUs and the local SSD that comes with it, each a SKU of its own, told apart by nothing but their
descriptions ("A2 Instance Core running in Americas").  Commitments, reservations, calendar mode and flex-start ("DWS Defined Duration") have SKUs of nearly the same
words, some of them marked OnDemand, and spot GPUs of A4 are marked OnDemand too: so a description counts only where it is known from its first word to its place.
Descriptions by public price scripts that read the same list (2026-08 to 2026-11); those of A3 Ultra and A4 by one source each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LOCAL_SSD: Final = "SSD backed Local Storage"
SSD_GIB: Final = 375
"""Of one partition."""
HOURS_PER_MONTH: Final = 730
"""By which Google divides a monthly price (cloud.google.com/compute/disks-image-pricing, 2026-11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Machine types of one kind.  Each part has the names under which it is sold; more than one where Google spells it differently by region.

    types        pattern of the catalog's type names
    core, ram    () where the GPU's price is the whole machine's
    accelerator  as machine types name it
    metric       of the region's quotas; PREEMPTIBLE_ before it is spot's; "" where regions tell none
    """

    types: re.Pattern[str]
    core: tuple[str, ...] = ()
    ram: tuple[str, ...] = ()
    gpu: tuple[str, ...]
    accelerator: str
    metric: str = ""


def _core(*names: str) -> tuple[str, ...]:
    return tuple(f"{name} Instance Core" for name in names)


def _ram(*names: str) -> tuple[str, ...]:
    return tuple(f"{name} Instance Ram" for name in names)


def _n1(gpu: str) -> Family:
    """GPUs that are attached to a machine of a general kind: `n1-standard-8+t4x1` in the catalog."""
    return Family(
        types=re.compile(rf"(?P<machine>n1-[a-z]+-\d+)\+{gpu.lower()}x(?P<count>\d+)"),
        core=_core("N1 Predefined"),
        ram=_ram("N1 Predefined"),
        gpu=(f"Nvidia Tesla {gpu} GPU",),
        accelerator=f"nvidia-tesla-{gpu.lower()}",
        metric=f"NVIDIA_{gpu}_GPUS",
    )


FAMILIES: Final = (
    Family(
        types=re.compile(r"a2-(highgpu|megagpu)-\d+g"),
        core=_core("A2"),
        ram=_ram("A2"),
        gpu=("Nvidia Tesla A100 GPU",),
        accelerator="nvidia-tesla-a100",
        metric="NVIDIA_A100_GPUS",
    ),
    Family(
        types=re.compile(r"a2-ultragpu-\d+g"),
        core=_core("A2"),
        ram=_ram("A2"),
        gpu=("Nvidia Tesla A100 80GB GPU",),
        accelerator="nvidia-a100-80gb",
        metric="NVIDIA_A100_80GB_GPUS",
    ),
    Family(
        types=re.compile(r"a3-highgpu-\d+g"),
        core=_core("A3"),
        ram=_ram("A3"),
        gpu=("Nvidia H100 80GB GPU",),
        accelerator="nvidia-h100-80gb",
        metric="NVIDIA_H100_GPUS",
    ),
    Family(
        types=re.compile(r"a3-megagpu-\d+g"),
        core=_core("A3Plus"),
        ram=_ram("A3Plus"),
        gpu=("Nvidia H100 80GB Mega GPU", "Nvidia H100 Mega 80GB GPU", "Nvidia H100 80GB Plus GPU"),
        accelerator="nvidia-h100-mega-80gb",
    ),
    Family(
        types=re.compile(r"a3-ultragpu-\d+g(-nolssd)?"),
        core=_core("A3Ultra", "A3 Ultra"),
        ram=_ram("A3Ultra", "A3 Ultra"),
        gpu=("H200 141GB GPU", "Nvidia H200 141GB GPU"),
        accelerator="nvidia-h200-141gb",
    ),
    Family(types=re.compile(r"a4-highgpu-\d+g"), gpu=("A4 Nvidia B200 (1 gpu slice)",), accelerator="nvidia-b200"),
    Family(
        types=re.compile(r"g2-standard-\d+"),
        core=_core("G2"),
        ram=_ram("G2"),
        gpu=("Nvidia L4 GPU",),
        accelerator="nvidia-l4",
        metric="NVIDIA_L4_GPUS",
    ),
    *(_n1(gpu) for gpu in ("T4", "P4", "P100", "V100")),
)
NAMES: Final = frozenset(name for f in FAMILIES for name in (*f.core, *f.ram, *f.gpu)) | {LOCAL_SSD}
_DESCRIPTION: Final = re.compile(
    r"(?P<before>(?:Spot )?Preemptible )?(?P<name>.+?)(?P<after> attached to (?:Spot )?Preemptible VMs)?(?: (?:running )?in .+)?"
)


def family_of(instance_type: str) -> Family | None:
    """None for a type whose parts are not known: `a3-edgegpu-8g`, whose host has no SKU that is known for it."""
    return next((f for f in FAMILIES if f.types.fullmatch(instance_type)), None)


def machine_of(instance_type: str) -> tuple[str, int | None]:
    """(the machine type as Compute Engine names it, how many GPUs are attached to it); None: it says so itself."""
    family = family_of(instance_type)
    found = family.types.fullmatch(instance_type) if family else None
    if found is None or "machine" not in found.groupdict():
        return instance_type, None
    return found["machine"], int(found["count"])


def part_of(description: str, usage: str) -> tuple[str, bool] | None:
    """(name of the part, whether it is spot's); None for a SKU that is no part of a machine here."""
    found = _DESCRIPTION.fullmatch(description)
    if found is None or found["name"] not in NAMES or usage not in {"OnDemand", "Preemptible"}:
        return None
    return found["name"], bool(found["before"] or found["after"]) or usage == "Preemptible"
