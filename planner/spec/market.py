"""`market` of the project file: where prices come from.  Decides the form only; whether a snapshot is there and whole is seen when it is read."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from planner.model.project import MarketSettings
from planner.spec import units

if TYPE_CHECKING:
    from planner.spec.fields import Fields

SOURCES: Final = ("record", "catalog")


def market_settings(f: Fields) -> MarketSettings:
    """`market: {source?}`."""
    m = f.fields("market")
    if m is None:
        return MarketSettings()
    source = m.read("source", _source)
    m.finish()
    return MarketSettings(source=source or "record")


def _source(text: str) -> str:
    path = PurePosixPath(text)
    if text not in SOURCES and not path.suffix:
        hint = "write record, catalog, or the path of a file that `skyplan prices snapshot` wrote, such as market.json"
        raise units.Malformed("is no source of prices", hint)
    if path.is_absolute():
        raise units.Malformed("is a path of one machine", "write it relative to the folder of skyplan.yaml")
    return text
