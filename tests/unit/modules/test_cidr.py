"""Ranges that follow each other."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.cidr import consecutive
from planner.placement.address import ZONES_PER_REGION


def test_the_first_is_the_first_and_the_others_follow():
    assert consecutive("10.7.240.0/24", ("a", "b", "c")) == {
        "a": "10.7.240.0/24",
        "b": "10.7.241.0/24",
        "c": "10.7.242.0/24",
    }
    assert consecutive("10.7.240.0/24", ()) == {}


@given(net=st.integers(0, 255), zones=st.integers(1, ZONES_PER_REGION))
def test_a_regions_public_subnets_are_in_its_last_20_and_apart(net, zones):
    made = [IPv4Network(cidr) for cidr in consecutive(f"10.{net}.240.0/24", map(str, range(zones))).values()]
    assert all(one.subnet_of(IPv4Network(f"10.{net}.240.0/20")) for one in made)
    assert len(set(made)) == zones


def test_what_begins_between_ranges_is_refused():
    with pytest.raises(ValueError, match="host bits"):
        consecutive("10.7.240.1/24", ("a",))
