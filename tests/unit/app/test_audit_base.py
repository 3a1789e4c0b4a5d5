"""An audit held against a base: what is new, what went, what cannot be read there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.app import audit
from planner.app.audit_base import changes, new_only
from planner.app.audit_tree import revision
from planner.iam.audit import registry
from planner.model.diagnostic import Location, Severity
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.finding import Level
from planner.model.offer import Cloud
from planner.model.plan import to_document
from planner.model.policy import (
    Audited,
    PolicyKind,
    Statement,
    Subject,
)
from tests.unit.app.auditing import (
    JOB,
    NARROW,
    OWN,
    WIDE,
    finding,
    policy,
    put,
    role,
    run,
    statement,
    wide_resources,
)
from tests.unit.app.world import planned, small_market


@pytest.fixture
def one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = registry.Rule(id="SKY-IAM-109", level=Level.HIGH, why="w", fix="f", check=wide_resources)
    monkeypatch.setattr(registry, "RULES", {"SKY-IAM-109": rule})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def repository(folder: Path) -> Callable[..., str]:
    def git(*arguments: str) -> str:
        setting = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *setting, *arguments], check=True, capture_output=True, text=True).stdout

    git("init", "-q", "-b", "main")
    return git


def test_a_revision_is_read_without_a_checkout(folder: Path, repository: Callable[..., str], one_rule: None) -> None:
    put(folder / "iam" / "x.tf.json", role(NARROW))
    repository("add", ".")
    repository("commit", "-qm", "one")
    put(folder / "iam" / "x.tf.json", role(replace_condition(NARROW)))
    report = run("iam", base="main")
    assert [f.rule for f in report.findings][:1] == ["SKY-IAM-605"]
    assert (report.base, report.standing) == ("main", 0)
    assert [(c.kind, c.identity) for c in report.changes] == [("widened", "ci")]
    assert repository("status", "--porcelain").split() == ["M", "iam/x.tf.json"]


def replace_condition(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != "Condition"}


def test_what_the_base_has_too_is_counted_and_not_shown(
    folder: Path, repository: Callable[..., str], one_rule: None
) -> None:
    put(folder / "x.tf.json", role(WIDE))
    repository("add", ".")
    repository("commit", "-qm", "one")
    report = run("x.tf.json", base="HEAD")
    assert (report.findings, report.changes, report.standing) == ((), (), 1)


def test_a_file_that_the_base_lacks_is_all_new(folder: Path, repository: Callable[..., str], one_rule: None) -> None:
    put(folder / "other", "x")
    repository("add", ".")
    repository("commit", "-qm", "one")
    put(folder / "x.tf.json", role(WIDE))
    report = run("x.tf.json", base="main")
    assert {f.rule for f in report.findings} == {"SKY-IAM-605", "SKY-IAM-109"}
    assert {c.kind for c in report.changes} == {"added"}


OTHER_JOB = """name: other
resources: {accelerators: "A100-80GB:8"}
work: {hours: 24, on: "A100-80GB:8"}
run: x
"""


def renamed(folder: Path, name: str) -> None:
    put(folder / "plans" / "train.plan.json", pretty(to_document(planned()[0])).decode())
    put(folder / "skyplan.yaml", f"project: acme\ntargets:\n  - {{name: {name}, cloud: aws}}\n")


def test_a_plan_of_a_target_that_is_gone_is_an_error_that_names_those_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit.inputs, "load_market", lambda _: small_market())
    renamed(folder, "main")
    with pytest.raises(InputError) as caught:
        run("plans")
    (told,) = caught.value.diagnostics
    assert told.code == "SKY-IAM-902"
    assert str(told.location) == "plans/train.plan.json"
    assert told.summary == "is for target aws:prod, which skyplan.yaml does not have (known: aws:main)"


@pytest.mark.parametrize("before", ["project: [", "targets: 3", None])
def test_a_base_that_cannot_be_read_counts_as_empty_and_is_told(
    folder: Path, repository: Callable[..., str], monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.setattr(audit.inputs, "load_market", lambda _: small_market())
    renamed(folder, "main")
    if before:
        put(folder / "skyplan.yaml", before)
    repository("add", ".")
    repository("commit", "-qm", "one")
    renamed(folder, "prod")
    report = run("plans", base="main")
    told = [d for d in report.diagnostics if d.summary.startswith("in the base main: ")]
    assert any("is for target aws:prod" in d.summary for d in told)
    assert {d.severity for d in report.diagnostics} == {Severity.WARNING}
    assert report.identities


def test_a_plan_that_is_older_than_its_job_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.inputs, "load_market", lambda _: small_market())
    renamed(folder, "prod")
    put(folder / "jobs" / "train.yaml", JOB)
    told = [d for d in run("plans").diagnostics if "older than jobs/train.yaml" in d.summary]
    assert [(d.code, d.severity, str(d.location)) for d in told] == [
        ("SKY-IAM-906", Severity.WARNING, "plans/train.plan.json")
    ]
    put(folder / "jobs" / "train.yaml", OTHER_JOB)
    assert any("does not have any more" in d.summary for d in run("plans").diagnostics)
    (folder / "jobs" / "train.yaml").unlink()
    assert not [d for d in run("plans").diagnostics if "jobs/train.yaml" in d.summary]


def test_a_removed_right_is_a_change_and_no_finding(folder: Path, one_rule: None) -> None:
    put(folder / "old.tf.json", role(NARROW, statement("Stop", "ec2:StopInstances", **OWN)))
    put(folder / "new.tf.json", role(NARROW))
    report = run("new.tf.json", base="old.tf.json")
    assert report.findings == ()
    assert [(c.kind, c.right.split()[0]) for c in report.changes] == [("removed", "ec2:StopInstances")]


@pytest.mark.parametrize("base", ["nope", "--output=x", "-h", "main:x"])
def test_a_base_that_is_nothing_is_told(folder: Path, repository: Callable[..., str], base: str) -> None:
    with pytest.raises(InputError) as caught:
        revision(base)
    assert [d.code for d in caught.value.diagnostics] == ["SKY-IAM-902"]
    assert list(folder.glob("x*")) == []


def test_a_revision_reads_paths_from_a_folder_below(
    folder: Path, repository: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a" / "f.json", "{}")
    put(folder / "b" / "g ü.json", "{}")
    repository("add", ".")
    repository("commit", "-qm", "one")
    monkeypatch.chdir(folder / "a")
    tree = revision("main")
    assert tree.has(Path("f.json"))
    assert tree.text(Path("f.json")) == "{}"
    assert tree.below(Path("../b")) == (Path("../b/g ü.json"),)
    assert tree.below(Path("f.json")) is None
    assert not tree.has(Path("none.json"))
    assert tree.below(Path("/nowhere")) is None


def test_fingerprints_decide_what_is_new() -> None:
    moved = finding(location=Location("x", 9), message="other words")
    fresh, standing = new_only([moved, finding(grant="all/Other")], [finding(location=Location("x", 1))])
    assert ([f.grant for f in fresh], standing) == (["all/Other"], 1)


def test_a_base_in_another_folder_has_the_same_findings(folder: Path, one_rule: None) -> None:
    put(folder / "old" / "x.tf.json", role(WIDE))
    put(folder / "new" / "x.tf.json", role(WIDE))
    report = run("new", base="old")
    assert (report.findings, report.standing) == ((), 1)


def test_changes_know_a_deny_and_a_boundary() -> None:
    allow = Statement(sid="A", actions=("s3:GetObject",), resources=("*",))
    deny = Statement(sid="D", effect="Deny", actions=("s3:PutObject",), resources=("*",))
    cap = policy(allow, kind=PolicyKind.BOUNDARY, name="cap")
    base = Subject(cloud=Cloud.AWS, name="r", origin="o", policies=(policy(allow, deny), cap))
    new = replace(base, policies=(policy(allow),))
    found = changes(Audited(subjects=(base,)), Audited(subjects=(new,)), ())
    assert [(c.kind, c.right) for c in found] == [
        ("removed", "boundary s3:GetObject on *"),
        ("removed", "denied s3:PutObject on *"),
    ]
    assert changes(Audited(subjects=(base,)), Audited(subjects=(base,)), ()) == ()
