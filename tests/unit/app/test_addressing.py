"""The book of private addresses: what it gives is what walking through every holding would give, in whatever order they were written in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.app.addressing import AddressBook, addresses_of
from planner.model.errors import InputError
from planner.model.ledger import Holding
from planner.placement.address import addresses
from tests.unit.app.world import PROJECT, planned, small_market

SUBNETS = ("10.1.0.0/20", "10.1.16.0/20", "10.1.0.0/26", "192.168.7.0/24")


def holding(job: str, pool: str, *found: str) -> Holding:
    return Holding(
        job=job,
        pool=pool,
        instance_type="t",
        region="r",
        target="t",
        capacity="spot",
        nodes=len(found),
        gpus=0,
        vcpus=0,
        addresses=found,
    )


@st.composite
def books(draw: st.DrawFn) -> tuple[list[Holding], list[Holding]]:
    """Holdings that are there, and some that come later; a job may hold in two pools, and one address may be held twice."""
    out: list[Holding] = []
    for k in range(draw(st.integers(0, 8))):
        job, pool, subnet = (
            f"job-{draw(st.integers(0, 2))}",
            f"p{draw(st.integers(0, 1))}",
            draw(st.sampled_from(SUBNETS)),
        )
        out.append(holding(job, pool, *addresses(subnet, f"{job}{k % 2}", draw(st.integers(1, 6)), frozenset())))
    cut = draw(st.integers(0, len(out)))
    return out[:cut], out[cut:]


@given(books(), st.integers(0, 3), st.integers(2, 6), st.lists(st.sampled_from(SUBNETS), min_size=1, max_size=5))
def test_the_book_gives_what_walking_through_all_holdings_gives(
    held: tuple[list[Holding], list[Holding]], job: int, nodes: int, asked: list[str]
) -> None:
    there, later = held
    book = AddressBook(there)
    for subnet in asked[:-1]:
        book.free(subnet, "other", 2, pool="p0", instance_type="t")
    for one in later:
        book.add(one)
    name, pool = f"job-{job}", "p0"
    used = {a for h in (*there, *later) if (h.job, h.pool) != (name, pool) for a in h.addresses}
    expected = addresses(asked[-1], name, nodes, frozenset(used))
    assert book.free(asked[-1], name, nodes, pool=pool, instance_type="t") == expected


def test_a_full_subnet_is_told_with_the_job() -> None:
    plan, work = planned(nodes=3)
    choice = plan.choice
    every = [f"10.{small_market().regions[0].net_index}.{k // 256}.{k % 256}" for k in range(4096)]
    book = AddressBook([holding("other", "p", *every)])
    with pytest.raises(InputError, match=r"train: .* has no room for 3 nodes more"):
        addresses_of(choice, work.name, book, PROJECT, small_market())
    assert addresses_of(replace(choice, nodes=1), work.name, book, PROJECT, small_market()) == ()


def test_a_lone_node_is_in_no_book() -> None:
    book = AddressBook([holding("one", "p")])
    assert book.free("10.1.0.0/20", "a", 2, pool="p", instance_type="t") == addresses(
        "10.1.0.0/20", "a", 2, frozenset()
    )
