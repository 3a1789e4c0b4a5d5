"""What `skyplan doctor` asks of a cloud: who am I, may I read what feeds read, can the states' store be listed.  Nothing that is asked changes anything.

Adapters map every SDK error to `planner.model.errors`; none escapes.  What an answer means for a project is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

from planner.clouds.port import Where
from planner.model.errors import CloudError
from planner.model.project import Backend

CONNECT_SECONDS = 5
ANSWER_SECONDS = 20

Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whose credentials they are: `who` by the cloud's own name; `account` as a target names it, "" where the cloud does not say."""

    who: str
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The answer to `who am I`.  One of `caller` and `error` is None.

    skew_seconds  how far this machine's clock is ahead of the API's `Date`; None where there was none.  A refusal has one too: a clock that is wrong is refused
    """

    caller: Caller | None = None
    error: CloudError | None = None
    skew_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One reading call that feeds make; `error` None: it is allowed."""

    operation: str
    error: CloudError | None = None


class Checkup(Protocol):
    """One account, as the caller."""

    def caller(self) -> Seen:
        """Who asks.  Raises nothing that a cloud is to blame for."""
        ...

    def rights(self, region: str, instance_type: str) -> tuple[Right, ...]:
        """The calls of the feeds, each once and as small as the API lets it be."""
        ...

    def backend(self, backend: Backend, prefix: str) -> None:
        """List the store of states under `prefix`, one entry.  Raises CloudError."""
        ...

    def close(self) -> None:
        """Let the connections go."""
        ...


class Checkups(Protocol):
    """Checkups by account."""

    def checkup(self, where: Where) -> Checkup:
        """Raises MissingPart where the cloud's SDK is not installed, CloudError where there are no credentials."""
        ...


def here() -> datetime:
    """The machine's clock."""
    return datetime.now(UTC)


def skew(date: str | None, now: datetime) -> float | None:
    """Seconds that `now` is ahead of an HTTP `Date`, which is whole seconds; None where that is none."""
    try:
        at = parsedate_to_datetime(date or "")
    except (TypeError, ValueError):
        return None
    return (now - (at if at.tzinfo else at.replace(tzinfo=UTC))).total_seconds()


def tried(operation: str, call: Callable[[], object]) -> Right:
    """Whether the call is allowed."""
    try:
        call()
    except CloudError as error:
        return Right(operation=operation, error=error)
    return Right(operation=operation)
