"""The catalog's words and the shortest files that tests of the importers share; every input is made up here."""

from __future__ import annotations

from typing import Any

from planner.model.words import Words
from planner.spec.foreign import Imported, Options, Result, imported, tool_of
from planner.spec.foreign.carried import Outcome
from planner.spec.foreign.shelf import Machine, Shelf

WORDS = Words(
    gpus={
        "T4": 16,
        "A10G": 22.4,
        "L4": 24,
        "L40S": 48,
        "V100": 16,
        "V100-32GB": 32,
        "A100": 40,
        "A100-80GB": 80,
        "A100-80GB-PCIe": 80,
        "H100": 80,
        "H200": 141,
        "MI300X": 192,
    },
    aliases={
        "a100": ("A100",),
        "a10080gb": ("A100-80GB",),
        "a10080gbsxm": ("A100-80GB",),
        "v100": ("V100",),
        "v10032gb": ("V100-32GB",),
        "h100sxm": ("H100",),
        "hopper": ("H100", "H200"),
    },
    regions={
        "aws": ("us-east-1", "us-west-2", "eu-west-1"),
        "gcp": ("us-central1", "europe-west4"),
        "azure": ("eastus", "westeurope"),
        "nebius": ("eu-north1", "us-central1"),
    },
    instance_types=("p4d.24xlarge", "p5.48xlarge", "a2-ultragpu-8g", "g6.xlarge", "g5.xlarge"),
)
SHELF = Shelf(
    WORDS,
    {
        "p4d.24xlarge": Machine("aws", "A100", 8),
        "p5.48xlarge": Machine("aws", "H100", 8),
        "a2-ultragpu-8g": Machine("gcp", "A100-80GB", 8),
        "a2-ultragpu-1g": Machine("gcp", "A100-80GB", 1),
        "Standard_NC96ads_A100_v4": Machine("azure", "A100-80GB-PCIe", 4),
        "g6.xlarge": Machine("aws", "L4", 1),
        "g6.12xlarge": Machine("aws", "L4", 4),
        "g5.xlarge": Machine("aws", "A10G", 1),
    },
)


def result_of(text: str, tool: str | None = None, file: str = "task.yaml", **options: Any) -> Result:
    """The file's import; `tool` None lets it be told."""
    found = tool or tool_of(text, file)
    assert found is not None, "nobody's file"
    return imported(text, file, SHELF, found, Options(**options))


def one(text: str, tool: str | None = None, file: str = "task.yaml", **options: Any) -> Imported:
    """The one job of a file that can be imported."""
    result = result_of(text, tool, file, **options)
    assert not result.problems, [f"{p.location}: {p.summary}" for p in result.problems]
    assert len(result.jobs) == 1
    return result.jobs[0]


def error_of(text: str, tool: str | None = None, file: str = "task.yaml", **options: Any) -> tuple[int, str]:
    """(line, summary and hint) of the one problem of a file that cannot."""
    result = result_of(text, tool, file, **options)
    assert result.failed
    assert len(result.problems) == 1, [f"{p.location}: {p.summary}" for p in result.problems]
    problem = result.problems[0]
    assert problem.location is not None
    return problem.location.line, f"{problem.summary} | {problem.hint}"


def became(job: Imported, path: str) -> tuple[str, int, str]:
    """(outcome, line, target) of a value."""
    entry = next(e for e in job.entries if path in e.leaves or (e.path == path and e.outcome is not Outcome.NOTE))
    return entry.outcome.value, entry.at.line, entry.to


def why(job: Imported, path: str) -> str:
    """All that is told about a path."""
    return " | ".join(f"{e.why} {e.needs}" for e in job.entries if e.path == path)


def accelerators(job: Imported) -> list[str]:
    """As the job's workload has them, sorted."""
    return sorted(str(a) for a in job.workload.resources.accelerators)


def unsaid(job: Imported) -> set[str]:
    """The fields that were not said."""
    return {u.field for u in job.unsaid}
