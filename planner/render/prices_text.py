"""What prices did, as a table and as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.render.text import columns, usd

if TYPE_CHECKING:
    from planner.model.past import Pasts
    from planner.render.text import Paint


def lines(given: Pasts, top: int, paint: Paint) -> list[str]:
    """One line per series."""
    head = ("series", "last", "least", "median", "most", "volatility", "changes", "last failure")
    rows = [head] + [
        (
            p.series,
            usd(p.changes[-1][1]),
            usd(p.least),
            usd(p.median),
            usd(p.most),
            f"{p.volatility:.1%}",
            str(len(p.changes) - 1),
            p.last_failure[0][:16].replace("T", " ") if p.last_failure else "-",
        )
        for p in given.found[:top]
    ]
    table = columns(rows, right=frozenset({1, 2, 3, 4, 5, 6}))
    span = f"{given.since:%Y-%m-%d %H:%M} to {given.until:%Y-%m-%d %H:%M} UTC"
    out = [paint(table[0], "dim"), *table[1:]] if given.found else []
    out += ["", f"{min(top, len(given.found))} of {len(given.found)} series, {span}, USD per node-hour"]
    out += ["median and volatility (standard deviation over mean) are weighted by how long each price held"]
    if given.others:
        out.append(f"{given.others} more offers have no price in that time")
    return out


def document(given: Pasts, top: int) -> dict[str, Any]:
    """For machines: the changes too."""
    return {
        "format_version": "1.0",
        "since": given.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "until": given.until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "without_prices": given.others,
        "series": [
            {
                "series": p.series,
                "min_usd_per_hour": _usd(p.least),
                "median_usd_per_hour": _usd(p.median),
                "max_usd_per_hour": _usd(p.most),
                "mean_usd_per_hour": _usd(p.mean),
                "volatility": round(p.volatility, 6),
                "changes": [{"at": _at(at), "usd_per_hour": _usd(price)} for at, price in p.changes],
                "last_failure": dict(zip(("at", "word", "detail"), p.last_failure, strict=True))
                if p.last_failure
                else None,
            }
            for p in given.found[:top]
        ],
    }


def _usd(amount: Decimal) -> str:
    return f"{amount:.6f}"


def _at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
