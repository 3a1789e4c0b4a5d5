"""Where a finding stands: the line that asks for the right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.app.audit_places import Places
from planner.app.audit_tree import WorkingTree
from planner.model.diagnostic import Location
from tests.unit.app.auditing import (
    JOB,
    finding,
    put,
    source,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("about", "line"),
    [
        ({"resource": "arn:aws:s3:::acme-corpus/llama/*"}, 9),
        ({"resource": "arn:aws:s3:::acme-corpus/llama/extra/*"}, 10),
        ({"message": "writes s3://acme-ckpt/train/"}, 13),
        ({"identity": "node-checkpoint"}, 13),
        ({"evidence": "secret acme/hf"}, 15),
        ({}, 6),
    ],
)
def test_a_jobs_finding_stands_at_the_line_that_asks_for_the_right(
    folder: Path, about: dict[str, str], line: int
) -> None:
    put(folder / "jobs" / "train.yaml", JOB)
    places = Places([source()], None, WorkingTree())
    stack = source().stacks[1].name
    at = places.locate(finding(**({"identity": "node-data", "origin": f"{stack} aws_iam_role.node"} | about))).location
    assert at is not None
    assert (at.file, at.line) == ("jobs/train.yaml", line)


@pytest.mark.parametrize(
    ("uris", "resource", "line"),
    [
        (("s3://corpus/", "s3://corpus/a/", "s3://other/a/"), "arn:aws:s3:::corpus/*", 4),
        (("s3://corpus/a/", "s3://corpus/", "s3://other/a/"), "arn:aws:s3:::corpus/*", 5),
        (("s3://corpus/a/", "s3://corpus/a/b/", "s3://corpus/"), "arn:aws:s3:::corpus/a/b/c/*", 5),
        (("s3://corpus/a/", "s3://corpus/ab/", "s3://ckpt/a/"), "arn:aws:s3:::corpus/ab/*", 5),
        (("s3://corpus/a/", "s3://corpus/b/", "s3://corpus/c/"), "arn:aws:s3:::corpus/b/*", 5),
        (("gs://corpus/a/", "gs://corpus/b/", "s3://corpus/"), "projects/_/buckets/corpus/managedFolders/b/", 5),
        (
            ("az://acct/one/a/", "az://acct/two/a/", "s3://x/"),
            "/x/storageAccounts/acct/blobServices/default/containers/two",
            5,
        ),
        (("s3://corpus/a/", "s3://b/", "s3://ckpt/"), "arn:aws:s3:::ckpt/x/*, arn:aws:s3:::nobodys/*", 6),
    ],
)
def test_a_finding_stands_at_the_uri_that_its_resource_is_under(
    folder: Path, uris: tuple[str, ...], resource: str, line: int
) -> None:
    """Also where the message names another: `the base stops at …`."""
    items = "".join(f"  - {{uri: {uri}, size: 1GB}}\n" for uri in uris)
    put(
        folder / "jobs" / "train.yaml",
        f"name: train\nrun: x\ndata:\n{items}checkpoint: {{uri: s3://acme-ckpt/train/}}\n",
    )
    about = {"resource": resource, "message": "the base stops at arn:aws:s3:::acme-ckpt/train/*"}
    made = finding(rule="SKY-IAM-605", origin=f"{source().stacks[1].name} aws_iam_role.node", fix="write", **about)
    found = Places([source()], None, WorkingTree()).locate(made)
    assert str(found.location) == f"jobs/train.yaml:{line}"
    assert found.fix == f"narrow `uri` at jobs/train.yaml:{line}, or ask the owner of skyplan.yaml for a suppression"


def test_a_job_file_that_is_gone_leaves_the_plan_as_the_place(folder: Path) -> None:
    found = Places([source()], None, WorkingTree()).locate(
        finding(origin=f"{source().stacks[2].name} aws_instance.node")
    )
    assert found.location == Location("plans/train.plan.json", 1)


def test_a_targets_finding_stands_in_skyplan_yaml(folder: Path) -> None:
    put(
        folder / "skyplan.yaml",
        "project: acme\ntargets:\n  - name: lab\n    cloud: aws\n  - name: prod\n    cloud: aws\n",
    )
    places = Places([source()], "skyplan.yaml", WorkingTree())
    for origin in ("fnd-aws-prod aws_iam_role.planner", f"{source().stacks[0].name} aws_vpc.this"):
        found = places.locate(finding(origin=origin, fix="write instead"))
        assert (str(found.location), found.fix) == ("skyplan.yaml:5", "write instead")
        asked = "at skyplan.yaml:5, or ask the owner of skyplan.yaml for a suppression"
        wider = finding(rule="SKY-IAM-605", origin=origin, message="adds x", fix="write instead")
        assert places.locate(wider).fix == f"take the change of the target back {asked}"
        region = replace(wider, message="`StringEquals aws:RequestedRegion = a` became `… = a, b`")
        assert places.locate(region).fix == f"narrow `regions` of the target {asked}"


def test_a_place_that_is_known_stays() -> None:
    at = Location("x.tf.json", 3)
    assert Places([source()], None, WorkingTree()).locate(finding(location=at)).location == at
