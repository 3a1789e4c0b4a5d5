"""From where a generation starts.  Beginning a cut fences all older generations; choosing it, once for all, compares the store with the record.

Decides which of the checkpoints found in the store count: those of an issued generation, where they belong, authentic by that generation's key, and
already there at every earlier cut after they could have been written.  What an older generation wrote after it was fenced and listed is foreign for
ever.  Of those that count the highest (step, generation) wins, whatever the record had believed; the record learns of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from planner.model.runtime import Candidate, Cut, Refusal, Refused, Seat
from planner.state import tables
from planner.state.guards import Row, refusal, upsert, writable
from planner.state.moves import hold
from planner.state.reports import MAX_TEXT, authentic, place_problem

MAX_SKIPPED = 200
"""Of those that do not count, so many are kept with the cut; so many of these become events each."""
MAX_EVENTS = 20

Skipped = list[tuple[str, str]]


def begin(connection: Connection, project: str, seat: Seat, at: str) -> tuple[tuple[int, ...], Cut | None]:
    """Fence all older generations.  The issued generations up to the seat's own, and its cut if it was chosen before.

    Raises Refused (early) while the move that launched the seat's generation holds it: the older one computes on.
    """
    runs = _locked(connection, project, seat)
    if runs[seat.generation]["cut"] is None and (why := hold(connection, project, seat)):
        raise Refused(Refusal.EARLY, why)
    older = [g for g, run in runs.items() if g < seat.generation and run["fenced_at"] is None]
    for generation in older:
        mine = {"project": project, "job": seat.job, "generation": generation}
        values: dict[str, Any] = {"fenced_at": at, "version": tables.run.c.version + 1}
        connection.execute(update(tables.run).filter_by(**mine).values(**values))
        text = f"generation {generation} was fenced: {seat.generation} starts (SKY-RUN-509)"
        _event(connection, mine, at, "fenced", text)
    return tuple(sorted(g for g in runs if g <= seat.generation)), _cut(runs[seat.generation])


def choose(
    connection: Connection,
    project: str,
    seat: Seat,
    at: str,
    *,
    candidates: Sequence[Candidate],
    skipped: Sequence[tuple[str, str]],
) -> Cut:
    """The cut; once it is chosen, the same whatever is asked."""
    runs = _locked(connection, project, seat)
    if chosen := _cut(runs[seat.generation]):
        return chosen
    if any(g < seat.generation and run["fenced_at"] is None for g, run in runs.items()):
        # a listing made before the fence can miss what was written in between
        raise Refused(Refusal.MALFORMED, "begin the cut first: an older generation is not fenced yet")
    told = [(writable(uri, MAX_TEXT), writable(reason, MAX_TEXT)) for uri, reason in skipped]
    valid, foreign = _valid(connection, project, seat, runs, candidates)
    left = [*foreign, *told]
    recorded = _believed(connection, project, seat, runs)
    _learn(connection, project, seat, at, valid)
    best = max(valid, key=_order, default=None)
    found = Cut(
        seat=seat,
        at=at,
        chosen=best,
        recorded_step=recorded,
        skipped=tuple(left[:MAX_SKIPPED]),
    )
    _save(connection, project, found)
    mine = _mine(project, seat)
    for uri, reason in left[:MAX_EVENTS]:
        _event(connection, mine, at, "skipped", f"{uri}: {reason} (SKY-RUN-511)")
    if len(left) > MAX_EVENTS:
        _event(connection, mine, at, "skipped", f"and {len(left) - MAX_EVENTS} more (SKY-RUN-511)")
    _tell(connection, mine, at, found)
    return found


def reject(connection: Connection, project: str, seat: Seat, at: str, *, uri: str, reason: str) -> Cut:
    """Take out one whose contents proved wrong; the next is the cut."""
    runs = _locked(connection, project, seat)
    found = _cut(runs[seat.generation])
    if found is None:
        raise Refused(Refusal.MALFORMED, "there is no cut yet")
    if found.chosen is None or found.chosen.uri != uri:
        return found  # rejected before, and the answer was lost
    mine = _mine(project, seat)
    if connection.execute(select(tables.progress.c.id).filter_by(**mine).limit(1)).first():
        raise Refused(Refusal.MALFORMED, "the job has gone on from it: a cut is final once there is progress")
    key = {"project": project, "job": seat.job, "cut": seat.generation}
    reason = writable(reason, MAX_TEXT) or "its contents are wrong"
    connection.execute(update(tables.candidate).filter_by(**key, uri=uri).values(rejected=reason))
    rest = connection.execute(select(tables.candidate).filter_by(**key, rejected="")).mappings()
    best = max(map(_candidate, rest), key=_order, default=None)
    next_one = Cut(
        seat=seat,
        at=at,
        chosen=best,
        recorded_step=found.recorded_step,
        skipped=((uri, reason), *found.skipped)[:MAX_SKIPPED],
    )
    _save(connection, project, next_one)
    _event(connection, mine, at, "skipped", f"{uri}: {reason} (SKY-RUN-511)")
    _tell(connection, mine, at, next_one)
    return next_one


def read(connection: Connection, project: str, job: str, generation: int) -> Cut | None:
    """A generation's cut, if it was chosen."""
    query = select(tables.run).filter_by(project=project, job=job, generation=generation)
    row = connection.execute(query).mappings().first()
    return _cut(row) if row else None


def _locked(connection: Connection, project: str, seat: Seat) -> dict[int, Row]:
    """All runs of the job, locked.  Raises Refused where the seat's own may not write, or the seat is not the first."""
    query = select(tables.run).filter_by(project=project, job=seat.job).order_by(tables.run.c.generation)
    runs: dict[int, Row] = {
        row["generation"]: dict(row) for row in connection.execute(query.with_for_update()).mappings()
    }
    if no := refusal(runs.get(seat.generation), seat):
        raise no
    if seat.rank != 0:
        raise Refused(Refusal.MALFORMED, "the cut is rank 0's to make")
    return runs


def _valid(
    connection: Connection,
    project: str,
    seat: Seat,
    runs: Mapping[int, Row],
    candidates: Iterable[Candidate],
) -> tuple[list[Candidate], Skipped]:
    """Those that count, and the others with the reason."""
    keys = _keys(connection, project, seat.job)
    cuts = [g for g, run in sorted(runs.items()) if g < seat.generation and run["cut"] is not None]
    listed = _listed(connection, project, seat.job)
    valid: dict[str, Candidate] = {}
    left: Skipped = []
    for it in candidates:
        problem = place_problem(it.generation, it.step, it.uri, it.digest, it.bytes)
        later = next((g for g in cuts if g > it.generation), None)
        if it.generation not in runs or it.generation > seat.generation:
            problem = f"generation {it.generation} was not issued"
        elif problem is None and (
            it.generation not in keys or not authentic(project, seat.job, keys[it.generation], asdict(it))
        ):
            problem = f"its mac is not by the key of generation {it.generation}"
        elif problem is None and later is not None:
            was = listed.get((later, it.uri))
            if was is None or (was["digest"], was["mac"]) != (it.digest, it.mac):
                problem = f"it was written after generation {later} had taken over"
        if problem is None and (reasons := [r for g in cuts if (r := listed.get((g, it.uri), {}).get("rejected"))]):
            problem = f"it was found wrong before: {reasons[0]}"
        if problem is None:
            valid[it.uri] = it
        else:
            left.append((writable(it.uri, MAX_TEXT), problem))
    return list(valid.values()), left


def _keys(connection: Connection, project: str, job: str) -> dict[int, bytes]:
    found = connection.execute(select(tables.run_key).filter_by(project=project, job=job)).mappings()
    return {row["generation"]: bytes.fromhex(row["key"]) for row in found}


def _listed(connection: Connection, project: str, job: str) -> dict[tuple[int, str], Row]:
    found = connection.execute(select(tables.candidate).filter_by(project=project, job=job)).mappings()
    return {(row["cut"], row["uri"]): dict(row) for row in found}


def _believed(connection: Connection, project: str, seat: Seat, runs: Mapping[int, Row]) -> int | None:
    """The newest step by what the record was told: from the last cut on, since that one corrected what was before."""
    last = max((g for g, run in runs.items() if g < seat.generation and run["cut"] is not None), default=0)
    c = tables.checkpoint.c
    query = select(func.max(c.step)).where(
        c.project == project, c.job == seat.job, c.generation >= last, c.generation < seat.generation
    )
    told = connection.execute(query).scalar()
    before = _cut(runs[last]) if last else None
    started = before.chosen.step if before and before.chosen else None
    return max((step for step in (told, started) if step is not None), default=None)


def _learn(connection: Connection, project: str, seat: Seat, at: str, valid: Sequence[Candidate]) -> None:
    if not valid:
        return
    mine = {"project": project, "job": seat.job}
    found = sorted(valid, key=lambda it: it.uri)
    listed = [{**mine, **asdict(it), "cut": seat.generation, "rejected": ""} for it in found]
    connection.execute(insert(tables.candidate), listed)
    told = [{**mine, **asdict(it), "at": at, "source": "cut"} for it in found]
    connection.execute(upsert(connection, tables.checkpoint).on_conflict_do_nothing(), told)


def _order(it: Candidate) -> tuple[int, int, str]:
    return (it.step, it.generation, it.uri)


def _candidate(row: Row) -> Candidate:
    return Candidate(**{name: row[name] for name in ("generation", "step", "uri", "digest", "mac", "bytes")})


def _save(connection: Connection, project: str, cut: Cut) -> None:
    document = {
        "at": cut.at,
        "rank": cut.seat.rank,
        "chosen": asdict(cut.chosen) if cut.chosen else None,
        "recorded_step": cut.recorded_step,
        "skipped": [list(pair) for pair in cut.skipped],
    }
    values: dict[str, Any] = {"cut": json.dumps(document, sort_keys=True), "version": tables.run.c.version + 1}
    connection.execute(update(tables.run).filter_by(**_mine(project, cut.seat)).values(**values))


def _cut(run: Row) -> Cut | None:
    if run["cut"] is None:
        return None
    document = json.loads(run["cut"])
    chosen = document["chosen"]
    return Cut(
        seat=Seat(job=run["job"], generation=run["generation"], rank=document["rank"]),
        at=document["at"],
        chosen=_candidate(chosen) if chosen else None,
        recorded_step=document["recorded_step"],
        skipped=tuple((uri, reason) for uri, reason in document["skipped"]),
    )


def _tell(connection: Connection, mine: Mapping[str, Any], at: str, cut: Cut) -> None:
    step = cut.chosen.step if cut.chosen else None
    text = (
        f"starts from step {step} of generation {cut.chosen.generation}" if cut.chosen else "starts from the beginning"
    )
    _event(connection, mine, at, "cut", text)
    if step != cut.recorded_step:
        believed = "none" if cut.recorded_step is None else f"step {cut.recorded_step}"
        found = "none" if step is None else f"step {step}"
        _event(connection, mine, at, "corrected", f"the record had {believed}, the store {found} (SKY-RUN-512)")


def _event(connection: Connection, mine: Mapping[str, Any], at: str, kind: str, text: str) -> None:
    connection.execute(insert(tables.event).values(**mine, at=at, kind=kind, text=text))


def _mine(project: str, seat: Seat) -> dict[str, Any]:
    return {"project": project, "job": seat.job, "generation": seat.generation}
