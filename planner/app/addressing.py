"""Which private addresses a placement's nodes get, given what is held already.

Decides nothing that `planner.placement.address` does not: this is the book of who holds which address, by subnet, so that a fleet's jobs need not walk through
each other's holdings.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from planner.app.lookup import own_network, region_of, target_of
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.placement.address import addresses, as_number, zone_cidrs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.ledger import Holding
    from planner.model.market import Market
    from planner.model.plan import Placement
    from planner.model.project import Project


class AddressBook:
    """Addresses that are held, by subnet.  A subnet is looked through once, when it is first asked for."""

    def __init__(self, holdings: Iterable[Holding] = ()) -> None:
        self._held: list[Holding] = []
        self._of_job: dict[str, list[Holding]] = {}
        # (first address, prefix length) -> how many hold each address there
        self._subnets: dict[tuple[int, int], Counter[str]] = {}
        for holding in holdings:
            self.add(holding)

    def add(self, holding: Holding) -> None:
        """One more holding."""
        if not holding.addresses:
            return
        self._held.append(holding)
        self._of_job.setdefault(holding.job, []).append(holding)
        lengths = {length for _, length in self._subnets}
        for address in holding.addresses:
            for length in lengths:
                there = self._subnets.get((_first(as_number(address), length), length))
                if there is not None:
                    there[address] += 1

    def free(self, subnet: str, job: str, nodes: int, *, pool: str, instance_type: str) -> tuple[str, ...]:
        """Addresses of a placement.  It keeps those that it holds already; any other placement of the job must not collide with them, as both may stand side by side.

        Raises ValueError where there is no room.
        """
        held = self._in(subnet)
        own: Counter[str] = Counter()
        for holding in self._of_job.get(job, ()):
            if (holding.pool, holding.instance_type) == (pool, instance_type):
                own.update(holding.addresses)
        taken = held.keys() if not own else {a for a, count in held.items() if count > own[a]}
        return addresses(subnet, job, nodes, taken)

    def _in(self, subnet: str) -> Counter[str]:
        network = IPv4Network(subnet)
        key = (int(network.network_address), network.prefixlen)
        if key not in self._subnets:
            every = (a for holding in self._held for a in holding.addresses)
            self._subnets[key] = Counter(a for a in every if _first(as_number(a), key[1]) == key[0])
        return self._subnets[key]


def _first(address: int, length: int) -> int:
    return address >> (32 - length) << (32 - length)


def addresses_of(p: Placement, job: str, book: AddressBook, project: Project, market: Market) -> tuple[str, ...]:
    """Fixed where nodes must know each other; a lone node takes what the cloud gives.  Raises InputError (SKY-REJ-212) where a subnet is full."""
    if p.nodes == 1:
        return ()
    own = own_network(target_of(project, p), p.region)
    subnet = dict(own.cidrs)[p.zone] if own else dict(zone_cidrs(region_of(market, p)))[p.zone]
    try:
        return book.free(subnet, job, p.nodes, pool=p.pool, instance_type=p.instance_type)
    except ValueError as error:
        raise InputError([Diagnostic(code="SKY-REJ-212", summary=f"{job}: {error}")]) from error
