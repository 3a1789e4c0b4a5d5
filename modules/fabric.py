"""What a node must find of its fabric at boot, and what GPUDirect needs on a GCP host.  Facts only; pure.

Nothing of it was run on live hardware.  Container images and their arguments: GoogleCloudPlatform/container-engine-accelerators, folders
gpudirect-tcpx and gpudirect-tcpxo, and cluster-toolkit's a3-ultragpu blueprint (gIB), read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.offer import Fabric

#: InfiniBand types with one adapter for all GPUs (Microsoft Learn: NDv2, NCv3, 2026-09); every other one has an adapter per GPU
_ONE_ADAPTER = frozenset({"Standard_ND40rs_v2", "Standard_NC24rs_v3"})
#: data cards beside the first network interface (GCP: GPU networking bandwidth, 2026-09)
_DATA_CARDS = {Fabric.TCPX: 4, Fabric.TCPXO: 8}
_RDMA_CARDS = 8
#: NCCL topology files of Azure's HPC images (Azure/azhpc-images, 2026-09)
_TOPOLOGY = {
    "Standard_ND96asr_v4": "/opt/microsoft/ndv4-topo.xml",
    "Standard_ND96amsr_A100_v4": "/opt/microsoft/ndv4-topo.xml",
    "Standard_ND96isr_H100_v5": "/opt/microsoft/ndv5-topo.xml",
    "Standard_ND96isr_H200_v5": "/opt/microsoft/ndv5-topo.xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDirect:
    """`folders` hold the plugin, on the host and in the job's container; `sockets` are shared by the daemon and the job."""

    plugin: str
    folders: tuple[str, ...]
    daemon: str = ""
    sockets: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


_GPUDIRECT = {
    Fabric.TCPX: GpuDirect(
        plugin="us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpx/nccl-plugin-gpudirecttcpx-dev:v3.1.9",
        folders=("/var/lib/tcpx",),
        daemon="us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpx/tcpgpudmarxd-dev:v2.0.9"
        " /tcpgpudmarxd/build/app/tcpgpudmarxd --gpu_nic_preset a3vm --gpu_shmem_type fd --uds_path /run/tcpx"
        ' --setup_param "--verbose 128 2 0"',
        sockets=("/run/tcpx",),
        environment=(("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64"),),
    ),
    Fabric.TCPXO: GpuDirect(
        plugin="us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:v1.0.15",
        folders=("/var/lib/tcpxo",),
        daemon="us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21"
        " /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8",
        sockets=("/dev/aperture_devices",),
        environment=(("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64"),),
    ),
    Fabric.ROCE: GpuDirect(
        plugin="us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib:v1.1.0", folders=("/usr/local/gib",)
    ),
}


def gpudirect(fabric: Fabric) -> GpuDirect | None:
    """What the host needs for a GCP fabric; None for fabrics that the image's drivers carry."""
    return _GPUDIRECT.get(fabric)


def links(fabric: Fabric, instance_type: str, efa_interfaces: int) -> tuple[int, bool]:
    """(how many devices a node must see, whether they are RDMA devices rather than network interfaces); (0, False) for plain TCP."""
    match fabric:
        case Fabric.EFA:
            return efa_interfaces, True
        case Fabric.INFINIBAND:
            return 1 if instance_type in _ONE_ADAPTER else 8, True
        case Fabric.ROCE:
            return _RDMA_CARDS, True
        case Fabric.TCPX | Fabric.TCPXO:
            return 1 + _DATA_CARDS[fabric], False
        case Fabric.ETHERNET:
            return 0, False


def topology_file(instance_type: str) -> str:
    """The file that tells NCCL how cards and GPUs of an Azure type are joined; "" for none."""
    return _TOPOLOGY.get(instance_type, "")
