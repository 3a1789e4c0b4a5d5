"""`skyplan synth`: Terraform from plan files, as JSON or as native HCL; what the stock cdktf CLI runs as the app."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.model.plan import PlacementPlan


@click.command("synth")
@click.argument("plan_files", nargs=-1, metavar="[PLAN...]", type=click.Path(path_type=Path))
@options.project
@options.catalog
@options.plans
@click.option(
    "--out",
    envvar="CDKTF_OUTDIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for stacks/STACK/cdk.tf.json, or with hcl for STACK/*.tf [default: cdktf.out, or terraform].",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "hcl"]),
    default="json",
    show_default=True,
    help="hcl: to be committed, reviewed and run without Node, CDK or skyplan.",
)
@click.option(
    "--root", is_flag=True, help="With hcl: one root module per job, job-NAME, instead of a folder per stack."
)
@click.option(
    "--generation",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Generation in the compute stacks' names, for a pipeline of your own; `apply` takes it from the record.",
)
def command(
    plan_files: tuple[Path, ...],
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    out: Path | None,
    form: str,
    root: bool,
    generation: int,
) -> None:
    """Write the stacks of the PLANs (default: every plan in --plans) as Terraform, for a pipeline of your own.

    Where all plans are written as hcl, folders of jobs that are gone are emptied of what skyplan wrote; docs/terraform.md shows a
    pipeline.
    """
    if root and form != "hcl":
        raise click.UsageError("--root goes with --format hcl")
    from planner.app import inputs, synth
    from planner.app.inputs import PLAN_SUFFIX
    from planner.model.words import words_of
    from planner.spec.normal import workload_from_document

    market = inputs.load_market(catalog)
    project = inputs.checked_project(project_file, words_of(market))
    files = plan_files or tuple(sorted(plans_folder.glob(f"*{PLAN_SUFFIX}")))
    if not files:
        raise click.UsageError(
            f"no plan file given and none in {plans_folder}/; run `skyplan plan JOB --out {plans_folder}`"
        )
    plans = _synthesised([inputs.read_plan(file) for file in files], named=bool(plan_files))
    sets = [
        stacks
        for plan in plans
        if (stacks := synth.inputs_of(plan, workload_from_document(plan.job), project, market, generation))
    ]
    if form == "hcl":
        made = synth.write_hcl(sets, out or Path("terraform"), root=root, whole=not plan_files)
        for folder in made.emptied:
            click.echo(f"warning: {folder}: nothing planned is in it any more: its files were removed", err=True)
        written = made.files
    else:
        found = synth.write([stack for stacks in sets for stack in stacks], out or Path("cdktf.out"))
        written = tuple(path for _, path in found)
    for path in written:
        click.echo(str(path))


def _synthesised(plans: list[PlacementPlan], *, named: bool) -> list[PlacementPlan]:
    """Those whose stacks can be written, with a word on the others; a plan that was named is not passed over."""
    split = [plan for plan in plans if plan.ranked and plan.choice.parts] if not named else []
    for plan in split:
        text = f"warning: {plan.name}: passed over: only `skyplan apply` launches a job in several clouds"
        click.echo(text, err=True)
    left = [plan for plan in plans if plan not in split]
    for plan in left:
        if plan.ranked and not plan.status.applyable:
            text = f"warning: {plan.name}: nodes there would have no credentials for every store [SKY-APPLY-327]"
            click.echo(text, err=True)
    return left
