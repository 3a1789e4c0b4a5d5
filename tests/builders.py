"""Values with defaults, for tests that care about one field at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.model.market import Figure, Links, Mark, Market, Tariff, Tier
from planner.model.offer import CAPACITY_ORDER, CapacityType, Cloud, Fabric, InstanceType, Link, Region
from planner.model.project import Project, Target
from planner.model.workload import (
    CheckpointPolicy,
    Constraints,
    Dataset,
    GpuOption,
    Image,
    ObjectPrefix,
    Resources,
    Store,
    Work,
    Workload,
)

FIGURES = {
    **{f"acquire_minutes.{c.value}": 5.0 for c in Cloud},
    **{f"disk_usd_per_gb_month.{c.value}": 0.08 for c in Cloud},
    **{f"nat_usd_per_hour.{c.value}": 0.045 for c in Cloud},
    **{f"nat_usd_per_gb.{c.value}": 0.045 for c in Cloud},
    "topology_loss.nvlink": 0.05,
    "topology_loss.pcie": 0.10,
    "topology_loss.ethernet": 0.15,
    "unknown_nic_gbps": 25.0,
    "pull_mb_per_s": 100.0,
    "setup_minutes": 5.0,
    "default_disk_gb": 200.0,
    "default_pool_cap_nodes": 4.0,
    "tunnel_payload_share": 0.9,
    "public_ipv4_usd_per_hour.aws": 0.005,
}
SPEEDS = {"A100": 0.9, "A100-80GB": 1.0, "H100": 2.5, "L4": 0.3, "V100": 0.4, "MI300X": 2.0, "A100-80GB-PCIe": 0.85}
CLASSES = {"A100-80GB": "A100", "A100-80GB-PCIe": "A100"}
MEMORY = {
    "A100": 40.0,
    "A100-80GB": 80.0,
    "A100-80GB-PCIe": 80.0,
    "H100": 80.0,
    "L4": 24.0,
    "V100": 16.0,
    "MI300X": 192.0,
}
FREE = Tariff(steps=(Tier(0, 0.0),), source="test", as_of="2026-01-01")
REGIONAL = Tariff(steps=(Tier(0, 0.02),), source="test", as_of="2026-01-01")
INTERNET = Tariff(
    steps=(Tier(0, 0.0), Tier(100, 0.09), Tier(10_340, 0.085), Tier(51_300, 0.07), Tier(153_700, 0.05)),
    source="test",
    as_of="2026-01-01",
)


def instance_type(name: str = "p4de.24xlarge", **changes: Any) -> InstanceType:
    gpu = changes.pop("gpu", "A100-80GB")
    values: dict[str, Any] = {
        "cloud": Cloud.AWS,
        "name": name,
        "gpu": gpu,
        "gpu_class": CLASSES.get(gpu, gpu),
        "gpu_count": 8,
        "gpu_memory_gib": MEMORY[gpu],
        "vcpus": 96,
        "ram_gib": 1152.0,
        "nvme_gb": 8000,
        "network_gbps": 400.0,
        "link": Link.NVSWITCH,
        "link_note": "NVSwitch",
        "fabric": Fabric.EFA,
        "fabric_gbps": 400.0,
        "fabric_note": "EFA",
        "efa_interfaces": 4,
        "placement": True,
        "topology": "t-" + name,
        "hardware": name.split(".", maxsplit=1)[0],
        "arch": "amd64",
        "od_sold": True,
        "as_of": "2026-01-01",
        "source": "test",
    }
    return InstanceType(**(values | changes))


def region(name: str = "us-east-1", cloud: Cloud = Cloud.AWS, **changes: Any) -> Region:
    values: dict[str, Any] = {
        "cloud": cloud,
        "name": name,
        "area": "na",
        "net_index": 1,
        "opt_in": False,
        "zones": (f"{name}-a", f"{name}-b"),
    }
    return Region(**(values | changes))


Row = tuple[InstanceType, Region, str, CapacityType, float | None]


def market(
    rows: list[Row], *, rate: float = 0.0, marks: dict[int, Mark] | None = None, gbps: float = 10.0, **changes: Any
) -> Market:
    """A market of those rows, sorted as a real one is.  `rate`: spot interruptions per node-hour; prices in USD, None unknown."""
    regions = tuple(sorted({r[1] for r in rows}, key=lambda r: (r.cloud.value, r.name)))
    types = tuple(sorted({r[0] for r in rows}, key=lambda t: (t.cloud.value, t.name)))
    zones = ("", *sorted({r[2] for r in rows} - {""}))
    numbered = list(enumerate(rows))
    numbered.sort(
        key=lambda p: (p[1][0].cloud.value, p[1][1].name, p[1][2], p[1][0].name, CAPACITY_ORDER.index(p[1][3]))
    )
    rows = [r for _, r in numbered]
    n = len(regions)
    tariff = np.array(
        [[0 if a == b else 1 if a.cloud == b.cloud else 2 for b in regions] for a in regions], dtype=np.int16
    )
    links = Links(
        tariffs=(FREE, REGIONAL, INTERNET),
        tariff_ix=tariff.reshape(n, n),
        gbps=np.where(np.eye(n, dtype=bool), 100.0, gbps),
        gbps_estimated=np.zeros((n, n), dtype=bool),
        rtt_ms=np.full((n, n), 50.0),
        rtt_estimated=np.zeros((n, n), dtype=bool),
    )
    values: dict[str, Any] = {
        "types": types,
        "regions": regions,
        "zones": zones,
        "sources": ("test",),
        "type_ix": np.array([types.index(r[0]) for r in rows], dtype=np.int32),
        "region_ix": np.array([regions.index(r[1]) for r in rows], dtype=np.int32),
        "zone_ix": np.array([zones.index(r[2]) for r in rows], dtype=np.int32),
        "capacity": np.array([CAPACITY_ORDER.index(r[3]) for r in rows], dtype=np.int8),
        "price_micros": np.array([-1 if r[4] is None else round(r[4] * 1e6) for r in rows], dtype=np.int64),
        "price_day": np.full(len(rows), 20454, dtype=np.int32),
        "interruptions_per_hour": np.array([rate if r[3] is CapacityType.SPOT else 0.0 for r in rows]),
        "marks": np.array([int((marks or {}).get(i, 0)) for i, _ in numbered], dtype=np.int32),
        "source_ix": np.zeros(len(rows), dtype=np.int16),
        "links": links,
        "speeds": SPEEDS,
        "figures": {k: Figure(v, "", "test", "2026-01-01") for k, v in FIGURES.items()},
        "as_of": "2026-01-01",
        "digest": "sha256:test",
    }
    return Market(**(values | changes))


def workload(name: str = "job", **changes: Any) -> Workload:
    values: dict[str, Any] = {
        "name": name,
        "resources": Resources(accelerators=(GpuOption(model="A100-80GB", count=8),)),
        "work": Work(hours=24.0, model="A100-80GB", count=8, nodes=1),
        "run": "python train.py",
    }
    given = values | changes
    if "resources" in changes and isinstance(changes["resources"], dict):
        given["resources"] = replace(values["resources"], **changes["resources"])
    return Workload(**given)


def bucket(name: str = "data", region_name: str | None = "us-east-1", store: Store = Store.S3) -> ObjectPrefix:
    return ObjectPrefix(store=store, bucket=name, prefix="x/", region=region_name)


def dataset(gb: float, reads: float = 1.0, **where: Any) -> Dataset:
    return Dataset(at=bucket(**where), size_bytes=round(gb * 1e9), reads=reads)


def checkpoints(gb: float = 10.0, every_hours: float = 0.5, **where: Any) -> CheckpointPolicy:
    return CheckpointPolicy(at=bucket("ckpt", **where), size_bytes=round(gb * 1e9), every_hours=every_hours)


def project(*targets: Target, **changes: Any) -> Project:
    return Project(targets=targets or tuple(Target(name="default", cloud=c) for c in Cloud), **changes)


def image(gb: float = 18.0) -> Image:
    return Image(ref="ghcr.io/acme/train:1.4", size_bytes=round(gb * 1e9))


def limits(**values: Any) -> Constraints:
    return Constraints(**values)
