"""Addresses that a plan decides."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.placement.address import addresses, nat_cidr, region_cidr, zone_cidrs
from tests import builders as b


@given(st.text("abcdef-", min_size=1, max_size=8), st.integers(1, 64), st.sets(st.integers(16, 4000), max_size=40))
def test_addresses_are_in_the_subnet_free_and_all_different(job: str, nodes: int, taken: set[int]) -> None:
    net = IPv4Network("10.7.16.0/20")
    used = frozenset(str(net[k]) for k in taken)
    got = addresses("10.7.16.0/20", job, nodes, used)
    assert len(set(got)) == nodes
    assert not used & set(got)
    assert all(IPv4Address(a) in net and net[16] <= IPv4Address(a) < net[-1] for a in got)
    assert got == addresses("10.7.16.0/20", job, nodes, used)


def test_adding_nodes_keeps_the_addresses_of_those_before() -> None:
    assert addresses("10.7.16.0/20", "job", 8, frozenset())[:4] == addresses("10.7.16.0/20", "job", 4, frozenset())


def test_a_full_subnet_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        addresses("10.0.0.0/27", "job", 16, frozenset())
    assert len(addresses("10.0.0.0/27", "job", 15, frozenset())) == 15


def test_zones_and_the_way_out_do_not_overlap() -> None:
    region = b.region(zones=tuple(f"z{k}" for k in range(15)))
    nets = [IPv4Network(c) for _, c in zone_cidrs(region)] + [IPv4Network(nat_cidr(region))]
    assert all(n.subnet_of(IPv4Network(region_cidr(region))) for n in nets)
    assert not any(x.overlaps(y) for i, x in enumerate(nets) for y in nets[:i])
    with pytest.raises(ValueError, match="16 zones"):
        zone_cidrs(b.region(zones=tuple(f"z{k}" for k in range(16))))


def test_regional_subnets_have_one_entry() -> None:
    assert zone_cidrs(b.region(zones=())) == (("", "10.1.0.0/20"),)
