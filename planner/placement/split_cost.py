"""What a job costs and when it finishes where its nodes lie in several clouds, joined by a tunnel.

Decides the score of splits, in the terms of `cost` and two more; chooses no split (see `split`).  Columns: axis 0 is the split, axis 1 its parts, the head's
(rank 0's) first.  Only + - x / min max and floor touch the figures, as in `cost`.

The model (docs/decisions/0012 has reasons and limits):
  computing     = that of N nodes, all as slow as the slowest, since each step waits for it; the links inside a node and plain TCP inside a part count
  synchronising = a ring over the nodes, part after part: every edge, so every direction of the cut, carries 2 (N-1)/N of the bytes, and of the 2 (N-1)
                  hops on the longest path those that cross add their latency; nothing overlaps with computing
  stretch       = 1 + seconds of a synchronisation / seconds of computing between two
  egress        = what crosses, headers included, at the tariff of each direction; data is read where it is used, by share of nodes; checkpoints and
                  output are written once, by the head's part; after an interruption every part reads a checkpoint
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.model.offer import Fabric
from planner.placement.cost import TERMS, direct, figure, lost_hours, node_speed, ticks
from planner.placement.egress import GB

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.workload import ObjectPrefix, Workload
    from planner.placement.cost import Cells
    from planner.placement.egress import TariffTable
    from planner.placement.offers import Offers

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

SPLIT_TERMS = (*TERMS, "sync_egress", "tunnel_addresses")
SECONDS_PER_HOUR = 3600.0
ALONE, NEIGHBOURS = 1, 2
"""Nodes of a part below which the ring has no edge, or no two in a row, inside it."""


@dataclass(frozen=True, eq=False)
class Tunnel:
    """What one synchronisation takes.

    gbps       the slowest direction, headers included
    rtt_ms     the longest way between two neighbouring parts, there and back
    seconds    of one synchronisation
    sent_gb    through each direction at each synchronisation, headers included
    syncs      in the whole run
    """

    gbps: Floats
    rtt_ms: Floats
    seconds: Floats
    sent_gb: float
    syncs: float


@dataclass(frozen=True, eq=False)
class SplitScores:
    """Per split: ticks per term and in total, hours.

    index, nodes      [split, part]: offers, and how many nodes of each
    base_hours        what computing alone takes
    synced_hours      base_hours stretched by the tunnel
    hours             work, stretched by its slowest link as well, without interruptions
    addresses_known   False where a cloud's price of public addresses is not: the term holds the others'
    """

    index: Ints
    nodes: Ints
    tunnel: Tunnel
    terms: dict[str, Ints]
    total: Ints
    finish_hours: Floats
    hours: Floats
    base_hours: Floats
    synced_hours: Floats
    lost_hours: Floats
    held_hours: Floats
    usd_per_hour: Ints
    interruptions: Floats
    checkpoints: Floats
    addresses_known: NDArray[np.bool_]

    def at(self, rows: Ints) -> SplitScores:
        """Those splits, in that order."""
        way = self.tunnel
        columns: dict[str, Any] = {
            f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in ("terms", "tunnel")
        }
        columns["terms"] = {name: column[rows] for name, column in self.terms.items()}
        columns["tunnel"] = replace(way, gbps=way.gbps[rows], rtt_ms=way.rtt_ms[rows], seconds=way.seconds[rows])
        return SplitScores(**columns)


def ring_latency(one_way: Floats, nodes: Ints) -> Floats:
    """The latency of a ring all-reduce: the most that crossings can add to one path of 2 (N-1) hops.

    `one_way[s, p]` from part p to the next.  Such a path goes round twice less two hops in a row, so it crosses each edge of the cut twice at most, however
    many nodes there are; where a part has three nodes or more, the two hops left out can both lie inside it.
    """
    before = np.roll(one_way, 1, axis=1)
    left_out = np.where(
        nodes == ALONE, before + one_way, np.where(nodes == NEIGHBOURS, np.minimum(before, one_way), 0.0)
    )
    return 2.0 * one_way.sum(axis=1) - left_out.min(axis=1)


def tunnel(offers: Offers, workload: Workload, index: Ints, nodes: Ints) -> Tunnel:
    """One synchronisation of each split."""
    m, many = offers.market, workload.resources.nodes
    size, every = workload.sync_bytes, workload.sync_seconds
    if size is None or every is None:
        raise ValueError(f"{workload.name}: a tunnel's cost is not known without `sync`")
    here = offers.region_ix[index]
    there = np.roll(here, -1, axis=1)
    cap = _node_gbps(offers)[offers.type_ix[index]]
    gbps = np.minimum(m.links.gbps[here, there], np.minimum(cap, np.roll(cap, -1, axis=1))).min(axis=1)
    rtt = m.links.rtt_ms[here, there]
    sent_gb = 2.0 * (many - 1) / many * size / GB / figure(m, "tunnel_payload_share")
    return Tunnel(
        gbps=gbps,
        rtt_ms=rtt.max(axis=1),
        seconds=sent_gb * 8.0 / gbps + ring_latency(rtt / 2000.0, nodes),
        sent_gb=sent_gb,
        syncs=workload.work.hours * SECONDS_PER_HOUR / every,
    )


def _node_gbps(offers: Offers) -> Floats:
    """Per instance type, what one tunnel of one node carries at most: its NIC, and the cloud's cap on one flow where there is one."""
    m = offers.market
    unmeasured = figure(m, "unknown_nic_gbps")
    return np.array(
        [
            min(t.network_gbps or unmeasured, figure(m, f"tunnel_flow_gbps.{t.cloud.value}", float("inf")))
            for t in m.types
        ]
    )


class _Store:
    """The ways between a store and every part: Gbit/s of one node, tariffs.  Where the store's region is unknown nothing takes time or costs."""

    def __init__(self, offers: Offers, at: ObjectPrefix, index: Ints) -> None:
        m = offers.market
        where = m.region_index.get((at.store.cloud, at.region or ""))
        self._tariffs, self._links = offers.tariffs, m.links
        self._where, self._here = where, offers.region_ix[index]
        unmeasured = figure(m, "unknown_nic_gbps")
        self._nic = np.array([t.network_gbps or unmeasured for t in m.types])[offers.type_ix[index]]
        self.direct = direct(offers, at, self._here)

    def hours_in(self, gb: Floats | float, nodes: Ints) -> Floats:
        """Hours until every part has read its `gb`, per part."""
        if self._where is None:
            return np.zeros(self._here.shape)
        return gb * 8.0 / (np.minimum(self._links.gbps[self._where, self._here], self._nic) * nodes) / SECONDS_PER_HOUR

    def hours_out(self, gb: float, nodes: Ints) -> Floats:
        """Hours until the head's part has written `gb`."""
        if self._where is None:
            return np.zeros(len(self._here))
        rate = np.minimum(self._links.gbps[self._here[:, 0], self._where], self._nic[:, 0])
        return gb * 8.0 / (rate * nodes[:, 0]) / SECONDS_PER_HOUR

    def usd_in(self, gb: Floats) -> Floats:
        """USD to bring every part its `gb`."""
        if self._where is None:
            return np.zeros(len(self._here))
        return together(self._tariffs, self._links.tariff_ix[self._where, self._here], gb)

    def usd_out(self, gb: Floats) -> Floats:
        """USD for what the head's part writes."""
        if self._where is None:
            return np.zeros(len(self._here))
        return self._tariffs.cost_usd(self._links.tariff_ix[self._here[:, 0], self._where], gb)


def together(tariffs: TariffTable, tariff_ix: NDArray[np.int16], gb: Floats) -> Floats:
    """USD per split for amounts [split, part] from one store: parts under one tariff climb its steps together, as on one bill."""
    total = np.zeros(len(gb))
    for p in range(gb.shape[1]):
        before = np.where(tariff_ix[:, :p] == tariff_ix[:, p : p + 1], gb[:, :p], 0.0).sum(axis=1)
        total += tariffs.cost_usd(tariff_ix[:, p], before + gb[:, p]) - tariffs.cost_usd(tariff_ix[:, p], before)
    return total


@dataclass(frozen=True, eq=False)
class _Traffic:
    """What goes between parts and stores."""

    hours: Floats
    load_hours: Floats
    data_usd: Floats
    checkpoint_usd: Floats
    restore_usd: Floats
    output_usd: Floats
    checkpoints: Floats
    nat_gb: Floats


def _traffic(offers: Offers, workload: Workload, index: Ints, nodes: Ints, synced: Floats) -> _Traffic:
    """Hours that the slowest link asks for, and what each way costs."""
    count = len(index)
    reading, nat_gb = np.zeros(index.shape), np.zeros(index.shape)
    data_usd, load, restore = np.zeros(count), np.zeros(count), np.zeros(count)
    checkpoint_usd, output_usd, written = np.zeros(count), np.zeros(count), np.zeros(count)
    share = nodes / workload.resources.nodes
    for dataset in workload.data:
        store = _Store(offers, dataset.at, index)
        gb = dataset.size_bytes * dataset.reads / GB * share
        reading += store.hours_in(gb, nodes)
        data_usd += store.usd_in(gb)
        nat_gb += np.where(store.direct, 0.0, gb)
    hours = np.maximum(synced, reading.max(axis=1))
    policy = workload.checkpoint
    if policy is not None:
        store, size = _Store(offers, policy.at, index), policy.size_bytes / GB
        hours = np.maximum(hours, synced * store.hours_out(size, nodes) / policy.every_hours)
        written = np.floor(hours / policy.every_hours)
        checkpoint_usd = store.usd_out(written * size)
        load = store.hours_in(size, nodes).max(axis=1)
        restore = store.usd_in(np.full(index.shape, size))
        nat_gb[:, 0] += np.where(store.direct[:, 0], 0.0, written * size)
    if workload.output is not None:
        store, size = _Store(offers, workload.output.at, index), workload.output.size_bytes / GB
        output_usd = store.usd_out(np.full(count, size))
        hours = hours + store.hours_out(size, nodes)
        nat_gb[:, 0] += np.where(store.direct[:, 0], 0.0, size)
    image_gb = workload.image.size_bytes / GB if workload.image and workload.image.size_bytes else 0.0
    return _Traffic(
        hours=hours,
        load_hours=load,
        data_usd=data_usd,
        checkpoint_usd=checkpoint_usd,
        restore_usd=restore,
        output_usd=output_usd,
        checkpoints=written,
        nat_gb=nat_gb + image_gb * nodes,
    )


def score_splits(offers: Offers, workload: Workload, cells: Cells, index: Ints, nodes: Ints) -> SplitScores:
    """Terms, total and finish of the splits `index`, `nodes` [split, part].  `cells` are those of the workload on all its nodes."""
    m, many, pair = offers.market, workload.resources.nodes, offers.pair[index]
    way = tunnel(offers, workload, index, nodes)
    base = _computing_hours(offers, workload, index, nodes)
    synced = base + way.syncs * way.seconds / SECONDS_PER_HOUR
    traffic = _traffic(offers, workload, index, nodes, synced)
    price = (offers.price_micros[index] * nodes).sum(axis=1) / 1e6
    rate = np.where(offers.reservation[index] >= 0, 0.0, m.interruptions_per_hour[offers.row[index]] * nodes).sum(
        axis=1
    )
    start, acquire = cells.start_hours[pair].max(axis=1), cells.acquire_hours[pair].max(axis=1)
    lost = lost_hours(workload, rate, traffic.hours, acquire + start + traffic.load_hours)
    held = traffic.hours + start + lost
    cloud = [m.types[int(k)].cloud.value for k in offers.pair_type]
    nat_usd_per_gb = np.array([figure(m, f"nat_usd_per_gb.{c}") for c in cloud])[pair]
    address = np.array([figure(m, f"public_ipv4_usd_per_hour.{c}", float("nan")) for c in cloud])[pair]
    here = offers.region_ix[index]
    directions = m.links.tariff_ix[here, np.roll(here, -1, axis=1)]
    sent = np.full(index.shape, way.sent_gb * way.syncs)
    amounts = {
        "compute": price * traffic.hours,
        "startup": price * start,
        "interruptions": price * lost,
        "data_egress": traffic.data_usd,
        "checkpoint_egress": traffic.checkpoint_usd + traffic.restore_usd * (rate * traffic.hours),
        "output_egress": traffic.output_usd,
        "disk": (cells.disk_usd_per_hour[pair] / many * nodes).sum(axis=1) * held,
        "outbound": cells.nat_usd_per_hour[pair].sum(axis=1) * held + (nat_usd_per_gb * traffic.nat_gb).sum(axis=1),
        "sync_egress": offers.tariffs.cost_usd(directions, sent).sum(axis=1),
        "tunnel_addresses": (np.where(np.isnan(address), 0.0, address) * nodes).sum(axis=1) * held,
    }
    terms = {name: ticks(amounts[name]) for name in SPLIT_TERMS}
    return SplitScores(
        index=index,
        nodes=nodes,
        tunnel=way,
        terms=terms,
        total=np.sum([terms[name] for name in SPLIT_TERMS], axis=0),
        finish_hours=acquire + held,
        hours=traffic.hours,
        base_hours=base,
        synced_hours=synced,
        lost_hours=lost,
        held_hours=held,
        usd_per_hour=ticks(price),
        interruptions=rate * traffic.hours,
        checkpoints=traffic.checkpoints,
        addresses_known=np.isnan(address).sum(axis=1) == 0,
    )


def _computing_hours(offers: Offers, workload: Workload, index: Ints, nodes: Ints) -> Floats:
    """Hours of computing alone: every step waits for the slowest node.

    NCCL has one transport for the whole job, and through a tunnel that is TCP: nodes of one part do without their fabric too.
    """
    m, work, kinds = offers.market, workload.work, offers.type_ix[index]
    alone, joined = np.zeros(len(m.types)), np.zeros(len(m.types))
    for k in np.unique(kinds):
        t = m.types[int(k)]
        alone[k], joined[k] = node_speed(m, t, 1), node_speed(m, replace(t, fabric=Fabric.ETHERNET), 2)
    slowest = np.where(nodes == ALONE, alone[kinds], joined[kinds]).min(axis=1)
    return work.hours * (m.speeds[work.model] * work.count * work.nodes) / (slowest * workload.resources.nodes)
