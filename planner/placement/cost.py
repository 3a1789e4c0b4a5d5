"""What a workload is expected to cost, and when it is expected to finish, on every offer that may serve it.

Decides the score: expected USD to finish, as a sum of terms, and expected hours.  Two levels: what depends on instance type and region only is computed per
distinct cell (`Cells`), the rest per offer.  Only + - x / min max and floor touch the figures, so that processors agree; each term is rounded half-even to
USD 0.0001 and the total is the sum of the rounded terms.  Knows no ledger, no limits, no order.

The model (docs/decisions/0005 has the reasons and sources):
  hours         = work on the reference / relative speed, then stretched to what its slowest link needs (input, checkpoints)
  interruption  = rate x (half a checkpoint interval + restart), restart = acquire + pull + set up + load; without checkpoints all is lost each time
  egress        = tiered tariffs on what is really read, written and restored, from and to where it lies
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.model.offer import Cloud, Fabric, Link
from planner.model.workload import Store
from planner.placement.egress import GB

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from planner.model.market import Market
    from planner.model.offer import InstanceType
    from planner.model.workload import ObjectPrefix, Workload
    from planner.placement.offers import Offers

    Floats = NDArray[np.float64]
    Ticks = NDArray[np.int64]

TICKS_PER_USD = 10_000
"""Amounts are counted in USD 0.0001."""
HOURS_PER_MONTH = 730.0
"""365 days / 12, the convention of the clouds' own price lists."""
SERIES_TERMS = 24
"""Terms of the exponential series; at the cap below the remainder is under 1e-9 of the sum."""
MAX_EXPECTED_INTERRUPTIONS = 6.0
"""Without checkpoints: beyond this many expected interruptions the estimate stops growing; such a job has no business on spot."""
TERMS = (
    "compute",
    "startup",
    "interruptions",
    "data_egress",
    "checkpoint_egress",
    "output_egress",
    "disk",
    "outbound",
)


@dataclass(frozen=True, eq=False)
class Cells:
    """Per distinct (instance type, region).  Hours as floats, money in USD.

    data_known, checkpoint_known, output_known   False where the bucket's region is unknown: the term is unknown, the total a lower bound
    """

    speed_hours: Floats
    read_hours: Floats
    write_hours: Floats
    hours: Floats
    acquire_hours: Floats
    start_hours: Floats
    load_hours: Floats
    data_usd: Floats
    checkpoint_usd: Floats
    restore_usd: Floats
    output_usd: Floats
    disk_usd_per_hour: Floats
    nat_usd_per_hour: Floats
    nat_usd: Floats
    data_known: bool
    checkpoint_known: bool
    output_known: bool


@dataclass(frozen=True, eq=False)
class Scores:
    """Per offer of `index`: ticks per term and in total, hours to finish."""

    index: NDArray[np.int64]
    terms: dict[str, Ticks]
    total: Ticks
    finish_hours: Floats
    hours: Floats
    lost_hours: Floats
    usd_per_hour: Ticks


def figure(market: Market, name: str, default: float | None = None) -> float:
    """A named constant of the catalog.  Raises KeyError where it is missing and no default stands."""
    found = market.figures.get(name)
    if found is None:
        if default is None:
            raise KeyError(name)
        return default
    return found.value


def topology_loss(market: Market, t: InstanceType, nodes: int) -> float:
    """Share of speed that all-reduce-bound work loses here against NVSwitch inside and RDMA between nodes (R09: 5-15 %)."""
    inside = 0.0
    if t.gpu_count > 1:
        name = {Link.NVLINK: "nvlink", Link.PCIE: "pcie", Link.UNKNOWN: "pcie"}.get(t.link)
        inside = figure(market, f"topology_loss.{name}") if name else 0.0
    between = 0.0
    if nodes > 1:
        name = {Fabric.ETHERNET: "ethernet", Fabric.TCPX: "tcpx", Fabric.TCPXO: "tcpxo"}.get(t.fabric)
        between = figure(market, f"topology_loss.{name}", 0.0) if name else 0.0
    return max(inside, between)


def node_speed(market: Market, t: InstanceType, nodes: int) -> float:
    """Relative training speed of one node; one A100-80GB is 1."""
    return market.speeds[t.gpu] * t.gpu_count * (1.0 - topology_loss(market, t, nodes))


def disk_gb(workload: Workload, market: Market) -> int:
    """Root disk per node in GB: as asked, else room for the image three times over (pull, unpack, layers), a base, and what is copied to it."""
    asked = workload.resources.disk_bytes
    if asked is not None:
        return -(-asked // 10**9)
    copied = sum(d.size_bytes for d in workload.data if d.copy_to and not d.copy_to.startswith("/scratch/"))
    image = workload.image.size_bytes if workload.image and workload.image.size_bytes else 0
    return max(int(figure(market, "default_disk_gb")), -(-3 * image // 10**9)) + -(-copied // 10**9)


def cells_of(offers: Offers, workload: Workload) -> Cells:
    """Everything that depends on instance type and region only."""
    m, nodes = offers.market, workload.resources.nodes
    kind = offers.pair_type
    cloud = [t.cloud.value for t in m.types]
    per_type = _TypeColumns(m, workload)
    speed_hours = per_type.speed_hours[kind]
    nic = per_type.nic_gbps[kind]
    read_hours = np.zeros(len(kind))
    data_usd, nat_gb = np.zeros(len(kind)), np.zeros(len(kind))
    data_known = True
    for dataset in workload.data:
        path = _Path(offers, dataset.at, nic * nodes)
        data_known &= path.known
        gigabytes = dataset.size_bytes * dataset.reads / GB
        read_hours += path.hours_in(gigabytes, nodes)
        data_usd += path.usd_in(gigabytes)
        nat_gb += np.where(path.direct, 0.0, gigabytes)
    checkpoint_usd, restore_usd = np.zeros(len(kind)), np.zeros(len(kind))
    write_hours, load_hours = np.zeros(len(kind)), np.zeros(len(kind))
    checkpoint_known = True
    policy = workload.checkpoint
    hours = np.maximum(speed_hours, read_hours)
    if policy is not None:
        path = _Path(offers, policy.at, nic * nodes)
        checkpoint_known = path.known
        gigabytes = policy.size_bytes / GB
        one_write = path.hours_out(gigabytes, nodes)
        write_hours = speed_hours * one_write / policy.every_hours
        hours = np.maximum(hours, write_hours)
        written = np.floor(hours / policy.every_hours) * gigabytes
        checkpoint_usd = path.usd_out(written)
        load_hours = path.hours_in(gigabytes, nodes)
        restore_usd = path.usd_in(gigabytes)
        nat_gb += np.where(path.direct, 0.0, written)
    output_usd, output_known = np.zeros(len(kind)), True
    if workload.output is not None:
        path = _Path(offers, workload.output.at, nic * nodes)
        output_known = path.known
        gigabytes = workload.output.size_bytes / GB
        output_usd = path.usd_out(np.full(len(kind), gigabytes))
        nat_gb += np.where(path.direct, 0.0, gigabytes)
        hours = hours + path.hours_out(gigabytes, nodes)
    image_gb = workload.image.size_bytes / GB if workload.image and workload.image.size_bytes else 0.0
    nat_gb += image_gb * nodes
    by_cloud = _by_cloud(m, cloud, kind)
    return Cells(
        speed_hours=speed_hours,
        read_hours=read_hours,
        write_hours=write_hours,
        hours=hours,
        acquire_hours=by_cloud("acquire_minutes") / 60.0,
        start_hours=np.full(len(kind), per_type.start_hours),
        load_hours=load_hours,
        data_usd=data_usd,
        checkpoint_usd=checkpoint_usd,
        restore_usd=restore_usd,
        output_usd=output_usd,
        disk_usd_per_hour=by_cloud("disk_usd_per_gb_month") * disk_gb(workload, m) * nodes / HOURS_PER_MONTH,
        nat_usd_per_hour=by_cloud("nat_usd_per_hour"),
        nat_usd=by_cloud("nat_usd_per_gb") * nat_gb,
        data_known=data_known,
        checkpoint_known=checkpoint_known,
        output_known=output_known,
    )


def _by_cloud(m: Market, cloud: list[str], kind: NDArray[np.int32]) -> Callable[[str], Floats]:
    def column(name: str) -> Floats:
        values = {c: figure(m, f"{name}.{c}") for c in set(cloud)}
        return np.array([values[c] for c in cloud])[kind]

    return column


class _TypeColumns:
    """Per instance type."""

    def __init__(self, m: Market, workload: Workload) -> None:
        work, nodes = workload.work, workload.resources.nodes
        reference = m.speeds[work.model] * work.count * work.nodes
        speed = np.array([node_speed(m, t, nodes) for t in m.types]) * nodes
        self.speed_hours = work.hours * reference / speed
        unmeasured = figure(m, "unknown_nic_gbps")
        self.nic_gbps = np.array([t.network_gbps or unmeasured for t in m.types])
        image_mb = workload.image.size_bytes / 1e6 if workload.image and workload.image.size_bytes else 0.0
        pull = image_mb / figure(m, "pull_mb_per_s") / 3600.0
        setup = figure(m, "setup_minutes") / 60.0
        self.start_hours = pull + setup


def direct(offers: Offers, at: ObjectPrefix, region_ix: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether traffic between a store and nodes in these regions passes no NAT; True where the store's place is unknown.

    In one region it goes by the cloud's own endpoint.  Google's stores are reached from Google's nodes by Private Google Access, wherever they are
    (Cloud NAT documentation, "Private Google Access interaction", 2026-09: a NAT gateway never translates it).
    """
    regions = offers.market.regions
    where = offers.market.region_index.get((at.store.cloud, at.region or ""))
    if where is None:
        return np.ones(region_ix.shape, dtype=bool)
    if at.store is Store.GCS:
        return np.array([r.cloud is Cloud.GCP for r in regions], dtype=bool)[region_ix]
    return region_ix == where


class _Path:
    """The way between a store and every cell: Gbit/s, tariffs, whether it passes the NAT."""

    def __init__(self, offers: Offers, at: ObjectPrefix, nic_gbps: Floats) -> None:
        self._offers, self._links = offers, offers.market.links
        where = offers.market.region_index.get((at.store.cloud, at.region or ""))
        self.known = where is not None
        region = offers.pair_region
        self.direct = direct(offers, at, region)
        if where is None:
            self._in = self._out = None
            self._rate_in = self._rate_out = np.full(len(region), np.inf)
            return
        self._in, self._out = self._links.tariff_ix[where, region], self._links.tariff_ix[region, where]
        self._rate_in = np.minimum(self._links.gbps[where, region], nic_gbps)
        self._rate_out = np.minimum(self._links.gbps[region, where], nic_gbps)

    def hours_in(self, gigabytes: float, nodes: int) -> Floats:
        """Hours to read that much, all nodes together; 0 where the place is unknown."""
        if self._in is None:
            return np.zeros(len(self.direct))
        return gigabytes * 8.0 / (self._rate_in * nodes) / 3600.0

    def hours_out(self, gigabytes: float, nodes: int) -> Floats:
        """Hours to write that much, all nodes together; 0 where the place is unknown."""
        if self._in is None:
            return np.zeros(len(self.direct))
        return gigabytes * 8.0 / (self._rate_out * nodes) / 3600.0

    def usd_in(self, gigabytes: float) -> Floats:
        """USD to bring that much here."""
        if self._in is None:
            return np.zeros(len(self.direct))
        return self._offers.tariffs.cost_usd(self._in, gigabytes)

    def usd_out(self, gigabytes: Floats) -> Floats:
        """USD to send that much there."""
        if self._out is None:
            return np.zeros(len(self.direct))
        return self._offers.tariffs.cost_usd(self._out, gigabytes)


def lost_hours(workload: Workload, rate: Floats, hours: Floats, restart: Floats) -> Floats:
    """Expected hours of work and waiting lost to interruptions.  `rate` per hour for all nodes: one lost node stops the gang."""
    if workload.checkpoint is not None:
        return rate * hours * (workload.checkpoint.every_hours / 2.0 + restart)
    # nothing is kept: expected time of a run that must succeed in one piece is (e^x - 1) (1/rate + restart), x = rate x hours
    x = np.minimum(rate * hours, MAX_EXPECTED_INTERRUPTIONS)
    series, power = np.zeros(len(x)), np.ones(len(x))
    for k in range(1, SERIES_TERMS + 1):
        series += power  # x^(k-1)/k!  summed = (e^x - 1)/x
        power = power * x / (k + 1.0)
    return hours * (series - 1.0) + series * x * restart


def ticks(usd: NDArray[np.floating[Any]]) -> Ticks:
    """USD to ten-thousandths, half-even."""
    return np.rint(usd * TICKS_PER_USD).astype(np.int64)


def score(offers: Offers, workload: Workload, cells: Cells, index: NDArray[np.int64]) -> Scores:
    """Terms, total and finish of the offers at `index`."""
    nodes = workload.resources.nodes
    pair = offers.pair[index]
    price = offers.price_micros[index] * (nodes / 1e6)
    hours = cells.hours[pair]
    rate = offers.market.interruptions_per_hour[offers.row[index]] * nodes
    rate = np.where(offers.reservation[index] >= 0, 0.0, rate)
    start = cells.start_hours[pair]
    acquire = cells.acquire_hours[pair]
    restart = acquire + start + cells.load_hours[pair]
    lost = lost_hours(workload, rate, hours, restart)
    held = hours + start + lost
    restores = rate * hours
    amounts = {
        "compute": price * hours,
        "startup": price * start,
        "interruptions": price * lost,
        "disk": cells.disk_usd_per_hour[pair] * held,
        "outbound": cells.nat_usd_per_hour[pair] * held + cells.nat_usd[pair],
    }
    rounded = {name: ticks(usd) for name, usd in amounts.items()}
    rounded["data_egress"] = ticks(cells.data_usd)[pair]
    rounded["output_egress"] = ticks(cells.output_usd)[pair]
    rounded["checkpoint_egress"] = ticks(cells.checkpoint_usd[pair] + cells.restore_usd[pair] * restores)
    total = np.zeros(len(index), dtype=np.int64)
    for name in TERMS:
        total += rounded[name]
    return Scores(
        index=index,
        terms=rounded,
        total=total,
        finish_hours=acquire + held,
        hours=hours,
        lost_hours=lost,
        usd_per_hour=ticks(price),
    )
