"""Quotas of a project's targets as they were read: changes only.  Decides nothing about whether they suffice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import insert, select

from planner.model.readings import QuotaReading
from planner.model.record import stamp
from planner.state import tables
from planner.state.history_values import Quota, Recorded, us, when
from planner.state.history_write import moment

if TYPE_CHECKING:
    from sqlalchemy import Connection

_KEY: Final = ("cloud", "region", "name", "capacity")
_TOLD: Final = ("unit", "most", "used", "source", "instance_types")


def record(connection: Connection, project: str, target: str, quotas: Iterable[QuotaReading]) -> Recorded:
    """Keep those that differ from the newest of their name; one that is older than the newest is known better already."""
    newest = {_key(row): row for row in _newest(connection, project, target, None)}
    new = unchanged = 0
    for q in sorted(quotas, key=lambda q: q.observed_at):
        row: dict[str, Any] = {name: getattr(q, name) for name in (*_KEY, "unit", "used", "source")}
        row |= {"project": project, "target": target, "at": moment(q.observed_at), "most": q.limit}
        row["instance_types"] = json.dumps(list(q.instance_types))
        before = newest.get(_key(row))
        if before is not None and (row["at"] <= before["at"] or all(row[name] == before[name] for name in _TOLD)):
            unchanged += 1
            continue
        connection.execute(insert(tables.markets.quota).values(**row))
        newest[_key(row)] = row
        new += 1
    return Recorded(new=new, unchanged=unchanged)


def read(connection: Connection, project: str, target: str | None, at: datetime | None) -> tuple[Quota, ...]:
    """The newest of each name, in order."""
    rows = _newest(connection, project, target, None if at is None else us(at))
    found = {(row["target"], *_key(row)): row for row in rows}
    return tuple(Quota(target=key[0], reading=_reading(row)) for key, row in sorted(found.items()))


def _newest(connection: Connection, project: str, target: str | None, at: int | None) -> Iterable[Any]:
    """Rows by time, so that the last of a name is the newest."""
    c = tables.markets.quota.c
    query = select(tables.markets.quota).where(c.project == project)
    if target is not None:
        query = query.where(c.target == target)
    if at is not None:
        query = query.where(c.at <= at)
    return connection.execute(query.order_by(c.at)).mappings()


def _key(row: Any) -> tuple[str, ...]:
    return tuple(row[name] for name in _KEY)


def _reading(row: Any) -> QuotaReading:
    return QuotaReading(
        **{name: row[name] for name in (*_KEY, "unit", "used", "source")},
        limit=row["most"],
        observed_at=stamp(when(row["at"])),
        instance_types=tuple(json.loads(row["instance_types"])),
    )
