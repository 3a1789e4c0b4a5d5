"""What is planned again with nothing changed stays as it is (R12, R21), whatever it was planned from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.placement.fleet import Fleet
from tests.property.test_fleet_assignment import World, places_of, worlds


def offers(fleet: Fleet) -> dict[str, str]:
    return {name: p.offer_id for name, p in places_of(fleet).items()}


@settings(max_examples=100, deadline=None)
@given(worlds(), st.data())
def test_planned_again_from_any_earlier_places_nobody_moves(world: World, data: st.DataObject) -> None:
    first = world.plan()
    earlier = {
        p.workload.name: data.draw(st.sampled_from([r.offer_id for r in p.ranked])) for p in first.placed if p.ranked
    }
    second = world.plan(earlier=earlier)
    third = world.plan(earlier=offers(second))
    assert offers(third) == offers(second)
    assert third.summary.waiting == second.summary.waiting
