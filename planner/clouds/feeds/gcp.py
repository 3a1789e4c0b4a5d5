"""Google's prices, capacity and quotas: machine and accelerator types per zone, the billing catalogue, the quotas of regions.

A price is put together from SKUs of one region (`gcp_skus`), told zone by zone where the machine type is sold.  Of capacity Google says only what is sold where: nothing
is asked for how much is left.  Quotas are what `regions.get` tells: those of GPUs up to A100, L4 and spot H100; the newer ones are in Cloud Quotas, which is
not asked.  Never run against live Google Cloud: against a server of our own, held to Google's discovery documents.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from planner.clouds.feeds.again import Again
from planner.clouds.feeds.gathering import Gathering
from planner.clouds.feeds.gcp_ask import BILLING, COMPUTE, Google
from planner.clouds.feeds.gcp_families import Family, family_of, machine_of
from planner.clouds.feeds.gcp_skus import Shape, Sku, parts_of, price, sku, ssd_gib
from planner.clouds.feeds.port import Fed, Wanted
from planner.clouds.port import Where
from planner.model.errors import CloudError
from planner.model.readings import CapacityWord

MIB_PER_GIB: Final = 1024
PRICES, MACHINES, QUOTAS = "Google Cloud Billing catalogue", "Compute Engine machine types", "Compute Engine region"
#: a type in such a state cannot be had
GONE: Final = frozenset({"DELETED", "OBSOLETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zone:
    """What a zone sells: machine types by name, and accelerators where they were asked for; `whole` where every row could be read."""

    name: str
    machines: dict[str, Any]
    accelerators: frozenset[str]
    whole: bool


class GcpFeed:
    """See the module.  `credentials` and the two addresses are for tests."""

    def __init__(
        self,
        where: Where,
        *,
        again: Again | None = None,
        credentials: Any = None,
        compute: str = COMPUTE,
        billing: str = BILLING,
    ) -> None:
        self._google = Google(where, again or Again(), credentials=credentials, compute=compute, billing=billing)

    def prices(self, wanted: Wanted) -> Iterator[Fed]:
        """See `PriceSource`.  The one list of prices is read once for all regions."""
        skus: list[Sku] | CloudError | None = None
        for region in wanted.regions:
            found = Gathering(cloud="gcp", region=region, wanted=wanted, source=PRICES)
            if found.types:
                skus = self._skus() if skus is None else skus
                if isinstance(skus, CloudError):
                    found.failed("prices", skus)
                else:
                    self._priced(found, skus)
            yield found.fed()

    def capacity(self, wanted: Wanted) -> Iterator[Fed]:
        """See `CapacitySource`."""
        for region in wanted.regions:
            found = Gathering(cloud="gcp", region=region, wanted=wanted, source=MACHINES)
            for zone in self._zones(found):
                for instance_type in found.types:
                    _offered(found, zone, instance_type)
            yield found.fed()

    def quotas(self, wanted: Wanted) -> Iterator[Fed]:
        """See `QuotaSource`."""
        for region in wanted.regions:
            found = Gathering(cloud="gcp", region=region, wanted=wanted, source=QUOTAS)
            if found.types:
                self._limits(found)
            yield found.fed()

    def close(self) -> None:
        """Let the connections go."""
        self._google.close()

    def _skus(self) -> list[Sku] | CloudError:
        try:
            return [one for row in self._google.skus() if (one := sku(row)) is not None]
        except CloudError as error:
            return error

    def _priced(self, found: Gathering, skus: list[Sku]) -> None:
        zones = list(self._zones(found))
        parts = parts_of(skus, found)
        for instance_type in found.types:
            family = family_of(instance_type)
            here = [zone for zone in zones if _sold(zone, instance_type, family)]
            if not here:
                continue
            if family is None:
                found.senseless(f"{instance_type}: which SKUs it is billed as is not known")
                continue
            for zone in here:
                shape = _shape(found, zone, instance_type, family)
                if shape is None:
                    continue
                for spot in (False, True):
                    usd = price(instance_type, family, shape, parts, found, spot=spot)
                    if usd is not None:
                        capacity = "spot" if spot else "on_demand"
                        found.price(zone=zone.name, instance_type=instance_type, capacity=capacity, usd=usd)

    def _limits(self, found: Gathering) -> None:
        try:
            region = self._google.region(found.region)
        except CloudError as error:
            found.failed("quotas", error)
            return
        limited: dict[str, list[str]] = {}
        for instance_type in found.types:
            if (family := family_of(instance_type)) and family.metric:
                limited.setdefault(family.metric, []).append(instance_type)
        for row in region.quotas:
            metric = row.metric.removeprefix("PREEMPTIBLE_")
            if metric in limited:
                found.quota(
                    name=row.metric,
                    capacity="spot" if metric != row.metric else "on_demand",
                    unit="gpus",
                    limit=row.limit if "limit" in row else None,
                    used=row.usage if "usage" in row else None,
                    instance_types=tuple(limited[metric]),
                )

    def _zones(self, found: Gathering) -> Iterator[_Zone]:
        """One after the other; one that does not answer is named and left out."""
        if not found.types:
            return
        names: tuple[str, ...] = found.zones or ()
        if found.zones is None:
            try:
                names = tuple(sorted(url.rpartition("/")[2] for url in self._google.region(found.region).zones))
            except CloudError as error:
                found.failed("its zones", error)
                return
        attached = any(machine_of(t)[1] is not None for t in found.types)
        for name in sorted(names):
            try:
                machines, whole = _by_name(found, name, self._google.machine_types(name))
                accelerators, all_read = (
                    _by_name(found, name, self._google.accelerator_types(name)) if attached else ({}, True)
                )
            except CloudError as error:
                found.failed(name, error)
                continue
            yield _Zone(name=name, machines=machines, accelerators=frozenset(accelerators), whole=whole and all_read)


def _by_name(found: Gathering, zone: str, rows: Iterator[Any]) -> tuple[dict[str, Any], bool]:
    """Types that can be had, and whether each row has a name."""
    named, whole = dict[str, Any](), True
    for row in rows:
        if not row.name:
            found.senseless(f"a machine or accelerator type of {zone} without a name")
            whole = False
        elif row.deprecated.state not in GONE:
            named[row.name] = row
    return named, whole


def _sold(zone: _Zone, instance_type: str, family: Family | None) -> bool:
    machine, attached = machine_of(instance_type)
    return machine in zone.machines and (
        attached is None or (family is not None and family.accelerator in zone.accelerators)
    )


def _offered(found: Gathering, zone: _Zone, instance_type: str) -> None:
    sold = _sold(zone, instance_type, family_of(instance_type))
    if not sold and not zone.whole:
        return  # it may be what the broken row was about
    word = CapacityWord.OFFERED if sold else CapacityWord.WITHDRAWN
    row = zone.machines.get(machine_of(instance_type)[0])
    detail = row.deprecated.state.lower() if sold and row is not None else ""
    for capacity in ("on_demand", "spot"):
        found.seen(zone=zone.name, instance_type=instance_type, capacity=capacity, word=word, detail=detail)


def _shape(found: Gathering, zone: _Zone, instance_type: str, family: Family) -> Shape | None:
    """As the zone has it; None, named, where it says something else than its name does."""
    machine, attached = machine_of(instance_type)
    row = zone.machines[machine]
    held = {a.guest_accelerator_type: a.guest_accelerator_count for a in row.accelerators}
    gpus = attached if attached is not None else held.get(family.accelerator, 0)
    wrong = (attached is None and set(held) != {family.accelerator}) or (attached is not None and held)
    if wrong or not (gpus > 0 and row.guest_cpus > 0 and row.memory_mb > 0):
        found.senseless(
            f"{instance_type} in {zone.name}: {row.guest_cpus} vCPUs, {row.memory_mb} MiB, accelerators {held or 'none'}"
        )
        return None
    return Shape(
        vcpus=row.guest_cpus,
        ram_gib=Decimal(row.memory_mb) / MIB_PER_GIB,
        gpus=gpus,
        ssd_gib=ssd_gib(row.bundled_local_ssds.partition_count),
    )
