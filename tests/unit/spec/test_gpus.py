"""Accelerators as people write them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.diagnostic import Severity
from planner.model.project import Project
from planner.model.workload import GpuOption
from planner.spec.gpus import models_of
from planner.spec.job import parse_jobs
from tests.unit.spec.spec_words import JOB, WORDS, job_of, jobs_of


def _accelerators(written: str) -> str:
    return JOB.replace("accelerators: A100-80GB:8", f"accelerators: {written}")


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("A100-80GB:8", "A100-80GB"),
        ("a100-80gb:8", "A100-80GB"),
        ("A100 80GB:8", "A100-80GB"),
        ("a100_80gb : 8", "A100-80GB"),
        ("A100-80:8", "A100-80GB"),
        ("A100-40GB:8", "A100-40GB"),
        ("H100:8", "H100"),
        ("H100-80GB:8", "H100"),
        ("h100:8", "H100"),
        ("V100-32GB:8", "V100-32GB"),
    ],
)
def test_spellings_resolve(written: str, model: str) -> None:
    assert job_of(_accelerators(f'"{written}"')).resources.accelerators == (GpuOption(model=model, count=8),)


def test_without_a_count_one_is_meant() -> None:
    assert job_of(_accelerators("H100")).resources.accelerators == (GpuOption(model="H100", count=1),)


@pytest.mark.parametrize(
    ("written", "choices"), [("A100:8", ("A100-40GB:8", "A100-80GB:8")), ("v100:2", ("V100-16GB:2", "V100-32GB:2"))]
)
def test_an_ambiguous_name_names_the_choices(written: str, choices: tuple[str, str]) -> None:
    jobs, diagnostics = jobs_of(_accelerators(written))
    assert jobs == ()
    assert [(d.code, str(d.location)) for d in diagnostics] == [("SKY-SPEC-107", "job.yaml:3")]
    assert all(f"`{choice}`" in diagnostics[0].hint for choice in choices)


@pytest.mark.parametrize(
    "written", ["A100-8:8", "A100-800GB:8", "A100-64GB:8", "H10:8", "B300:8", "A100-80GB-x:8", "a100-8:1"]
)
def test_an_unknown_name_never_becomes_another_gpu(written: str) -> None:
    jobs, (only,) = jobs_of(_accelerators(written))
    assert jobs == ()
    assert (only.code, str(only.location)) == ("SKY-SPEC-106", "job.yaml:3")


def test_a_bare_name_that_is_the_smaller_of_two_models_is_taken_with_a_warning() -> None:
    words = replace(WORDS, gpus={"A100": 40, "A100-80GB": 80}, aliases={"a10040gb": ("A100",)})
    text = JOB.replace("A100-80GB:8", "a100:8", 1)
    (job,), (only,) = parse_jobs(text, "job.yaml", words, Project())
    assert job.resources.accelerators == (GpuOption(model="A100", count=8),)
    assert (only.code, only.severity, str(only.location)) == ("SKY-SPEC-107", Severity.WARNING, "job.yaml:3")
    assert "`A100-40GB` or `A100-80GB`" in only.hint
    assert parse_jobs(text.replace("a100:8", "A100-40GB:8"), "job.yaml", words, Project())[1] == ()


def test_near_misses_are_named() -> None:
    _, (inside,) = jobs_of(_accelerators("tesla-L4:1"))
    assert "`L4:1`" in inside.hint
    _, (only,) = jobs_of(_accelerators("A100-8:8"))
    assert "did you mean" in only.hint
    assert "A100-80GB:8" in only.hint


@pytest.mark.parametrize(
    "written", ["H100:0", "H100:-8", "H100:8.0", "H100:eight", '"H100:"', '":8"', "H100:99999", '""']
)
def test_a_count_is_a_whole_number_of_at_least_one(written: str) -> None:
    _, diagnostics = jobs_of(_accelerators(written))
    assert {d.code for d in diagnostics} <= {"SKY-SPEC-105", "SKY-SPEC-103"}
    assert {d.location.line for d in diagnostics if d.location} == {3}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{model: h100, count: 8}", {GpuOption(model="H100", count=8)}),
        ("{gpu_memory: 80GiB+, count: 8}", {GpuOption(min_memory_gib=80.0, count=8)}),
        ("{A100-80GB: 8, H100: 4}", {GpuOption(model="A100-80GB", count=8), GpuOption(model="H100", count=4)}),
        (
            "[H100:8, {gpu_memory: 40GiB, count: 2}]",
            {GpuOption(model="H100", count=8), GpuOption(min_memory_gib=40.0, count=2)},
        ),
        ("[H100:8, h100:8]", {GpuOption(model="H100", count=8)}),
        ("{model: H100, count: 8, gpu_memory: 80GiB}", {GpuOption(model="H100", count=8)}),
    ],
)
def test_every_form_is_read(written: str, expected: set[GpuOption]) -> None:
    assert set(job_of(_accelerators(written)).resources.accelerators) == expected


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("{count: 8}", "SKY-SPEC-103"),
        ("{model: H100}", "SKY-SPEC-103"),
        ("{modle: H100, count: 8}", "SKY-SPEC-102"),
        ("{gpu_memory: 80, count: 8}", "SKY-SPEC-105"),
        ("{model: A100-40GB, gpu_memory: 80GiB, count: 8}", "SKY-SPEC-113"),
        ("{A100: 8}", "SKY-SPEC-107"),
        ("{H100: 0}", "SKY-SPEC-105"),
        ("{}", "SKY-SPEC-105"),
        ("[]", "SKY-SPEC-105"),
        ("[[H100:8]]", "SKY-SPEC-104"),
        ("~", "SKY-SPEC-103"),
    ],
)
def test_wrong_forms_are_refused(written: str, code: str) -> None:
    jobs, diagnostics = jobs_of(_accelerators(written))
    assert jobs == ()
    assert code in {d.code for d in diagnostics}
    assert {d.location.line for d in diagnostics if d.location} == {3}


@pytest.mark.parametrize("on", ["[H100:8]", "{gpu_memory: 80GiB, count: 8}", "A100:8", "{H100: 8, L4: 1}", "B9:8"])
def test_the_reference_of_the_work_is_one_model(on: str) -> None:
    jobs, diagnostics = jobs_of(JOB.replace("on: A100-80GB:8", f"on: {on}"))
    assert jobs == ()
    assert {d.location.line for d in diagnostics if d.location} == {6}


def test_gpu_memory_is_never_lowered_by_a_name() -> None:
    for spelling in (*WORDS.aliases, *WORDS.gpus):
        for memory in ("80", "40", "32"):
            if spelling.lower().endswith((memory, f"{memory}gb")) and "100" in spelling:
                assert all(WORDS.gpus[model] >= float(memory) for model in models_of(spelling, WORDS))
