"""Whose file it is, how what was made is written, and how a foreign file is planned as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.model.diagnostic import Location, Severity
from planner.model.project import Project
from planner.model.workload import Constraints
from planner.spec.foreign import parse_any, sky_resources, skypilot, tool_of, unreadable
from planner.spec.foreign.whose import OUR_RESOURCES, OURS, SHARED, whose
from planner.spec.foreign.writing import Draft, written
from planner.spec.job import parse_jobs
from planner.spec.schema import job_schema
from tests.unit.spec.foreign.foreign_files import SHELF, WORDS, error_of, one
from tests.unit.spec.spec_words import JOB

EXAMPLES = sorted((Path(__file__).parents[4] / "examples" / "jobs").glob("*.yaml"))


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        ("resources: {accelerators: A100:8}\nsetup: a\nrun: b\n", "skypilot"),
        ("num_nodes: 2\nrun: b\n", "skypilot"),
        ("envs: {A: b}\nresources: {accelerators: L4}\nrun: b\nodd: c\n", "skypilot"),
        ("name: p\n---\nname: a\nfile_mounts: {/x: ./y}\nrun: b\n", "skypilot"),
        ("type: task\ncommands: [a]\n", "dstack"),
        ("type: dev-environment\nide: vscode\n", "dstack"),
        ("#!/bin/bash\n#SBATCH -N 2\nrun\n", "slurm"),
        ("#!/bin/bash\n#SBATCH -N 2\ncat > job.yaml <<EOF\nwork:\nEOF\n", "slurm"),
        (JOB, None),
        ("{name: a1, resources: {accelerators: L4}, work: {hours: 1, on: L4}, run: a}\n", None),
        ("name: a1\nresources: {accelerators: L4}\nwrok: {hours: 1}\nrun: a\n", None),
        ("name: a1\nresources: {accelerators: L4, nodes: 2}\nrun: a\n", None),
        ("name: a1\nimage: x:1\nrun: a\n", None),
        ("name: a1\nteam: vision\nrun: a\n", None),
        ("name: a1\nresources: {accelerators: [{gpu_memory: 80GiB+, count: 8}]}\nrun: a\n", None),
        ("name: a1\n", None),
        ("", None),
        ("- a\n", None),
        ("a: [", None),
        ("type: something\n", None),
    ],
)
def test_whose_a_file_is(text: str, whose: str | None):
    assert tool_of(text, "x.yaml") == whose


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("name: a1\nresources: {accelerators: A100:8}\nsetup: a\nrun: b\n", False),
        ("resources: {accelerators: [A100:8, H100:8], memory: 64+}\nrun: b\n", False),
        ("run: b\n", False),
        ("resources: {accelerators: {A100: 8}}\nrun: b\n", True),
        ("resources: {accelerators: [{A100: 8}, L4]}\nrun: b\n", True),
        ("resources: {accelerators: A100:8, use_spot: true}\nrun: b\n", True),
        ("resources: {accelerators: A100:8}\nrun: echo $SKYPILOT_NODE_RANK\n", True),
        ("resources: {accelerators: A100:8}\nnum_nodes: 2\nrun: b\n", True),
        ("type: task\ncommands: [a]\n", True),
    ],
)
def test_a_task_that_a_job_of_ours_could_begin_like_is_taken_for_skypilots_and_said_to_be(text: str, sure: bool):
    taken = whose(text, "x.yaml")
    assert taken.tool in {"skypilot", "dstack"}
    assert taken.sure == sure
    _, problems = parse_any(text, "x.yaml", WORDS, Project(), SHELF)
    told = [p.hint for p in problems if p.code == "SKY-SPEC-130"]
    assert ["say `work`" in hint for hint in told] == ([] if sure else [True])


def test_what_is_ours_alone_is_what_the_schemas_say():
    schema = job_schema()["properties"]
    assert set(schema) - set(skypilot.FIELDS) == OURS
    assert set(schema) & set(skypilot.FIELDS) == SHARED
    assert set(schema["resources"]["properties"]) - set(sky_resources.FIELDS) == OUR_RESOURCES


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: a\nfile_mounts:\n  /x:\n    name: {{bucket}}\nrun: b\n", 4, "the file is a template"),
        ("name: a\nrun: b\n\n4\n", None, ""),
    ],
)
def test_what_is_no_yaml_is_told_at_its_line(text: str, line: int | None, says: str):
    problems = unreadable(text, "x.yaml")
    assert problems
    assert line is None or (problems[0].location and problems[0].location.line) == line
    assert says in problems[0].hint


def test_of_several_documents_the_one_that_cannot_be_imported_says_that_the_others_can():
    text = "name: prep\nresources: {cpus: 8+}\nrun: a\n---\nname: train\nresources: {accelerators: L4}\nrun: b\n"
    line, says = error_of(text)
    assert line == 2
    assert "others can be imported without it" in says


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_our_own_examples_are_ours(path: Path):
    assert tool_of(path.read_text(), path.name) is None


@pytest.mark.parametrize(
    "run",
    [
        "a",
        "a\nb",
        "a\nb\n",
        "a\n\n",
        " a\nb",
        "a\n  b\n\n\tc\n",
        "# x: y\nz\n",
        "é\nü\n",
        "a\u2028b\nc",
        "a\xa0b\nc\n",
        "---\n...\n",
        "null",
        "a: b",
        "yes",
        "'\"\\",
        "a\r\nb\n",
        "\ta\nb",
    ],
)
def test_a_script_is_read_back_as_it_was(run: str):
    draft = Draft(Location("x", 1, 1))
    fields = {"name": "a1", "resources.accelerators": ["L4:1"], "work.hours": 1.5, "work.on": "L4:1", "run": run}
    for path, value in (fields | {"env": {"A": run, "B_1": ""}, "tags": {"a b": "c: d"}}).items():
        draft.put(path, value, Location("x", 2, 1), todo="mind\nthis" if path == "run" else "")
    made = written(draft, ("head",))
    jobs, problems = parse_jobs(made.text, "x.yaml", WORDS, Project())
    assert not problems
    assert (jobs[0].run, dict(jobs[0].env), jobs[0].work.hours) == (run, {"A": run, "B_1": ""}, 1.5)
    assert made.text.count("\n") == len(made.places)


TASK = "# mine\nname: t1\nresources:\n  accelerators: L4:1\n  infra: aws/us-east-1\nenvs: {HF_TOKEN: }\nrun: a\n"


def test_a_foreign_file_is_planned_as_it_is_with_what_was_assumed_told():
    jobs, problems = parse_any(TASK, "task.yaml", WORDS, Project(), SHELF)
    assert [job.name for job in jobs] == ["t1"]
    assert {p.severity for p in problems} == {Severity.WARNING}
    told = [(p.location.line, p.code) for p in problems if p.location]
    assert (4, "SKY-SPEC-134") in told
    assert (6, "SKY-SPEC-131") in told
    assert "24 hours are assumed" in " ".join(p.summary for p in problems)


def test_what_the_project_does_not_allow_is_told_at_the_line_of_their_file():
    project = Project(limits=Constraints(clouds=("gcp",)))
    _, problems = parse_any(TASK, "task.yaml", WORDS, project, SHELF)
    errors = [p for p in problems if p.severity is Severity.ERROR]
    assert [(p.code, p.location and p.location.line) for p in errors] == [("SKY-SPEC-109", 5)]


def test_a_foreign_file_that_cannot_be_imported_gives_no_job():
    jobs, problems = parse_any(TASK.replace("L4:1", "RTX4090"), "task.yaml", WORDS, Project(), SHELF)
    assert jobs == ()
    assert [(p.code, p.location and p.location.line) for p in problems] == [("SKY-SPEC-106", 4)]


def test_our_own_file_is_read_as_ever():
    assert parse_any(JOB, "j.yaml", WORDS, Project(), SHELF) == parse_jobs(JOB, "j.yaml", WORDS, Project())


def test_the_same_file_gives_the_same_bytes():
    assert one(TASK).written == one(TASK).written
