"""What a machine type of the catalog is to Compute Engine: type and accelerator, boot disk, local SSDs, network interfaces.  Pure; figures only.

Sources, read 2026-11: docs.cloud.google.com/compute/docs/disks/add-local-ssd (A2 Ultra, A3 and A4 bring their local SSDs; first and second
generation types, G2 among them, must ask for each), Vertex AI's DiskSpec and public scripts (A3 Ultra and A4 boot from Hyperdisk Balanced),
docs.cloud.google.com/vpc/docs/rdma-network-profiles (MRDMA interfaces), GoogleCloudPlatform/cluster-toolkit (networks per fabric).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.offer import Fabric

_ACCELERATORS = {
    "t4": "nvidia-tesla-t4",
    "p4": "nvidia-tesla-p4",
    "p100": "nvidia-tesla-p100",
    "v100": "nvidia-tesla-v100",
}
#: machine families that boot from Hyperdisk only
_HYPERDISK_ONLY = ("a3-ultragpu-", "a4-", "g4-")
#: machine families whose local SSDs must be asked for; on these types there is one for each GPU.  They cost extra: a G2 type's list price is its
#: processors, memory and GPUs (g2-standard-4 in us-central1: USD 0.7068/h is these three, 2026-07)
_SSD_PER_GPU = ("g2-",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`accelerator`: (type, count) where the type does not carry its GPUs; `local_ssds`: how many to ask for."""

    machine_type: str
    accelerator: tuple[str, int] | None
    disk_type: str
    local_ssds: int


def machine_of(instance_type: str, gpu_count: int, *, nvme: bool) -> Machine:
    """`n1-standard-16+t4x2` is an n1-standard-16 with two nvidia-tesla-t4.  Raises KeyError for an accelerator that is not known."""
    machine_type, _, given = instance_type.partition("+")
    kind, _, count = given.rpartition("x")
    return Machine(
        machine_type=machine_type,
        accelerator=(_ACCELERATORS[kind], int(count)) if given else None,
        disk_type="hyperdisk-balanced" if machine_type.startswith(_HYPERDISK_ONLY) else "pd-balanced",
        local_ssds=gpu_count if nvme and machine_type.startswith(_SSD_PER_GPU) else 0,
    )


#: fabric -> network interfaces beside the first, in order: (how many, NIC type)
_INTERFACES: dict[Fabric, tuple[tuple[int, str], ...]] = {
    Fabric.TCPX: ((4, "GVNIC"),),
    Fabric.TCPXO: ((8, "GVNIC"),),
    Fabric.ROCE: ((1, "GVNIC"), (8, "MRDMA")),
}


def fabric_interfaces(fabric: Fabric) -> tuple[str, ...]:
    """NIC types of the interfaces that the fabric needs beside the first, in order; () for plain TCP."""
    return tuple(kind for count, kind in _INTERFACES.get(fabric, ()) for _ in range(count))
