"""The record as running nodes see it: each method one transaction, which servers (several, on one PostgreSQL) call for whoever holds a seat.

Decides what is a transaction; the rules are in `seats`, `deliver`, `cuts`, `meeting`, `told`.  Refusals are `Refused`; a database that does not answer is
`Unavailable`, and the same call may be made again later: all of them take a repetition for what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from planner.model.record import Event, stamp
from planner.model.runtime import (
    Candidate,
    Checkpoint,
    CredentialIssue,
    Cut,
    Delivered,
    Joined,
    LogChunk,
    NodeIdentity,
    NodeRequest,
    NodeSeen,
    Progress,
    Refusal,
    Refused,
    Report,
    Seat,
    Session,
)
from planner.state import cuts, deliver, guards, known, meeting, seats, tables, told
from planner.state.engine import open_engine
from planner.state.transactions import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

CONNECTIONS = 8
"""Kept open per process, and as many more under load."""
WORDS = ("checkpoint", "stop")


class Runtime:
    """One project's part of the database."""

    def __init__(self, engine: Engine, project: str) -> None:
        self._engine = engine
        self._project = project

    @classmethod
    def open(
        cls, url: str, project: str, *, upgrade: bool = True, make: bool = True, connections: int = CONNECTIONS
    ) -> Runtime:
        """Connect, and migrate where `upgrade`; `make` where there is none.  Raises MissingPart, InputError."""
        return cls(open_engine(url, upgrade=upgrade, make=make, connections=connections), project)

    def close(self) -> None:
        """Let the database go."""
        self._engine.dispose()

    # seats

    def admit(
        self,
        seat: Seat,
        identity: NodeIdentity,
        *,
        instance_id: str,
        key_sha256: str,
        proof_sha256: str,
        token_sha256: str,
        at: datetime,
        expires_at: datetime,
    ) -> Joined:
        """Give a machine its seat and a session.  The identity was verified; raises Refused."""
        wanted = seats.Admission(
            seat=seat,
            identity=identity,
            instance_id=instance_id,
            key_sha256=key_sha256,
            proof_sha256=proof_sha256,
            token_sha256=token_sha256,
            at=stamp(at),
            expires_at=stamp(expires_at),
        )
        with self._writing() as connection:
            return seats.admit(connection, self._project, wanted)

    def renew(self, session: Session, *, token_sha256: str, at: datetime, expires_at: datetime) -> Joined:
        """A new session of the same seat; the old one holds until its own end.  Raises Refused."""
        with self._writing() as connection:
            return seats.renew(
                connection,
                self._project,
                session,
                token_sha256=token_sha256,
                at=stamp(at),
                expires_at=stamp(expires_at),
            )

    def session(self, token_sha256: str, at: datetime) -> Session | None:
        """Whose token that is, if it still holds."""
        return self.sessions([token_sha256], at).get(token_sha256)

    def sessions(self, tokens_sha256: Sequence[str], at: datetime) -> Mapping[str, Session]:
        """By token, those that still hold: a server that was started anew asks for thousands."""
        with self._reading() as connection:
            return seats.sessions(connection, self._project, tokens_sha256, stamp(at))

    def put_one_time(self, seat: Seat, token_sha256: str, expires_at: datetime, at: datetime) -> None:
        """Note an operator's token for a seat; `admit` takes it, once.  Raises Refused."""
        with self._writing() as connection:
            seats.put_one_time(
                connection,
                self._project,
                seat,
                token_sha256=token_sha256,
                expires_at=stamp(expires_at),
                at=stamp(at),
            )

    def check(self, seat: Seat) -> None:
        """Raises Refused where the seat's run is unknown, fenced or ended."""
        with self._reading() as connection:
            guards.judged(connection, self._project, seat)

    def machine(self, seat: Seat) -> str | None:
        """The seat's instance id as the record has it; None where it knows of no machine."""
        with self._reading() as connection:
            return seats.machine(connection, self._project, seat)

    def holder(self, seat: Seat) -> tuple[str, str] | None:
        """(instance id, SHA-256 of its key) of the machine that has joined: for the broker, which binds it to the same key."""
        with self._reading() as connection:
            return seats.holder(connection, self._project, seat)

    def plan_digest(self, seat: Seat) -> str:
        """Of the plan by which the seat's run was launched.  Raises Refused as `check`."""
        with self._reading() as connection:
            return str(guards.judged(connection, self._project, seat)["plan_digest"])

    def manifest_key(self, job: str, generation: int) -> bytes:
        """The key that signs a generation's checkpoints, made at first need.  Raises Refused for a run that was never issued."""
        seat = Seat(job=job, generation=generation, rank=0)
        with self._writing() as connection:
            if (job, generation) not in guards.runs(connection, self._project, [(job, generation)]):
                raise Refused(Refusal.UNKNOWN, f"the record has no run {seat.run}")
            return seats.manifest_key(connection, self._project, job, generation)

    # what nodes send

    def deliver(self, reports: Sequence[Report], at: datetime) -> tuple[Delivered, ...]:
        """Take them all in one transaction, each item once.  The answers are in order; what is refused is in them."""
        if not reports:
            return ()
        with self._writing() as connection:
            return deliver.deliver(connection, self._project, reports, at)

    def begin_cut(self, seat: Seat, at: datetime) -> tuple[tuple[int, ...], Cut | None]:
        """Fence all older generations; the issued ones up to the seat's own, and its cut if it was chosen before.  Raises Refused."""
        with self._writing() as connection:
            return cuts.begin(connection, self._project, seat, stamp(at))

    def choose_cut(
        self, seat: Seat, at: datetime, candidates: Sequence[Candidate], skipped: Sequence[tuple[str, str]] = ()
    ) -> Cut:
        """The cut, once for all.  Raises Refused."""
        with self._writing() as connection:
            return cuts.choose(connection, self._project, seat, stamp(at), candidates=candidates, skipped=skipped)

    def reject_cut(self, seat: Seat, at: datetime, uri: str, reason: str) -> Cut:
        """The next best, where the chosen one's contents proved wrong before the first progress.  Raises Refused."""
        with self._writing() as connection:
            return cuts.reject(connection, self._project, seat, stamp(at), uri=uri, reason=reason)

    def cut(self, job: str, generation: int) -> Cut | None:
        """From where a generation starts, if that was chosen."""
        with self._reading() as connection:
            return cuts.read(connection, self._project, job, generation)

    # credentials

    def issue(self, issue: CredentialIssue, at: datetime) -> None:
        """Note a lease before it is answered.  Raises Refused where the seat's run may have none (any more)."""
        seat = issue.seat
        place = {"job": seat.job, "generation": seat.generation, "rank": seat.rank}
        names = ("store", "uri", "access", "identity", "issued_at", "expires_at")
        values = {"lease": issue.id, **{name: getattr(issue, name) for name in names}, "at": stamp(at)}
        with self._writing() as connection:
            guards.run_of(connection, self._project, seat)
            fresh = guards.upsert(connection, tables.credential).values(project=self._project, **place, **values)
            connection.execute(fresh.on_conflict_do_nothing())

    def issues(self, job: str | None = None, limit: int = 200) -> tuple[CredentialIssue, ...]:
        """Leases given out, newest first."""
        with self._reading() as connection:
            return told.issues(connection, self._project, job, limit)

    # requests

    def request(  # noqa: PLR0917 - read as a sentence: which run, what, why, when
        self, job: str, generation: int, word: str, reason: str, at: datetime, deadline: str = ""
    ) -> int:
        """Ask a run's nodes to `checkpoint` or to `stop`.  Raises Refused."""
        seat = Seat(job=job, generation=generation, rank=0)
        if word not in WORDS:
            raise Refused(Refusal.MALFORMED, f"nodes can be asked to {' or to '.join(WORDS)}")
        reason = guards.writable(reason, 500)
        mine = {"project": self._project, "job": job, "generation": generation, "at": stamp(at)}
        with self._writing() as connection:
            guards.run_of(connection, self._project, seat)
            values = {**mine, "word": word, "reason": reason, "deadline": deadline}
            query = insert(tables.request).values(**values).returning(tables.request.c.id)
            made = connection.execute(query).scalar_one()
            connection.execute(insert(tables.event).values(**mine, kind="asked", text=f"{word}: {reason}"))
            return made

    def requests(self, seat: Seat) -> tuple[NodeRequest, ...]:
        """What the seat's nodes are asked, oldest first."""
        with self._reading() as connection:
            return known.requests(connection, self._project, seat)

    # what nodes told

    def progress(
        self, job: str, *, generation: int | None = None, rank: int | None = None, limit: int = 2000
    ) -> tuple[Progress, ...]:
        """Steps, oldest first, thinned evenly to `limit`.  Without `rank`: of the lowest that told any, normally 0."""
        with self._reading() as connection:
            return told.progress(connection, self._project, job, generation=generation, rank=rank, limit=limit)

    def newest(self, job: str) -> Progress | None:
        """The newest generation's newest step."""
        with self._reading() as connection:
            return told.newest(connection, self._project, job)

    def recent(self, job: str, *, generation: int | None = None, limit: int = 20) -> tuple[Progress, ...]:
        """The newest steps of a generation (default: of the newest that told any), oldest first; none is left out."""
        with self._reading() as connection:
            return told.recent(connection, self._project, job, generation=generation, limit=limit)

    def checkpoints(self, job: str, *, limit: int = 200) -> tuple[Checkpoint, ...]:
        """The newest `limit`, as the record learnt of them."""
        with self._reading() as connection:
            return told.checkpoints(connection, self._project, job, limit=limit)

    def seen(self, job: str, generation: int) -> tuple[NodeSeen, ...]:
        """When each rank was last heard of."""
        with self._reading() as connection:
            return told.seen(connection, self._project, job, generation)

    def logs(
        self, job: str, generation: int, *, rank: int | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[LogChunk, ...]:
        """Output after a chunk's id; without it the newest `limit` chunks."""
        with self._reading() as connection:
            return told.logs(connection, self._project, job, generation, rank=rank, after=after, limit=limit)

    def events(self, job: str, *, after: int = 0, limit: int = 1000) -> tuple[tuple[int, Event], ...]:
        """(id, event) after an id; without it the newest `limit`."""
        with self._reading() as connection:
            return told.events(connection, self._project, job, after=after, limit=limit)

    # meeting

    def expect(self, job: str, generation: int, members: Sequence[Mapping[str, Any]]) -> None:
        """Note who is to meet whom; each member has a `name`, and a `rank` where only that one may come for it."""
        with self._writing() as connection:
            meeting.expect(connection, self._project, job, generation, members)

    def meet(self, seat: Seat, name: str, public_key: str, endpoint: str, at: datetime) -> None:
        """A member came.  Raises Refused."""
        with self._writing() as connection:
            meeting.meet(
                connection, self._project, seat, name=name, public_key=public_key, endpoint=endpoint, at=stamp(at)
            )

    def met(self, job: str, generation: int) -> tuple[Mapping[str, Any], ...]:
        """All members, with `public_key` and `endpoint` where they came."""
        with self._reading() as connection:
            return meeting.met(connection, self._project, job, generation)

    # transactions

    def _writing(self) -> AbstractContextManager[Connection]:
        return writing(self._engine)

    def _reading(self) -> AbstractContextManager[Connection]:
        return reading(self._engine)
