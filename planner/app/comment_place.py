"""Where a comment goes and with which token: the one place that reads the pipeline's event file for it.  The token is read from the environment alone, never from an option."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from planner.forges import surroundings
from planner.forges.surroundings import EVENT, Given, Surroundings
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import ForgeError

LARGEST_EVENT: Final = 32 * 2**20
"""Bytes: GitHub caps the payload of an event at 25 MB (its documentation of webhooks, 2026-11)."""


def find(given: Given, env: Mapping[str, str]) -> Surroundings:
    """Raises ForgeError (SKY-APPLY-330, 336)."""
    name = env.get(EVENT, "")
    github = given.forge == "github" or (not given.forge and env.get("GITHUB_REPOSITORY"))
    return surroundings.look_around(given, env, _event(Path(name), given) if name and github else None)


def token(found: Surroundings, variable: str, env: Mapping[str, str], *, needed: bool) -> str:
    """Raises ForgeError (SKY-APPLY-331) where there is none and one is needed."""
    secret = surroundings.token_of(found.place.forge, variable, env)
    if needed and not secret:
        names = variable or " or ".join(surroundings.TOKENS[found.place.forge])
        hint = f"set the environment variable {names}, or name another with --token-variable; see docs/ci.md"
        raise ForgeError([Diagnostic(code="SKY-APPLY-331", summary=f"{names} is not set", hint=hint)])
    return secret


def _event(path: Path, given: Given) -> bytes | None:
    try:
        with path.open("rb") as file:
            read = file.read(LARGEST_EVENT + 1)
    except OSError as error:
        if given.number:
            return None
        summary = f"the event's file cannot be read: {error.strerror or error}"
        at = Location(EVENT)
        raise ForgeError([Diagnostic(code="SKY-APPLY-330", summary=summary, location=at)]) from None
    return read if len(read) <= LARGEST_EVENT else b""
