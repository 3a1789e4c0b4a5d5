"""Is it the database that cannot serve now (locked, full, restarted), or is it us?  The first is 503 and tried again, the second is an error of ours."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from planner.model.errors import Unavailable


def unavailable(error: BaseException) -> bool:
    """It may go well later, unchanged.  The record says `Unavailable` of whatever its database raises; a value that it does not take is none of that."""
    cause = error.__cause__ if isinstance(error, Unavailable) else error
    if cause is None:
        return True
    if isinstance(cause, DBAPIError) and cause.connection_invalidated:
        return True
    return isinstance(cause, OperationalError | InterfaceError | PoolTimeout)
