"""What people and their programs ask about jobs, as JSON.  Each answer is for the roles that its route names, per job (`Person.may`).

Decides who may read what: viewers jobs, steps, costs, placements and checkpoints · auditors events and credential issues · operators logs, and they may ask a
job's nodes for something or make a one-time token.  Whether a job exists is told only to those who may see it.  Launches and ends nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AfterValidator, AwareDatetime, Field

from planner.app import watching
from planner.app import watching_json as told_as
from planner.app.status import shown
from planner.model.record import stamp
from planner.model.runtime import Seat
from planner.model.server import Person, Role
from planner.server import bodies
from planner.server.answers import Answered
from planner.server.node_routes import REFUSALS
from planner.server.people import current, demand

if TYPE_CHECKING:
    from planner.model.record import Run
    from planner.server.services import Services

MOST: Final = 1000
#: an id in the record: beyond this no number is exact in JSON
_ID: Final = 2**53
#: before it, a year is written with fewer than four digits
_FIRST_YEAR: Final = 1000
_NAME: Final = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$"

Who = Annotated[Person, Depends(current)]
JobPath = Annotated[str, Path(pattern=_NAME, max_length=63, examples=["train"])]
Generation = Annotated[int | None, Query(ge=1, le=10**9, description="Of this run; without it of the one that counts.")]
After = Annotated[int, Query(ge=0, le=_ID, description="Go on after this id; 0: the newest.")]
Limit = Annotated[int, Query(ge=1, le=MOST)]


def _in_utc(at: datetime) -> datetime:
    try:
        found = at.astimezone(UTC)
    except OverflowError:
        found = None
    if found is None or found.year < _FIRST_YEAR:
        raise ValueError("no time that can be")
    return found


class Ask(bodies.Body):
    """`POST /v1/jobs/{job}/requests`: what the nodes of a run shall do."""

    word: Literal["checkpoint", "stop"]
    reason: Annotated[bodies.Text, Field(min_length=1, max_length=400)]
    generation: Annotated[int, Field(ge=1, le=10**9, strict=True)] | None = None
    deadline: Annotated[AwareDatetime, AfterValidator(_in_utc)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """`next`: give it as `after`; null where these were the last."""

    jobs: list[told_as.JobSummary]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Oldest first."""

    progress: list[told_as.ProgressDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """Newest first."""

    checkpoints: list[told_as.CheckpointDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Oldest first; `next`: give it as `after`."""

    events: list[told_as.EventDocument]
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """In order of arrival; `next`: give it as `after`."""

    generation: int
    logs: list[told_as.LogDocument]
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Newest first."""

    credentials: list[told_as.CredentialDocument]


class Asked(bodies.Body):
    """The request, as nodes get it with the answer to their next report."""

    id: int
    generation: int


class Seated(bodies.Body):
    """`POST /v1/jobs/{job}/one-time-tokens`: for which seat, and for how long."""

    generation: Annotated[int, Field(ge=1, le=10**9, strict=True)]
    rank: Annotated[int, Field(ge=0, le=bodies.MAX_RANK, strict=True)]
    hours: Annotated[float, Field(gt=0, le=168)] = 1.0


class OneTime(bodies.Body):
    """Shown this once: the record keeps its hash."""

    token: str
    expires_at: str


def router(services: Services) -> APIRouter:
    """The routes.  All are plain functions: they run in threads, for they ask the database."""
    routes = APIRouter(prefix="/v1/jobs", tags=["people"], responses=REFUSALS)
    _reading(routes, services)
    _history(routes, services)
    _asking(routes, services)
    return routes


def _reading(routes: APIRouter, services: Services) -> None:
    record, told = services.record, services.runtime

    @routes.get("")
    def jobs(who: Who, after: Annotated[str, Query(max_length=63)] = "", limit: Limit = 200) -> Jobs:
        """The jobs that you may see, by name: status, step, rate, cost so far."""
        names = visible(services, who, after, limit)
        found = watching.view(record, told, names, services.clock(), points=0, checkpoints=1) if names else ()
        return Jobs(jobs=[told_as.summary(v) for v in found], next=names[-1] if len(names) == limit else None)

    @routes.get("/{job}")
    def job_(who: Who, job: JobPath) -> told_as.JobDocument:
        """One job: its run and nodes, cost so far and what that is made of, placements, migrations, checkpoints."""
        return told_as.document(seen(services, who, job, points=0))

    @routes.get("/{job}/progress")
    def progress(who: Who, job: JobPath, generation: Generation = None, limit: Limit = 400) -> Steps:
        """Steps, oldest first, thinned evenly to `limit`; of all runs where no generation is given."""
        allowed(services, who, Role.VIEWER, job)
        found = watching.lowest_rank(told.progress(job, generation=generation, limit=limit))
        return Steps(progress=[told_as.progress_document(p) for p in found])

    @routes.get("/{job}/checkpoints")
    def checkpoints(who: Who, job: JobPath, limit: Limit = 200) -> Checkpoints:
        """The newest checkpoints, newest first."""
        allowed(services, who, Role.VIEWER, job)
        found = sorted(told.checkpoints(job, limit=limit), key=lambda c: (c.at, c.step), reverse=True)
        return Checkpoints(checkpoints=[told_as.checkpoint_document(c) for c in found])


def _history(routes: APIRouter, services: Services) -> None:
    told = services.runtime

    @routes.get("/{job}/events")
    def events(who: Who, job: JobPath, after: After = 0, limit: Limit = 200) -> Events:
        """What happened, oldest first.  Auditors and operators."""
        allowed(services, who, Role.AUDITOR, job)
        found = told.events(job, after=after, limit=limit)
        return Events(
            events=[told_as.event_document(number, e) for number, e in found], next=found[-1][0] if found else after
        )

    @routes.get("/{job}/logs")
    def logs(  # noqa: PLR0917 - FastAPI hands them over by name
        who: Who,
        job: JobPath,
        generation: Generation = None,
        rank: Annotated[int | None, Query(ge=0, le=bodies.MAX_RANK)] = None,
        after: After = 0,
        limit: Limit = 200,
    ) -> Logs:
        """What the job printed, in order of arrival.  Operators: people print what they should not."""
        run = run_of(services, who, Role.OPERATOR, job, generation)
        found = told.logs(job, run.generation, rank=rank, after=after, limit=limit)
        return Logs(
            generation=run.generation,
            logs=[told_as.log_document(c) for c in found],
            next=found[-1].id if found else after,
        )

    @routes.get("/{job}/credentials")
    def credentials(who: Who, job: JobPath, limit: Limit = 200) -> Credentials:
        """Which data credentials were given out, to whom, for what, until when; newest first.  Auditors and operators."""
        allowed(services, who, Role.AUDITOR, job)
        return Credentials(credentials=[told_as.credential_document(i) for i in told.issues(job, limit)])


def _asking(routes: APIRouter, services: Services) -> None:
    told = services.runtime

    @routes.post("/{job}/requests", status_code=201)
    def ask(who: Who, job: JobPath, wanted: Ask) -> Asked:
        """Ask a run's nodes to checkpoint, or to checkpoint if there is time and end.  Operators; who asked is in the record."""
        run = run_of(services, who, Role.OPERATOR, job, wanted.generation)
        deadline = stamp(wanted.deadline) if wanted.deadline else ""
        reason = f"{who.name}: {wanted.reason}"
        number = told.request(job, run.generation, wanted.word, reason, services.clock(), deadline)
        return Asked(id=number, generation=run.generation)

    @routes.post("/{job}/one-time-tokens", status_code=201)
    def one_time(who: Who, job: JobPath, wanted: Seated) -> OneTime:
        """A token by which one machine that was set up by hand may take one seat, once.  Operators."""
        run = run_of(services, who, Role.OPERATOR, job, wanted.generation)
        if not services.settings.identity.one_time:
            raise Answered("denied", "one-time tokens are not taken here (server.yaml)")
        if wanted.rank >= run.nodes:
            raise Answered("malformed", f"{run.id} has {run.nodes} node(s), ranks from 0 on")
        token, now = secrets.token_urlsafe(32), services.clock()
        until = now + timedelta(hours=wanted.hours)
        seat = Seat(job=job, generation=run.generation, rank=wanted.rank)
        told.put_one_time(seat, sha256(token.encode()).hexdigest(), until, now)
        return OneTime(token=token, expires_at=stamp(until))


def visible(services: Services, who: Person, after: str, limit: int) -> list[str]:
    """Names of the jobs that a person may see, after one."""
    names = [j.name for j in services.record.jobs() if j.name > after and who.may(Role.VIEWER, j.name)]
    return names[:limit]


def seen(services: Services, who: Person, job: str, *, points: int = watching.POINTS) -> watching.JobView:
    """One job.  Raises Denied, Answered."""
    allowed(services, who, Role.VIEWER, job)
    (found,) = watching.view(services.record, services.runtime, [job], services.clock(), points=points)
    return found


def allowed(services: Services, who: Person, role: Role, job: str) -> None:
    """Raises Denied first, then Answered for a job that does not exist: who may not see it does not learn that."""
    demand(who, role, job)
    if services.record.job(job) is None:
        raise Answered("not-found", f"no job `{job}` was ever applied")


def run_of(services: Services, who: Person, role: Role, job: str, generation: int | None) -> Run:
    """The run of a generation, or the one that counts.  Raises Denied, Answered."""
    allowed(services, who, role, job)
    runs = services.record.runs(job)
    found = shown(runs) if generation is None else next((r for r in runs if r.generation == generation), None)
    if found is None:
        raise Answered("not-found", f"`{job}` has no such run")
    return found
