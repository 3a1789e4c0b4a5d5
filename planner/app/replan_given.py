"""What a replan is made of, read from the files and the record as they are: skyplan.yaml, the market with its history, the plans that stand, the runs.

Decides where things are looked for.  Nothing is written, and no record is made: without one nothing runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.app import inputs, wire
from planner.app.replan import Replanned, Request, Sources, replan
from planner.app.standing_plans import whole
from planner.model.errors import MissingPart
from planner.model.ledger import AvailabilityMemory
from planner.model.record import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.diagnostic import Diagnostic
    from planner.model.stack import StackInput
    from planner.state.history import History
    from planner.state.newest import Looker
    from planner.state.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Where the files lie, which jobs, and as of when (ISO; None = now, with what is known now)."""

    project_file: Path | None = None
    catalog: Path | None = None
    plans_folder: Path = Path(inputs.PLANS_FOLDER)
    names: tuple[str, ...] = ()
    as_of: str | None = None


@dataclass(slots=True)
class Open:
    """The record's three readers, opened together and closed together."""

    record: Record
    told: Looker
    history: History

    def close(self) -> None:
        """Let the database go."""
        for one in (self.record, self.told, self.history):
            one.close()


def open_record(project: str) -> Open:
    """Raises MissingPart, InputError where there is no record."""
    try:
        from planner.state.history import History  # noqa: PLC0415 - sqlalchemy, optional
        from planner.state.newest import Looker  # noqa: PLC0415
        from planner.state.record import Record  # noqa: PLC0415
    except ImportError as error:
        from planner.state.engine import missing  # noqa: PLC0415 - only on an error

        raise missing("SQLAlchemy", "record") from error
    url = wire.database_url()
    record = Record.open(url, project, make=False)
    return Open(record=record, told=Looker.open(url, project), history=History.open(url, project, upgrade=False))


def request_of(asked: Asked, now: datetime, *, only_ready: bool = False) -> tuple[Request, tuple[Diagnostic, ...]]:
    """Everything but the record's own rows, and what people should know of the files.  Raises InputError, Unavailable."""
    as_of = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    read = inputs.load((), project_file=asked.project_file, catalog=asked.catalog, as_of=asked.as_of)
    read = read.counted_at(as_of)
    plans = inputs.standing_plans(asked.plans_folder)
    said = {name: whole(plan) for name, plan in plans.items()}
    known = inputs.read_record(read.project.name, read.market, offline=False, plans=said)
    seen = read.priced.failures(read.project, now) if read.priced else ()
    # as of a moment: what failed later had not failed yet
    failures = {f for f in known.memory.failures if f.at <= stamp(now)} | set(seen)
    request = Request(
        read=read,
        plans=plans,
        holdings=known.holdings,
        memory=AvailabilityMemory(tuple(sorted(failures))),
        names=asked.names,
        only_ready=only_ready,
    )
    return request, read.warnings


def moment_of(asked: Asked, now: datetime) -> datetime:
    """The moment that is decided at."""
    if asked.as_of is None:
        return now
    at = datetime.fromisoformat(asked.as_of)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def synth_if_there() -> Callable[[StackInput], Mapping[str, Any]] | None:
    """The CDK's synthesis, or None where it is not installed: then a diff names stacks, not resources."""
    known: dict[str, Mapping[str, Any]] = {}

    def synth(given: StackInput) -> Mapping[str, Any]:
        # the kinds of resources hang on cloud and shape, not on zone and price, but the rest is cheap enough to be exact
        key = repr(given)
        if key not in known:
            try:
                from stacks.app import document  # noqa: PLC0415 - starts node
            except ImportError:
                return {}
            try:
                known[key] = document(given)
            except MissingPart:
                return {}
        return known[key]

    return synth


def run(asked: Asked, now: datetime, *, only_ready: bool = False) -> tuple[Replanned, tuple[Diagnostic, ...]]:
    """Once, from the files and the record.  Raises InputError, MissingPart, Unavailable."""
    at = moment_of(asked, now)
    request, warnings = request_of(asked, at, only_ready=only_ready)
    opened = open_record(request.read.project.name)
    try:
        sources = Sources(record=opened.record, told=opened.told, history=opened.history, synth=synth_if_there())
        return replan(request, sources, at), warnings
    finally:
        opened.close()
