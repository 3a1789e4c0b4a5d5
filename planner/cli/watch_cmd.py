"""`skyplan watch`: the loop.  Exits 0 when it is stopped, or after --once when all went well; 1 on an error or a move that failed."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.review import Setting
    from planner.app.watch_market import Round


def _every(_ctx: click.Context, _param: click.Parameter, text: str) -> float:
    """`5m` in seconds."""
    from planner.spec import units

    try:
        return units.hours(text) * 3600
    except units.Malformed as error:
        raise click.BadParameter(f"`{text}` {error}: {error.hint}") from error


@click.command("watch")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@options.project
@options.catalog
@options.plans
@options.as_json
@click.option(
    "--every", default="5m", show_default=True, callback=_every, metavar="DURATION", help="Between two rounds."
)
@click.option("--once", is_flag=True, help="One round, and its moves to their end.")
@click.option("--apply", "carry_out", is_flag=True, help="Carry out moves to prepared places of the reviewed plans.")
@click.option("--no-refresh", is_flag=True, help="Ask no cloud: neither for prices nor for nodes that are gone.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".skyplan") / "proposals",
    show_default=True,
    help="Where moves are proposed: plans/NAME.plan.json and migrations/NAME.diff.json.",
)
def command(
    jobs: tuple[str, ...],
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    as_json: bool,
    every: float,
    once: bool,
    carry_out: bool,
    no_refresh: bool,
    out: Path,
) -> int:
    """Ask the clouds, keep what they say, decide on the JOBs (default: all that run), and propose each move or carry it out.

    Lines on stderr tell what happens; --json gives one line per round on stdout.  A second watch of the same project waits until the first ends.
    """
    from dataclasses import replace

    from planner.app import replan_given, review, watch_real, wire
    from planner.app.lease import held
    from planner.app.watch_market import LEASE, StoppableClock, Watch

    setting = review.setting(project_file, catalog)
    _allowed(setting, plans_folder, out, carry_out=carry_out)
    asked = replan_given.Asked(project_file=project_file, catalog=catalog, plans_folder=plans_folder, names=tuple(jobs))
    stop = threading.Event()
    opened = replan_given.open_record(setting.project.name)
    ports = replace(wire.ports(setting.project, setting.market, _tell), clock=StoppableClock(stop))
    acts = watch_real.acts(asked, setting, opened, stop, clouds=not no_refresh, apply=carry_out)
    watching = Watch(acts=acts, out=out, log=_log, stop=stop)
    try:
        _known(jobs, {name for name in jobs if ports.record.runs(name)})
        with _stopping(stop), held(ports, LEASE, wait_seconds=0.0 if once else float("1e9")):
            _log("watching", project=setting.project.name, apply=carry_out, every_seconds=every)
            if once:
                done, well = watching.once()
                _round(done, as_json=as_json)
                return 0 if well else 1
            watching.run(every, lambda one: _round(one, as_json=as_json))
            _log("stopped")
    except KeyboardInterrupt:
        if not stop.is_set():
            raise
        _log("stopped")
    finally:
        stop.set()
        watching.close()
        ports.record.close()
        opened.close()
    return 0


def _known(jobs: tuple[str, ...], names: set[str]) -> None:
    """Raises InputError (SKY-APPLY-323) for jobs that the record does not know: a slip would be watched for ever."""
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError

    if strange := sorted(set(jobs) - names):
        raise InputError(
            [Diagnostic(code="SKY-APPLY-323", summary=f"no job `{name}` was ever applied") for name in strange]
        )


def _allowed(setting: Setting, plans_folder: Path, out: Path, *, carry_out: bool) -> None:
    """Raises InputError (SKY-APPLY-322) where the project allows nothing unattended, or proposals would pass for reviewed plans."""
    from planner.app.inputs import PLANS_FOLDER
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError

    found: list[Diagnostic] = []
    if carry_out and setting.project.migration.apply == "never":
        summary = "the project lets nothing move unattended"
        hint = "write `migration: {apply: reviewed}` in skyplan.yaml, or leave --apply out"
        found.append(Diagnostic(code="SKY-APPLY-322", summary=summary, hint=hint))
    if (out / PLANS_FOLDER).resolve() == plans_folder.resolve():
        summary = f"{out / PLANS_FOLDER} is where reviewed plans stand: a proposal there would pass for one"
        found.append(Diagnostic(code="SKY-APPLY-322", summary=summary, hint="give another folder with --out"))
    if found:
        raise InputError(found)


@contextmanager
def _stopping(stop: threading.Event) -> Generator[None]:
    """SIGTERM and SIGINT end it between two acts; a second one at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def once(number: int, _frame: Any) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop.set()

    try:
        for number in before:
            signal.signal(number, once)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _round(done: Round, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(done.document(), sort_keys=True, ensure_ascii=False, allow_nan=False))
        sys.stdout.flush()


def _tell(_stack: str, text: str) -> None:
    _log("waits", text=text)


def _log(event: str, **fields: str | float | None) -> None:
    """`2026-11-30T12:00:00.000Z event=round number=3 …` on stderr; texts are quoted as JSON."""
    from datetime import UTC, datetime

    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = " ".join(f"{name}={_field(value)}" for name, value in fields.items() if value is not None)
    click.echo(f"{at} event={event} {told}".rstrip(), err=True)


def _field(value: str | float) -> str:
    if isinstance(value, str) and (not value or any(c in value for c in ' "=\\\n')):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
