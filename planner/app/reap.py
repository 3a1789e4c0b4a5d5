"""Ending what should not be billed any more: machines of runs that are over, were fenced, or are past their hard end.

A machine is ended only where its tags name the project, a job of the record and a generation whose run is over (`planner.app.over`); one that the newest
living generation owns never is.  Machines of a generation that no record knows are named, and ended on request only.  Acts as the orchestrator of each target,
launches nothing, and touches no Terraform state: the next `apply` or `destroy` finds the stack's machines gone.  A cloud that does not answer stops no other.
Never run against a live cloud.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from planner.app.launch import ended
from planner.app.lease import held
from planner.app.over import GRACE, LINGER, Exit, exit_of, over, past_its_end
from planner.app.steps import LOOK_SECONDS, MOST_LOOKS
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import CloudError, LeaseHeld, SkyplanError
from planner.model.record import LIVE, Run, RunStatus, moment, stamp
from planner.model.runtime import NodeSeen

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.clouds.port import Instance
    from planner.state.writer import Writer

Place = tuple[str, str, str]
"""Cloud, target, region."""
Heard = Callable[[str, int], Sequence[NodeSeen]]
"""When the nodes of (job, generation) were last heard of."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Found:
    """A machine, where it is, whose it says it is, and why it is ended or left."""

    cloud: str
    target: str
    region: str
    job: str
    generation: int
    id: str
    state: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """One pass.

    ended     machines that were ended
    closed    ids of runs that hold nothing any more and were noted as ended
    unknown   machines tagged as ours that no run of the record owns; those left alone
    busy      jobs that another process works on: left for the next pass
    problems  what a cloud or the record refused: there, nothing is known
    """

    ended: tuple[Found, ...]
    closed: tuple[str, ...]
    unknown: tuple[Found, ...]
    busy: tuple[str, ...]
    problems: tuple[Diagnostic, ...]


def reap(
    ports: Ports,
    jobs: Sequence[str] = (),
    *,
    end_unknown: bool = False,
    heard: Heard = lambda _job, _generation: (),
    places: Sequence[Place] = (),
) -> Reaped:
    """One pass over the named jobs, or all.  Raises nothing that a cloud or another process is to blame for: see `Reaped.problems`.

    Machines of jobs that the record does not know are looked for too, where a job of the record was ever launched and at `places`.  They may be of another
    record, with nodes that work: only of a job that is named, and with `end_unknown`, are they ended.
    """
    done = _Pass(ports, end_unknown=end_unknown, heard=heard)
    known = [job.name for job in ports.record.jobs()]
    for job in known:
        if not jobs or job in jobs:
            done.look(job)
    ran = {(p.cloud, p.target, p.region) for run in ports.record.runs() for p in run.parts}
    if not jobs or set(jobs) - set(known):
        done.look_for_others(known, jobs, sorted(ran | set(places)))
    return done.result()


@dataclass
class _Pass:
    """`there`: what is at a place, of all jobs; None where it did not answer."""

    ports: Ports
    end_unknown: bool
    heard: Heard
    ended: list[Found] = field(default_factory=list[Found])
    closed: list[str] = field(default_factory=list[str])
    unknown: list[Found] = field(default_factory=list[Found])
    busy: list[str] = field(default_factory=list[str])
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    there: dict[Place, tuple[Instance, ...] | None] = field(
        default_factory=dict["Place", "tuple[Instance, ...] | None"]
    )

    def result(self) -> Reaped:
        """Everything in order."""
        return Reaped(
            ended=tuple(sorted(self.ended)),
            closed=tuple(self.closed),
            unknown=tuple(sorted(self.unknown)),
            busy=tuple(self.busy),
            problems=tuple(self.problems),
        )

    def look(self, job: str) -> None:
        """One job: first without its lease, for most have nothing to end; then, where there is something, all over again under it."""
        doomed, unknown, silent = self._judged(job)
        if not doomed and not (unknown and self.end_unknown) and not self._closable(job, doomed, silent):
            self.unknown += unknown
            return
        try:
            with held(self.ports, job, wait_seconds=0) as lease:
                self._act(job, self.ports.record.writer(lease))
        except LeaseHeld:
            self.busy.append(job)
            self.unknown += unknown
        except SkyplanError as error:
            self._note(job, error)

    def _act(self, job: str, writer: Writer) -> None:
        """What was seen before the lease was ours may have changed since."""
        doomed, unknown, silent = self._judged(job, again=True)
        left = silent
        for place, found in _by_place([*doomed, *(unknown if self.end_unknown else ())]).items():
            try:
                self._end(place, found, writer)
            except SkyplanError as error:
                self._note(_said(place), error)
                left = left | {place}
        if not self.end_unknown:
            self.unknown += unknown
        for run, why in self._closable(job, (), left):
            nodes = ended(self.ports.record.nodes(job, run.generation))
            writer.seen(run.generation, nodes, RunStatus.ENDED, self.ports.clock.now(), f"reaped: {why}")
            self.closed.append(run.id)
        self._note_nodes(job, writer)

    def look_for_others(self, known: Sequence[str], named: Sequence[str], places: Sequence[Place]) -> None:
        """Machines of jobs that the record does not know: of another record, or of one that was lost."""
        for place in places:
            found = self._others(self._all(place), place, known)
            to_end = {one.job for one in found if one.job in named and self.end_unknown}
            self.unknown += [one for one in found if one.job not in to_end and (not named or one.job in named)]
            for job in sorted(to_end):
                try:
                    self._end_others(job, place)
                except LeaseHeld:
                    self.busy.append(job)
                except SkyplanError as error:
                    self._note(_said(place), error)

    def _end_others(self, job: str, place: Place) -> None:
        with held(self.ports, job, wait_seconds=0):
            if self.ports.record.job(job) is not None:
                return  # its first launch has begun meanwhile
            found = self._others(self._listed(place, job), place, ())
            self.ports.tell("", f"ending {', '.join(one.id for one in found)}: the record knows no job `{job}`")
            self.ports.lister(*place).terminate([one.id for one in found])
            self.ended += found

    def _others(self, there: Sequence[Instance] | None, place: Place, known: Sequence[str]) -> list[Found]:
        why = "the record does not know this job"
        named = [(m, m.tags.get("skyplan:job", "")) for m in there or ()]
        return [
            _found(place, job, generation, m, why)
            for m, job in named
            if job and job not in known and (generation := self._tagged(m, job)) is not None
        ]

    def _all(self, place: Place) -> tuple[Instance, ...] | None:
        """Everything of the project there, asked once a pass; None where nothing is known, which is told once."""
        if place not in self.there:
            try:
                self.there[place] = self._listed(place, None)
            except SkyplanError as error:
                self.there[place] = None
                self._note(_said(place), error)
        return self.there[place]

    def _listed(self, place: Place, job: str | None) -> tuple[Instance, ...]:
        return self.ports.lister(*place).instances(project=self.ports.project.name, job=job)

    def _judged(self, job: str, *, again: bool = False) -> tuple[list[Found], list[Found], frozenset[Place]]:
        """Machines to end, machines of no run, places that did not answer; `again`: by a look of now, where the first one was answered."""
        record = self.ports.record
        seen: dict[Place, tuple[Instance, ...] | None] = {}
        for place in self._places(job):
            seen[place] = self._all(place)
            if again and seen[place] is not None:
                try:
                    seen[place] = self._listed(place, job)
                except SkyplanError as error:
                    seen[place] = None
                    self._note(_said(place), error)
        runs, now = {r.generation: r for r in record.runs(job)}, self.ports.clock.now()
        exits = self._exits(job, runs.values())
        doomed: list[Found] = []
        unknown: list[Found] = []
        for place, there in seen.items():
            for machine in there or ():
                generation = self._tagged(machine, job)
                if generation is None:
                    continue
                run = runs.get(generation)
                if run and (why := self._condemned(run, machine, now, exits)):
                    doomed.append(_found(place, job, generation, machine, why))
                elif why := self._strange(run, machine):
                    unknown.append(_found(place, job, generation, machine, why))
        return doomed, unknown, frozenset(place for place, there in seen.items() if there is None)

    def _condemned(self, run: Run, machine: Instance, now: datetime, exits: Mapping[int, Exit | None]) -> str:
        why = self._over(run, now, exits)
        if run.status is RunStatus.LOST and not run.fenced_at and self._alive(run, now):
            return past_its_end(run, now)  # `sync` was wrong, or a listing was: it reports
        return why or self._off(run, machine, now)

    def _over(self, run: Run, now: datetime, exits: Mapping[int, Exit | None]) -> str:
        """As `over`; but what a move leaves is that move's to end, once its replacement has made progress."""
        if run.fenced_at and run.status in LIVE:
            move = self.ports.record.open_move(run.job)
            if move is not None and move.from_generation == run.generation:
                return past_its_end(run, now)
        return over(run, now, exits[run.generation])

    def _strange(self, run: Run | None, machine: Instance) -> str:
        """Why no run owns the machine; "" where one does or, still being launched, may."""
        if run is None:
            return "no run of the record has this generation"
        if run.status not in {RunStatus.RUNNING, RunStatus.DEGRADED} or machine.state == "leftover":
            return ""
        known = {n.instance_id for n in self.ports.record.nodes(run.job, run.generation)}
        return "" if machine.id in known else "it is no node of its run"

    def _exits(self, job: str, runs: Iterable[Run]) -> dict[int, Exit | None]:
        events = self.ports.record.events(job)
        return {
            r.generation: exit_of(r, events, self.heard(job, r.generation) if r.status in LIVE else ()) for r in runs
        }

    def _off(self, run: Run, machine: Instance, now: datetime) -> str:
        """A node that is over and powered itself off: Azure bills it on until it is deallocated."""
        nodes = {n.instance_id: n.rank for n in self.ports.record.nodes(run.job, run.generation)}
        if machine.state != "stopped" or machine.id not in nodes:
            return ""
        told = [s for s in self.heard(run.job, run.generation) if s.seat.rank == nodes[machine.id]]
        gone = any(s.exit_code is not None and now >= moment(s.at) + GRACE for s in told)
        return "its job has exited there and it is off, which is billed on [SKY-RUN-508]" if gone else ""

    def _alive(self, run: Run, now: datetime) -> bool:
        """Whether it reports on: since it was noted as lost, and lately; what was on its way then is no sign of life for ever."""
        since = max(run.ended_at or "", stamp(now - LINGER))
        return any(s.at > since and s.exit_code is None for s in self.heard(run.job, run.generation))

    def _tagged(self, machine: Instance, job: str) -> int | None:
        """The generation it names; None where its tags do not name project, job and generation, and it is not ours to judge."""
        tags = machine.tags
        mine = tags.get("skyplan:project") == self.ports.project.name and tags.get("skyplan:job") == job
        number = tags.get("skyplan:generation", "")
        return int(number) if mine and number.isdecimal() else None

    def _places(self, job: str) -> list[Place]:
        """Wherever a launch of the job was ever begun."""
        return sorted({(p.cloud, p.target, p.region) for run in self.ports.record.runs(job) for p in run.parts})

    def _closable(self, job: str, doomed: Iterable[Found], silent: frozenset[Place]) -> list[tuple[Run, str]]:
        """Runs that the record still counts, that are over, and whose every place has said that nothing of them is left."""
        now, record = self.ports.clock.now(), self.ports.record
        runs = record.runs(job)
        exits = self._exits(job, runs)
        holding = {found.generation for found in doomed}
        found: list[tuple[Run, str]] = []
        for run in runs:
            places = {(p.cloud, p.target, p.region) for p in run.parts}
            if run.status in LIVE and run.status is not RunStatus.LOST and run.generation not in holding:
                why = self._over(run, now, exits)
                found += [(run, why)] if why and not places & silent else []
        return found

    def _end(self, place: Place, found: Sequence[Found], writer: Writer) -> None:
        """End them, and look until the cloud says that none is left: a machine may leave behind an interface or an address that only then is seen."""
        ports, lister = self.ports, self.ports.lister(*place)
        why = {one.generation: one.why for one in found}
        now, chosen = list(found), {one.id for one in found}
        for _ in range(MOST_LOOKS):
            new = [one for one in now if one.id not in {other.id for other in self.ended}]
            self._announce(new, writer)
            lister.terminate([one.id for one in now])
            self.ended += new
            seen = self._listed(place, writer.job)
            now = [
                _found(place, writer.job, generation, machine, why[generation])
                for machine in seen
                if (generation := self._tagged(machine, writer.job)) in why
                and (machine.id in chosen or machine.state == "leftover")
            ]
            if not now:
                return
            ports.clock.sleep(LOOK_SECONDS)
        raise CloudError([Diagnostic(code="SKY-APPLY-325", summary=f"{', '.join(o.id for o in now)} cannot be ended")])

    def _announce(self, found: Sequence[Found], writer: Writer) -> None:
        """Note, before it is done, what is ended and why."""
        for generation, why in sorted({(one.generation, one.why) for one in found}):
            ids = [one.id for one in found if (one.generation, one.why) == (generation, why)]
            text = f"ending {', '.join(ids)}: {why} [SKY-RUN-519]"
            writer.event(generation, self.ports.clock.now(), "reaped", text)
            self.ports.tell("", f"{writer.job}-g{generation}: {text}")

    def _note_nodes(self, job: str, writer: Writer) -> None:
        """Of runs that go on, the nodes that were ended."""
        gone, record = {one.id for one in self.ended}, self.ports.record
        for run in record.runs(job):
            mine = [n for n in ended(record.nodes(job, run.generation)) if n.instance_id in gone]
            if mine and run.status in LIVE:
                text = ", ".join(f"r{n.rank:02d} ({n.instance_id})" for n in mine) + " ended"
                writer.seen(run.generation, mine, run.status, self.ports.clock.now(), text)

    def _note(self, where: str, error: SkyplanError) -> None:
        given = error.diagnostics or (Diagnostic(code="SKY-APPLY-326", summary=str(error)),)
        for d in given:
            self.problems.append(Diagnostic(code=d.code, summary=f"{where}: {d.summary}", hint=d.hint))


def nothing_known(error: SkyplanError) -> Reaped:
    """A pass that the record did not answer."""
    return Reaped(ended=(), closed=(), unknown=(), busy=(), problems=error.diagnostics)


def warnings(done: Reaped) -> tuple[Diagnostic, ...]:
    """What people should hear of a pass, less its problems."""
    found = [
        Diagnostic(
            code="SKY-APPLY-321",
            summary=f"{m.id} ({m.state}) in {m.cloud}:{m.target} {m.region} is tagged {m.job}-g{m.generation}: {m.why}",
            hint=f"it was left alone: `skyplan sync` takes in what your own pipeline applied, `skyplan reap {m.job} --unknown` ends it",
            severity=Severity.WARNING,
        )
        for m in done.unknown
    ]
    return tuple(found)


def document(done: Reaped) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "ended": [asdict(m) for m in done.ended],
        "closed": list(done.closed),
        "unknown": [asdict(m) for m in done.unknown],
        "busy": list(done.busy),
        "problems": [{"code": d.code, "summary": d.summary} for d in done.problems],
    }


def _found(place: Place, job: str, generation: int, machine: Instance, why: str) -> Found:
    cloud, target, region = place
    names = {"cloud": cloud, "target": target, "region": region, "job": job, "id": machine.id, "state": machine.state}
    return Found(**names, generation=generation, why=why)


def _said(place: Place) -> str:
    cloud, target, region = place
    return f"{cloud}:{target} {region}"


def _by_place(found: Iterable[Found]) -> dict[Place, list[Found]]:
    out: dict[Place, list[Found]] = {}
    for one in found:
        out.setdefault((one.cloud, one.target, one.region), []).append(one)
    return out
