"""`skyplan foundation`: the control identities of one account as Terraform JSON, for an administrator to review and apply."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.model.stack import FoundationInput

CLOUDS = ("aws", "gcp", "azure", "nebius")


@click.command("foundation")
@click.option("--cloud", required=True, type=click.Choice(CLOUDS), help="Whose identities.")
@click.option("--target", "target", metavar="NAME", help="Which of the cloud's targets, where there are several.")
@click.option(
    "--out",
    envvar="SKYPLAN_FOUNDATION",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("foundation"),
    show_default=True,
    help="Folder for fnd-CLOUD-TARGET/cdk.tf.json.",
)
@options.as_json
@options.project
@options.catalog
def command(
    cloud: str, target: str | None, out: Path, as_json: bool, project_file: Path | None, catalog: Path | None
) -> None:
    """Write the identities that plan, deploy, launch and mint in an account, and who may become them.

    An administrator applies it, once per account; skyplan itself never does.  Pull requests may only plan; see `foundation` in skyplan.yaml.
    """
    from planner.app import foundation, inputs
    from planner.cli import view
    from planner.model.offer import Cloud
    from planner.model.words import words_of
    from planner.spec.targets import ACCOUNT_WORD

    market = inputs.load_market(catalog)
    project = inputs.checked_project(project_file, words_of(market))
    given = foundation.foundation_input(project, market, Cloud(cloud), target)
    path = foundation.write(given, out)
    commands = foundation.how_to_apply(given, path)
    absent = {identity.value: why for identity, why in foundation.left_out(given)}
    roles = {one.identity.value: one.name for one in given.identities if one.identity.value not in absent}
    if as_json:
        view.put_json(
            {
                "format_version": "1.0",
                "stack": given.name,
                "path": str(path),
                "identities": roles,
                "left_out": absent,
                "ci_role": given.entry.name if given.entry else None,
                "boundaries": [one.name for one in given.boundaries],
                "apply": list(commands),
                "ci": list(foundation.ci_lines(given)),
            }
        )
        return
    click.echo(str(path))
    lines = (
        f"{given.name}: {', '.join(roles)} of project {given.project} in {cloud} {ACCOUNT_WORD[cloud]} {given.account}.",
        *_beside(given),
        *(f"No {word} is made: {why}." for word, why in absent.items()),
        "Review it, then apply it as an administrator of the account, and put the lines of `skyplan_yaml` into the target in skyplan.yaml:",
        *(f"  {one}" for one in commands),
        *_ci(foundation.ci_lines(given)),
    )
    click.echo("\n".join(lines), err=True)


def _beside(given: FoundationInput) -> tuple[str, ...]:
    """What else is in the stack that can be held: boundaries, and the role by which CI comes in."""
    entry = (f"{given.entry.name}, by which CI of the protected branch comes in",) if given.entry else ()
    bounds = tuple(f"the boundary {one.name}" for one in given.boundaries)
    return (f"Beside them: {'; '.join((*bounds, *entry))}.",) if bounds or entry else ()


def _ci(lines: tuple[str, ...]) -> tuple[str, ...]:
    return (
        ("What CI's own configuration names (docs/control-identities.md):", *(f"  {one}" for one in lines))
        if lines
        else ()
    )
