"""Private addresses of nodes, decided while planning so that every node can know its peers before it exists.

Networks are 10.<net_index>.0.0/16 with one /20 per zone (design.md), so networks of all regions and clouds can be joined without NAT.  Rank r's address is the
first free one of a hash sequence over job and rank, given the addresses that others hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set as AbstractSet
from functools import cache
from ipaddress import IPv4Address, IPv4Network

from planner.model.offer import Region

ZONES_PER_REGION = 15
"""/20s in a /16 less the last, which holds the way out (NAT)."""
RESERVED_LOW = 16
"""AWS keeps the first four addresses of a subnet, Azure five; the first 16 stay free for endpoints."""


def region_cidr(region: Region) -> str:
    """10.<net_index>.0.0/16."""
    return f"10.{region.net_index}.0.0/16"


def nat_cidr(region: Region) -> str:
    """The public subnet with the NAT gateway: the first /24 of the last /20."""
    return f"10.{region.net_index}.240.0/24"


def zone_cidrs(region: Region) -> tuple[tuple[str, str], ...]:
    """(zone, /20) for every zone of the region; one entry with zone "" where subnets are regional.  Raises ValueError beyond 15 zones."""
    zones = region.zones or ("",)
    if len(zones) > ZONES_PER_REGION:
        raise ValueError(f"{region.name} has {len(zones)} zones; a /16 holds {ZONES_PER_REGION}")
    return tuple((zone, f"10.{region.net_index}.{16 * k}.0/20") for k, zone in enumerate(zones))


@cache
def as_number(address: str) -> int:
    """An address as a number."""
    return int(IPv4Address(address))


def addresses(subnet: str, job: str, nodes: int, taken: AbstractSet[str]) -> tuple[str, ...]:
    """One private address per rank in the subnet (a CIDR), none of `taken` and all different.  Raises ValueError where there is no room."""
    cidr = IPv4Network(subnet)
    first, last = int(cidr.network_address), int(cidr.broadcast_address)
    room = cidr.num_addresses - RESERVED_LOW - 1
    if nodes + sum(first <= as_number(a) <= last for a in taken) > room:
        raise ValueError(f"{subnet} has no room for {nodes} nodes more")
    out: list[str] = []
    used: set[str] = set()
    for rank in range(nodes):
        attempt = 0
        while True:
            seed = hashlib.sha256(f"{job}/{rank}/{attempt}".encode()).digest()
            found = str(IPv4Address(first + RESERVED_LOW + int.from_bytes(seed[:8], "big") % room))
            if found not in used and found not in taken:
                break
            attempt += 1
        used.add(found)
        out.append(found)
    return tuple(out)


TUNNEL_NETWORK = IPv4Network("10.251.0.0/16")
"""Beyond every region's network (catalog `net_index` stays below 251).  Tunnels of two jobs never meet, so each begins anew."""


def tunnel_addresses(nodes: int) -> tuple[str, ...]:
    """Every rank's address inside its job's tunnel: 10.251.0.1 for the head, and on.  Raises ValueError beyond 65,534 nodes."""
    if nodes > TUNNEL_NETWORK.num_addresses - 2:
        raise ValueError(f"{TUNNEL_NETWORK} has no room for {nodes} nodes")
    return tuple(str(TUNNEL_NETWORK[1 + rank]) for rank in range(nodes))
