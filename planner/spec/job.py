"""Job file -> Workloads, with every problem at its line.

Decides what a job file may say; a document per job.  Pure: no file is read, no clock, no environment; what exists (GPUs, regions, types)
comes in as Words, what is allowed as the Project.  Sizes come out in bytes, durations in hours, lists whose order means nothing sorted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.workload import Workload
from planner.spec import fleet, parts
from planner.spec.contradictions import contradictions
from planner.spec.fields import Fields, Report
from planner.spec.limits import narrow
from planner.spec.units import Malformed, integer
from planner.spec.yaml_lines import Mapping, Node, documents

if TYPE_CHECKING:
    from planner.model.project import Project
    from planner.model.words import Words

#: 40 characters at most: ids made of it, such as acc-NAME--CLOUD-TARGET-REGION, fit every cloud's limits
NAME: Final = r"(?!.*--)[a-z][a-z0-9-]{0,38}[a-z0-9]"


def parse_jobs(
    text: str, file: str, words: Words, project: Project
) -> tuple[tuple[Workload, ...], tuple[Diagnostic, ...]]:
    """The jobs of a file, narrowed to the project's limits, and all diagnostics, sorted.

    A job with an error in it may be among the jobs, its wrong fields absent, or be left out: plan only where no diagnostic is an error.
    """
    nodes, problems = documents(text, file)
    report = Report(list(problems))
    jobs: dict[str, tuple[Workload, Location]] = {}
    for node in nodes:
        job = _job(node, words, project, report)
        if job is None:
            continue
        if job.name in jobs:
            first = jobs[job.name][1]
            report.error(node.at, "SKY-SPEC-112", f"job `{job.name}` stands in line {first.line} already")
        else:
            jobs[job.name] = (job, node.at)
    if not nodes and not report.failed:
        report.error(Location(file, 1, 1), "SKY-SPEC-103", "the file holds no job", "see `examples/` for job files")
    return tuple(job for job, _ in jobs.values()), ordered(report.problems)


def job_name(text: str) -> str:
    """A job's name: 2 to 40 lower-case letters, digits and `-`, beginning with a letter.  Raises Malformed."""
    if not re.fullmatch(NAME, text, re.ASCII):
        proposal = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].rstrip("-")
        good = bool(re.fullmatch(NAME, proposal, re.ASCII))
        hint = "2 to 40 lower-case letters, digits and `-`, beginning with a letter"
        raise Malformed("is no name", f"{hint}, such as {proposal if good else 'llama3-8b-sft'}")
    return text


def _job(node: Node, words: Words, project: Project, shared: Report) -> Workload | None:
    report = Report()
    job = None
    if isinstance(node, Mapping):
        fields = Fields(report, node)
        job = _workload(fields, words)
        fields.finish()
    else:
        report.error(node.at, "SKY-SPEC-104", "a job must be a mapping of fields", "begin with `name: …`")
    if job is not None:
        contradictions(job, words, report)
        job, outside = narrow(job, project, report.places)
        report.problems += outside
        fleet.in_a_budget(job, project.budgets, report)
    shared.problems += report.problems
    return job


def _workload(f: Fields, words: Words) -> Workload | None:
    name = f.read("name", job_name, required="name the job, such as llama3-8b-sft")
    resources = parts.resources(f, words)
    work = parts.work(f, resources.nodes if resources else 1, words)
    run = f.text("run", required="give the command that starts the job on every node")
    image, setup, workdir = parts.image(f), f.text("setup"), f.text("workdir")
    env, secrets, registry_auth = parts.env(f), parts.secrets(f), parts.registry_auth(f)
    data, checkpoint, output = parts.datasets(f, words), parts.checkpoint(f, words), parts.output(f, words)
    limits = parts.limits(f, words)
    tags = parts.tags(f)
    priority = f.read("priority", lambda text: integer(text, -1_000_000, 1_000_000))
    (tunnel, sync), session = parts.tunnel(f), parts.session(f)
    team, anti_affinity, gang = fleet.team(f), fleet.anti_affinity(f), fleet.gang(f)
    if name is None or resources is None or work is None or run is None:
        return None
    return Workload(
        name=name,
        resources=resources,
        work=work,
        run=run,
        image=image,
        setup=setup,
        workdir=workdir,
        registry_auth=registry_auth,
        env=env,
        secrets=secrets,
        data=data,
        checkpoint=checkpoint,
        output=output,
        constraints=limits,
        tags=tags,
        priority=priority or 0,
        tunnel=tunnel,
        sync_bytes=sync.size_bytes,
        sync_seconds=sync.every_seconds,
        session=session,
        team=team,
        anti_affinity=anti_affinity,
        gang=gang,
    )
