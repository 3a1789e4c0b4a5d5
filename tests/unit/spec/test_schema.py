"""The published schemas admit what the parser admits and refuse what has the wrong form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from planner.model.diagnostic import Severity
from planner.spec.schema import job_schema, project_schema
from tests.unit.spec.spec_words import JOB, documents_of, jobs_of, project_of, with_
from tests.unit.spec.test_normal import FULL_JOB, TUNNEL_JOB
from tests.unit.spec.test_project import FULL

EXAMPLES = Path(__file__).parents[3] / "examples"
JOB_FILES = sorted(EXAMPLES.glob("jobs/*.yaml"))
_JOBS, _PROJECTS = Draft202012Validator(job_schema()), Draft202012Validator(project_schema())


def _errors(validator: Draft202012Validator, document: Any) -> list[str]:
    return [error.message for error in validator.iter_errors(document)]


def test_both_are_schemas_and_every_field_is_described() -> None:
    for schema in (job_schema(), project_schema()):
        Draft202012Validator.check_schema(schema)
        assert schema["$schema"].endswith("2020-12/schema")
        assert not [path for path in _undescribed(schema, "") if path]


def _undescribed(schema: Any, path: str) -> list[str]:
    if isinstance(schema, list):
        return [p for one in schema for p in _undescribed(one, path)]
    if not isinstance(schema, dict):
        return []
    here = [
        f"{path}.{name}"
        for name, one in schema.get("properties", {}).items()
        if not one.get("description") and path != ".backend"
    ]
    below = [p for name, one in schema.get("properties", {}).items() for p in _undescribed(one, f"{path}.{name}")]
    return here + below + [p for key in ("anyOf", "items") for p in _undescribed(schema.get(key), path)]


@pytest.mark.parametrize("file", JOB_FILES, ids=lambda f: f.stem)
def test_the_examples_are_without_a_problem(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    project, problems = project_of((EXAMPLES / "skyplan.yaml").read_text(encoding="utf-8"))
    assert problems == ()
    jobs, diagnostics = jobs_of(text, project)
    assert (diagnostics, len(jobs)) == ((), len(documents_of(text)))
    assert [_errors(_JOBS, document) for document in documents_of(text)] == [[]] * len(jobs)


def test_what_the_example_project_shows_as_a_comment_is_right_too() -> None:
    head, mark, tail = (EXAMPLES / "skyplan.yaml").read_text(encoding="utf-8").partition("# iam:\n")
    text = head + (mark + tail).replace("# ", "", 1).replace("\n# ", "\n")
    project, problems = project_of(text)
    assert problems == ()
    assert [(one.rule, one.grant) for one in project.suppressions] == [("SKY-IAM-301", "*corpus-mirror*")]
    (document,) = documents_of(text)
    assert _errors(_PROJECTS, document) == []


def test_the_example_project_has_the_schemas_form() -> None:
    assert len(JOB_FILES) >= 4
    (document,) = documents_of((EXAMPLES / "skyplan.yaml").read_text(encoding="utf-8"))
    assert _errors(_PROJECTS, document) == []


@pytest.mark.parametrize(
    "text",
    [
        JOB,
        FULL_JOB,
        TUNNEL_JOB,
        with_(JOB, "image:", "env: {A: 1, B: true}", "data:", "tags:", "priority: 3", "network:", "access:"),
    ],
)
def test_what_the_parser_admits_the_schema_admits(text: str) -> None:
    assert [d for d in jobs_of(text)[1] if d.severity is Severity.ERROR] == []
    assert _errors(_JOBS, documents_of(text)[0]) == []


@pytest.mark.parametrize(
    "accelerators",
    ["H100", "H100:8", "[H100:8, {gpu_memory: 40GiB, count: 1}]", "{model: H100, count: 8}", "{H100: 8, L4: 1}"],
)
def test_every_form_of_accelerators_is_admitted(accelerators: str) -> None:
    assert _errors(_JOBS, documents_of(JOB.replace("A100-80GB:8\n", f"{accelerators}\n", 1))[0]) == []


@pytest.mark.parametrize(
    "text",
    [
        JOB.replace("name: llama3-8b-sft\n", ""),
        JOB.replace("llama3-8b-sft", "Llama"),
        JOB.replace("500GiB+", "500"),
        JOB.replace("hours: 24", "hours: -1"),
        JOB.replace("hours: 24, ", ""),
        JOB.replace("capacity: on_demand", "capacity: reserved"),
        JOB.replace("A100-80GB:8\n", "{count: 8}\n", 1),
        JOB.replace("A100-80GB:8\n", "[]\n", 1),
        JOB.replace("memory: 500GiB+", "nodes: 0"),
        JOB.replace("memory: 500GiB+", "interconnect_sensitive: 'yes'"),
        with_(JOB, "colour: red"),
        with_(JOB, "image: {size: 1GB}"),
        with_(JOB, "secrets: {A: hunter2}"),
        with_(JOB, "data: [{uri: 'http://x', size: 1GB}]"),
        with_(JOB, "data: [{uri: 's3://abc'}]"),
        with_(JOB, "checkpoint: {uri: 's3://abc', size: 1GB, every: 30}"),
        with_(JOB, "constraints: {max_usd_total: 0}"),
        with_(JOB, "constraints: {clouds: [amazon]}"),
        with_(JOB, "env: [A]"),
        with_(JOB, "priority: high"),
        with_(JOB, "network: {across: vpn}"),
        with_(JOB, "network: tunnel"),
        with_(JOB, "access: ssh"),
        with_(JOB, "constraints: {stop_after: 48}"),
        with_(JOB, "data: [{uri: 's3://abc', size: 1GB, mount: data}]"),
        with_(JOB, "data: [{uri: 's3://abc', size: 1GB, mount: /a, copy_to: /b}]"),
    ],
)
def test_what_has_the_wrong_form_both_refuse(text: str) -> None:
    assert [d for d in jobs_of(text)[1] if d.severity is Severity.ERROR]
    assert _errors(_JOBS, documents_of(text)[0])


def test_a_full_project_is_admitted() -> None:
    assert project_of(FULL)[1] == ()
    assert _errors(_PROJECTS, documents_of(FULL)[0]) == []


@pytest.mark.parametrize(
    "text",
    [
        "tags: {}",
        "project: acme\ntargets: [{name: a}]",
        "project: acme\nprices: [{discount: 12}]",
        "project: acme\nprices: [{clouds: aws}]",
        "project: acme\nbackend: s4",
        "project: acme\nbackend: {s3: {bucket: b}}",
        "project: acme\nagent: {url: 'https://x.example.com'}",
        "project: acme\npolcy: x",
        "project: acme\nproviders: {google: '6'}",
        "project: acme\ntargets: [{name: a, cloud: aws, quotas: [{instance_types: p5*}]}]",
        "project: acme\nprice_tolerance: 2",
        "project: acme\ntunnels: never",
        "project: acme\nmigration: {apply: always}",
        "project: acme\nmigration: {threshold: 30}",
        "project: acme\ntargets: [{name: a, cloud: aws, network_quota: {us-*: many}}]",
        "project: acme\nfederation: [{stores: ['s3://a*'], from: [gcp]}]",
        "project: acme\nfederation: [{stores: ['s3://a*'], from: [nebius], aws_role_arn: 'arn:aws:iam::012345678901:role/r'}]",
        "project: acme\nfederation: [{stores: ['s3://a*'], from: [gcp], aws_role_arn: role/r}]",
    ],
)
def test_projects_of_the_wrong_form_both_refuse(text: str) -> None:
    assert [d for d in project_of(text)[1] if d.severity is Severity.ERROR]
    assert _errors(_PROJECTS, documents_of(text)[0])
