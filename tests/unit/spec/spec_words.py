"""The words and jobs that tests of `spec` share."""

from __future__ import annotations

import re
from typing import Any

from planner.model.diagnostic import Diagnostic, Severity
from planner.model.project import Project
from planner.model.words import Words
from planner.model.workload import Workload
from planner.spec.job import parse_jobs
from planner.spec.project import parse_project
from planner.spec.yaml_lines import Mapping, Node, Scalar, documents

WORDS = Words(
    gpus={
        "A100-80GB": 80,
        "A100-40GB": 40,
        "H100": 80,
        "H200": 141,
        "V100-16GB": 16,
        "V100-32GB": 32,
        "L4": 24,
        "A10G": 24,
    },
    aliases={
        "a100": ("A100-40GB", "A100-80GB"),
        "a10080gb": ("A100-80GB",),
        "a10080": ("A100-80GB",),
        "a10040gb": ("A100-40GB",),
        "h10080gb": ("H100",),
        "v100": ("V100-16GB", "V100-32GB"),
        "v10032gb": ("V100-32GB",),
    },
    regions={
        "aws": ("us-east-1", "us-east-2", "us-west-2", "eu-west-1"),
        "gcp": ("us-central1", "europe-west4"),
        "azure": ("eastus", "westeurope"),
        "nebius": ("eu-north1",),
    },
    instance_types=("p4de.24xlarge", "p5.48xlarge", "a2-ultragpu-8g", "Standard_ND96asr_v4", "g6.xlarge"),
)

JOB = """\
name: llama3-8b-sft
resources:
  accelerators: A100-80GB:8
  memory: 500GiB+
  capacity: on_demand
work: {hours: 24, on: A100-80GB:8}
run: torchrun train.py
"""


def jobs_of(text: str, project: Project | None = None) -> tuple[tuple[Workload, ...], tuple[Diagnostic, ...]]:
    return parse_jobs(text, "job.yaml", WORDS, project or Project())


def job_of(text: str, project: Project | None = None) -> Workload:
    """The only job of a text without errors."""
    jobs, diagnostics = jobs_of(text, project)
    assert not [d for d in diagnostics if d.severity is Severity.ERROR], diagnostics
    (job,) = jobs
    return job


def found(text: str, project: Project | None = None) -> list[tuple[str, int]]:
    """(code, line) of every diagnostic."""
    return [(d.code, d.location.line if d.location else 0) for d in jobs_of(text, project)[1]]


def with_(text: str, *lines: str) -> str:
    """The text with more lines after it."""
    return text + "".join(line + "\n" for line in lines)


def without(text: str, key: str) -> str:
    """The text without the block of a top-level key."""
    return re.sub(rf"(?m)^{key}:.*\n(?:[ -].*\n)*", "", text)


def project_of(text: str) -> tuple[Project, tuple[Diagnostic, ...]]:
    return parse_project(text, "skyplan.yaml", WORDS)


def plain(node: Node) -> Any:
    """The document as JSON has it, by YAML 1.2's core schema."""
    if isinstance(node, Scalar):
        if not node.plain:
            return node.text
        if node.is_null or node.text in {"true", "false"}:
            return {"true": True, "false": False}.get(node.text)
        if re.fullmatch(r"-?(0|[1-9][0-9]*)", node.text):
            return int(node.text)
        return float(node.text) if re.fullmatch(r"-?[0-9]+\.[0-9]+", node.text) else node.text
    if isinstance(node, Mapping):
        return {key: plain(entry.value) for key, entry in node.entries.items()}
    return [plain(item) for item in node.items]


def documents_of(text: str) -> list[Any]:
    nodes, problems = documents(text, "x.yaml")
    assert not problems
    return [plain(node) for node in nodes]
