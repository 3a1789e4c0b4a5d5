"""Importing other tools' files: from paths to job files, whole or not at all.

Decides how files are read, where the jobs are written, and how what became of each value is listed.  What a field means is `planner.spec.foreign`'s business.
Every problem of every file is reported at once, and nothing is written where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.app import inputs
from planner.app.files import write_together
from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.errors import InputError
from planner.model.words import words_of
from planner.render import diagnostics
from planner.spec.foreign import imported, unreadable
from planner.spec.foreign.carried import Carried, Outcome
from planner.spec.foreign.shelf import shelf_of
from planner.spec.foreign.whose import Whose, whose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.spec.foreign import Imported, Options, Result

FORMAT: Final = "1.0"
#: what `--from` says of a file that is no other tool's
OURS: Final = "skyplan"
_NAMES: Final = {"skypilot": "SkyPilot", "dstack": "dstack", "slurm": "Slurm"}
_WORDS: Final = {Outcome.CHANGED: "differs", Outcome.LEFT: "left out", Outcome.NOTE: "mind"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `skyplan import` was asked.  `tool` None: told from each file.  `folder` None: nothing is written."""

    files: tuple[Path, ...]
    tool: str | None
    folder: Path | None
    options: Options
    catalog: Path | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file's import, and where each of its jobs was written."""

    file: str
    result: Result
    written: tuple[Path | None, ...]


def run(request: Request) -> tuple[File, ...]:
    """Import, and write where a folder is given.  Raises InputError with every problem of every file."""
    market = inputs.load_market(request.catalog)
    shelf = shelf_of(market, words_of(market))
    found: list[Diagnostic] = []
    results: list[tuple[str, Result]] = []
    for path in request.files:
        shown = inputs.shown(path)
        try:
            text = inputs.read_text(path)
        except InputError as error:
            found += error.diagnostics
            continue
        taken = whose(text, shown) if request.tool is None else Whose(request.tool)
        if taken.tool is None or taken.tool == OURS:
            found += unreadable(text, shown) or [_nobodys(shown, ours=taken.tool == OURS)]
            continue
        doubt = taken.warning(shown)
        result = imported(text, shown, shelf, taken.tool, request.options)
        if doubt is not None:
            result = replace(result, problems=(doubt, *result.problems))
        found += result.problems
        results.append((shown, result))
    paths = _paths(request, results, found)
    if any(d.severity is Severity.ERROR for d in found):
        raise InputError(ordered(found))
    write_together({path: job.written.text.encode() for path, job in paths.values() if path is not None})
    return tuple(
        File(file=file, result=result, written=tuple(paths[id(job)][0] for job in result.jobs))
        for file, result in results
    )


def _nobodys(shown: str, *, ours: bool) -> Diagnostic:
    hint = "say whose it is: --from skypilot, dstack or slurm; a skyplan job file needs no import"
    summary = "this is no SkyPilot task, dstack configuration or Slurm script"
    if ours:
        summary, hint = "a skyplan job file needs no import", "give it to `skyplan plan` as it is"
    return Diagnostic(code="SKY-SPEC-101", summary=summary, location=Location(shown), hint=hint)


def _paths(
    request: Request, results: Sequence[tuple[str, Result]], found: list[Diagnostic]
) -> dict[int, tuple[Path | None, Imported]]:
    """Each job's path, by identity; errors where two jobs would have one, or one is there."""
    out: dict[int, tuple[Path | None, Imported]] = {}
    first: dict[str, str] = {}
    for file, result in results:
        for job in result.jobs:
            path = request.folder / f"{job.name}.yaml" if request.folder else None
            out[id(job)] = path, job
            at = job.written.places[0]
            other = first.setdefault(job.name, file)
            if other != file:
                hint = "rename one, or import them into folders of their own"
                found.append(
                    Diagnostic(
                        code="SKY-SPEC-112", summary=f"job `{job.name}` comes of {other} too", location=at, hint=hint
                    )
                )
            if path is not None and path.exists() and not request.force:
                hint = "give --force to write over it, or another --out"
                summary = f"{inputs.shown(path)} is there already"
                found.append(Diagnostic(code="SKY-SPEC-101", summary=summary, location=at, hint=hint))
    return out


def listing(files: Sequence[File]) -> list[str]:
    """For people: what was made, what differs, what is left out and what it would need, what was not said; by line."""
    out: list[str] = []
    for file in files:
        out.append(f"{file.file}: {_NAMES[file.result.tool]}, {_many(len(file.result.jobs), 'job')}")
        out += [f"  {d.location}: {d.summary}; {d.hint}" for d in file.result.problems]
        out += [f"  {line}" for entry in file.result.others for line in _lines(entry)]
        for job, path in zip(file.result.jobs, file.written, strict=True):
            counts = _counts(job)
            told = ", ".join(f"{counts[key]} {word}" for key, word in _COUNTED if counts[key])
            out.append(f"  {job.name}{f' -> {inputs.shown(path)}' if path else ''}: {told}")
            out += [f"    {line}" for entry in job.entries for line in _lines(entry)]
            out += [f"    {unsaid.at}: not said there: {unsaid.field}: {unsaid.why}" for unsaid in job.unsaid]
    return out


_COUNTED: Final = (
    ("carried", "carried over"),
    ("changed", "with a difference"),
    ("left", "left out"),
    ("note", "to mind"),
    ("not_said", "not said there"),
)


def _counts(job: Imported) -> dict[str, int]:
    """Values by what became of them."""
    out = {
        outcome.value: sum(max(len(e.leaves), 1) for e in job.entries if e.outcome is outcome) for outcome in Outcome
    }
    return out | {"not_said": len(job.unsaid)}


def _lines(entry: Carried) -> list[str]:
    if entry.outcome is Outcome.CARRIED:
        return []
    many = f" ({len(entry.leaves)} values)" if len(entry.leaves) > 1 else ""
    to = f", now `{entry.to}`" if entry.to else ""
    line = f"{entry.at}: {_WORDS[entry.outcome]}: {entry.path}{many}{to}: {entry.why}"
    return [line, *([f"  it would need: {entry.needs}"] if entry.needs else [])]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def document(files: Sequence[File]) -> dict[str, Any]:
    """For machines: everything, with the jobs' text."""
    return {
        "format_version": FORMAT,
        "files": [
            {
                "file": file.file,
                "tool": file.result.tool,
                "other_documents": [_entry(entry) for entry in file.result.others],
                "jobs": [
                    {
                        "name": job.name,
                        "written": inputs.shown(path) if path else None,
                        "text": job.written.text,
                        "counts": _counts(job),
                        "values": [_entry(entry) for entry in job.entries],
                        "not_said": [
                            {"field": u.field, "line": u.at.line, "stated": u.stated, "why": u.why} for u in job.unsaid
                        ],
                    }
                    for job, path in zip(file.result.jobs, file.written, strict=True)
                ],
            }
            for file in files
        ],
        "diagnostics": diagnostics.document([d for file in files for d in file.result.problems]),
    }


def _entry(entry: Carried) -> dict[str, Any]:
    return {
        "path": entry.path,
        "line": entry.at.line,
        "outcome": entry.outcome.value,
        "to": entry.to or None,
        "why": entry.why or None,
        "needs": entry.needs or None,
        "leaves": list(entry.leaves),
    }
