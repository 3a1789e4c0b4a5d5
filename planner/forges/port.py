"""What posting a comment needs of a forge, as a protocol, and how it may fail.  GitHub's and GitLab's adapters are beside it; nothing here knows either.

Every method raises ForgeError, its words free of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Name(StrEnum):
    """The forges there are."""

    GITHUB = "github"
    GITLAB = "gitlab"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a comment goes.

    api      the API's address without a slash at its end, such as https://api.github.com
    repo     GitHub: OWNER/NAME; GitLab: the project's number or path
    number   of the pull request; GitLab: the merge request's number within its project
    web      its page, where that is known and the API does not tell
    """

    forge: Name
    api: str
    repo: str
    number: int
    web: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One that the token's own user wrote.  `order` grows from older to newer; `node` is GitHub's other name for it."""

    id: int
    body: str
    url: str
    node: str = ""

    @property
    def order(self) -> int:
        """Both forges count up."""
        return self.id


class TooLong(Exception):
    """The forge takes no text of that length."""


class Gone(Exception):
    """The comment is not there any more."""


class Unknown(Exception):
    """No answer to a write that must not be made twice: it may have happened.  `why` is what to say where it did not."""

    def __init__(self, why: Exception) -> None:
        super().__init__(str(why))
        self.why = why


class Forge(Protocol):
    """A pull request's or merge request's comments."""

    @property
    def longest(self) -> int:
        """Bytes that a comment may have."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What its user should know of what was asked so far."""
        ...

    def comments(self, wanted: Callable[[str], bool]) -> list[Comment]:
        """Those whose body is wanted, that the token's user wrote and that are not hidden; oldest first."""
        ...

    def safe(self, body: str) -> str:
        """The body as it may be sent: what the forge would take for an order to itself says nothing any more."""
        ...

    def create(self, body: str) -> Comment:
        """Raises TooLong; Unknown."""
        ...

    def update(self, comment: Comment, body: str) -> Comment:
        """Raises TooLong; Gone."""
        ...

    def hide(self, comment: Comment, folded: str) -> None:
        """As outdated.  `folded` is the text that stands there where the forge cannot hide.  One that is gone is hidden."""
        ...

    def delete(self, comment: Comment) -> None:
        """One that is gone is deleted."""
        ...
