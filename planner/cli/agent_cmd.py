"""`skyplan agent`: the node's program on this machine, packed into the one file that nodes fetch, or let in by hand.  Starts it; never imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from planner.cli import options
from planner.cli.numbers import Finite

#: `-P`: a `modules` folder where the user stands is not ours
_PROGRAM: Final = (sys.executable, "-P", "-m", "modules.agent")


@click.group("agent")
def command() -> None:
    """Run a job as a node would, pack the program that nodes run, or let a node in that was set up by hand."""


@command.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--local", is_flag=True, help="On this machine: no control plane, no root, no cloud; checkpoints in a folder."
)
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="As a node: its agent.json.")
@click.option("--job", metavar="NAME", help="With --local: the job's name.  [default: this folder's]")
@click.option("--folder", type=click.Path(file_okay=False), help="With --local.  [default: .skyplan/agent]")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND…")
def run(local: bool, config: str | None, job: str | None, folder: str | None, words: tuple[str, ...]) -> None:
    """Start COMMAND, follow its progress, ask it for checkpoints, go on from the newest one at the next start.

    The job finds its files in its environment (docs/job-protocol.md). The exit code is the job's.
    """
    if local == (config is not None):
        raise click.UsageError("give one of `--local` and `--config FILE`")
    if not local and (job or folder):
        raise click.UsageError("`--job` and `--folder` are for `--local`")
    given = ["--local"] if local else ["--config", str(config)]
    given += [word for name, value in (("--job", job), ("--folder", folder)) if value for word in (name, value)]
    sys.stdout.flush()
    os.execv(_PROGRAM[0], [*_PROGRAM, "run", *given, "--", *words])  # noqa: S606 - signals and exit code are the agent's own


@command.command("pack")
@click.argument("file", type=click.Path(dir_okay=False))
def pack(file: str) -> None:
    """Write the agent as one file and print its SHA-256, for `agent: {url, sha256}` in skyplan.yaml.

    The same version of skyplan makes the same bytes anywhere.
    """
    done = subprocess.run([*_PROGRAM[:-1], "modules.agent.pack", file], capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(done.stderr.strip().removeprefix("error: "))
    click.echo(done.stdout.strip())


@command.command("token")
@click.argument("job")
@click.option("--rank", type=click.IntRange(0), required=True, help="The seat: one rank of the run.")
@click.option(
    "--generation", type=click.IntRange(1), help="Of this run [default: the one that `skyplan status` shows]."
)
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="A new file, readable by you only.",
)
@click.option(
    "--hours",
    type=Finite(0, 168, min_open=True),
    default=1.0,
    show_default=True,
    help="Until when the node must have joined.",
)
@options.project
@options.catalog
@options.as_json
def token(
    job: str,
    rank: int,
    generation: int | None,
    file: Path,
    hours: float,
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
) -> int:
    """Make a token by which one machine that was set up by hand may take one seat of JOB (a name), once.

    The record keeps its hash; the token itself is written to FILE and shown nowhere. Put it on the machine as its agent.json's `token_file`.
    """
    from planner.app import following, one_time, review, wire
    from planner.cli import view

    project = review.setting(project_file, catalog).project
    record, told = wire.record(project, make=False), wire.runtime(project, make=False)
    source = following.Source(record=record, told=told, clock=wire.SystemClock())
    try:
        made = one_time.issue(source, job, generation=generation, rank=rank, hours=hours, file=file)
    finally:
        told.close()
        record.close()
    if as_json:
        seat = {"job": made.seat.job, "generation": made.seat.generation, "rank": made.seat.rank}
        view.put_json({"format_version": "1.0", "file": made.file, "expires_at": made.expires_at, **seat})
    else:
        click.echo(f"{made.file}: for rank {rank} of {made.seat.run}, to join with until {made.expires_at}")
    return 0
