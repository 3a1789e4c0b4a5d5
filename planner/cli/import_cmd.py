"""`skyplan import`: SkyPilot, dstack and Slurm files to job files.  Exits 0, or 1 where a file cannot be imported: then nothing is written."""

from __future__ import annotations

from pathlib import Path

import click

from planner.cli import options


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "tool",
    type=click.Choice(["auto", "skypilot", "dstack", "slurm", "skyplan"]),
    default="auto",
    show_default=True,
    help="Whose files they are; `auto` tells it from each.",
)
@click.option(
    "--out",
    default="-",
    metavar="FOLDER|-",
    show_default=True,
    help="Write NAME.yaml for each job there; `-` prints them.",
)
@click.option("--force", is_flag=True, help="Write over job files that are there.")
@click.option("--hours", metavar="HOURS", help="How long the work takes, such as 36 or 1d12h; theirs do not say it.")
@click.option("--work-model", metavar="GPU:COUNT", help="The hardware those hours are counted on, such as A100-80GB:8.")
@click.option("--data-size", metavar="SIZE", help="How large each bucket's data is, such as 500GB.")
@click.option("--gpu", metavar="GPU", help="Which GPU a Slurm script means where it says only how many.")
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="A value that is given at launch there.")
@options.catalog
@options.as_json
def command(
    files: tuple[Path, ...],
    tool: str,
    out: str,
    force: bool,
    hours: str | None,
    work_model: str | None,
    data_size: str | None,
    gpu: str | None,
    env: tuple[str, ...],
    catalog: Path | None,
    as_json: bool,
) -> int:
    """Make job files of SkyPilot tasks, dstack configurations and Slurm batch scripts, and list what could not be carried over.

    Example: skyplan import train.yaml --hours 36 --out jobs
    """
    from planner.app import importing
    from planner.cli import view
    from planner.spec import units
    from planner.spec.foreign import Options

    pairs = [pair.partition("=") for pair in env]
    if any(not sign or not name for name, sign, _ in pairs):
        raise click.BadParameter("write it as NAME=VALUE", param_hint="--env")
    try:
        worked = units.hours(hours, bare=True) if hours is not None else None
        if data_size is not None:
            units.size_bytes(data_size)
    except units.Malformed as problem:
        raise click.BadParameter(f"{problem}; {problem.hint}", param_hint="--hours or --data-size") from problem
    given = Options(
        hours=worked,
        work_model=work_model,
        data_size=data_size,
        gpu=gpu,
        env={name: value for name, _, value in pairs},
    )
    request = importing.Request(
        files=files,
        tool=None if tool == "auto" else tool,
        folder=None if out == "-" else Path(out),
        options=given,
        catalog=catalog,
        force=force,
    )
    done = importing.run(request)
    click.echo("\n".join(importing.listing(done)), err=True)
    if as_json:
        view.put_json(importing.document(done))
    elif out == "-":
        click.echo("---\n".join(job.written.text for file in done for job in file.result.jobs), nl=False)
    return 0
