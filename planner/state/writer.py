"""Writing about one job, under its lease.

Every method is one transition in one transaction.  It first locks the job, and refuses (StateConflict, SKY-APPLY-320) where the lease went to somebody
else or where the generation the writer goes by is not the newest issued.  Rows of `run` and `stack` move by compare-and-swap; the rest only grow.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from planner.model.diagnostic import Diagnostic
from planner.model.errors import StateConflict
from planner.model.record import Action, Lease, Node, Outcome, Run, RunStatus, Stack, StackStatus, stamp
from planner.state import moves, rows, tables
from planner.state.transactions import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

    from planner.state.history import Move

ENDS = (RunStatus.FAILED, RunStatus.ENDED, RunStatus.LOST)


class Writer:
    """Writes about `lease.name`.  `generation` is the newest that this writer knows of: what it names with every write."""

    def __init__(self, engine: Engine, project: str, lease: Lease) -> None:
        self._engine = engine
        self._project = project
        self._lease = lease
        with reading(engine) as connection:
            self.generation: int = connection.execute(self._job_query()).scalar() or 0

    @property
    def job(self) -> str:
        """The job's name."""
        return self._lease.name

    def issue(self, run: Run, at: datetime, *, generation: int | None = None) -> Run:
        """Issue the next generation (or a given later one, for a run that another pipeline started) and its run, `starting`.  `run.generation` is ignored."""
        with self._transaction(at) as connection:
            number = self.generation + 1 if generation is None else generation
            if number <= self.generation:
                raise _conflict(f"generation {number} of `{self.job}` was issued before")
            query = update(tables.job).filter_by(project=self._project, name=self.job, generation=self.generation)
            _one(connection.execute(query.values(generation=number, version=tables.job.c.version + 1)), "job")
            values = {**rows.run_values(run), "status": RunStatus.STARTING, "started_at": stamp(at), "version": 1}
            connection.execute(insert(tables.run).values(**self._key(), generation=number, **values))
            self._event(connection, number, at, "issued", f"generation {number}: {run.offer_id}")
            made = self._run(connection, number)
        self.generation = number
        return made

    def intend(self, stack: Stack, action: Action, at: datetime, *, scope: str = "") -> int:
        """Say what is about to be done to a stack, and what it is made of.  Returns the intent's id."""
        with self._transaction(at) as connection:
            self._put_stack(connection, stack, at)
            values = {"action": action, "stack": stack.name, "generation": stack.generation, "scope": scope}
            query = insert(tables.attempt).values(**self._key(), **values, at=stamp(at), code="", kind="", detail="")
            return connection.execute(query.returning(tables.attempt.c.id)).scalar_one()

    def done(self, intent: int, status: StackStatus, at: datetime, *, outputs: Mapping[str, Any] | None = None) -> None:
        """A stack's apply or destroy succeeded.  `outputs`: what an apply left, for those who may not read the stack's state."""
        with self._transaction(at) as connection:
            row = self._finish(connection, intent, at, outcome=Outcome.DONE, status=status)
            if outputs is not None:
                values = {"outputs": json.dumps(dict(outputs), sort_keys=True)}
                self._move(connection, tables.stack, {"name": row["stack"]}, values)

    def launched(self, intent: int, generation: int, nodes: Sequence[Node], at: datetime) -> None:
        """The nodes of a generation are there: result, nodes, run `running`."""
        with self._transaction(at) as connection:
            self._finish(connection, intent, at, outcome=Outcome.DONE, status=StackStatus.APPLIED)
            for node in nodes:
                self._node(connection, generation, node, at)
            self._move_run(connection, generation, RunStatus.RUNNING, at)
            self._event(connection, generation, at, "running", f"{len(nodes)} node(s) running")

    def refused(self, intent: int, at: datetime, *, code: str, kind: str, scope: str, detail: str) -> None:
        """The cloud or Terraform said no; what is half made stays known as touched."""
        with self._transaction(at) as connection:
            ending = {"code": code, "kind": kind, "scope": scope, "detail": detail}
            row = self._finish(connection, intent, at, outcome=Outcome.REFUSED, status=None, **ending)
            self._event(connection, row["generation"], at, "refused", f"{row['stack']}: {code or kind}")

    def abandoned(self, intent: int, at: datetime, detail: str) -> None:
        """An intent whose process died, dealt with."""
        with self._transaction(at) as connection:
            self._finish(connection, intent, at, outcome=Outcome.ABANDONED, status=None, detail=detail)

    def run_status(self, generation: int, status: RunStatus, at: datetime, text: str) -> None:
        """Move a run."""
        with self._transaction(at) as connection:
            self._move_run(connection, generation, status, at)
            self._event(connection, generation, at, status, text)

    def seen(self, generation: int, nodes: Sequence[Node], status: RunStatus, at: datetime, text: str) -> None:
        """What sync saw: nodes (only those that changed) and what that makes of the run."""
        with self._transaction(at) as connection:
            for node in nodes:
                self._node(connection, generation, node, at)
            self._move_run(connection, generation, status, at)
            self._event(connection, generation, at, "synced", text)

    def adopt(self, stack: Stack, at: datetime) -> None:
        """Note a stack that somebody else applied."""
        with self._transaction(at) as connection:
            self._put_stack(connection, stack, at)

    def event(self, generation: int | None, at: datetime, kind: str, text: str) -> None:
        """Note what happened."""
        with self._transaction(at) as connection:
            self._event(connection, generation, at, kind, text)

    # moves

    def decide(self, from_generation: int, reason: str, document: Mapping[str, Any], at: datetime) -> Move:
        """Note a move before its first act.  Raises StateConflict (SKY-MOVE-419) where one is open."""
        with self._transaction(at) as connection:
            move = moves.decide(
                connection,
                self._project,
                self.job,
                from_generation=from_generation,
                reason=reason,
                document=document,
                at=stamp(at),
            )
            self._event(connection, from_generation, at, "migration", f"move {move.id} ({reason}): {move.status}")
            return move

    def go_on(self, move: Move, at: datetime, text: str = "", **changes: Any) -> Move:
        """The move with `status`, `to_generation` or `document` changed; `text` says why.  Raises StateConflict."""
        with self._transaction(at) as connection:
            further = moves.go_on(connection, self._project, move, stamp(at), **changes)
            if further.status != move.status:
                words = f"move {move.id}: {further.status}" + (f": {text}" if text else "")
                self._event(connection, further.to_generation, at, "migration", words)
            return further

    def give_up(self, move: Move, at: datetime, text: str) -> Move | None:
        """Revert a move, its new run with it; None where the new nodes have begun their cut."""
        with self._transaction(at) as connection:
            reverted = moves.give_up(connection, self._project, move, stamp(at))
            if reverted is not None:
                words = f"move {move.id}: {reverted.status}: {text} [SKY-MOVE-420]"
                self._event(connection, move.to_generation, at, "migration", words)
            return reverted

    # one transaction, guarded

    @contextmanager
    def _transaction(self, at: datetime) -> Generator[Connection]:
        with writing(self._engine) as connection:
            self._guard(connection, at)
            yield connection

    def _guard(self, connection: Connection, at: datetime) -> None:
        wanted = {"project": self._project, "name": self.job, "token": self._lease.token, "holder": self._lease.holder}
        if connection.execute(select(tables.lease).filter_by(**wanted).with_for_update()).first() is None:
            raise _conflict(f"the lease on `{self.job}` was taken over by another process")
        # not against rows that refer to the job: whoever notes an event of it holds the run that we want next, and we would wait for each other
        issued = connection.execute(self._job_query().with_for_update(key_share=True)).scalar()
        if issued is None:
            values = {"generation": 0, "first_applied_at": stamp(at), "version": 1}
            connection.execute(insert(tables.job).values(project=self._project, name=self.job, **values))
        elif issued != self.generation:
            raise _conflict(f"generation {self.generation} of `{self.job}` is fenced: {issued} was issued")

    def _job_query(self) -> Any:
        return select(tables.job.c.generation).filter_by(project=self._project, name=self.job)

    def _key(self) -> dict[str, Any]:
        return {"project": self._project, "job": self.job}

    def _finish(
        self,
        connection: Connection,
        intent: int,
        at: datetime,
        *,
        outcome: Outcome,
        status: StackStatus | None,
        **ending: str,
    ) -> dict[str, Any]:
        query = select(tables.attempt).filter_by(**self._key(), id=intent)
        row = dict(connection.execute(query).mappings().one())
        texts = {"code": "", "kind": "", "scope": row["scope"], "detail": ""} | ending
        values = {name: row[name] for name in ("stack", "action", "generation")}
        result = insert(tables.attempt).values(
            **self._key(), **values, **texts, intent=intent, outcome=outcome, at=stamp(at)
        )
        connection.execute(result)
        if status is not None:
            self._move(connection, tables.stack, {"name": row["stack"]}, {"status": status, "at": stamp(at)})
        return row

    def _put_stack(self, connection: Connection, stack: Stack, at: datetime) -> None:
        values = {**rows.stack_values(stack), "status": stack.status, "at": stamp(at)}
        key = {"project": self._project, "name": stack.name}
        if connection.execute(select(tables.stack.c.name).filter_by(**key)).first() is None:
            fixed = {name: getattr(stack, name) for name in ("kind", "job", "cloud", "target", "region", "generation")}
            connection.execute(insert(tables.stack).values(**key, **fixed, **values, version=1))
        else:
            self._move(connection, tables.stack, {"name": stack.name}, values)

    def _run(self, connection: Connection, generation: int) -> Run:
        query = select(tables.run).filter_by(**self._key(), generation=generation)
        return rows.run_from(dict(connection.execute(query).mappings().one()))

    def _move_run(self, connection: Connection, generation: int, status: RunStatus, at: datetime) -> None:
        values: dict[str, Any] = {"status": status}
        if status in ENDS:
            values["ended_at"] = stamp(at)
        self._move(connection, tables.run, {"job": self.job, "generation": generation}, values)

    def _move(self, connection: Connection, table: Table, key: dict[str, Any], values: dict[str, Any]) -> None:
        """Compare and swap."""
        key = {"project": self._project, **key}
        # locked: nodes' reports move runs too, and a move between our look and our write would be nobody's mistake
        version = connection.execute(select(table.c.version).filter_by(**key).with_for_update()).scalar_one()
        query = update(table).filter_by(**key, version=version).values(**values, version=version + 1)
        _one(connection.execute(query), table.name)

    def _node(self, connection: Connection, generation: int, node: Node, at: datetime) -> None:
        values = {"rank": node.rank, "instance_id": node.instance_id, "address": node.address, "status": node.status}
        connection.execute(insert(tables.node).values(**self._key(), generation=generation, **values, at=stamp(at)))

    def _event(self, connection: Connection, generation: int | None, at: datetime, kind: str, text: str) -> None:
        values = {"generation": generation, "at": stamp(at), "kind": kind, "text": text}
        connection.execute(insert(tables.event).values(**self._key(), **values))


def _one(result: Any, table: str) -> None:
    if result.rowcount != 1:
        raise _conflict(f"`{table}` changed meanwhile")


def _conflict(summary: str) -> StateConflict:
    return StateConflict([Diagnostic(code="SKY-APPLY-320", summary=summary)])
