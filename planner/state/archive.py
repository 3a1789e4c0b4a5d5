"""The record as rows and back: read whole at one moment while others write, written whole or not at all.

Decides which tables go along (all but sessions: nodes join again by the keys they are bound to) and what a row must look like to be taken.  Knows no files.
A record of one kind of database can be read into the other.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from sqlalchemy import BigInteger, Connection, Engine, Float, Integer, Table, func, select, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError, Unavailable
from planner.state import bulk, tables
from planner.state.engine import open_engine
from planner.state.guards import UNWRITABLE
from planner.state.record import EVERY_PROJECT

LEFT_OUT: Final = ("session",)
BATCH: Final = 500
_NAMED: Final = {t.name: t for t in tables.metadata.sorted_tables if t.name not in LEFT_OUT}
NAMES: Final = tuple(_NAMED)
"""Tables, each after those it refers to."""

Line = tuple[str, dict[str, Any]]


class Archive:
    """A database, as a whole or one project's part of it (`EVERY_PROJECT`: all)."""

    def __init__(self, engine: Engine, project: str) -> None:
        self._engine = engine
        self._project = project

    @classmethod
    def open(cls, url: str, project: str, *, upgrade: bool) -> Archive:
        """Connect; `upgrade` makes and migrates.  Raises MissingPart, InputError."""
        return cls(open_engine(url, upgrade=upgrade), project)

    def close(self) -> None:
        """Let the database go."""
        self._engine.dispose()

    @property
    def in_a_file(self) -> bool:
        """Whether the database is one file, which can be copied as such."""
        return self._engine.dialect.name == "sqlite"

    def rows(self) -> Generator[Line]:
        """(table, row), all as of one moment."""
        connection = self._engine.connect()
        if not self.in_a_file:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        # SQLite's read transaction sees one moment by itself
        try:
            with connection:
                for name, table in _NAMED.items():
                    for row in self._of(connection, table):
                        yield name, row
        except SQLAlchemyError as error:
            raise _away(error) from error

    def copy_to(self, path: str) -> None:
        """SQLite: the whole database as a file that is not there yet, as of one moment, writers going on."""
        try:
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                raw = connection.connection.driver_connection
                assert raw is not None  # noqa: S101 - it is connected
                raw.execute("VACUUM INTO ?", (path,))
        except Exception as error:
            raise _away(error) from error

    def occupied(self) -> str | None:
        """The name of a table that holds something; None for an empty record."""
        with self._engine.connect() as connection:
            for table in tables.metadata.sorted_tables:
                if connection.execute(select(table).limit(1)).first() is not None:
                    return table.name
        return None

    def fill(self, lines: Iterable[Line]) -> None:
        """Write all rows in one transaction; nothing stays where `lines` raises or a row contradicts another.  Raises InputError (SKY-RUN-524)."""
        try:
            with self._engine.connect().execution_options(writes=True) as connection, connection.begin():
                for table, rows in _batches(lines):
                    bulk.put(connection, bulk.of_dicts(table, rows))
                if not self.in_a_file:
                    _go_on_counting(connection)
        except IntegrityError as error:
            raise refused([f"rows contradict each other: {str(error.orig).splitlines()[0]}"]) from error
        except SQLAlchemyError as error:
            raise _away(error) from error

    def _of(self, connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
        query = select(table).order_by(*table.primary_key.columns)
        if "project" in table.c and self._project != EVERY_PROJECT:
            query = query.where(table.c.project == self._project)
        found = connection.execute(query, execution_options={"yield_per": BATCH})
        for row in found.mappings():
            yield dict(row)


def row_problem(name: str, row: Any) -> str | None:
    """Why that is no row of the table."""
    table = _NAMED.get(name)
    if table is None:
        return f"no table `{name}`"
    if not isinstance(row, dict) or set(row) != set(table.c.keys()):  # pyright: ignore[reportUnknownArgumentType] - parsed JSON
        return f"not the columns of `{name}`"
    values = cast("Mapping[str, Any]", row)
    for column in table.c:
        value = values[column.name]
        if value is None:
            if not column.nullable:
                return f"`{name}.{column.name}` is missing"
        elif not _fits(column.type, value):
            return f"`{name}.{column.name}` is not of its type"
    return None


def refused(problems: Iterable[str]) -> InputError:
    """What is wrong with an exported record."""
    return InputError([Diagnostic(code="SKY-RUN-524", summary=problem) for problem in problems])


def _fits(kind: Any, value: Any) -> bool:
    if isinstance(kind, Integer):
        limit = 2**63 if isinstance(kind, BigInteger) else 2**31
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if isinstance(kind, Float):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, str) and not UNWRITABLE.search(value)


def _batches(lines: Iterable[Line]) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    """Rows of one table after another, not too many at once."""
    now, rows = "", list[dict[str, Any]]()
    for name, row in lines:
        if name != now or len(rows) == BATCH:
            if rows:
                yield _NAMED[now], rows
            now, rows = name, []
        rows.append(row)
    if rows:
        yield _NAMED[now], rows


def _go_on_counting(connection: Connection) -> None:
    """PostgreSQL counts ids in sequences of their own, which rows written with their ids do not move."""
    for table in _NAMED.values():
        if "id" in table.c and (top := connection.execute(select(func.max(table.c.id))).scalar()):
            query = text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :top)")
            connection.execute(query, {"table": f'"{table.name}"', "top": top})


def _away(error: Exception) -> Unavailable:
    why = getattr(error, "orig", None) or error
    return Unavailable([Diagnostic(code="SKY-APPLY-319", summary=f"the record does not answer: {why}")])
