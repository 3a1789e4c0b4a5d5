"""The market as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from planner.model.codes import CODES
from planner.render.plan_text import what, where
from planner.render.text import columns, duration, usd

if TYPE_CHECKING:
    from planner.model.plan import Placement, RejectedCount
    from planner.render.text import Paint


class Listing(Protocol):
    """What `planner.app.offers` found."""

    @property
    def placements(self) -> Sequence[Placement]: ...
    @property
    def rejected(self) -> Sequence[RejectedCount]: ...
    @property
    def feasible(self) -> int: ...
    @property
    def as_of(self) -> str: ...


def lines(found: Listing, paint: Paint) -> list[str]:
    """One line per offer."""
    head = ("#", "where", "what", "gpu", "per hour", "total", "finish", "price of", "caveats")
    rows = [head] + [
        (
            str(p.rank + 1),
            where(p),
            what(p),
            f"{p.gpu}:{p.gpu_count}",
            usd(p.usd_per_hour),
            usd(p.total_usd, lower_bound=p.lower_bound),
            duration(p.finish_hours),
            p.price_as_of,
            " ".join(sorted({c.code for c in p.caveats})),
        )
        for p in found.placements
    ]
    table = columns(rows, right=frozenset({0, 4, 5, 6}))
    out = [paint(table[0], "dim"), *table[1:]]
    out += ["", f"{len(found.placements)} of {found.feasible} feasible offers, prices up to {found.as_of[:10]}"]
    out += [f"rejected {r.count:,}: {CODES[r.code].meaning} [{r.code}]" for r in found.rejected]
    return out


def document(found: Listing) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": "1.0",
        "as_of": found.as_of,
        "feasible": found.feasible,
        "offers": [
            {
                "offer_id": p.offer_id,
                "cloud": p.cloud,
                "region": p.region,
                "zone": p.zone,
                "instance_type": p.instance_type,
                "capacity": p.capacity,
                "gpu": p.gpu,
                "gpu_count": p.gpu_count,
                "nodes": p.nodes,
                "usd_per_hour": f"{p.usd_per_hour:.4f}",
                "total_usd": f"{p.total_usd:.4f}",
                "lower_bound": p.lower_bound,
                "finish_hours": f"{p.finish_hours:.4f}",
                "differs": list(p.differs),
                "caveats": [{"code": c.code, "text": c.text} for c in p.caveats],
                "price_as_of": p.price_as_of,
                "price_source": p.price_source,
            }
            for p in found.placements
        ],
        "rejected": [{"code": r.code, "count": r.count} for r in found.rejected],
    }
