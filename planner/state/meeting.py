"""Who is to meet whom in a run's private network, and the keys they brought.  The first key that a name brings stays.  Public keys only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from planner.model.runtime import Refusal, Refused, Seat
from planner.state import tables
from planner.state.guards import plain, run_of, upsert


def expect(
    connection: Connection, project: str, job: str, generation: int, members: Sequence[Mapping[str, Any]]
) -> None:
    """Note the members, each with a `name`; those known already stay as they are."""
    mine = {"project": project, "job": job, "generation": generation}
    blank = {"public_key": "", "endpoint": "", "at": ""}
    values = [{**mine, **blank, "name": m["name"], "document": json.dumps(dict(m), sort_keys=True)} for m in members]
    if values:
        connection.execute(upsert(connection, tables.member).on_conflict_do_nothing(), values)


def meet(
    connection: Connection, project: str, seat: Seat, *, name: str, public_key: str, endpoint: str, at: str
) -> None:
    """A member's key and endpoint.  Raises Refused: unknown name, another rank's, another key than before."""
    plain(name, public_key, endpoint)
    run_of(connection, project, seat)
    key = {"project": project, "job": seat.job, "generation": seat.generation, "name": name}
    row = connection.execute(select(tables.member).filter_by(**key).with_for_update()).mappings().first()
    if row is None:
        raise Refused(Refusal.UNKNOWN, f"nobody expects {name!r} in {seat.run}")
    if json.loads(row["document"]).get("rank", seat.rank) != seat.rank:
        raise Refused(Refusal.IDENTITY, f"{name!r} is not rank {seat.rank} of {seat.run}")
    if row["public_key"] not in {"", public_key}:
        raise Refused(Refusal.KEY, f"{name!r} came before with another public key")
    if not row["public_key"]:
        values = {"public_key": public_key, "endpoint": endpoint, "at": at}
        connection.execute(update(tables.member).filter_by(**key).values(**values))


def met(connection: Connection, project: str, job: str, generation: int) -> tuple[Mapping[str, Any], ...]:
    """All members as expected, with `public_key`, `endpoint`, `at`, which are empty until they came."""
    query = select(tables.member).filter_by(project=project, job=job, generation=generation)
    found = [
        {**json.loads(row["document"]), **{name: row[name] for name in ("name", "public_key", "endpoint", "at")}}
        for row in connection.execute(query).mappings()
    ]
    return tuple(sorted(found, key=lambda m: (m.get("rank", 0), m["name"])))
