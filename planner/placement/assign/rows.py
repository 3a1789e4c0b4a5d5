"""What is scarce, as rows: pools, quotas, networks, budgets, and places that jobs of a group may not share.

Each row has so much left, in integers; a job on an offer uses so much of some of them.  The same rules as `crowd` has for one job, told as sums, so that a
solver can have all jobs at once.  Two of them need a word:

A guessed pool cap never keeps a job out of an empty pool (docs/decisions/0008).  As a sum: a job that needs more nodes than the guess uses the whole of it,
no more; then it fits exactly where nobody is, and nobody fits beside it.
A region's shared network is used by whoever is there.  As a sum: it is taken off what GPU networks may use beforehand, for there is no GPU network without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.model.offer import CAPACITY_ORDER, Cloud
from planner.model.workload import WIDTH, Apart
from planner.placement.cost import TICKS_PER_USD, figure
from planner.placement.networks import allowed_networks, gpu_networks
from planner.placement.offers import matching

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from planner.model.ledger import Holding, Ledger
    from planner.model.project import Budget, Project
    from planner.model.workload import AntiAffinity, Workload
    from planner.placement.offers import Offers

    Ints = NDArray[np.int64]
    Rows = NDArray[np.int32]

PLENTY: Final = 1 << 60
"""A row that limits nothing."""


@dataclass(frozen=True, slots=True)
class Column:
    """Per candidate: a row, and how much of it is used."""

    rows: Rows
    amounts: Ints


@dataclass(frozen=True, slots=True)
class _Spread:
    """Rows of several quotas over all offers, each offer in one at most; `per_node` what one node uses of it."""

    rows: Rows
    per_node: Ints


@dataclass(frozen=True, slots=True)
class _Quota:
    target: str
    cloud: str
    region: str
    capacity: str | None
    patterns: tuple[str, ...]
    unit: str
    row: int


class Scarce:
    """All rows of one call.  `caps` is what there is where nobody holds anything, `free` what the ledger leaves of it."""

    def __init__(self, offers: Offers, project: Project, ledger: Ledger, groups: Iterable[AntiAffinity]) -> None:
        """`groups`: what jobs of the call are to be apart by; what the ledger's holdings say of the same groups is added."""
        self.offers, self.budgets = offers, project.budgets
        self._caps: list[int] = []
        self._pools(project)
        self._spreads: list[_Spread] = [
            _Spread(np.full(len(offers), self._dummy, np.int32), np.zeros(len(offers), np.int64))
        ]
        self._quotas = self._all_quotas()
        self.nothing_but_pools = not self._quotas
        self._networks()
        self._budget_rows: list[tuple[Budget, str, int]] = []
        for budget in self.budgets:
            for unit, usd in (("hour", budget.usd_per_hour), ("total", budget.usd_total)):
                if usd is not None:
                    self._budget_rows.append((budget, unit, self._row(round(usd * TICKS_PER_USD))))
        self._groups(groups, ledger)
        self.caps: Ints = np.array(self._caps, dtype=np.int64)
        self.free: Ints = self.caps - self.used_by(ledger.holdings)
        self._clamp(ledger)

    def _row(self, cap: int) -> int:
        self._caps.append(cap)
        return len(self._caps) - 1

    def _pools(self, project: Project) -> None:
        o = self.offers
        self.configured = project.pool_cap_nodes
        default = int(figure(o.market, "default_pool_cap_nodes"))
        cap = self.configured if self.configured is not None else default
        caps = np.full(len(o.pool_first), cap, dtype=np.int64)
        self.guessed = np.full(len(caps), self.configured is None)
        reserved = np.flatnonzero(o.reservation >= 0)
        caps[o.pool[reserved]] = 0
        for i in reserved:
            held = o.reserved(int(i))
            caps[o.pool[i]] += held.nodes if held else 0
        self.guessed[o.pool[reserved]] = False
        self.reserved_pools = frozenset(o.pool[reserved].tolist())
        self._caps = caps.tolist()
        self._pool_caps = caps
        self.pools = len(caps)
        self._dummy = self._row(PLENTY)

    def _all_quotas(self) -> list[_Quota]:
        """One row per quota, region and unit; rows that share no offer lie in one spread."""
        o, out = self.offers, list[_Quota]()
        types = o.market.types
        units = {
            "nodes": np.ones(len(types), dtype=np.int64),
            "gpus": np.array([t.gpu_count for t in types], dtype=np.int64),
            "vcpus": np.array([t.vcpus for t in types], dtype=np.int64),
        }
        for k, target in enumerate(o.targets):
            for quota in target.quotas:
                hit = (o.target_ix == k) & matching(quota.instance_types, (t.name for t in types))[o.type_ix]
                hit &= matching(quota.regions, (r.name for r in o.market.regions))[o.region_ix]
                if quota.capacity:
                    hit &= o.capacity == [c.value for c in CAPACITY_ORDER].index(quota.capacity)
                limits = {"nodes": quota.max_nodes, "gpus": quota.max_gpus, "vcpus": quota.max_vcpus}
                found: list[int] = np.unique(o.region_ix[hit]).tolist()
                for region in found:
                    here = np.flatnonzero(hit & (o.region_ix == region))
                    for unit, limit in limits.items():
                        if limit is None:
                            continue
                        row = self._row(limit)
                        name = o.market.regions[region].name
                        place = (target.name, target.cloud.value, name, quota.capacity, quota.instance_types)
                        out.append(_Quota(*place, unit=unit, row=row))
                        self._spread(here, row, units[unit][o.type_ix[here]])
        return out

    def _spread(self, here: Ints, row: int, per_node: Ints) -> None:
        found = next((s for s in self._spreads if (s.rows[here] == self._dummy).all()), None)
        if found is None:
            n = len(self.offers)
            found = _Spread(np.full(n, self._dummy, np.int32), np.zeros(n, np.int64))
            self._spreads.append(found)
        found.rows[here], found.per_node[here] = row, per_node

    def _networks(self) -> None:
        o = self.offers
        self._network_rows: dict[tuple[int, int], int] = {}
        self._network: Rows | None = None
        if not any(t.network_quota for t in o.targets):
            return
        table = np.full((len(o.targets), len(o.market.regions)), self._dummy, dtype=np.int32)
        for k, target in enumerate(o.targets):
            for j, region in enumerate(o.market.regions):
                most = allowed_networks(target, region.name) if region.cloud is target.cloud else None
                if most is not None:
                    table[k, j] = self._network_rows[k, j] = self._row(most - 1)
        self._network = table[o.target_ix, o.region_ix]

    def _groups(self, groups: Iterable[AntiAffinity], ledger: Ledger) -> None:
        """The widest `by` that any job of a group names holds for the whole group."""
        wide: dict[str, Apart] = {}
        told = [(g.group, g.by) for g in groups]
        named = {group for group, _ in told}
        told += [(g, Apart(by)) for h in ledger.holdings for g, by in h.apart if g in named]
        for group, by in told:
            wide[group] = max(wide.get(group, by), by, key=lambda b: WIDTH[b])
        self.apart = dict(sorted(wide.items()))
        self._apart_base: dict[str, int] = {}
        self._places: dict[Apart, tuple[NDArray[np.int64], dict[object, int]]] = {}
        self._zones: dict[tuple[str, str], set[str]] = {}
        if not self.apart:
            return
        o = self.offers
        keys: list[tuple[str, str, str]] = []
        pairs = np.unique(o.region_ix.astype(np.int64) * len(o.market.zones) + o.zone_ix)
        numbers: list[int] = pairs.tolist()
        for pair in numbers:
            region = o.market.regions[pair // len(o.market.zones)]
            key = (region.cloud.value, region.name, o.market.zones[pair % len(o.market.zones)])
            keys.append(key)
            if key[2]:
                self._zones.setdefault(key[:2], set()).add(key[2])
        # and where members stand that is not for sale now
        for h in ledger.holdings:
            cloud, where = h.pool.partition(":")[0], h.pool.split("/")[1]
            if where != h.region and any(group in self.apart for group, _ in h.apart):
                self._zones.setdefault((cloud, h.region), set()).add(where)
        zone_of = np.searchsorted(pairs, o.region_ix.astype(np.int64) * len(o.market.zones) + o.zone_ix)
        clouds = [c.value for c in Cloud]
        cloud_of = np.array([clouds.index(r.cloud.value) for r in o.market.regions])[o.region_ix]
        regions: dict[object, int] = {(r.cloud.value, r.name): j for j, r in enumerate(o.market.regions)}
        self._places = {
            Apart.POOL: (o.pool.astype(np.int64), {o.pool_id(p): p for p in range(len(o.pool_first))}),
            Apart.ZONE: (zone_of, {key: j for j, key in enumerate(keys)}),
            Apart.REGION: (o.region_ix.astype(np.int64), regions),
            Apart.CLOUD: (cloud_of.astype(np.int64), {c: j for j, c in enumerate(clouds)}),
        }
        self._region_count = len(o.market.regions)
        for group, by in self.apart.items():
            self._apart_base[group] = len(self._caps)
            self._caps += [1] * (max(self._places[by][1].values(), default=0) + 1)
            if by is Apart.ZONE:
                # a place without a zone may turn out to be in any of its region's: one more row per region, which such a job fills
                self._caps += [len(self._zones.get((r.cloud.value, r.name), ())) or 1 for r in o.market.regions]

    def _clamp(self, ledger: Ledger) -> None:
        """Networks that stand need no new one, and what others hold over a quota bars nobody who needs none."""
        standing = {(h.pool.partition(":")[0], h.target, h.region) for h in ledger.holdings}
        for (k, j), row in self._network_rows.items():
            target = self.offers.targets[k]
            if (target.cloud.value, target.name, self.offers.market.regions[j].name) in standing:
                self.free[row] = max(int(self.free[row]), 0)

    def used_by(self, holdings: Iterable[Holding]) -> Ints:
        """How much of every row these hold."""
        out = np.zeros(len(self._caps), dtype=np.int64)
        for h in holdings:
            for row, amount in self.uses_of(h):
                out[row] += amount
        return out

    def uses_of(self, h: Holding) -> Iterator[tuple[int, int]]:
        """The rows that a holding uses."""
        o, cloud = self.offers, h.pool.partition(":")[0]
        pool = o.pool_index.get(h.pool)
        if pool is not None:
            yield pool, h.nodes
        for q in self._quotas:
            here = (q.target, q.cloud, q.region) == (h.target, cloud, h.region)
            if here and q.capacity in {None, h.capacity} and any(fnmatchcase(h.instance_type, p) for p in q.patterns):
                yield q.row, {"nodes": h.nodes, "gpus": h.gpus, "vcpus": h.vcpus}[q.unit]
        for (k, j), row in self._network_rows.items():
            target = o.targets[k]
            if (target.name, target.cloud.value, o.market.regions[j].name) == (h.target, cloud, h.region):
                kind = next((t for t in o.market.types if t.cloud is target.cloud and t.name == h.instance_type), None)
                yield row, gpu_networks(kind, h.nodes) if kind else 0
        for budget, unit, row in self._budget_rows:
            if covers(budget, h.team):
                yield row, h.usd_per_hour_ticks if unit == "hour" else h.usd_total_ticks
        for group, _ in h.apart:
            if group in self._apart_base:
                yield from self._apart_uses(group, h)

    def _apart_uses(self, group: str, h: Holding) -> Iterator[tuple[int, int]]:
        by, base = self.apart[group], self._apart_base[group]
        cloud, where = h.pool.partition(":")[0], h.pool.split("/")[1]
        zone = "" if where == h.region else where
        keys: dict[Apart, object] = {
            Apart.POOL: h.pool,
            Apart.ZONE: (cloud, h.region, zone),
            Apart.REGION: (cloud, h.region),
            Apart.CLOUD: cloud,
        }
        places = self._places[by][1]
        at = places.get(keys[by])
        if at is not None:
            yield base + at, 1
        if by is Apart.ZONE and (region := self._places[Apart.REGION][1].get((cloud, h.region))) is not None:
            row = base + max(places.values(), default=0) + 1 + region
            yield row, self._caps[row] if not zone else 1

    def columns(self, workload: Workload, index: Ints) -> tuple[Column, ...]:
        """Of pools, quotas and networks: what the workload uses on each of the offers at `index`."""
        o, nodes = self.offers, workload.resources.nodes
        pool = o.pool[index]
        out = [Column(pool, np.where(self.guessed[pool], np.minimum(nodes, self._pool_caps[pool]), nodes))]
        spreads = self._spreads if self._quotas else []
        out.extend(Column(s.rows[index], s.per_node[index] * nodes) for s in spreads)
        if self._network is not None:
            own = np.array([gpu_networks(t, nodes) for t in o.market.types], dtype=np.int64)
            out.append(Column(self._network[index], own[o.type_ix[index]]))
        return tuple(out)

    def own_columns(self, workload: Workload, index: Ints, hourly: Ints, total: Ints) -> tuple[Column, ...]:
        """Of budgets and anti-affinity: what is the job's own rather than its shape's."""
        return (*self.budget_columns(workload, len(index), hourly, total), *self.apart_columns(workload, index))

    def budget_columns(self, workload: Workload, size: int, hourly: Ints, total: Ints) -> tuple[Column, ...]:
        """What the job takes of budgets that its team's jobs count to."""
        out: list[Column] = []
        for budget, unit, row in self._budget_rows:
            if covers(budget, workload.team):
                out.append(Column(np.full(size, row, np.int32), hourly if unit == "hour" else total))
        return tuple(out)

    def apart_columns(self, workload: Workload, index: Ints) -> tuple[Column, ...]:
        """The places that the job's groups may not share."""
        out: list[Column] = []
        for group in sorted({a.group for a in workload.anti_affinity}):
            by, base = self.apart[group], self._apart_base[group]
            places, keys = self._places[by]
            one = np.ones(len(index), dtype=np.int64)
            out.append(Column((base + places[index]).astype(np.int32), one))
            if by is Apart.ZONE:
                region = self.offers.region_ix[index]
                rows = base + max(keys.values(), default=0) + 1 + region
                blank = np.array([not z for z in self.offers.market.zones])[self.offers.zone_ix[index]]
                out.append(Column(rows.astype(np.int32), np.where(blank, self.caps[rows], 1)))
        return tuple(out)

    @property
    def has_networks(self) -> bool:
        """Whether the last of `columns` is of networks."""
        return self._network is not None

    def subject(self, row: int) -> str:
        """What a row is of: pool, quota, network, budget or apart."""
        if row < self.pools:
            return "pool"
        if any(q.row == row for q in self._quotas):
            return "quota"
        if row in self._network_rows.values():
            return "network"
        return "budget" if any(r == row for _, _, r in self._budget_rows) else "apart"

    def quota_at(self, row: int) -> tuple[str, str]:
        """(unit, words) of a quota's row."""
        q = next(q for q in self._quotas if q.row == row)
        return q.unit, f"{' '.join(q.patterns)} in {q.region} of target {q.target}"

    def network_at(self, row: int) -> str:
        """The region of a network quota's row."""
        k, j = next(key for key, r in self._network_rows.items() if r == row)
        return f"{self.offers.market.regions[j].name} of target {self.offers.targets[k].name}"

    def budget_at(self, row: int) -> tuple[Budget, str]:
        """The budget and its unit (hour, total) of a row."""
        return next((b, unit) for b, unit, r in self._budget_rows if r == row)

    def budget_rows(self) -> tuple[tuple[Budget, str, int], ...]:
        """All budgets' rows."""
        return tuple(self._budget_rows)

    def group_at(self, row: int) -> str:
        """The anti-affinity group of a row."""
        return max((base, group) for group, base in self._apart_base.items() if base <= row)[1]


def covers(budget: Budget, team: str) -> bool:
    """Whether what the team's jobs cost counts to the budget."""
    return any(fnmatchcase(team, glob) for glob in budget.teams)
