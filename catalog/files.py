"""The catalog's files as values, before prices: GPUs, instance types, regions, tariffs, figures, aliases.

Reads and cross-checks references; judges no price (`check`) and builds no column (`load`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.table import Table
from planner.model.market import Figure, Tariff, Tier
from planner.model.offer import Cloud, Fabric, InstanceType, Link, Region

if TYPE_CHECKING:
    from planner.model.diagnostic import Diagnostic

PACKAGED = Path(__file__).parent / "data"
CLOUDS = tuple(c.value for c in Cloud)
COLUMNS = {
    "gpus.csv": "gpu class memory_gib tflops_dense memory_gb_per_s speed od_min_usd od_max_usd spot_min_usd as_of source",
    "instance_types.csv": "cloud instance_type gpu gpu_count gpu_memory_gib vcpus ram_gib nvme_gb network_gbps link link_note"
    " fabric fabric_gbps fabric_note efa_interfaces placement topology hardware arch od_sold as_of source note",
    "regions.csv": "cloud region area net_index opt_in zones local_zones as_of source",
    "prices.csv": "cloud region zone instance_type capacity usd_per_hour as_of source other_usd_per_hour other_source trust",
    "tariffs.csv": "tariff from_gb usd_per_gb as_of source trust",
    "tariff_rules.csv": "from_cloud from_region to_cloud to_region tariff",
    "throughput.csv": "from_cloud from_region to_cloud to_region gbps as_of source",
    "latency.csv": "from_cloud from_region to_cloud to_region rtt_ms as_of source",
    "interruptions.csv": "cloud region instance_type band per_hour as_of source",
    "figures.csv": "figure value unit as_of source",
    "aliases.csv": "spelling gpus",
}
_GENERAL = (
    *("setup_minutes", "pull_mb_per_s", "unknown_nic_gbps", "default_disk_gb", "default_pool_cap_nodes"),
    *("topology_loss.nvlink", "topology_loss.pcie", "topology_loss.ethernet", "default_interruptions_per_hour"),
    *("price_ttl_hours.on_demand", "price_ttl_hours.spot", "disagreement", "below_trusted", "gbps.same_region"),
    *("gbps.same_cloud.same_area", "gbps.same_cloud.other_area"),
    *("gbps.other_cloud.same_area", "gbps.other_cloud.other_area"),
    *("rtt_ms.unmeasured", "tunnel_payload_share"),
)
_BY_CLOUD = ("acquire_minutes", "nat_usd_per_hour", "nat_usd_per_gb", "disk_usd_per_gb_month")
REQUIRED_FIGURES = (*_GENERAL, *(f"{name}.{cloud}" for name in _BY_CLOUD for cloud in CLOUDS))
"""Without one of these no offer can be judged or priced."""
MEMORY_TOLERANCE = 0.08
"""A part may report up to 8 % less than its nominal memory (A10G: 22,888 of 24,576 MiB)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A model: nominal memory, relative training speed (A100-80GB = 1), plausible USD per GPU-hour."""

    name: str
    gpu_class: str
    memory_gib: float
    speed: float
    od_min_usd: float
    od_max_usd: float
    spot_min_usd: float


def open_table(folder: Path, name: str, problems: list[Diagnostic]) -> Table:
    """One of the catalog's files."""
    return Table(folder / name, COLUMNS[name].split(), problems)


def read_gpus(table: Table) -> dict[str, Gpu]:
    """Speed is sqrt(dense tensor TFLOPS x memory bandwidth) relative to A100-80GB: training is bound by either, in unknown shares."""
    out: dict[str, Gpu] = {}
    for k, row in enumerate(table.rows):
        if row[0] in out:
            table.wrong(k + 2, f"`{row[0]}` stands twice", "SKY-CAT-107")
        out[row[0]] = Gpu(
            name=row[0],
            gpu_class=row[1],
            memory_gib=table.number(k, "memory_gib"),
            speed=table.number(k, "speed", least=1e-6),
            od_min_usd=table.number(k, "od_min_usd"),
            od_max_usd=table.number(k, "od_max_usd"),
            spot_min_usd=table.number(k, "spot_min_usd"),
        )
    return out


def read_types(table: Table, gpus: dict[str, Gpu]) -> tuple[InstanceType, ...]:
    """Instance types in (cloud, name) order.  A name whose GPU memory disagrees with its model is an error (SKY-CAT-106)."""
    out: dict[tuple[str, str], InstanceType] = {}
    at = {name: i for i, name in enumerate(table.columns)}
    for k, row in enumerate(table.rows):
        cloud, name, gpu = table.choice(k, "cloud", CLOUDS), row[1], gpus.get(row[2])
        memory = table.number(k, "gpu_memory_gib")
        if gpu is None:
            table.wrong(k + 2, f"GPU `{row[2]}` is not in gpus.csv", "SKY-CAT-110")
        elif abs(memory / gpu.memory_gib - 1) > MEMORY_TOLERANCE:
            table.wrong(k + 2, f"{name}: {gpu.name} has {gpu.memory_gib:g} GiB, the row says {memory:g}", "SKY-CAT-106")
        if (cloud, name) in out:
            table.wrong(k + 2, f"`{name}` stands twice", "SKY-CAT-107")
        nvme = table.known(k, "nvme_gb")
        out[(cloud, name)] = InstanceType(
            cloud=Cloud(cloud),
            name=name,
            gpu=row[2],
            gpu_class=gpu.gpu_class if gpu else row[2],
            gpu_count=int(table.number(k, "gpu_count", least=1)),
            gpu_memory_gib=memory,
            vcpus=int(table.number(k, "vcpus", least=1)),
            ram_gib=table.number(k, "ram_gib", least=1),
            nvme_gb=None if nvme is None else int(nvme),
            network_gbps=table.known(k, "network_gbps"),
            link=Link(table.choice(k, "link", tuple(Link))),
            link_note=row[at["link_note"]],
            fabric=Fabric(table.choice(k, "fabric", tuple(Fabric))),
            fabric_gbps=table.known(k, "fabric_gbps"),
            fabric_note=row[at["fabric_note"]],
            efa_interfaces=int(table.number(k, "efa_interfaces")),
            placement=table.yes(k, "placement"),
            topology=row[at["topology"]],
            hardware=row[at["hardware"]],
            arch=table.choice(k, "arch", ("amd64", "arm64")),
            od_sold=table.yes(k, "od_sold"),
            as_of=row[at["as_of"]],
            source=row[at["source"]],
            note=row[at["note"]],
        )
    return tuple(out[key] for key in sorted(out))


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Regions in (cloud, name) order, and zones that need opting in."""

    regions: tuple[Region, ...]
    local_zones: frozenset[str]


def read_regions(table: Table) -> Places:
    """net_index is unique over all clouds and within 1..250."""
    out: dict[tuple[str, str], Region] = {}
    local: set[str] = set()
    seen: dict[int, str] = {}
    for k, row in enumerate(table.rows):
        cloud, name = table.choice(k, "cloud", CLOUDS), row[1]
        index = int(table.number(k, "net_index", least=1))
        if index > 250 or index in seen:  # noqa: PLR2004 - 10.251 to 10.255 stay free for tunnels
            table.wrong(k + 2, f"net_index {index} is over 250 or taken by {seen.get(index, '-')}", "SKY-CAT-107")
        seen[index] = name
        if (cloud, name) in out:
            table.wrong(k + 2, f"region `{name}` stands twice", "SKY-CAT-107")
        local.update(row[6].split())
        out[(cloud, name)] = Region(
            cloud=Cloud(cloud),
            name=name,
            area=table.choice(k, "area", ("na", "eu", "asia", "oceania", "sa", "africa", "me")),
            net_index=index,
            opt_in=table.yes(k, "opt_in"),
            zones=tuple(row[5].split()),
        )
    return Places(regions=tuple(out[key] for key in sorted(out)), local_zones=frozenset(local))


def read_figures(table: Table) -> dict[str, Figure]:
    """Named constants.  Those in REQUIRED_FIGURES must be there; a missing one is noted and stands as 0 until the errors are raised."""
    out: dict[str, Figure] = {}
    for k, row in enumerate(table.rows):
        if row[0] in out:
            table.wrong(k + 2, f"`{row[0]}` stands twice", "SKY-CAT-107")
        if not row[2] or not row[3] or not row[4]:
            table.wrong(k + 2, f"`{row[0]}` lacks a unit, a date or a source")
        out[row[0]] = Figure(table.number(k, "value"), row[2], row[4], row[3])
    for name in REQUIRED_FIGURES:
        if name not in out:
            table.wrong(1, f"figure `{name}` is missing", "SKY-CAT-110")
            out[name] = Figure(0.0, "", "", "")
    return out


def read_aliases(table: Table, gpus: dict[str, Gpu]) -> dict[str, tuple[str, ...]]:
    """Folded spelling -> models it may mean."""
    out: dict[str, tuple[str, ...]] = {}
    for k, row in enumerate(table.rows):
        for gpu in row[1].split():
            if gpu not in gpus:
                table.wrong(k + 2, f"GPU `{gpu}` is not in gpus.csv", "SKY-CAT-110")
        key = fold(row[0])
        if key in out:
            table.wrong(k + 2, f"spelling `{row[0]}` stands twice", "SKY-CAT-107")
        out[key] = tuple(row[1].split())
    return out


def fold(spelling: str) -> str:
    """`A100 80GB`, `a100-80gb` and `A100_80GB` are one spelling."""
    return spelling.lower().replace(" ", "").replace("-", "").replace("_", "")


def read_tariffs(table: Table) -> dict[str, Tariff]:
    """Steps ascend from 0 GB."""
    steps: dict[str, list[Tier]] = {}
    meta: dict[str, tuple[str, str, bool]] = {}
    for k, row in enumerate(table.rows):
        tiers = steps.setdefault(row[0], [])
        step = Tier(table.number(k, "from_gb"), table.number(k, "usd_per_gb"))
        if (not tiers and step.from_gb != 0) or (tiers and step.from_gb <= tiers[-1].from_gb):
            table.wrong(k + 2, f"steps of `{row[0]}` must ascend from 0 GB")
        tiers.append(step)
        meta[row[0]] = (row[4], row[3], row[5] == "unverified")
    return {n: Tariff(tuple(s), meta[n][0], meta[n][1], meta[n][2]) for n, s in steps.items()}
