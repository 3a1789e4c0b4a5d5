"""The real ports: the database, Terraform, the CDK, the clouds' SDKs, the clock.  The only place that makes them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.app.inputs import RECORD_FILE
from planner.model.digest import pretty
from planner.state.engine import sqlite_url

if TYPE_CHECKING:
    from planner.app.ports import Ports, Tell
    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.stack import StackInput
    from planner.state.history import History
    from planner.state.record import Record
    from planner.state.runtime import Runtime


class SystemClock:
    """The machine's."""

    def now(self) -> datetime:
        """UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def database_url() -> str:
    """SKYPLAN_DATABASE_URL, else the file in `.skyplan`."""
    return os.environ.get("SKYPLAN_DATABASE_URL") or sqlite_url(RECORD_FILE)


def record(project: Project, *, make: bool = True) -> Record:
    """The project's record; `make` where there is none.  Raises MissingPart, InputError."""
    try:
        from planner.state.record import Record  # noqa: PLC0415 - sqlalchemy, optional
    except ImportError as error:
        from planner.state.engine import missing  # noqa: PLC0415 - only on an error

        raise missing("SQLAlchemy", "record") from error
    return Record.open(database_url(), project.name, make=make)


def runtime(project: Project, *, make: bool = True) -> Runtime:
    """What its nodes told, of the same database.  Raises MissingPart, InputError."""
    try:
        from planner.state.runtime import Runtime  # noqa: PLC0415 - sqlalchemy, optional
    except ImportError as error:
        from planner.state.engine import missing  # noqa: PLC0415 - only on an error

        raise missing("SQLAlchemy", "record") from error
    return Runtime.open(database_url(), project.name, make=make)


def history(project: Project, *, make: bool = True) -> History:
    """What was observed of markets, of the same database.  Raises MissingPart, InputError."""
    try:
        from planner.state.history import History  # noqa: PLC0415 - sqlalchemy, optional
    except ImportError as error:
        from planner.state.engine import missing  # noqa: PLC0415 - only on an error

        raise missing("SQLAlchemy", "record") from error
    return History.open(database_url(), project.name, make=make)


def ports(project: Project, market: Market, tell: Tell) -> Ports:
    """Everything real."""
    from planner.app.lease import myself  # noqa: PLC0415 - only where stacks are applied
    from planner.app.ports import Ports  # noqa: PLC0415
    from planner.clouds.choose import RealClouds  # noqa: PLC0415
    from stacks.tool import TerraformStacks  # noqa: PLC0415

    return Ports(
        record=record(project),
        terraform=TerraformStacks(Path.cwd(), project.name),
        clouds=RealClouds(),
        clock=SystemClock(),
        tell=tell,
        synth=_synth,
        project=project,
        market=market,
        holder=myself(),
        keep=_keep,
    )


def _keep(name: str, document: Mapping[str, Any]) -> str:
    """Write a document under `.skyplan`, for its owner's eyes only."""
    path = RECORD_FILE.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(pretty(dict(document)))
    return str(path)


def _synth(given: StackInput) -> Mapping[str, Any]:
    from stacks.app import document  # noqa: PLC0415 - starts node

    return document(given)
