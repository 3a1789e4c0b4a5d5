"""Who sits where: machines take seats, are bound to the key they made, and hold sessions.

Decides whether a machine may have a seat, from what a verifier says of it and what the record knows of the node.  Verifies no proof itself.
One machine at a time has a seat: another one gets it when the record names it as the node, when an operator made a token for it, or, where the
record names no machine, once the sessions of the first have run out.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from planner.model.record import moment, stamp
from planner.model.runtime import Joined, NodeIdentity, Refusal, Refused, Seat, Session, same_machine
from planner.state import rows, tables
from planner.state.bulk import CHUNK
from planner.state.guards import Row, plain, run_of, upsert

ONE_TIME = "one-time"
KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A machine asks for a seat.  `at` and `expires_at` of its session are stamps; everything secret is a hash."""

    seat: Seat
    identity: NodeIdentity
    instance_id: str
    key_sha256: str
    proof_sha256: str
    token_sha256: str
    at: str
    expires_at: str


def admit(connection: Connection, project: str, wanted: Admission) -> Joined:
    """Give the seat, or raise Refused."""
    seat = wanted.seat
    plain(wanted.instance_id)
    run = run_of(connection, project, seat, alone=True)
    node = newest_node(connection, project, seat)
    if node is None and wanted.identity.scheme != ONE_TIME:
        raise Refused(Refusal.EARLY, f"the record does not know yet which machine is rank {seat.rank} of {seat.run}")
    _same_machine(run, node, wanted)
    by_hand = _take_token(connection, project, wanted) if wanted.identity.scheme == ONE_TIME else False
    if wanted.identity.scheme != ONE_TIME:
        _take_proof(connection, project, wanted)
    _take_seat(connection, project, wanted, named=node["instance_id"] if node else "", by_hand=by_hand)
    return _joined(connection, project, run, wanted)


def renew(
    connection: Connection, project: str, session: Session, *, token_sha256: str, at: str, expires_at: str
) -> Joined:
    """A new session for whom holds the seat, or Refused."""
    run = run_of(connection, project, session.seat)
    holder = _holder(connection, project, session.seat)
    if holder is None or holder["instance_id"] != session.instance_id:
        raise Refused(Refusal.UNKNOWN, "another machine has taken the seat")
    wanted = Admission(
        seat=session.seat,
        identity=NodeIdentity(scheme="", cloud=""),
        instance_id=session.instance_id,
        key_sha256=holder["key_sha256"],
        proof_sha256="",
        token_sha256=token_sha256,
        at=at,
        expires_at=expires_at,
    )
    return _joined(connection, project, run, wanted)


def sessions(connection: Connection, project: str, tokens: Sequence[str], at: str) -> dict[str, Session]:
    """By token, those that last and whose machine has the seat."""
    s, k = tables.session.c, tables.seat.c
    found: dict[str, Session] = {}
    for start in range(0, len(tokens), CHUNK):
        query = select(s.token_sha256, s.job, s.generation, s.rank, s.instance_id, s.expires_at, s.key_sha256).where(
            s.project == project,
            s.token_sha256.in_(tokens[start : start + CHUNK]),
            s.expires_at > at,
            *(k[name] == s[name] for name in ("project", "job", "generation", "rank", "instance_id", "key_sha256")),
        )
        for token, job, generation, rank, instance_id, expires_at, key_sha256 in connection.execute(query):
            seat = Seat(job=job, generation=generation, rank=rank)
            found[token] = Session(seat=seat, instance_id=instance_id, expires_at=expires_at, key_sha256=key_sha256)
    return found


def put_one_time(
    connection: Connection, project: str, seat: Seat, *, token_sha256: str, expires_at: str, at: str
) -> None:
    """Note an operator's token for a seat."""
    run_of(connection, project, seat)
    values = {**_key(project, seat), "token_sha256": token_sha256, "expires_at": expires_at, "used_by": "", "at": at}
    connection.execute(insert(tables.one_time).values(**values))


def newest_node(connection: Connection, project: str, seat: Seat) -> Row | None:
    """What the record last knew of the rank's machine."""
    query = select(tables.node).filter_by(**_key(project, seat)).order_by(tables.node.c.id.desc()).limit(1)
    return connection.execute(query).mappings().first()


def machine(connection: Connection, project: str, seat: Seat) -> str | None:
    """The rank's instance id: as the record has it, or, where it has none, of the machine that took the seat."""
    node = newest_node(connection, project, seat)
    if node is not None and node["instance_id"]:
        return str(node["instance_id"])
    holder = _holder(connection, project, seat)
    return str(holder["instance_id"]) if holder else ("" if node else None)


def holder(connection: Connection, project: str, seat: Seat) -> tuple[str, str] | None:
    """(instance id, SHA-256 of its key) of the machine that took the seat."""
    found = _holder(connection, project, seat)
    return (str(found["instance_id"]), str(found["key_sha256"])) if found else None


def manifest_key(connection: Connection, project: str, job: str, generation: int) -> bytes:
    """The generation's key, made at first need."""
    key = {"project": project, "job": job, "generation": generation}
    query = select(tables.run_key.c.key).filter_by(**key)
    found = connection.execute(query).scalar()
    if found is None:
        fresh = upsert(connection, tables.run_key).values(**key, key=secrets.token_hex(KEY_BYTES))
        connection.execute(fresh.on_conflict_do_nothing())
        found = connection.execute(query).scalar_one()
    return bytes.fromhex(found)


def _same_machine(run: Row, node: Row | None, wanted: Admission) -> None:
    said, claimed = wanted.identity, wanted.instance_id
    if said.instance_id and said.instance_id != claimed:
        raise Refused(Refusal.IDENTITY, f"the proof is of {said.instance_id}, not of {claimed}")
    place = rows.run_from(run).part_of(wanted.seat.rank)
    if said.cloud and said.cloud != place.cloud:
        raise Refused(
            Refusal.IDENTITY, f"rank {wanted.seat.rank} of {wanted.seat.run} is on {place.cloud}, not on {said.cloud}"
        )
    # the record has what Terraform calls it, which on GCP and Azure is a path
    named = replace(said, cloud=said.cloud or place.cloud, instance_id=claimed)
    if node is not None and node["instance_id"] and not (claimed and same_machine(node["instance_id"], named)):
        raise Refused(
            Refusal.IDENTITY, f"rank {wanted.seat.rank} of {wanted.seat.run} is another machine than {claimed}"
        )


def _take_proof(connection: Connection, project: str, wanted: Admission) -> None:
    """A proof belongs to the key it first came with: sent again after a lost reply it holds, copied it does not."""
    table = tables.proof
    connection.execute(
        delete(table).where(table.c.project == project, table.c.expires_at != "", table.c.expires_at < wanted.at)
    )
    key = {"project": project, "proof_sha256": wanted.proof_sha256}
    values = {"key_sha256": wanted.key_sha256, "expires_at": wanted.identity.expires_at, "at": wanted.at}
    connection.execute(upsert(connection, table).values(**key, **values).on_conflict_do_nothing())
    if connection.execute(select(table.c.key_sha256).filter_by(**key)).scalar_one() != wanted.key_sha256:
        raise Refused(Refusal.REPLAYED, "this proof came before, with another key")


def _take_token(connection: Connection, project: str, wanted: Admission) -> bool:
    """Use a one-time token.  True where this is its first use.

    Later ones are its own key's: after a lost answer, or when a session ran out while the control plane was away.  They keep a seat and take none.
    """
    key = {**_key(project, wanted.seat), "token_sha256": wanted.proof_sha256}
    row = connection.execute(select(tables.one_time).filter_by(**key).with_for_update()).mappings().first()
    if row is None:
        raise Refused(Refusal.IDENTITY, f"no such one-time token for rank {wanted.seat.rank} of {wanted.seat.run}")
    if row["used_by"]:
        if row["used_by"] != wanted.key_sha256:
            raise Refused(Refusal.REPLAYED, "this one-time token was used before")
        return False
    if row["expires_at"] <= wanted.at:
        raise Refused(Refusal.IDENTITY, f"the one-time token ended at {row['expires_at']}")
    connection.execute(update(tables.one_time).filter_by(**key).values(used_by=wanted.key_sha256))
    return True


def _take_seat(connection: Connection, project: str, wanted: Admission, *, named: str, by_hand: bool) -> None:
    seat, holder = wanted.seat, _holder(connection, project, wanted.seat)
    mine = {"instance_id": wanted.instance_id, "key_sha256": wanted.key_sha256}
    if holder is None:
        connection.execute(insert(tables.seat).values(**_key(project, seat), **mine, at=wanted.at))
        return
    same = holder["instance_id"] == wanted.instance_id
    if same and holder["key_sha256"] == wanted.key_sha256:
        return
    if wanted.identity.scheme == ONE_TIME and not by_hand:
        raise Refused(Refusal.REPLAYED, "this one-time token was used before, and another machine has the seat since")
    if same and not by_hand:
        raise Refused(Refusal.KEY, f"{wanted.instance_id or 'this machine'} joined before with another key")
    if not by_hand and not named:
        until = _held_until(connection, project, seat)
        if until > wanted.at:
            raise Refused(Refusal.EARLY, f"rank {seat.rank} of {seat.run} is held by another machine until {until}")
    connection.execute(update(tables.seat).filter_by(**_key(project, seat)).values(**mine, at=wanted.at))
    connection.execute(delete(tables.session).filter_by(**_key(project, seat)))


def _joined(connection: Connection, project: str, run: Row, wanted: Admission) -> Joined:
    seat, c = wanted.seat, tables.session.c
    key = _key(project, seat)
    connection.execute(delete(tables.session).filter_by(**key).where(c.expires_at <= wanted.at))
    values = {"instance_id": wanted.instance_id, "key_sha256": wanted.key_sha256, "expires_at": wanted.expires_at}
    # a token sent twice is one session
    connection.execute(
        upsert(connection, tables.session)
        .values(**key, **values, token_sha256=wanted.token_sha256)
        .on_conflict_do_nothing()
    )
    d = tables.delivery.c
    query = select(d.stream, d.through).filter_by(**key).order_by(d.at.desc(), d.through.desc()).limit(1)
    last = connection.execute(query).first()
    return Joined(
        session=Session(
            seat=seat,
            instance_id=wanted.instance_id,
            expires_at=wanted.expires_at,
            key_sha256=wanted.key_sha256,
        ),
        nodes=run["nodes"],
        manifest_key=manifest_key(connection, project, seat.job, seat.generation),
        stop_at=stop_at(run),
        stream=last.stream if last else "",
        through=last.through if last else 0,
    )


def stop_at(run: Row) -> str | None:
    """The run's hard end in time."""
    hours = run["stop_after_hours"]
    return None if hours is None else stamp(moment(run["started_at"]) + timedelta(hours=hours))


def _holder(connection: Connection, project: str, seat: Seat) -> Row | None:
    return connection.execute(select(tables.seat).filter_by(**_key(project, seat))).mappings().first()


def _held_until(connection: Connection, project: str, seat: Seat) -> str:
    query = select(tables.session.c.expires_at).filter_by(**_key(project, seat))
    return max(connection.execute(query).scalars(), default="")


def _key(project: str, seat: Seat) -> dict[str, Any]:
    return {"project": project, "job": seat.job, "generation": seat.generation, "rank": seat.rank}
