"""The loop: ask the clouds, keep what they say, decide on every job, and propose each move as files or carry it out.

Decides the order of a round and what may be done unattended: with `apply` only what the project allows, only to prepared places of the reviewed plans; everything else
is written for review and nothing more.  Holds no state of its own: observations, runs and moves are in the record, so that whoever is started next goes on, and one lease
keeps a second watch from acting beside it.  A round that fails is told, and the next one comes.

Moves are carried out beside the rounds, each by a thread: a node that the cloud takes back in two minutes does not wait for another job's checkpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from planner.app import replan_files
from planner.migration.document import kept_document, to_document
from planner.model.errors import LeaseHeld, SkyplanError
from planner.model.migration import FORMAT_VERSION
from planner.render import diagnostics

if TYPE_CHECKING:
    from pathlib import Path

    from planner.app.migrate import Migrated
    from planner.app.replan import Replanned
    from planner.app.replan_diff import Proposal
    from planner.model.diagnostic import Diagnostic

LEASE: Final = "watch:moves"
"""No job's and no network's name has a colon."""
MOST_MOVES: Final = 8
"""At once: each is a Terraform of its own, which takes some hundred MiB."""
UNDER_WAY: Final = "SKY-MOVE-419"


class Log(Protocol):
    """A structured line for people and machines: an event with named fields."""

    def __call__(self, event: str, **fields: str | float | None) -> None:
        """Write it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What a round can do.  `refresh` and `look` are None where no cloud is asked.

    refresh    ask for prices, capacity and quotas, and keep them; totals by cloud, and warnings
    look       learn which nodes are gone; run ids with ranks
    decide     the decision; only_ready: to reviewed and prepared places only
    unfinished jobs whose move an earlier process began
    carry_out  a proposal, or None to go on with the job's open move
    """

    decide: Callable[[datetime, bool], Replanned]
    refresh: Callable[[datetime], tuple[Mapping[str, Any], Sequence[Diagnostic]]] | None = None
    look: Callable[[], Sequence[str]] | None = None
    unfinished: Callable[[], Sequence[str]] = tuple
    carry_out: Callable[[str, Proposal | None], Migrated] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round came to."""

    number: int
    at: str
    seconds: float
    refreshed: Mapping[str, Any] | None
    warnings: tuple[Diagnostic, ...]
    lost: tuple[str, ...]
    found: Replanned
    written: tuple[str, ...]
    taken_back: tuple[str, ...]
    started: tuple[str, ...]
    finished: tuple[tuple[str, str, tuple[Diagnostic, ...]], ...]
    under_way: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """One line of JSON."""
        return {
            "format_version": FORMAT_VERSION,
            "round": self.number,
            "at": self.at,
            "seconds": round(self.seconds, 3),
            "refreshed": self.refreshed,
            "warnings": diagnostics.document(self.warnings),
            "lost": list(self.lost),
            "migrations": [to_document(d) for d in self.found.diffs],
            "kept": [kept_document(k) for k in self.found.kept],
            "written": list(self.written),
            "taken_back": list(self.taken_back),
            "started": list(self.started),
            "finished": [
                {"job": job, "status": status, "diagnostics": diagnostics.document(problems)}
                for job, status, problems in self.finished
            ],
            "under_way": list(self.under_way),
        }


@dataclass(slots=True)
class Watch:
    """One watch.  `out`: where proposals are written; `stop`: set where it should end."""

    acts: Acts
    out: Path
    log: Log
    stop: threading.Event
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _rounds: int = 0
    _moves: dict[str, Future[Migrated]] = field(default_factory=dict[str, "Future[Migrated]"])
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(MOST_MOVES, thread_name_prefix="move"), repr=False
    )

    def run(self, every_seconds: float, tell: Callable[[Round], None]) -> None:
        """Round after round until it is stopped; moves that are under way are left at the next moment where they can be gone on with."""
        try:
            while not self.stop.is_set():
                try:
                    tell(self.round())
                except SkyplanError as error:
                    self.log("failed", text=str(error), codes=" ".join(sorted({d.code for d in error.diagnostics})))
                self.stop.wait(every_seconds)
        finally:
            self.close()

    def once(self) -> tuple[Round, bool]:
        """One round, and its moves to their end; whether all went well.  Raises what the round raises."""
        try:
            done = self.round()
            results = [self._result(job) for job in sorted(self._moves)]
            return done, not any(problems for _, _, problems in (*done.finished, *results))
        finally:
            self.close()

    def close(self) -> None:
        """Wait for threads, which end at their next look at the clock once it is stopped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _go_on(self) -> None:
        """Moves that are open and that no thread of ours carries out."""
        if self.acts.carry_out is not None:
            for job in self.acts.unfinished():
                if job in self._moves:
                    continue
                self.log("goes-on", job=job)
                self._start(job, None)

    def round(self) -> Round:
        """Ask, keep, look, decide, propose or carry out."""
        self._rounds += 1
        begun = self.now()
        refreshed, warnings = self.acts.refresh(begun) if self.acts.refresh else (None, ())
        lost = tuple(self.acts.look()) if self.acts.look else ()
        finished = [self._result(job) for job, move in sorted(self._moves.items()) if move.done()]
        self._go_on()  # what an earlier process began, and what ended in an error: its new nodes are paid for
        at = self.now()
        found = self.acts.decide(at, False)
        started, proposed = self._act(found, at)
        written = replan_files.write(proposed, self.out, keep_alike=True)
        stays = [k.job for k in found.kept if k.code != UNDER_WAY]
        taken_back = replan_files.take_back([*stays, *started, *found.ended], self.out)
        done = Round(
            number=self._rounds,
            at=found.as_of,
            seconds=(self.now() - begun).total_seconds(),
            refreshed=refreshed,
            warnings=tuple(warnings),
            lost=lost,
            found=found,
            written=tuple(p.as_posix() for p in written),
            taken_back=tuple(p.as_posix() for p in taken_back),
            started=tuple(started),
            finished=tuple(finished),
            under_way=tuple(sorted(self._moves)),
        )
        self._tell(done)
        return done

    def _act(self, found: Replanned, at: datetime) -> tuple[list[str], list[Proposal]]:
        """Jobs whose move was begun, and what is left to be reviewed."""
        if self.acts.carry_out is None or not found.proposals:
            return [], list(found.proposals)
        ready = {p.diff.job: p for p in self.acts.decide(at, True).proposals}
        started: list[str] = []
        for job, proposal in sorted(ready.items(), key=lambda item: (item[1].diff.code != "SKY-MOVE-414", item[0])):
            if job not in self._moves and proposal.diff.reviewed and proposal.diff.prepared:
                self._start(job, proposal)
                started.append(job)
        return sorted(started), [p for p in found.proposals if p.diff.job not in self._moves]

    def _start(self, job: str, proposal: Proposal | None) -> None:
        carry_out = self.acts.carry_out
        assert carry_out is not None  # noqa: S101 - the caller has looked
        self._moves[job] = self._pool.submit(carry_out, job, proposal)

    def _result(self, job: str) -> tuple[str, str, tuple[Diagnostic, ...]]:
        """How a move ended, waiting for it; the job is free for the next decision."""
        move = self._moves.pop(job)
        try:
            done = move.result()
        except LeaseHeld as held:
            # somebody carries it out already: their move, their news
            return job, "held", held.diagnostics
        except SkyplanError as error:
            return job, "failed", error.diagnostics
        except KeyboardInterrupt:
            return job, "stopped", ()
        return job, done.move.status, done.problems

    def _tell(self, done: Round) -> None:
        for diff in done.found.diffs:
            bound = "carried-out" if diff.job in done.started else "proposed"
            self.log(
                bound, job=diff.job, reason=diff.reason.value, code=diff.code, to=diff.to[0].offer_id, text=diff.text
            )
        for job, status, problems in done.finished:
            self.log("finished", job=job, status=status, codes=" ".join(d.code for d in problems) or None)
        for warning in done.warnings:
            self.log("warning", code=warning.code, text=warning.summary)
        for run in done.lost:
            self.log("lost", node=run)
        self.log(
            "round",
            number=done.number,
            moves=len(done.found.diffs),
            stays=len(done.found.kept),
            written=len(done.written),
            under_way=len(done.under_way),
            seconds=round(done.seconds, 3),
        )


@dataclass(frozen=True, slots=True)
class StoppableClock:
    """The machine's, but a wait ends as an interrupt once `stop` is set: whoever waits for a checkpoint leaves the move where it is."""

    stop: threading.Event

    def now(self) -> datetime:
        """UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Raises KeyboardInterrupt where it is stopped."""
        if self.stop.wait(seconds):
            raise KeyboardInterrupt
