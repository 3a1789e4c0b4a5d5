"""Tables of what was observed of markets.  Times are whole microseconds since 1970, so that ten million rows stay small and a price is found by one step down a tree.

Decides the layout only.  A *line* is a series as one source tells it: two sources that disagree are two lines, and neither hides the other's changes.  `price` and
`capacity` only grow (compaction apart) and hold changes; `price_now` holds the present, `price_seen` when a flat price was confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text, UniqueConstraint

#: rows lie in the tree of their key: half the bytes, and one step less
_IN_KEY: Final[dict[str, Any]] = {"sqlite_with_rowid": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketTables:
    """By name."""

    line: Table
    price: Table
    price_now: Table
    price_seen: Table
    capacity: Table
    quota: Table


def _line_ix() -> Column[int]:
    return Column("line_ix", Integer, primary_key=True, autoincrement=False)


def _at(name: str, *, key: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=False, autoincrement=False)


def _text(name: str, *, key: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=False)


def made(metadata: MetaData) -> MarketTables:
    """The tables, in the record's own collection."""
    return MarketTables(
        line=Table(
            "line",
            metadata,
            Column("ix", Integer, primary_key=True, autoincrement=False),
            _text("series"),
            _text("source"),
            UniqueConstraint("series", "source"),
        ),
        # `lag`: how long after `at` it was known here; 0 for an imported history
        price=Table("price", metadata, _line_ix(), _at("at", key=True), _at("micro_usd"), _at("lag"), **_IN_KEY),
        # `told_at`: the newest moment that a reading was about; `since` to `until`: when it was confirmed, never more than a day apart
        price_now=Table(
            "price_now",
            metadata,
            _line_ix(),
            _at("at"),
            _at("micro_usd"),
            _at("lag"),
            _at("told_at"),
            _at("since"),
            _at("until"),
            **_IN_KEY,
        ),
        price_seen=Table("price_seen", metadata, _line_ix(), _at("since", key=True), _at("until"), **_IN_KEY),
        capacity=Table(
            "capacity",
            metadata,
            _line_ix(),
            _at("at", key=True),
            _text("word"),
            _text("detail"),
            _at("lag"),
            Index(None, "at"),
            **_IN_KEY,
        ),
        quota=Table(
            "quota",
            metadata,
            *(_text(name, key=True) for name in ("project", "target", "cloud", "region", "name", "capacity")),
            _at("at", key=True),
            _text("unit"),
            Column("most", Float, nullable=False),
            Column("used", Float, nullable=True),
            _text("source"),
            _text("instance_types"),
        ),
    )
