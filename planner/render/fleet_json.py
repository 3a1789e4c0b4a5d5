"""What a plan of several jobs says as a whole, for machines: `fleet` of `skyplan plan --json`.  Its schema is `planner.spec.schema_fleet`."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.fleet import FleetSummary
    from planner.model.plan import PlacementPlan


def fleet_document(fleet: FleetSummary, plans: Sequence[PlacementPlan]) -> dict[str, Any]:
    """JSON-ready, money with four places.  `usd_per_hour`: of all that are placed, while all run."""
    hourly = sum((plan.choice.usd_per_hour for plan in plans if plan.ranked), Decimal(0))
    return _plain(asdict(fleet)) | {"usd_per_hour": _plain(hourly)}


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:.4f}"
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value
