"""The policies by name, in the order of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.replay.gain_policies import NetGain, PriceGap, SkyNomad
from planner.replay.ours import Ours
from planner.replay.policies import AlwaysCheapest, Failover, NeverMove, OnDemand
from planner.replay.progress_policies import UniformProgress, UniformProgressFailover

if TYPE_CHECKING:
    from planner.replay.simulate import Policy

REFERENCE = "failover"
"""What the others' difference is counted from."""
POLICIES: tuple[Policy, ...] = (
    OnDemand(),
    NeverMove(),
    UniformProgress(),
    Failover(),
    UniformProgressFailover(),
    AlwaysCheapest(),
    PriceGap(),
    NetGain(),
    SkyNomad(),
    Ours(),
)
NAMES: tuple[str, ...] = tuple(p.name for p in POLICIES)


def chosen(names: tuple[str, ...]) -> tuple[Policy, ...]:
    """Those that were named, and the reference; all without a name."""
    return tuple(p for p in POLICIES if not names or p.name in names or p.name == REFERENCE)
