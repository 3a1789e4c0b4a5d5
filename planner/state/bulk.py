"""Many rows by one statement: what a batch of reports looks up and inserts.

Decides how: SQLite takes a prepared statement again and again, PostgreSQL one statement over arrays (measured 2026-11-30, 200 reports a transaction: inserts
row by row and keys by `IN` together do a third of it).  Both have one text for what is to happen on a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Float, Integer, RowMapping, Table, TextClause, bindparam, text

_TYPES = ((BigInteger, "bigint"), (Integer, "integer"), (Float, "double precision"))
IGNORE = "ON CONFLICT DO NOTHING"
CHUNK = 400
"""Keys per query on SQLite: far below its 32,766 variables."""


def put(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], on_conflict: str = "") -> None:
    """Insert rows that all have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == "postgresql":
        arrays = {name: [row[name] for row in rows] for name in names}
        connection.execute(_over_arrays(table, names, on_conflict), arrays)
    else:
        connection.execute(_row_by_row(table, names, on_conflict), rows)


def find(
    connection: Connection,
    table: Table,
    project: str,
    names: tuple[str, ...],
    keys: Sequence[tuple[Any, ...]],
    *,
    lock: str = "",
) -> list[RowMapping]:
    """The project's rows whose columns `names` are one of `keys`, in their order, locked FOR `lock` (SHARE, UPDATE) where the database locks rows."""
    if not keys:
        return []
    if connection.dialect.name == "postgresql":
        arrays = dict(zip(names, map(list, zip(*keys, strict=True)), strict=True))
        found = connection.execute(_found_by_arrays(table, names, lock), {"of_project": project, **arrays})
        return list(found.mappings())
    out: list[RowMapping] = []
    for at in range(0, len(keys), CHUNK):
        values = {"of_project": project, "keys": keys[at : at + CHUNK]}
        out += connection.execute(_found_by_list(table, names), values).mappings()
    return out


@cache
def _found_by_list(table: Table, names: tuple[str, ...]) -> TextClause:
    columns = ", ".join(f'"{name}"' for name in names)
    query = f'SELECT * FROM "{table.name}" WHERE project = :of_project AND ({columns}) IN :keys ORDER BY {columns}'  # noqa: S608 - names are our tables' own
    return text(query).bindparams(bindparam("keys", expanding=True))


@cache
def _found_by_arrays(table: Table, names: tuple[str, ...], lock: str) -> TextClause:
    arrays = ", ".join(f"CAST(:{name} AS {_type(table, name)}[])" for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    same = " AND ".join(f'found."{name}" = wanted."{name}"' for name in names)
    order = ", ".join(f'found."{name}"' for name in names)
    query = (
        f'SELECT found.* FROM unnest({arrays}) AS wanted ({columns}) JOIN "{table.name}" AS found ON {same} '  # noqa: S608 - names are our tables' own
        f"WHERE found.project = :of_project ORDER BY {order} {f'FOR {lock} OF found' if lock else ''}"
    )
    return text(query)


@cache
def _row_by_row(table: Table, names: tuple[str, ...], on_conflict: str) -> TextClause:
    values = ", ".join(f":{name}" for name in names)
    return text(f"INSERT INTO {_into(table, names)} VALUES ({values}) {on_conflict}")  # noqa: S608 - names are our tables' own


@cache
def _over_arrays(table: Table, names: tuple[str, ...], on_conflict: str) -> TextClause:
    arrays = ", ".join(f"CAST(:{name} AS {_type(table, name)}[])" for name in names)
    return text(f"INSERT INTO {_into(table, names)} SELECT * FROM unnest({arrays}) {on_conflict}")  # noqa: S608 - names are our tables' own


def _into(table: Table, names: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    return f'"{table.name}" ({columns})'


def _type(table: Table, name: str) -> str:
    return next((sql for kind, sql in _TYPES if isinstance(table.c[name].type, kind)), "text")
