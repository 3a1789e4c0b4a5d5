"""`skyplan agent`: the node's program on this machine, or packed into the one file that nodes fetch.  Starts it; never imports it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import click

#: `-P`: a `modules` folder where the user stands is not ours
_PROGRAM: Final = (sys.executable, "-P", "-m", "modules.agent")


@click.group("agent")
def command() -> None:
    """Run a job as a node would, or pack the program that nodes run."""


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
