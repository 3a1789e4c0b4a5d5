"""Files of other tools -> job files: SkyPilot tasks, dstack configurations, Slurm batch scripts.

Decides which importer a file is handed to; then proves each result by reading it with the job file's own parser.  What is wrong is
told at the line of the file as the user wrote it.  Pure: no file is read, no clock, no environment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.project import Project, default_targets
from planner.spec.foreign import dstack, sbatch, skypilot, slurm
from planner.spec.foreign.carried import Book, Carried, Outcome, Part, too_large
from planner.spec.foreign.common import Job, Options
from planner.spec.foreign.whose import whose
from planner.spec.foreign.writing import Draft, Written, written
from planner.spec.job import parse_jobs
from planner.spec.yaml_lines import Mapping, documents

if TYPE_CHECKING:
    from planner.model.words import Words
    from planner.model.workload import Workload
    from planner.spec.foreign.carried import Unsaid
    from planner.spec.foreign.shelf import Shelf

TOOLS: Final = ("skypilot", "dstack", "slurm")
_NAMES: Final = {"skypilot": skypilot.TOOL, "dstack": dstack.TOOL, "slurm": slurm.TOOL}
_ENDINGS: Final = re.compile(r"(\.dstack|\.sky)?\.(ya?ml|sh|sbatch|slurm|batch)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A job that was made of a document: its file's text, and what became of each value.  `written` tells where each line comes from."""

    name: str
    workload: Workload
    written: Written
    entries: tuple[Carried, ...]
    unsaid: tuple[Unsaid, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All of a file.  Use the jobs only where no problem is an error."""

    tool: str
    jobs: tuple[Imported, ...]
    problems: tuple[Diagnostic, ...]
    #: of documents that are no job themselves, such as the one that names a pipeline
    others: tuple[Carried, ...] = ()

    @property
    def failed(self) -> bool:
        """It could not be imported."""
        return any(p.severity is Severity.ERROR for p in self.problems)


def tool_of(text: str, file: str) -> str | None:
    """Whose file it is: skypilot, dstack or slurm; None where it is our own, or nobody's that is known."""
    return whose(text, file).tool


def unreadable(text: str, file: str) -> tuple[Diagnostic, ...]:
    """Why a file of YAML cannot be read, none where it can."""
    _, problems = documents(text, file)
    return tuple(_of_template(problem, text) for problem in problems)


def _of_template(problem: Diagnostic, text: str) -> Diagnostic:
    """A place that is to be filled in before the file is YAML at all is told as one."""
    lines, at = text.split("\n"), problem.location
    line = lines[at.line - 1] if at is not None and 0 < at.line <= len(lines) else ""
    if not re.search(r"\{\{|\{%|<<<|^<<", line):
        return problem
    return replace(problem, hint="the file is a template: fill it in first, and import what comes of it")


def imported(text: str, file: str, shelf: Shelf, tool: str, options: Options | None = None) -> Result:
    """Import every job of a file of that tool."""
    given = options or Options()
    name = _called(file)
    if tool == "slurm":
        return _slurm(text, file, shelf, given, name)
    nodes, problems = documents(text, file)
    found = [_of_template(problem, text) for problem in problems]
    jobs: list[Imported] = []
    others: list[Carried] = []
    if not nodes and not found:
        found.append(_error(Location(file, 1, 1), "SKY-SPEC-103", "the file holds nothing to import", "give a task"))
    for number, node in enumerate(nodes):
        if not isinstance(node, Mapping) or too_large(node):
            why = (
                "a document must be a mapping of fields"
                if not isinstance(node, Mapping)
                else "the document holds too many values"
            )
            found.append(_error(node.at, "SKY-SPEC-104", why, f"see {_NAMES[tool]}'s reference"))
            continue
        job = _start(tool, shelf, given, node.at)
        root = Part(job.book, node, node.at)
        if tool == "skypilot" and number == 0 and len(nodes) > 1 and skypilot.is_group(root):
            skypilot.group(job, root)
            found += job.book.problems
            others += job.book.entries
            continue
        fill = skypilot.task if tool == "skypilot" else dstack.configuration
        fill(job, root, name if number == 0 else f"{name}-{number + 1}")
        before = len(found)
        _finish(job, file, jobs, found)
        failed = [d for d in found[before:] if d.severity is Severity.ERROR]
        if failed and len(nodes) > 1:
            hint = f"{failed[0].hint}; or take this document out, the file's others can be imported without it"
            found[found.index(failed[0])] = replace(failed[0], hint=hint)
    if len(jobs) > 1:
        jobs = [_in_line(job, jobs) for job in jobs]
    return Result(tool=tool, jobs=tuple(jobs), problems=ordered(found + _twice(jobs)), others=tuple(others))


def _called(file: str) -> str:
    """What a job is called where its file says no name: after the file, or after its folder where the file has an ending alone."""
    *folders, last = re.split(r"[/\\]", file)
    return _ENDINGS.sub("", last).strip(".") or next((f for f in reversed(folders) if f.strip(".")), "job")


def _in_line(job: Imported, jobs: list[Imported]) -> Imported:
    """Tell that jobs of one file do not wait for each other."""
    names = ", ".join(one.name for one in jobs)
    why = f"one of {len(jobs)} jobs ({names}) that run one after another there: skyplan's do not wait for each other"
    note = Carried(
        path="(document)", at=job.written.places[0], outcome=Outcome.NOTE, why=why, needs="apply them one after another"
    )
    return replace(job, entries=(*job.entries, note))


def _twice(jobs: list[Imported]) -> list[Diagnostic]:
    seen: dict[str, Location] = {}
    out: list[Diagnostic] = []
    for job in jobs:
        at = job.written.places[0]
        if job.name in seen:
            out.append(
                _error(
                    at, "SKY-SPEC-112", f"job `{job.name}` stands in line {seen[job.name].line} already", "rename one"
                )
            )
        seen.setdefault(job.name, at)
    return out


def _slurm(text: str, file: str, shelf: Shelf, options: Options, name: str) -> Result:
    job = _start("slurm", shelf, options, Location(file, 1, 1))
    script = sbatch.taken_apart(text, file, job.book)
    slurm.batch(job, sbatch.root_of(script, file, job.book), script, name)
    jobs: list[Imported] = []
    found: list[Diagnostic] = []
    _finish(job, file, jobs, found)
    return Result(tool="slurm", jobs=tuple(jobs), problems=ordered(found))


def _start(tool: str, shelf: Shelf, options: Options, at: Location) -> Job:
    return Job(Book(_NAMES[tool]), Draft(at), shelf, options)


def _finish(job: Job, file: str, jobs: list[Imported], found: list[Diagnostic]) -> None:
    """Write the job down and read it with our own parser: only what that takes is an import."""
    found += job.book.problems
    if job.book.failed:
        return
    entries = tuple(sorted(job.book.entries, key=lambda e: (e.at, e.path)))
    told = {Outcome.LEFT: "not carried over", Outcome.NOTE: "mind"}
    head = (
        f"Made of a {job.book.tool} file by `skyplan import`.  What has a TODO was not said there.",
        *(f"{told[e.outcome]}: line {e.at.line}, {e.path}: {e.why}" for e in entries if e.outcome in told and e.needs),
    )
    made = written(job.draft, head)
    workloads, problems = parse_jobs(made.text, file, job.shelf.words, Project(targets=default_targets()))
    errors = [p for p in placed(problems, made) if p.severity is Severity.ERROR]
    found += errors
    if not errors and len(workloads) == 1:
        jobs.append(
            Imported(
                name=workloads[0].name,
                workload=workloads[0],
                written=made,
                entries=entries,
                unsaid=tuple(job.book.unsaid),
            )
        )


def placed(problems: tuple[Diagnostic, ...], made: Written) -> list[Diagnostic]:
    """What our parser says of a job that was made, told at the place it was made of."""
    out: list[Diagnostic] = []
    for problem in problems:
        at = problem.location
        if at is not None and 1 <= at.line <= len(made.places):
            at = made.places[at.line - 1]
        out.append(replace(problem, location=at))
    return out


def parse_any(
    text: str, file: str, words: Words, project: Project, shelf: Shelf
) -> tuple[tuple[Workload, ...], tuple[Diagnostic, ...]]:
    """The jobs of a file, whosever it is, narrowed to the project's limits.  As `parse_jobs`; what was assumed or left out of a foreign file are warnings."""
    taken = whose(text, file)
    tool = taken.tool
    if tool is None:
        return parse_jobs(text, file, words, project)
    result = imported(text, file, shelf, tool)
    doubt = taken.warning(file)
    found = [*([doubt] if doubt else []), *result.problems]
    if result.failed:
        return (), ordered(found)
    workloads: list[Workload] = []
    for job in result.jobs:
        own, problems = parse_jobs(job.written.text, file, words, project)
        workloads += own
        found += placed(problems, job.written)
        found += _warnings(job, tool)
    return tuple(workloads), ordered(found)


_TOLD: Final = {
    Outcome.LEFT: ("SKY-SPEC-131", "is not carried over"),
    Outcome.CHANGED: ("SKY-SPEC-132", "differs here"),
    Outcome.NOTE: ("SKY-SPEC-133", "needs a look"),
}


def _warnings(job: Imported, tool: str) -> list[Diagnostic]:
    """What was assumed, left out or changed, for who plans the file as it is; a bucket's unknown region our own parser tells."""
    hint = "`skyplan import` writes a job file in which to say it"
    assumed = [u for u in job.unsaid if not u.field.endswith(".region")]
    # `why` names options of import, which plan has not got
    say = "`skyplan import` takes it as that option, or in the job file that it writes"
    unsaid = [
        _warning(
            u.at,
            "SKY-SPEC-134",
            f"{_NAMES[tool]} does not say `{u.field}`: {u.why}",
            say if "(--" in u.why else hint,
        )
        for u in assumed
    ]
    told = [(e, *_TOLD[e.outcome]) for e in job.entries if e.outcome in _TOLD]
    return unsaid + [_warning(e.at, code, f"`{e.path}` {what}: {e.why}", e.needs or hint) for e, code, what in told]


def _error(at: Location, code: str, summary: str, hint: str) -> Diagnostic:
    return Diagnostic(code=code, summary=summary, location=at, hint=hint)


def _warning(at: Location, code: str, summary: str, hint: str) -> Diagnostic:
    return Diagnostic(code=code, summary=summary, location=at, hint=hint, severity=Severity.WARNING)
