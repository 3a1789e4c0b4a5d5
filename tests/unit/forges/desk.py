"""What the tests of comments share: a forge on loopback with a user, a patience that waits for nothing, and bodies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from planner.app.comment import Done, Request, post
from planner.app.comment_decide import Behavior
from planner.forges.again import Patience
from planner.forges.choose import opened
from planner.forges.port import Name, Place
from planner.render.comment import Hidden
from tests.emulators import forges

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
EARLY, MID, LATE = "2026-11-30T09:00:00Z", "2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"
REPO, NUMBER = "acme/jobs", 7
TOKEN = "ghs_" + "x1Y2" * 9


@dataclass
class Desk:
    """One pull request, seen by skyplan."""

    forge: forges.Forge
    name: Name
    waits: list[float] = field(default_factory=list)
    draws: float = 0.5
    attempts: int = 5

    @property
    def patience(self) -> Patience:
        return Patience(attempts=self.attempts, now=NOW.timestamp, pause=self.waits.append, draw=lambda: self.draws)

    @property
    def place(self) -> Place:
        return Place(forge=self.name, api=self.forge.url, repo=REPO, number=NUMBER)

    @property
    def me(self) -> dict:
        return next(iter(self.forge.users.values()))

    def post(self, text: str, *, token: str = TOKEN, **asked: object) -> Done:
        given = Request(text=text.encode(), origin="diff.md")
        request = replace(given, **{k: Behavior(v) if k == "behavior" else v for k, v in asked.items()})
        patience = self.patience
        with opened(self.place, token, patience) as there:
            return post(request, there, patience, NOW)

    def there(self) -> list[str]:
        """What a reader sees: no hidden comment."""
        return [c["body"] for c in self.forge.place(REPO, NUMBER) if not c.get("minimised")]


def body(text: str = "**one job moves**", *, tag: str = "prod", at: str = MID, kind: str = "diff") -> str:
    return f"{Hidden(kind=kind, tag=tag, valid_at=at)}\n## skyplan {kind}\n\n{text}\n"


@contextmanager
def desk(name: Name, *, kind: str = "Bot", role: str = "write") -> Iterator[Desk]:
    forge = forges.GitHub() if name is Name.GITHUB else forges.GitLab()
    forge.user(TOKEN, "skyplan[bot]", kind=kind, role=role)
    forge.place(REPO, NUMBER)
    with forges.served(forge):
        yield Desk(forge=forge, name=name)
