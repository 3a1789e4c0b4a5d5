"""One transaction, to read or to write, and what a database says that cannot serve now: the same for all who use the record.

Decides what is `Unavailable`: locked, full, away, started anew.  The same call may be made again later.  A rule of the database that is broken is our error,
and stays what it is.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from planner.model.diagnostic import Diagnostic
from planner.model.errors import Unavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


@contextmanager
def writing(engine: Engine) -> Generator[Connection]:
    """Committed where the block ends well.  Raises Unavailable."""
    with _answering(), engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


@contextmanager
def reading(engine: Engine) -> Generator[Connection]:
    """Raises Unavailable."""
    with _answering(), engine.connect() as connection:
        yield connection


@contextmanager
def _answering() -> Generator[None]:
    try:
        yield
    except (DBAPIError, PoolTimeout) as error:
        lost = isinstance(error, DBAPIError) and error.connection_invalidated
        if not lost and not isinstance(error, (OperationalError, InterfaceError, PoolTimeout)):
            raise
        why = getattr(error, "orig", None) or error
        raise Unavailable([Diagnostic(code="SKY-APPLY-319", summary=f"the record does not answer: {why}")]) from error
