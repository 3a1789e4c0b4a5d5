"""A token by which one machine that was set up by hand may take one seat, once: made here, kept by the record as a hash.

Decides for which seats a token is made: of a run that goes on, with such a rank.  The file is for its owner's eyes, new, and there before the record knows of
the token: what could not be written opens nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.app.following import Source, rank_of, run_of
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.record import stamp
from planner.model.runtime import Refused, Seat

if TYPE_CHECKING:
    from collections.abc import Generator

TOKEN_BYTES: Final = 32
MAX_HOURS: Final = 168.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """For which seat, and until when.  The token itself is in the file only."""

    seat: Seat
    expires_at: str
    file: str


def issue(source: Source, job: str, *, generation: int | None, rank: int, hours: float, file: Path) -> Issued:
    """Make a token and write it to `file`.  Raises InputError: SKY-APPLY-323 for a seat that is none or a run that is over, SKY-SPEC-101 for a file that cannot be made."""
    run = run_of(source.record, job, generation)
    rank_of(run, rank)
    seat, now = Seat(job=job, generation=run.generation, rank=rank), source.clock.now()
    try:
        source.told.check(seat)
    except Refused as error:
        raise InputError(
            [Diagnostic(code="SKY-APPLY-323", summary=f"{run.id} takes no node: {error.reason}")]
        ) from error
    until, token = now + timedelta(hours=hours), secrets.token_urlsafe(TOKEN_BYTES)
    with _written(file, f"{token}\n"):
        _noted(source, seat, token, until, now)
    return Issued(seat=seat, expires_at=stamp(until), file=str(file))


def _noted(source: Source, seat: Seat, token: str, until: datetime, now: datetime) -> None:
    source.told.put_one_time(seat, sha256(token.encode()).hexdigest(), until, now)


@contextlib.contextmanager
def _written(file: Path, text: str) -> Generator[None]:
    """A new file with the text, gone again where the block fails."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        why = "is there already; name another file" if isinstance(error, FileExistsError) else error.strerror
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary=f"{file}: {why}")]) from error
    try:
        with os.fdopen(opened, "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        yield
    except BaseException as error:
        file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError([Diagnostic(code="SKY-SPEC-101", summary=f"{file}: {error.strerror}")]) from error
        raise
