"""The adapter of a place."""

from __future__ import annotations

from typing import assert_never

from planner.forges.again import Patience
from planner.forges.port import Forge, Name, Place


def open_forge(place: Place, token: str, patience: Patience | None = None) -> Forge:
    """Nothing is asked yet.  Raises ForgeError (SKY-APPLY-331, 336)."""
    patience = patience or Patience()
    match place.forge:
        case Name.GITHUB:
            from planner.forges.github import GitHub  # noqa: PLC0415 - one of two

            return GitHub(place, token, patience)
        case Name.GITLAB:
            from planner.forges.gitlab import GitLab  # noqa: PLC0415 - one of two

            return GitLab(place, token, patience)
        case _:
            assert_never(place.forge)
