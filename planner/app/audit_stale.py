"""Which plans are older than their jobs: what a job file asks for now is audited only after it is planned again, and silence would say it was looked at.

Warns and judges nothing.  A job file that is not at hand, as where only plans are handed on, tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.words import words_of
from planner.spec.normal import workload_document

if TYPE_CHECKING:
    from planner.app.audit_sources import Around, PlanSource
    from planner.app.audit_tree import Tree


def stale(plans: Iterable[PlanSource], around: Around, tree: Tree) -> Iterator[Diagnostic]:
    """A warning per plan whose job is not what its file says now."""
    for source in plans:
        job = source.plan.inputs["job"]
        file = Path(str(job["file"]))
        if not tree.has(file):
            continue
        try:
            now = _digest(source.plan.name, file, around, tree)
        except InputError as error:
            why = f"whether {source.file} is older than {file} is not known: {error.diagnostics[0].summary}"
            yield _warning(why, source.file, "correct the job file and plan again")
            continue
        if now is None:
            why = f"{source.file} is of job `{source.plan.name}`, which {file} does not have any more"
            yield _warning(why, source.file, "remove the plan, or plan again")
        elif now != job["digest"]:
            why = f"{source.file} is older than {file}: what the job file asks for now was not audited"
            yield _warning(why, source.file, f"run `skyplan plan {file}` and audit again")


def _digest(name: str, file: Path, around: Around, tree: Tree) -> str | None:
    """Of the job as its file has it now, narrowed to the project, as a plan keeps it.  Raises InputError."""
    from planner.spec.foreign import parse_any  # noqa: PLC0415 - yaml
    from planner.spec.foreign.shelf import shelf_of  # noqa: PLC0415 - yaml
    from planner.spec.limits import narrow  # noqa: PLC0415 - yaml

    words = words_of(around.market())
    jobs, problems = parse_any(tree.text(file), str(file), words, around.project, shelf_of(around.market(), words))
    job = next((j for j in jobs if j.name == name), None)
    if job is not None:
        return digest(workload_document(narrow(job, around.project)[0]))
    errors = [d for d in problems if d.severity is Severity.ERROR]
    if errors:
        raise InputError(errors)
    return None


def _warning(summary: str, file: str, hint: str) -> Diagnostic:
    return Diagnostic(
        code="SKY-IAM-906", summary=summary, location=Location(file), hint=hint, severity=Severity.WARNING
    )
