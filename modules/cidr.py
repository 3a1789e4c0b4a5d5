"""Ranges of addresses that follow each other.  Pure; which range begins is the caller's choice."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network


def consecutive(first: str, keys: Iterable[str]) -> dict[str, str]:
    """Key -> range: the first key's is `first`, the others' are of the same size, each right behind the one before."""
    net = IPv4Network(first)
    return {
        key: str(IPv4Network((int(net.network_address) + number * net.num_addresses, net.prefixlen)))
        for number, key in enumerate(keys)
    }
