"""What is to be done with a comment, given those that are there: pure.  Which are the token's own and not hidden was found out before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from planner.forges.port import Comment
from planner.render.comment import Hidden, read_hidden, without_hidden


class Behavior(StrEnum):
    """What becomes of the earlier comment."""

    UPDATE = "update"
    NEW = "new"
    HIDE_AND_NEW = "hide-and-new"
    DELETE_AND_NEW = "delete-and-new"


class What(StrEnum):
    """What is done."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"


SLACK = timedelta(minutes=5)
"""A machine's clock may be that far behind the one that dated a comment."""
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is to stand there.  `text` is what a reader sees; `quiet`: it says that nothing changes."""

    hidden: Hidden
    text: str
    quiet: bool

    @property
    def body(self) -> str:
        """The whole comment."""
        return f"{self.hidden}\n{self.text}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`at`: the comment that is updated, that stays, or that is newer."""

    what: What
    at: Comment | None = None


def decide(
    there: Sequence[Comment], draft: Draft, behavior: Behavior, now: datetime, *, only_on_change: bool = False
) -> Verdict:
    """An older run never overwrites a newer one's words; what says the same is not said again.

    A comment that says the same and has an earlier date is given the later one in place, whatever the behaviour: else an older run between the two would win.
    """
    newest = latest(there, now)
    silent = only_on_change and draft.quiet
    if newest is None:
        return Verdict(what=What.SKIPPED if silent else What.CREATED)
    if counted(newest, now) > draft.hidden.moment:
        return Verdict(what=What.SUPERSEDED, at=newest)
    same = without_hidden(newest.body) == draft.text
    if same and read_hidden(newest.body) == draft.hidden:
        return Verdict(what=What.UNCHANGED, at=newest)
    if same or silent or behavior is Behavior.UPDATE:
        return Verdict(what=What.UPDATED, at=newest)
    return Verdict(what=What.CREATED)


def latest(there: Iterable[Comment], now: datetime) -> Comment | None:
    """The one that counts: of two runs that both wrote one, the later run's, and of one moment the one written last."""
    return max(there, key=lambda c: (counted(c, now), c.order), default=None)


def counted(comment: Comment, now: datetime) -> datetime:
    """When a comment is of.  A date that is still to come counts as none: a commit's date is anybody's to choose."""
    hidden = read_hidden(comment.body)
    at = hidden.moment if hidden else datetime.min.replace(tzinfo=UTC)
    return at if at <= now + SLACK else datetime.min.replace(tzinfo=UTC)


def dated(*moments: str, now: datetime) -> str:
    """The first moment that is given, in UTC to the second and not after now; now where none is.  Raises ValueError on what is no moment."""
    said = next(filter(None, moments), "")
    at = datetime.fromisoformat(said) if said else now
    at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    return min(at, now).strftime(_FORMAT)
