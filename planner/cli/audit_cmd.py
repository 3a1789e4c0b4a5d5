"""`skyplan audit`: what plans, stacks and an account grant, and what is wrong with it.  Exits 0 clean, 1 error, 2 findings at or above --fail-on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.audit import Live, Read
    from planner.model.audit_report import AuditReport

LEVELS = ("critical", "high", "medium", "low", "info", "none")
FORMATS = ("table", "json", "sarif", "markdown", "junit")
STDOUT = Path("-")


@click.command("audit")
@click.argument("paths", nargs=-1, metavar="[PLAN|DIR]...", type=click.Path(path_type=Path))
@click.option(
    "--terraform",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Terraform JSON of your own: *.tf.json, or what `terraform show -json` prints.  Repeatable.",
)
@click.option("--live", is_flag=True, help="Hold the account against the plans too, in both directions; reads only.")
@click.option("--base", metavar="PLAN|DIR|REV", default="", help="Report only what is granted beyond this.")
@click.option("--explain", metavar="IDENTITY", default="", help="Print what this identity may do, and what needs it.")
@click.option(
    "--graph", metavar="FILE.svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw who reaches what."
)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="How to report.  Repeatable.")
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Where the --format in the same place goes; `-` is stdout.  Repeatable.",
)
@click.option("--fail-on", type=click.Choice(LEVELS), default="high", show_default=True, help="Exit 2 from here on.")
@options.as_json
@options.project
@options.catalog
@options.plans
def command(
    paths: tuple[Path, ...],
    terraform: tuple[Path, ...],
    live: bool,
    base: str,
    explain: str,
    graph: Path | None,
    formats: tuple[str, ...],
    outputs: tuple[Path, ...],
    fail_on: str,
    as_json: bool,
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
) -> int:
    """Audit the rights in PLANs and in folders of plans or stacks (default: every plan in --plans).

    Findings that the platform team accepts stand in skyplan.yaml under `iam.suppressions`, each with a reason and an end.
    """
    from datetime import UTC, datetime

    from planner.app import audit
    from planner.cli import view
    from planner.cli.bar import bar
    from planner.model.finding import Level

    if explain and (formats or outputs):
        raise click.UsageError("--explain prints its own text, or JSON with --json; leave --format and --output out")
    if explain and (base or live):
        raise click.UsageError("--explain tells of what was read, whole; leave --base and --live out")
    if graph is not None and graph.suffix.lower() != ".svg":
        raise click.UsageError(f"--graph draws SVG; name a file that ends in .svg, not {graph}")
    asked = _asked(formats, outputs, as_json=as_json)
    if not paths and not terraform:
        if not plans_folder.exists():
            raise click.UsageError(
                f"nothing given to audit and no {plans_folder}/; name a plan, a folder or --terraform FILE"
            )
        paths = (plans_folder,)
    request = audit.Request(
        paths=paths,
        terraform=terraform,
        project_file=project_file,
        catalog=catalog,
        base=base,
        fail_on=None if fail_on == "none" else Level(fail_on),
    )
    with bar(len(paths) + len(terraform) + 3) as advance:
        known = audit.read(request, advance)
        if graph is not None:
            _draw(known, graph)
        report = None if explain else audit.judge(known, datetime.now(UTC), advance, _live(live=live))
    if report is None:
        view.warn(known.warnings, sys.stderr)
        return _explain(known, explain, as_json=as_json)
    view.warn(report.diagnostics, sys.stderr)
    _put(report, asked)
    if any(d.severity.value == "error" for d in report.diagnostics):
        return 1
    return 2 if report.failing else 0


def _asked(formats: Sequence[str], outputs: Sequence[Path], *, as_json: bool) -> list[tuple[str, Path]]:
    """Each format with where it goes.  Raises UsageError where they do not pair, or two go to stdout."""
    if as_json and "json" not in formats:
        formats, outputs = (*formats, "json"), (*outputs, STDOUT)
    if not outputs and len(formats) <= 1:
        return [(formats[0] if formats else "table", STDOUT)]
    if len(formats) != len(outputs):
        raise click.UsageError(
            f"{len(formats)} --format and {len(outputs)} --output: give one --output for each --format, `-` for stdout"
        )
    asked = list(zip(formats, outputs, strict=True))
    if len(set(outputs)) < len(outputs):
        raise click.UsageError("two formats cannot go to one place; give each an --output of its own")
    return asked


def _live(*, live: bool) -> Live | None:
    if not live:
        return None
    from planner.app import audit_live

    return audit_live.drift


def _put(report: AuditReport, asked: Sequence[tuple[str, Path]]) -> None:
    from planner.app.files import write_together
    from planner.cli import view
    from planner.render.audit_words import summary

    files = {path: _text(report, name).encode() for name, path in asked if path != STDOUT}
    write_together(files)
    for name, path in asked:
        if path in files:
            click.echo(f"wrote {path} ({name})", err=True)
        elif name == "table":
            from planner.render.audit_text import audit_lines

            view.say(audit_lines(report, view.paint_for(sys.stdout)), stream=sys.stdout)
        else:
            click.echo(_text(report, name), nl=False)
    if all(name != "table" for name, _ in asked):
        click.echo(summary(report), err=True)


def _text(report: AuditReport, name: str) -> str:
    from importlib.metadata import version

    from planner.model.digest import pretty
    from planner.render import audit_json, audit_junit, audit_markdown, audit_sarif
    from planner.render.audit_text import audit_lines
    from planner.render.text import Paint

    match name:
        case "json":
            return pretty(audit_json.document(report)).decode()
        case "sarif":
            return pretty(audit_sarif.document(report, version=version("skyplan"))).decode()
        case "markdown":
            return audit_markdown.document(report)
        case "junit":
            return audit_junit.document(report)
        case _:
            return "\n".join(audit_lines(report, Paint(on=False))) + "\n"


def _explain(known: Read, identity: str, *, as_json: bool) -> int:
    from planner.app.audit_explain import explain
    from planner.cli import view
    from planner.render.audit_json import explanation_document
    from planner.render.explain_identity import explanation_lines

    explanation = explain(identity, known.gathered)
    if as_json:
        view.put_json(explanation_document(explanation))
    else:
        view.say(explanation_lines(explanation, view.paint_for(sys.stdout)), stream=sys.stdout)
    return 0


def _draw(known: Read, path: Path) -> None:
    from planner.app.files import write_whole
    from planner.render.graph_svg import graph

    write_whole(path, graph(known.gathered.audited, title=f"Identities of {known.around.project.name}").encode())
    click.echo(f"wrote {path}", err=True)
