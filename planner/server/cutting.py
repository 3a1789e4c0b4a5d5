"""The cut, between HTTP and record: candidates as a node found them, the chosen one as the node is told.

Decides which candidates are fit to be judged.  Anybody who can write into a store can put any manifest there: one that is none is skipped and told, and
never keeps the others from being judged.  Which one wins is the record's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from planner.model.runtime import Candidate, Cut, Session
from planner.server import bodies
from planner.server.reports import clean

if TYPE_CHECKING:
    from planner.server.services import Services


def begin(services: Services, session: Session) -> bodies.Begun:
    """Fence the older generations."""
    generations, cut = services.runtime.begin_cut(session.seat, services.clock())
    return bodies.Begun(
        generations=list(generations), cut=chosen(cut) if cut else None, skipped=list(cut.skipped) if cut else []
    )


def choose(services: Services, session: Session, wanted: bodies.Choose) -> bodies.CutAnswer:
    """Judge what the store holds."""
    candidates: list[Candidate] = []
    skipped = list(wanted.skipped)
    for found in wanted.candidates:
        try:
            read = bodies.CandidateBody.model_validate(found)
        except ValidationError as error:
            uri: Any = cast("dict[str, Any]", found).get("uri") if isinstance(found, dict) else None
            wrong = ".".join(str(part) for part in error.errors()[0]["loc"]) or "all of it"
            skipped.append((clean(uri[:2048]) if isinstance(uri, str) else "", f"no checkpoint: `{wrong}` is not fit"))
            continue
        candidates.append(Candidate(**read.model_dump()))
    return answer(services.runtime.choose_cut(session.seat, services.clock(), candidates, skipped))


def reject(services: Services, session: Session, wanted: bodies.Reject) -> bodies.CutAnswer:
    """Take out one whose contents proved wrong."""
    return answer(services.runtime.reject_cut(session.seat, services.clock(), wanted.uri, wanted.reason))


def answer(cut: Cut) -> bodies.CutAnswer:
    """As nodes are told."""
    return bodies.CutAnswer(cut=chosen(cut), skipped=list(cut.skipped))


def chosen(cut: Cut) -> bodies.Chosen:
    """The checkpoint, or none."""
    if cut.chosen is None:
        return bodies.Chosen(step=None)
    c = cut.chosen
    return bodies.Chosen(step=c.step, uri=c.uri, generation=c.generation, digest=c.digest)
