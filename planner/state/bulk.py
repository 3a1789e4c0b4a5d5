"""Many rows by one statement: what a batch of reports looks up and inserts.

Decides how: PostgreSQL takes them as one JSON text (measured 2026-11-30: row by row it is a third as fast, by arrays its driver takes a third more of our time),
SQLite many rows by one step.  Its driver gives the interpreter away at each step and must win it back from the thread that reads requests: row by
row a batch took ten times as long.  Both have one text for what is to happen on a conflict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import BigInteger, Connection, Float, Integer, RowMapping, Table, TextClause, text

_TYPES = ((BigInteger, "bigint"), (Integer, "integer"), (Float, "double precision"))
IGNORE = "ON CONFLICT DO NOTHING"
CHUNK = 400
"""Keys per query on SQLite: far below its 32,766 variables."""
MOST_ROWS = 128
"""By one statement on SQLite; a server's connection keeps that many of three tables prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Rows for a table, each with a value for each of `names`."""

    table: Table
    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    on_conflict: str = ""


def put(connection: Connection, *puts: Put) -> None:
    """Insert them; no table is named twice."""
    wanted = [p for p in puts if p.rows]
    if not wanted:
        return
    if connection.dialect.name == "postgresql":
        # all by one statement: each would be a way to the server and back, while others want the interpreter
        statement = _from_json(tuple((p.table, p.names, p.on_conflict) for p in wanted))
        connection.execute(statement, {f"listed{k}": json.dumps(p.rows) for k, p in enumerate(wanted)})
        return
    for one in wanted:
        _put_by_values(connection, one)


def of_dicts(table: Table, rows: Sequence[Mapping[str, Any]], on_conflict: str = "") -> Put:
    """Rows that all have the same columns."""
    names = tuple(rows[0]) if rows else ()
    return Put(
        table=table, names=names, rows=[tuple([row[name] for name in names]) for row in rows], on_conflict=on_conflict
    )


def _put_by_values(connection: Connection, it: Put) -> None:
    at = 0
    while left := len(it.rows) - at:
        count = min(MOST_ROWS, left)
        values = tuple(chain.from_iterable(it.rows[at : at + count]))
        connection.exec_driver_sql(_by_values(it.table, it.names, it.on_conflict, count), values)
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


@cache
def _found_by_json(table: Table, names: tuple[str, ...]) -> TextClause:
    order = ", ".join(f'found."{name}"' for name in names)
    return text(f"SELECT found.* {_of_keys(table, names, ':keys', ':of_project')} ORDER BY {order}")


def numbered_by_json(table: Table, names: tuple[str, ...], columns: tuple[str, ...], keys: str) -> str:
    """On SQLite, a query whose one value is a list: of each row that is found by the parameter `keys`, the number of its key and `columns`."""
    listed = ", ".join(f'found."{name}"' for name in columns)
    return (
        f"SELECT json_group_array(json_array(wanted.key, {listed})) {_of_keys(table, names, f':{keys}', ':of_project')}"
    )


def numbered_one_by_one(
    table: Table, names: tuple[str, ...], columns: tuple[str, ...], keys: str, lock: str = ""
) -> str:
    """The same on PostgreSQL, in the keys' order, locked alike."""
    listed = ", ".join(f'found."{name}"' for name in columns)
    return f"SELECT json_agg(json_build_array(wanted.n - 1, {listed})) {_one_by_one(table, names, lock, keys)}"


def _of_keys(table: Table, names: tuple[str, ...], keys: str, project: str) -> str:
    same = " AND ".join(f"""found."{name}" = json_extract(wanted.value, '$[{k}]')""" for k, name in enumerate(names))
    # CROSS: keys first, each looked up in the index
    return (
        f'FROM json_each({keys}) AS wanted CROSS JOIN "{table.name}" AS found ON found.project = {project} AND {same}'
    )


@cache
def _found_one_by_one(table: Table, names: tuple[str, ...], lock: str) -> TextClause:
    return text(f"SELECT found.* {_one_by_one(table, names, lock)}")


def _one_by_one(table: Table, names: tuple[str, ...], lock: str, keys: str = "keys") -> str:
    same = " AND ".join(
        f'"{name}" = CAST(wanted.value ->> {k} AS {_type(table, name)})' for k, name in enumerate(names)
    )
    # OFFSET 0 keeps each key a look into the index, in the keys' order: joined, a table that was not analysed yet is read whole for each
    row = (
        f'SELECT * FROM "{table.name}" WHERE project = :of_project AND {same} OFFSET 0 {f"FOR {lock}" if lock else ""}'  # noqa: S608 - names are our tables' own
    )
    listed = f"json_array_elements(CAST(:{keys} AS json)) WITH ORDINALITY AS wanted (value, n)"
    return f"FROM {listed} CROSS JOIN LATERAL ({row}) AS found"


@cache
def _by_values(table: Table, names: tuple[str, ...], on_conflict: str, count: int) -> str:
    row = f"({', '.join('?' * len(names))})"
    return f"INSERT INTO {_into(table, names)} VALUES {', '.join([row] * count)} {on_conflict}"  # noqa: S608 - names are our tables' own


@cache
def _from_json(puts: tuple[tuple[Table, tuple[str, ...], str], ...]) -> TextClause:
    *before, last = [_insert_from_json(*one, f"listed{k}") for k, one in enumerate(puts)]
    along = ", ".join(f"along{k} AS ({statement})" for k, statement in enumerate(before))
    return text(f"WITH {along} {last}" if along else last)


def _insert_from_json(table: Table, names: tuple[str, ...], on_conflict: str, listed: str) -> str:
    values = ", ".join(f"CAST(listed.value ->> {k} AS {_type(table, name)})" for k, name in enumerate(names))
    rows = f"SELECT {values} FROM json_array_elements(CAST(:{listed} AS json)) AS listed"  # noqa: S608 - names are our tables' own
    return f"INSERT INTO {_into(table, names)} {rows} {on_conflict}"


def _into(table: Table, names: tuple[str, ...]) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    return f'"{table.name}" ({columns})'


def _type(table: Table, name: str) -> str:
    return next((sql for kind, sql in _TYPES if isinstance(table.c[name].type, kind)), "text")
