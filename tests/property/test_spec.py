"""Whatever is done to a job file, the parser answers with places; and what it reads does not depend on how it was ordered."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.model.diagnostic import Severity
from planner.model.project import Project
from planner.model.workload import Constraints
from planner.spec.limits import narrow
from planner.spec.normal import workload_document, workload_from_document
from planner.spec.patterns import both, covers, intersect
from tests.unit.spec.spec_words import documents_of, job_of, jobs_of, project_of
from tests.unit.spec.test_normal import FULL_JOB
from tests.unit.spec.test_project import FULL

PATTERNS = st.text("ab-*?", min_size=1, max_size=6)
NAMES = st.text("ab-", max_size=8)
ODD = st.sampled_from(
    [
        "",
        "~",
        "[",
        "]",
        "{",
        "}",
        ": ",
        "\n",
        "\t",
        "- ",
        "*x",
        "&x ",
        "!!int ",
        "'",
        '"',
        "0",
        "-1",
        ".inf",
        ".nan",
        "#",
        "---\n",
        "\u20ac",
        "\x00",
        "<<: ",
    ]
)


@st.composite
def _mutated(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(ODD | st.text(max_size=5)) + text[end:]
    return text


@given(_mutated(FULL_JOB))
def test_a_mutated_job_never_crashes_and_every_problem_has_a_line(text: str) -> None:
    jobs, diagnostics = jobs_of(text)
    assert all(d.location is not None and d.location.line >= 1 and d.location.file == "job.yaml" for d in diagnostics)
    assert list(diagnostics) == sorted(set(diagnostics), key=lambda d: d.sort_key())
    assert all(workload_from_document(json.loads(json.dumps(workload_document(job)))) == job for job in jobs)
    if not [d for d in diagnostics if d.severity is Severity.ERROR]:
        assert jobs


@given(_mutated(FULL))
def test_a_mutated_project_never_crashes_and_every_problem_has_a_line(text: str) -> None:
    _, diagnostics = project_of(text)
    assert all(d.location is not None and d.location.line >= 1 for d in diagnostics)


@st.composite
def _permuted(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        keys = draw(st.permutations(sorted(value)))
        return {key: draw(_permuted(value[key])) for key in keys}
    return [draw(_permuted(one)) for one in value] if isinstance(value, list) else value


@given(_permuted(documents_of(FULL_JOB)[0]))
def test_the_order_of_keys_changes_nothing(document: Any) -> None:
    assert job_of(json.dumps(document)) == job_of(FULL_JOB)


@given(_permuted(documents_of(FULL)[0]))
def test_the_order_of_keys_changes_no_project(document: Any) -> None:
    document["targets"][0]["account"] = "012345678901"
    assert project_of(json.dumps(document)) == project_of(FULL)


@given(PATTERNS, PATTERNS, NAMES)
def test_an_intersection_matches_what_both_patterns_match(a: str, b: str, name: str) -> None:
    common = any(fnmatchcase(name, pattern) for pattern in both(a, b))
    assert common is (fnmatchcase(name, a) and fnmatchcase(name, b))


@given(PATTERNS, PATTERNS, NAMES)
def test_a_covering_pattern_matches_all_that_the_covered_one_matches(a: str, b: str, name: str) -> None:
    if covers(a, b) and fnmatchcase(name, b):
        assert fnmatchcase(name, a)


LISTS = st.lists(PATTERNS, max_size=3).map(tuple)


@given(LISTS, LISTS, NAMES)
def test_lists_intersect_as_their_names_do(ours: tuple[str, ...], theirs: tuple[str, ...], name: str) -> None:
    def inside(patterns: tuple[str, ...]) -> bool:
        return not patterns or any(fnmatchcase(name, p) for p in patterns)

    common = intersect(ours, theirs)
    if common or not (ours and theirs):
        assert inside(common) is (inside(ours) and inside(theirs))
    else:
        assert not (inside(ours) and inside(theirs))


MONEY = st.none() | st.floats(0.01, 1e6)
LIMITS = st.builds(
    Constraints,
    max_usd_per_hour=MONEY,
    max_usd_total=MONEY,
    deadline_hours=MONEY,
    clouds=st.lists(st.sampled_from(["aws", "gcp", "azure", "nebius"]), unique=True).map(lambda c: tuple(sorted(c))),
    regions=LISTS,
    instance_types=LISTS,
)


@given(LIMITS, LIMITS, NAMES)
def test_narrowing_never_widens_and_is_done_once(job: Constraints, limits: Constraints, name: str) -> None:
    project = Project(limits=limits)
    workload, _ = narrow(_with(job), project)
    assert narrow(workload, project) == (workload, ())
    found = workload.constraints
    assert set(found.clouds) <= set(limits.clouds or found.clouds)
    assert bool(found.clouds) or not limits.clouds
    for narrowed, cap in ((found.regions, limits.regions), (found.instance_types, limits.instance_types)):
        assert bool(narrowed) or not cap
        if cap and any(fnmatchcase(name, p) for p in narrowed):
            assert any(fnmatchcase(name, p) for p in cap)
    for amount, most in ((found.max_usd_total, limits.max_usd_total), (found.deadline_hours, limits.deadline_hours)):
        assert most is None or (amount is not None and amount <= most)


def _with(limits: Constraints) -> Any:
    from dataclasses import replace

    return replace(job_of(FULL_JOB), constraints=limits)
