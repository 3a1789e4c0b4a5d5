"""The adapter of a place."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, assert_never

from planner.forges.again import Patience
from planner.forges.port import Forge, Name, Place

if TYPE_CHECKING:
    from planner.forges.github import GitHub
    from planner.forges.gitlab import GitLab


@contextmanager
def opened(place: Place, token: str, patience: Patience | None = None) -> Generator[Forge]:
    """Nothing is asked yet; its connections end with the block.  Raises ForgeError (SKY-APPLY-331, 336)."""
    forge = _made(place, token, patience or Patience())
    try:
        yield forge
    finally:
        forge.close()


def _made(place: Place, token: str, patience: Patience) -> GitHub | GitLab:
    match place.forge:
        case Name.GITHUB:
            from planner.forges.github import GitHub  # noqa: PLC0415 - one of two

            return GitHub(place, token, patience)
        case Name.GITLAB:
            from planner.forges.gitlab import GitLab  # noqa: PLC0415 - one of two

            return GitLab(place, token, patience)
        case _:
            assert_never(place.forge)
