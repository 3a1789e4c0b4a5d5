"""`skyplan explain`: a code's meaning, or the fate of offers for a job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.model.codes import Code


@click.command("explain")
@click.argument("subject")
@click.argument("pattern", required=False)
@options.project
@options.catalog
@options.plans
@options.offline
@options.as_of
@options.as_json
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many offers to tell about.")
def command(
    subject: str,
    pattern: str | None,
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    offline: bool,
    as_of: str | None,
    as_json: bool,
    limit: int,
) -> int:
    """Answer "why this, why not that".

    SUBJECT is a code, the beginning of codes, or a job file.  Of a code: what it means, where it appears, what to do.  With a job
    file, PATTERN picks offers: an offer id, an instance type, a region or a cloud, globs allowed (`p5*`, `aws:*us-east-1*`); without
    one, the choice and its runners-up are explained.
    """
    from planner.cli import view
    from planner.model.codes import CODES

    if subject.upper() in CODES:
        _code(CODES[subject.upper()], as_json=as_json)
        return 0
    if subject.upper().startswith("SKY-"):
        _family(subject.upper(), as_json=as_json)
        return 0
    from datetime import UTC, datetime

    from planner.app import explain as explaining
    from planner.app import plan as planning
    from planner.render import explain_text

    request = planning.Request(
        job_files=(Path(subject),),
        project_file=project_file,
        catalog=catalog,
        plans_folder=plans_folder,
        offline=offline,
        as_of=options.moment(as_of),
    )
    result = planning.run(request, datetime.now(UTC))
    view.warn(result.warnings, sys.stderr)
    answers = [explaining.answer(p, pattern, limit) for p in result.planned]
    if as_json:
        view.put_json({"format_version": "1.0", "jobs": [explain_text.document(a) for a in answers]})
    else:
        for a in answers:
            view.say(explain_text.lines(a, view.paint_for(sys.stdout)), stream=sys.stdout)
    if any(not (a.verdicts or a.waits) for a in answers):
        click.echo(f"error: no offer matches `{pattern}`" if pattern else "error: nothing is feasible", err=True)
        means = "part of an offer as `skyplan offers` lists them, with *, such as `gcp:*` or `p5*`"
        hint = f"a pattern is {means}" if pattern else f"add a pattern to see why not: {means}"
        click.echo(f"  hint: {hint}", err=True)
        return 1
    return 0


def _family(start: str, *, as_json: bool) -> None:
    """All codes that begin so.  Raises UsageError where there is none."""
    from planner.cli import view
    from planner.model.codes import CODES
    from planner.render.explain_code import family_lines

    found = [code for code in CODES.values() if code.id.startswith(start)]
    if not found:
        from difflib import get_close_matches

        near = ", ".join(get_close_matches(start, CODES, 3)) or "none"
        raise click.UsageError(f"no code `{start}`; near: {near}")
    if as_json:
        view.put_json([{"code": code.id, "meaning": code.meaning, "hint": code.hint} for code in found])
    else:
        click.echo("\n".join(family_lines(found)))


def _code(code: Code, *, as_json: bool) -> None:
    from planner.app.explain_rule import rule
    from planner.cli import view
    from planner.model.notes import note
    from planner.render.explain_code import code_document, code_lines
    from planner.render.explain_rule import rule_document, rule_lines

    found, more = rule(code.id), note(code.id)
    if as_json:
        words = rule_document(found) if found else {}
        view.put_json(code_document(code, more) | words)
    else:
        click.echo("\n".join(rule_lines(found) if found else code_lines(code, more)))
