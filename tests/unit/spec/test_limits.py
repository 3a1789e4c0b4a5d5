"""A job can narrow the project's limits, never widen them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.diagnostic import Severity
from planner.model.project import Project
from planner.model.workload import Constraints
from planner.spec.limits import narrow
from tests.unit.spec.spec_words import JOB, job_of, jobs_of, with_

CAPS = Project(
    limits=Constraints(
        deadline_hours=100.0,
        max_usd_per_hour=50.0,
        max_usd_total=1000.0,
        clouds=("aws", "gcp"),
        regions=("europe-*", "us-east-*", "us-west-*"),
        instance_types=("p*",),
    )
)


def test_what_a_job_leaves_open_is_the_projects() -> None:
    assert job_of(JOB, CAPS).constraints == CAPS.limits


def test_without_limits_the_jobs_own_hold() -> None:
    text = with_(JOB, "constraints: {clouds: [aws], max_usd_total: 5}")
    assert job_of(text).constraints == Constraints(clouds=("aws",), max_usd_total=5.0)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("clouds: [aws]", ("clouds", ("aws",))),
        ("regions: ['us-*']", ("regions", ("us-east-*", "us-west-*"))),
        (
            "regions: ['*-1']",
            ("regions", ("europe-*-1", "europe-1", "us-east-*-1", "us-east-1", "us-west-*-1", "us-west-1")),
        ),
        ("regions: [us-east-1, 'eu*']", ("regions", ("europe-*", "us-east-1"))),
        ("instance_types: ['p5*', '*xlarge']", ("instance_types", ("p*xlarge", "p5*"))),
        ("max_usd_total: 999", ("max_usd_total", 999.0)),
        ("max_usd_per_hour: 50", ("max_usd_per_hour", 50.0)),
        ("deadline: 2d", ("deadline_hours", 48.0)),
    ],
)
def test_a_job_narrows(written: str, expected: tuple[str, object]) -> None:
    assert getattr(job_of(with_(JOB, f"constraints: {{{written}}}"), CAPS).constraints, expected[0]) == expected[1]


@pytest.mark.parametrize(
    ("written", "summary"),
    [
        ("clouds: [aws, azure]", "`azure` is not allowed"),
        ("regions: [eu-north1]", "`eu-north1` is not allowed"),
        ("regions: ['us-*', 'eu-w*']", "`eu-w*` is not allowed"),
        ("instance_types: [g6.xlarge]", "`g6.xlarge` is not allowed"),
        ("max_usd_total: 1001", "the project allows 1000 USD"),
        ("max_usd_per_hour: 50.01", "the project allows 50 USD"),
        ("deadline: 101h", "the project allows 100h"),
    ],
)
def test_a_job_that_names_what_is_not_allowed_is_refused_at_its_line(written: str, summary: str) -> None:
    jobs, (only,) = jobs_of(with_(JOB, "constraints:", f"  {written}"), CAPS)
    assert (only.code, str(only.location)) == ("SKY-SPEC-109", "job.yaml:9")
    assert summary in only.summary
    assert jobs[0].constraints != Constraints()
    assert narrow(jobs[0], CAPS) == (jobs[0], ())


@pytest.mark.parametrize(
    ("prefix", "uri", "allowed"),
    [
        ("s3://acme/", "s3://acme/x/", True),
        ("s3://acme", "s3://acme", True),
        ("s3://acme/team", "s3://acme/team/", True),
        ("s3://acme/team/", "s3://acme/team", True),
        ("s3://acme/team", "s3://acme/team/a/b", True),
        ("s3://acme/team", "s3://acme/team-b/", False),
        ("s3://acme/team", "s3://acme/", False),
        ("s3://acme", "gs://acme/", False),
        ("s3://acme", "s3://acme2/", False),
        ("az://acmeml/corpus", "az://acmeml/corpus/x", True),
        ("az://acmeml/corpus", "az://acmeml/corpus2/x", False),
    ],
)
def test_data_lies_under_an_allowed_prefix_on_a_boundary(prefix: str, uri: str, allowed: bool) -> None:
    project = Project(data_prefixes=(prefix,))
    region = {"s3": "us-east-1", "gs": "us-central1", "az": "eastus"}[uri[:2]]
    place = f"uri: '{uri}', region: {region}, size: 1GB"
    for line in (f"data: [{{{place}}}]", f"output: {{{place}}}", f"checkpoint: {{{place}, every: 1h}}"):
        jobs, diagnostics = jobs_of(with_(JOB, line), project)
        assert [(d.code, d.location and d.location.line) for d in diagnostics] == (
            [] if allowed else [("SKY-SPEC-109", 8)]
        )
        assert bool(jobs[0].data or jobs[0].output or jobs[0].checkpoint) is allowed


def test_narrow_without_places_still_finds_everything() -> None:
    job = replace(job_of(JOB), constraints=Constraints(clouds=("azure",), max_usd_total=5000.0))
    narrowed, diagnostics = narrow(job, CAPS)
    assert [d.code for d in diagnostics] == ["SKY-SPEC-109", "SKY-SPEC-109"]
    assert (narrowed.constraints.clouds, narrowed.constraints.max_usd_total) == (("aws", "gcp"), 1000.0)


@pytest.mark.parametrize(
    ("ours", "caps", "kept", "warned"),
    [("48h", 24.0, 24.0, True), ("12h", 24.0, 12.0, False), ("12h", None, 12.0, False), ("", 24.0, 24.0, False)],
)
def test_of_two_hard_ends_the_earlier_one_holds_and_a_later_one_is_warned_of(
    ours: str, caps: float | None, kept: float, warned: bool
) -> None:
    text = with_(JOB, f"constraints: {{stop_after: {ours or '~'}}}")
    (job,), diagnostics = jobs_of(text, Project(limits=Constraints(stop_after_hours=caps)))
    assert job.constraints.stop_after_hours == kept
    expected = [("SKY-SPEC-109", Severity.WARNING, 8)] if warned else []
    assert [(d.code, d.severity, d.location and d.location.line) for d in diagnostics] == expected


def test_a_project_may_forbid_tunnels() -> None:
    text = with_(JOB.replace("memory: 500GiB+", "nodes: 2"), "network: {across: tunnel, sync: {size: 2GB, every: 30s}}")
    assert job_of(text, Project()).tunnel
    (job,), (only,) = jobs_of(text, Project(tunnels=False))
    assert (only.code, only.severity, only.location and only.location.line) == ("SKY-SPEC-109", Severity.ERROR, 8)
    assert not job.tunnel
