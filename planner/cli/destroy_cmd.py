"""`skyplan destroy`: end jobs and leave nothing behind."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options
from planner.cli.apply_cmd import AUTO_APPROVE, LEASE_TIMEOUT, QUIET


@click.command("destroy")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@options.project
@options.catalog
@options.as_json
@AUTO_APPROVE
@LEASE_TIMEOUT
@QUIET
@click.option("--keep-network", is_flag=True, help="Leave networks standing, though no job uses them.")
def command(
    jobs: tuple[str, ...],
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    auto_approve: bool,
    lease_timeout: float,
    quiet: bool,
    keep_network: bool,
) -> int:
    """End the JOBs (names): nodes, then access, then networks that no other job uses; then ask the cloud that nothing is left.

    May be run again after a crash at any moment.
    """
    from dataclasses import asdict

    from planner.app import destroy as destroying
    from planner.app import review, wire
    from planner.cli import view
    from planner.cli.progress import ending_politely, progress

    setting = review.setting(project_file, catalog)
    ports = wire.ports(setting.project, setting.market, lambda _stack, _text: None)
    try:
        destroying.known(jobs, ports)
    finally:
        ports.record.close()
    if not auto_approve:
        _approve(jobs, setting.project.name)
    done: list[destroying.Destroyed] = []
    with progress(quiet=quiet or as_json) as tell, ending_politely():
        ports = wire.ports(setting.project, setting.market, tell)
        try:
            for job in jobs:
                ended = destroying.destroy(job, ports, keep_network=keep_network, lease_timeout=lease_timeout)
                done.append(ended)
                if not as_json:
                    click.echo(_line(ended))
        finally:
            ports.record.close()
    if as_json:
        view.put_json({"format_version": "1.0", "jobs": [asdict(d) for d in done]})
    return 0


def _approve(jobs: tuple[str, ...], project: str) -> None:
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError

    if not sys.stdin.isatty():
        summary = f"destroying {', '.join(jobs)} needs approval, and there is no terminal to ask on"
        raise InputError([Diagnostic(code="SKY-APPLY-322", summary=summary, hint="give --auto-approve")])
    click.confirm(f"Destroy {', '.join(jobs)} in project `{project}`?", abort=True, err=True)


def _line(done: object) -> str:
    from planner.app.destroy import Destroyed

    assert isinstance(done, Destroyed)  # noqa: S101 - for the type checker
    if not (done.stacks or done.leaks):
        return f"{done.job}: nothing was left to destroy"
    parts = [f"{len(done.stacks)} stack(s) destroyed"]
    if done.leaks:
        parts.append(f"{len(done.leaks)} machine(s) ended that no state knew")
    if done.kept:
        parts.append(f"kept {', '.join(done.kept)}")
    return f"{done.job}: {'; '.join(parts)}"
