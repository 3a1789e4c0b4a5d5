"""Nothing is dropped and nothing trips over files that went wrong: for each, a job in which every value is accounted for once, or problems at lines it has."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml
from hypothesis import HealthCheck, given, settings

from planner.model.project import Project
from planner.spec.foreign import imported, parse_any, tool_of, unreadable
from planner.spec.foreign.carried import Book, Part
from planner.spec.yaml_lines import documents
from tests.unit.spec.foreign.foreign_files import SHELF, WORDS
from tests.unit.spec.foreign.mutations import DSTACK, SKY, SLURM, mutated

SLOW = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(text: str, tool: str) -> None:
    result = imported(text, "x.yaml", SHELF, tool)
    lines = max(text.count("\n"), len(text.splitlines())) + 1
    assert result.failed == (not result.jobs and not result.others) or result.failed
    for problem in result.problems:
        assert problem.location is not None
        assert 1 <= problem.location.line <= lines, problem
        assert problem.summary
        assert problem.hint
    if result.failed:
        return
    entries = [*result.others, *(entry for job in result.jobs for entry in job.entries)]
    assert all(1 <= entry.at.line <= lines for entry in entries)
    assert all(entry.why for entry in entries if entry.outcome.value != "carried")
    for job in result.jobs:
        found = Counter(leaf for entry in job.entries for leaf in entry.leaves)
        assert set(found.values()) <= {1}
        for entry in job.entries:
            if entry.outcome.value in {"carried", "changed"}:
                assert _stands(entry.to, job.written.text), entry
    if tool != "slurm":
        nodes, _ = documents(text, "x.yaml")
        there = sum(len(Part(Book(tool), node, node.at).leaves()) for node in nodes)
        assert sum(len(entry.leaves) for entry in entries) == there


def _stands(to: str, text: str) -> bool:
    """The job file has the field that a value is said to stand in."""
    job = yaml.safe_load(text)
    group, _, key = to.partition(".")
    if to == "resources.capacity":
        return True  # on demand is what a job has that says nothing
    if group == "data":
        return any(not key or key in one for one in job["data"])
    return group in job and (not key or key in job[group])


@given(mutated(SKY))
@SLOW
def test_skypilot_tasks_gone_wrong(text: str):
    check(text, "skypilot")
    anyone(text)


@given(mutated(DSTACK))
@SLOW
def test_dstack_configurations_gone_wrong(text: str):
    check(text, "dstack")
    anyone(text)


@given(mutated(SLURM))
@SLOW
def test_batch_scripts_gone_wrong(text: str):
    check(text, "slurm")
    anyone(text)


def anyone(text: str) -> None:
    """Told apart and planned as it is, it ends in words too."""
    tool = tool_of(text, "x.yaml")
    jobs, problems = parse_any(text, "x.yaml", WORDS, Project(), SHELF)
    assert jobs or any(p.severity.value == "error" for p in problems)
    if tool is None:
        unreadable(text, "x.yaml")


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        *((text, "skypilot") for text in SKY),
        *((text, "dstack") for text in DSTACK),
        *((text, "slurm") for text in SLURM),
    ],
)
def test_before_that_they_are_whole(text: str, tool: str):
    assert tool_of(text, "x.yaml") == tool
    result = imported(text, "x.yaml", SHELF, tool)
    assert not result.failed, result.problems
    check(text, tool)
