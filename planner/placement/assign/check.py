"""All rules once more, of a finished assignment, in integers: told apart from how it was found.

Works on holdings and on what the project says, not on rows, so that an error in the rows does not vouch for itself.  What is wrong comes back as sentences;
an assignment with any is not taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from planner.placement.cost import TICKS_PER_USD, figure
from planner.placement.networks import allowed_networks, gpu_networks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.model.ledger import Holding, Ledger
    from planner.model.project import Project, Quota, Target
    from planner.placement.offers import Offers


def wrong(offers: Offers, project: Project, ledger: Ledger, taken: Sequence[Holding]) -> list[str]:
    """What `taken` breaks beside the ledger's holdings.  What others overfilled already is theirs."""
    return [
        *_pools(offers, project, ledger.holdings, taken),
        *_quotas(offers, ledger.holdings, taken),
        *_networks(offers, ledger.holdings, taken),
        *_budgets(project, ledger.holdings, taken),
        *_apart(ledger.holdings, taken),
    ]


def _pools(o: Offers, project: Project, held: Sequence[Holding], taken: Sequence[Holding]) -> Iterator[str]:
    reserved: Counter[str] = Counter()
    positions: list[int] = o.reservation.tolist()
    for i, which in enumerate(positions):
        if which >= 0:
            reserved[o.pool_id(int(o.pool[i]))] += o.reservations[which].nodes
    default = int(figure(o.market, "default_pool_cap_nodes"))
    nodes, jobs, others = Counter[str](), Counter[str](), Counter[str]()
    for h in taken:
        nodes[h.pool] += h.nodes
        jobs[h.pool] += 1
    for h in held:
        others[h.pool] += h.nodes
    for pool in sorted(nodes):
        cap = reserved.get(pool, project.pool_cap_nodes if project.pool_cap_nodes is not None else default)
        guessed = pool not in reserved and project.pool_cap_nodes is None
        alone = guessed and jobs[pool] == 1 and not others[pool]
        if nodes[pool] + others[pool] > cap and not alone:
            yield f"pool {pool}: {nodes[pool]} and {others[pool]} nodes, cap {cap}"


def _quotas(o: Offers, held: Sequence[Holding], taken: Sequence[Holding]) -> Iterator[str]:
    for target, quota in ((t, q) for t in o.targets for q in t.quotas):
        sums: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
        for part, found in ((0, held), (3, taken)):
            for h in found:
                if _counts(h, target, quota):
                    for k, amount in enumerate((h.nodes, h.gpus, h.vcpus)):
                        sums[h.region][part + k] += amount
        for region, s in sorted(sums.items()):
            for k, limit in enumerate((quota.max_nodes, quota.max_gpus, quota.max_vcpus)):
                if limit is not None and s[3 + k] and s[k] + s[3 + k] > limit:
                    yield f"quota {quota.instance_types} in {region}: {s[k]} and {s[3 + k]} of {limit}"


def _counts(h: Holding, target: Target, quota: Quota) -> bool:
    if (h.target, h.pool.partition(":")[0]) != (target.name, target.cloud.value):
        return False
    if quota.capacity not in {None, h.capacity} or not any(
        fnmatchcase(h.instance_type, p) for p in quota.instance_types
    ):
        return False
    return any(fnmatchcase(h.region, p) for p in quota.regions or ("*",))


def _networks(o: Offers, held: Sequence[Holding], taken: Sequence[Holding]) -> Iterator[str]:
    types = {(t.cloud.value, t.name): t for t in o.market.types}
    for target in o.targets:
        if not target.network_quota:
            continue
        for region in sorted({h.region for h in taken}):
            here = [
                [
                    h
                    for h in found
                    if (h.pool.partition(":")[0], h.target, h.region) == (target.cloud.value, target.name, region)
                ]
                for found in (held, taken)
            ]
            allowed = allowed_networks(target, region)
            if allowed is None or not here[1]:
                continue
            own = [
                sum(gpu_networks(types[target.cloud.value, h.instance_type], h.nodes) for h in found) for found in here
            ]
            new = own[1] + (not here[0])
            if new and new > max(allowed - own[0] - bool(here[0]), 0):
                yield f"networks in {region}: {new} more, {allowed} allowed"


def _budgets(project: Project, held: Sequence[Holding], taken: Sequence[Holding]) -> Iterator[str]:
    for budget in project.budgets:
        for limit, name in ((budget.usd_per_hour, "usd_per_hour_ticks"), (budget.usd_total, "usd_total_ticks")):
            if limit is None:
                continue
            mine, theirs = (
                sum(getattr(h, name) for h in found if any(fnmatchcase(h.team, t) for t in budget.teams))
                for found in (taken, held)
            )
            if mine and mine + theirs > round(limit * TICKS_PER_USD):
                yield f"budget of {budget.teams}: {mine} and {theirs} ticks of {limit} USD"


def _apart(held: Sequence[Holding], taken: Sequence[Holding]) -> Iterator[str]:
    named = {group for h in taken for group, _ in h.apart}
    width = ("pool", "zone", "region", "cloud")
    for group in sorted(named):
        every = [*((h, True) for h in taken), *((h, False) for h in held)]
        members = [(h, new) for h, new in every if any(g == group for g, _ in h.apart)]
        by = max((b for h, _ in members for g, b in h.apart if g == group), key=width.index)
        seen: dict[tuple[str, ...], list[tuple[str, str, bool]]] = defaultdict(list)
        for h, new in members:
            cloud, zone = h.pool.partition(":")[0], h.pool.split("/")[1]
            key = {"pool": (h.pool,), "zone": (cloud, h.region), "region": (cloud, h.region), "cloud": (cloud,)}[by]
            seen[key].append((h.job, "" if zone == h.region else zone, new))
        for key, found in sorted(seen.items()):
            for n, (job, zone, new) in enumerate(found):
                for other, theirs, also in found[n + 1 :]:
                    if job != other and (new or also) and (by != "zone" or not zone or not theirs or zone == theirs):
                        yield f"{job} and {other} of {group} share {by} {' '.join(key)}"
