"""The steps of a move: what must come before what, for every reason."""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest

from planner.migration.steps import in_order, layers, steps_of
from planner.model.errors import MissingPart
from planner.model.migration import MigrationReason, MigrationStep


def keys(reason: MigrationReason) -> list[str]:
    return [s.key for s in steps_of(reason, old="train-g1", new="us-west-2")]


def test_a_voluntary_move_launches_then_saves_then_cuts_over_then_retires() -> None:
    assert keys(MigrationReason.SAVING) == ["launch", "ask", "save", "release", "resume", "retire"]


def test_what_is_taken_away_is_asked_for_a_checkpoint_first() -> None:
    assert keys(MigrationReason.INTERRUPTION) == ["ask", "launch", "save", "release", "resume", "retire"]
    steps = steps_of(MigrationReason.INTERRUPTION, old="train-g1", new="us-west-2")
    assert layers(steps)[0] == ("ask", "launch")


def test_a_recovery_asks_nobody() -> None:
    assert keys(MigrationReason.RECOVERY) == ["launch", "release", "resume", "retire"]


@pytest.mark.parametrize("reason", MigrationReason)
def test_the_job_stops_between_the_release_and_its_going_on_and_nothing_is_retired_before(
    reason: MigrationReason,
) -> None:
    steps = steps_of(reason, old="a", new="b", minutes={"launch": Decimal(4)})
    assert [s.key for s in steps if s.stops] == ["release", "resume"]
    assert steps[-1].after == ("resume",)
    assert next(s for s in steps if s.key == "launch").minutes == 4


def test_an_order_that_cannot_be_is_refused() -> None:
    a, b = MigrationStep(key="a", title="", after=("b",)), MigrationStep(key="b", title="", after=("a",))
    with pytest.raises(ValueError, match="circle"):
        in_order([a, b])
    with pytest.raises(ValueError, match="circle"):
        layers([a, b])
    with pytest.raises(ValueError, match="twice"):
        in_order([MigrationStep(key="a", title=""), MigrationStep(key="a", title="")])
    with pytest.raises(ValueError, match="no step"):
        in_order([a])
    assert [s.key for s in in_order([a, MigrationStep(key="b", title="")])] == ["b", "a"]


def test_without_networkx_the_part_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingPart, match="networkx"):
        keys(MigrationReason.SAVING)
