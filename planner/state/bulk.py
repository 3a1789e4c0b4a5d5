"""Many rows by one statement: what a batch of reports looks up and inserts.

Decides how: PostgreSQL takes them as one JSON text (measured 2026-11-30: row by row it is a third as fast, by arrays its driver takes a third more of our time),
SQLite many rows by one step.  Its driver gives the interpreter away at each step and must win it back from the thread that reads requests: row by
row a batch took ten times as long.  Both have one text for what is to happen on a conflict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Float, Integer, RowMapping, Table, TextClause, text

_TYPES = ((BigInteger, "bigint"), (Integer, "integer"), (Float, "double precision"))
IGNORE = "ON CONFLICT DO NOTHING"
CHUNK = 400
"""Keys per query on SQLite: far below its 32,766 variables."""
MOST_ROWS = 128
"""By one statement on SQLite."""
EVEN_ROWS = 16
"""Such statements have a multiple of it, or fewer: the driver keeps 128 statements prepared."""


def put(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], on_conflict: str = "") -> None:
    """Insert rows that all have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == "postgresql":
        listed = json.dumps([[row[name] for name in names] for row in rows])
        connection.execute(_from_json(table, names, on_conflict), {"listed": listed})
    else:
        _put_by_values(connection, table, names, rows, on_conflict)


def _put_by_values(
    connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[Mapping[str, Any]], on_conflict: str
) -> None:
    at = 0
    while left := len(rows) - at:
        count = min(MOST_ROWS, left - left % EVEN_ROWS or left)
        values = tuple([row[name] for row in rows[at : at + count] for name in names])
        connection.exec_driver_sql(_by_values(table, names, on_conflict, count), values)
        at += count


def find(
    connection: Connection,
    table: Table,
    project: str,
    names: tuple[str, ...],
    keys: Sequence[tuple[Any, ...]],
    *,
    lock: str = "",
) -> list[RowMapping]:
    """The project's rows whose columns `names` are one of `keys`, which are sorted: in their order, locked FOR `lock` (SHARE, UPDATE) where the database locks rows."""
    if not keys:
        return []
    postgresql = connection.dialect.name == "postgresql"
    query = _found_one_by_one(table, names, lock) if postgresql else _found_by_json(table, names)
    return list(connection.execute(query, {"of_project": project, "keys": json.dumps(keys)}).mappings())


def look(
    connection: Connection,
    table: Table,
    project: str,
    names: tuple[str, ...],
    keys: Sequence[tuple[Any, ...]],
    *,
    column: str,
    lock: str = "",
) -> dict[tuple[Any, ...], int]:
    """By key, a whole number of each row that `find` would find, locked alike."""
    if not keys:
        return {}
    if connection.dialect.name == "postgresql":
        values = {"of_project": project, "keys": json.dumps(keys)}
        found = connection.execute(_numbers_locked(table, names, column, lock), values).scalar_one()
        return {tuple(key): number for *key, number in found or ()}
    found = connection.exec_driver_sql(_numbers_by_json(table, names, column), (json.dumps(keys), project)).scalar_one()
    return {tuple(key): number for *key, number in json.loads(found)}


@cache
def _found_by_json(table: Table, names: tuple[str, ...]) -> TextClause:
    order = ", ".join(f'found."{name}"' for name in names)
    return text(f"SELECT found.* {_of_keys(table, names, ':keys', ':of_project')} ORDER BY {order}")


@cache
def _numbers_by_json(table: Table, names: tuple[str, ...], column: str) -> str:
    columns = ", ".join(f'found."{name}"' for name in (*names, column))
    # all of them as one row: each would be a step
    return f"SELECT json_group_array(json_array({columns})) {_of_keys(table, names, '?', '?')}"


def _of_keys(table: Table, names: tuple[str, ...], keys: str, project: str) -> str:
    same = " AND ".join(f"""found."{name}" = json_extract(wanted.value, '$[{k}]')""" for k, name in enumerate(names))
    # CROSS: keys first, each looked up in the index
    return (
        f'FROM json_each({keys}) AS wanted CROSS JOIN "{table.name}" AS found ON found.project = {project} AND {same}'
    )


@cache
def _numbers_locked(table: Table, names: tuple[str, ...], column: str, lock: str) -> TextClause:
    columns = ", ".join(f'found."{name}"' for name in (*names, column))
    return text(f"SELECT json_agg(json_build_array({columns})) {_one_by_one(table, names, lock)}")


@cache
def _found_one_by_one(table: Table, names: tuple[str, ...], lock: str) -> TextClause:
    return text(f"SELECT found.* {_one_by_one(table, names, lock)}")


def _one_by_one(table: Table, names: tuple[str, ...], lock: str) -> str:
    same = " AND ".join(
        f'"{name}" = CAST(wanted.value ->> {k} AS {_type(table, name)})' for k, name in enumerate(names)
    )
    # OFFSET 0 keeps each key a look into the index, in the keys' order: joined, a table that was not analysed yet is read whole for each
    row = (
        f'SELECT * FROM "{table.name}" WHERE project = :of_project AND {same} OFFSET 0 {f"FOR {lock}" if lock else ""}'  # noqa: S608 - names are our tables' own
    )
    return f"FROM json_array_elements(CAST(:keys AS json)) AS wanted CROSS JOIN LATERAL ({row}) AS found"


@cache
def _by_values(table: Table, names: tuple[str, ...], on_conflict: str, count: int) -> str:
    row = f"({', '.join('?' * len(names))})"
    return f"INSERT INTO {_into(table, names)} VALUES {', '.join([row] * count)} {on_conflict}"  # noqa: S608 - names are our tables' own


@cache
def _from_json(table: Table, names: tuple[str, ...], on_conflict: str) -> TextClause:
    values = ", ".join(f"CAST(listed.value ->> {k} AS {_type(table, name)})" for k, name in enumerate(names))
    rows = f"SELECT {values} FROM json_array_elements(CAST(:listed AS json)) AS listed"  # noqa: S608 - names are our tables' own
    return text(f"INSERT INTO {_into(table, names)} {rows} {on_conflict}")


def _into(table: Table, names: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    return f'"{table.name}" ({columns})'


def _type(table: Table, name: str) -> str:
    return next((sql for kind, sql in _TYPES if isinstance(table.c[name].type, kind)), "text")
