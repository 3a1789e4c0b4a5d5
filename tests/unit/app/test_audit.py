"""The audit as a use case, with one plain rule: what is read, accepted, held against a base and placed.  Rules have tests of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.app import audit
from planner.app.audit_accept import accept
from planner.app.audit_base import changes, new_only
from planner.app.audit_explain import explain
from planner.app.audit_join import connected, filled
from planner.app.audit_places import Places
from planner.app.audit_rights import rights_of
from planner.app.audit_sources import Gathered, PlanSource, gather, merged
from planner.app.audit_tree import WorkingTree, revision
from planner.iam.audit import registry
from planner.model.audit_report import AuditReport
from planner.model.diagnostic import Location, Severity
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.finding import Finding, Level
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.plan import to_document
from planner.model.policy import (
    Audited,
    AwsPolicy,
    Permit,
    PolicyKind,
    Provider,
    RoleAssignment,
    RoleBinding,
    Statement,
    Subject,
    Test,
)
from planner.model.project import Suppression
from tests.unit.app.world import planned, small_market

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": "SKY-IAM-109",
        "level": Level.HIGH,
        "cloud": "aws",
        "identity": "ci",
        "origin": "main aws_iam_role.ci",
        "message": "wide",
        "grant": "all/Everything",
    }
    return Finding(**(values | changes))


def suppression(**changes: Any) -> Suppression:
    return Suppression(**({"rule": "SKY-IAM-109", "reason": "ML-12", "expires": "2027-01-01"} | changes))


def wide_resources(audited: Audited) -> Iterator[Finding]:
    for subject in audited.subjects:
        for policy in subject.of_kind(PolicyKind.IDENTITY):
            for s in policy.statements:
                if "*" in s.resources and not s.tests:
                    yield finding(
                        identity=subject.name,
                        origin=subject.origin,
                        grant=f"{policy.name}/{s.sid}",
                        location=s.location,
                    )


@pytest.fixture
def one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = registry.Rule(id="SKY-IAM-109", level=Level.HIGH, why="w", fix="f", check=wide_resources)
    monkeypatch.setattr(registry, "RULES", {"SKY-IAM-109": rule})


def role(*statements: dict[str, Any], name: str = "ci") -> dict[str, Any]:
    trust = {
        "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
    }
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    return {
        "resource": {
            "aws_iam_role": {name: {"name": name, "assume_role_policy": json.dumps(trust)}},
            "aws_iam_role_policy": {
                name: {"name": "all", "role": f"${{aws_iam_role.{name}.name}}", "policy": json.dumps(policy)}
            },
        }
    }


def statement(sid: str, action: str, resource: str = "*", **condition: Any) -> dict[str, Any]:
    more = {"Condition": condition} if condition else {}
    return {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource, **more}


OWN = {"StringEquals": {"aws:ResourceTag/skyplan:project": "acme"}}
WIDE = statement("Everything", "ec2:TerminateInstances")
NARROW = statement("Own", "ec2:TerminateInstances", **OWN)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def run(*paths: str, **request: Any) -> AuditReport:
    return audit.judge(audit.read(audit.Request(paths=tuple(map(Path, paths)), **request)), NOW)


# --- suppressions


def test_an_accepted_finding_carries_its_reason() -> None:
    (found,), told = accept([finding()], [suppression(grant="ci")], NOW)
    assert (found.accepted, told) == ("ML-12, until 2027-01-01", ())


@pytest.mark.parametrize("given", [{}, {"grant": "*"}])
def test_a_suppression_that_names_no_grant_is_a_warning_at_its_line(given: dict[str, str]) -> None:
    (found,), (told,) = accept([finding()], [suppression(**given)], NOW, [Location("skyplan.yaml", 4, 5)])
    assert found.accepted
    assert (told.code, told.severity, told.location) == (
        "SKY-IAM-905",
        Severity.WARNING,
        Location("skyplan.yaml", 4, 5),
    )


@pytest.mark.parametrize(
    ("grant", "accepted"),
    [
        ("*", True),
        ("main aws_iam_role.ci", True),
        ("main *", True),
        ("main aws_iam_role.ci all/Every*", True),
        ("ci", True),
        ("main aws_iam_role.ci all/Other", False),
        ("main aws_iam_role.c", False),
        ("MAIN *", False),
        ("[m]ain *", False),
    ],
)
def test_the_glob_is_over_place_and_identity(grant: str, accepted: bool) -> None:
    (found,), told = accept([finding()], [suppression(grant=grant)], NOW)
    assert bool(found.accepted) is accepted
    assert [d.code for d in told if d.code != "SKY-IAM-905"] == ([] if accepted else ["SKY-IAM-904"])


@pytest.mark.parametrize("grant", ['plan.json aws_iam_role.r["a.b"]', 'plan.json aws_iam_role.r["a.?"] *'])
def test_brackets_of_an_address_are_themselves(grant: str) -> None:
    (found,), told = accept([finding(origin='plan.json aws_iam_role.r["a.b"]')], [suppression(grant=grant)], NOW)
    assert (bool(found.accepted), told) == (True, ())


def test_another_rules_finding_is_not_accepted() -> None:
    (found,), _ = accept([finding()], [suppression(rule="SKY-IAM-301")], NOW)
    assert not found.accepted


@pytest.mark.parametrize("expires", ["2026-11-30", "2026-11-29T23:59:59Z", "2020-01-01"])
def test_an_expired_suppression_accepts_nothing_and_is_an_error(expires: str) -> None:
    (found,), (told,) = accept([finding()], [suppression(expires=expires)], NOW, [Location("skyplan.yaml", 9)])
    assert not found.accepted
    assert (told.code, told.severity, str(told.location)) == ("SKY-IAM-901", Severity.ERROR, "skyplan.yaml:9")


def test_one_second_before_its_end_a_suppression_holds() -> None:
    (found,), told = accept([finding()], [suppression(expires="2026-11-30T00:00:01Z", grant="ci")], NOW)
    assert found.accepted
    assert not told


def test_a_dead_suppression_is_a_warning_at_its_line() -> None:
    _, (told,) = accept([], [suppression()], NOW, [Location("skyplan.yaml", 4, 5)])
    assert (told.code, told.severity, told.location) == (
        "SKY-IAM-904",
        Severity.WARNING,
        Location("skyplan.yaml", 4, 5),
    )


# --- reading


def test_everything_that_cannot_be_read_is_told_at_once(folder: Path) -> None:
    put(folder / "broken.json", "{")
    put(folder / "list.json", "[]")
    put(folder / "package.json", {"name": "x"})
    put(folder / "edited.plan.json", {"format_version": "1.1", "digest": "sha256:0", "ranked": []})
    put(folder / "skyplan.yaml", "project: [\n")
    (folder / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        run("broken.json", "list.json", "package.json", "edited.plan.json", "gone.json", "empty")
    told = {str(d.location).split(":")[0]: d.code for d in caught.value.diagnostics}
    assert told == {
        "broken.json": "SKY-IAM-902",
        "list.json": "SKY-IAM-902",
        "package.json": "SKY-IAM-902",
        "edited.plan.json": "SKY-IAM-902",
        "gone.json": "SKY-IAM-902",
        "empty": "SKY-IAM-902",
        "skyplan.yaml": "SKY-SPEC-101",
    }


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (
            '# a comment\nresource "aws_iam_role" "x" {\n  name = "x"\n}\n',
            "HCL is not read: give what `terraform show -json",
        ),
        (
            '{"@level":"info","@message":"Terraform 1.9"}\n{"@level":"info"}\n',
            "the log that `terraform plan -json` prints",
        ),
        ("PK\x03\x04\udcff", "terraform show -json"),
        ("", "*.tf.json"),
        ("a: 1\n", "*.tf.json"),
        ('["x"]', "*.tf.json"),
        ('{"format_version": "9.0", "planned_values": {}}', "Terraform 0.12 to 1.x"),
    ],
)
def test_what_cannot_be_read_says_what_to_give_instead(folder: Path, content: str, hint: str) -> None:
    (folder / "x.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InputError) as caught:
        run(terraform=(Path("x.json"),))
    (told,) = caught.value.diagnostics
    assert (told.code, told.location and told.location.file) == ("SKY-IAM-902", "x.json")
    assert hint in told.hint


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("gone.json", "`skyplan plan JOB --out plans`"),
        ("hcl", "`skyplan audit FOLDER`"),
        ("hcl/main.tf", "HCL is not read: give what `terraform show -json tfplan` prints"),
        (
            "tfplan",
            "if this is Terraform's own plan file, it is not read: give what `terraform show -json tfplan` prints",
        ),
    ],
)
def test_each_thing_that_is_no_json_has_a_hint_of_its_own(folder: Path, given: str, hint: str) -> None:
    (folder / "hcl").mkdir()
    (folder / "hcl" / "main.tf").write_text("# nothing that a block begins with\n", encoding="utf-8")
    (folder / "tfplan").write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(InputError) as caught:
        run(terraform=(Path(given),))
    assert [hint in told.hint for told in caught.value.diagnostics] == [True]


def test_a_folder_of_hcl_alone_says_what_to_give(folder: Path) -> None:
    (folder / "hcl").mkdir()
    (folder / "hcl" / "main.tf").write_text("", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        run("hcl")
    assert ["HCL is not read" in told.hint for told in caught.value.diagnostics] == [True]


def test_a_byte_order_mark_is_no_content(folder: Path, one_rule: None) -> None:
    (folder / "x.json").write_bytes(b'\xef\xbb\xbf{"resource": {}}')
    assert run(terraform=(Path("x.json"),)).sources == ("x.json",)


def test_a_folder_is_read_to_its_depth_without_hidden_ones(folder: Path, one_rule: None) -> None:
    put(folder / "cdktf.out" / "stacks" / "a" / "cdk.tf.json", role(WIDE, name="a"))
    put(folder / "cdktf.out" / "own.tf.json", role(WIDE, name="b"))
    put(folder / "cdktf.out" / ".terraform" / "x.tf.json", role(WIDE, name="c"))
    put(folder / "cdktf.out" / "manifest.json", {"version": "x"})
    report = run("cdktf.out")
    assert report.sources == ("cdktf.out/own.tf.json", "cdktf.out/stacks/a/cdk.tf.json")
    assert {f.identity for f in report.findings} == {"a", "b"}
    assert report.identities == (("aws", "a"), ("aws", "b"))


def test_files_outside_the_working_folder_stay_apart_and_keep_it_to_themselves(
    folder: Path, one_rule: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        put(folder / "out" / name / "cdk.tf.json", role(WIDE, name=name))
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    report = run("../out")
    assert report.sources == ("out/a/cdk.tf.json", "out/b/cdk.tf.json")


def test_terraform_by_name_is_read_whatever_it_is_called(folder: Path, one_rule: None) -> None:
    shown = {"format_version": "1.0", "values": {"root_module": {"resources": []}}}
    put(folder / "state", shown)
    assert run(terraform=(Path("state"),)).sources == ("state",)


def test_what_holds_rights_and_was_not_read_is_said(folder: Path, one_rule: None) -> None:
    document = role(WIDE)
    document["resource"]["aws_iam_role_policy"]["ci"]["policy"] = '${file("policy.json")}'
    put(folder / "x.tf.json", document)
    report = run("x.tf.json")
    assert {d.code for d in report.diagnostics} == {"SKY-IAM-902"}
    assert all(d.severity is Severity.WARNING for d in report.diagnostics)


def test_two_sources_of_one_thing_count_once() -> None:
    one = Subject(cloud=Cloud.AWS, name="a", origin="o")
    needs = {(Identity.PLANNER, Cloud.AWS): {"a:B": "x"}}
    both = merged(
        [
            Audited(subjects=(one,), needs=needs),
            Audited(subjects=(one,), needs={(Identity.PLANNER, Cloud.AWS): {"c:D": "y"}}),
        ]
    )
    assert both.subjects == (one,)
    assert both.needs == {(Identity.PLANNER, Cloud.AWS): {"a:B": "x", "c:D": "y"}}


# --- a base


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


def policy(*statements: Statement, kind: PolicyKind = PolicyKind.IDENTITY, name: str = "p") -> AwsPolicy:
    return AwsPolicy(kind=kind, name=name, statements=statements)


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


# --- places

JOB = """# a comment
---
name: other
run: x
---
name: train
run: python train.py
data:
  - {uri: s3://acme-corpus/llama/, region: us-east-1, size: 1GB}
  - uri: s3://acme-corpus/llama/extra/
    region: us-east-1
    size: 1GB
checkpoint: {uri: s3://acme-ckpt/train/, region: us-east-1, size: 1GB, every: 30m}
secrets:
  HF_TOKEN: secret://aws-secretsmanager/acme/hf
"""


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


def source() -> PlanSource:
    from planner.app.audit_sources import Around, stacks_of
    from tests.unit.app.world import PROJECT

    plan, _ = planned()
    around = Around(project=PROJECT, market=small_market)
    return PlanSource(plan=plan, file="plans/train.plan.json", stacks=stacks_of(plan, around))


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


# --- why


def test_each_clouds_rights_are_rows() -> None:
    subject = Subject(
        cloud=Cloud.GCP,
        name="s",
        origin="o",
        policies=(
            policy(
                Statement(
                    not_actions=("iam:*",),
                    not_resources=("x",),
                    tests=(Test(operator="Bool", key="k", values=("true",)),),
                )
            ),
            policy(Statement(actions=("sts:AssumeRole",)), kind=PolicyKind.TRUST),
        ),
        bindings=(
            RoleBinding(member="m", role="roles/viewer", on="projects/p"),
            RoleBinding(member="m", role="custom", on="projects/p", permissions=("a.b.get", "a.b.list"), condition="c"),
        ),
        assignments=(
            RoleAssignment(role="r", scope="/s", actions=("A/*",), not_actions=("A/x",), data_actions=("B/y",)),
        ),
        permits=(Permit(role="viewer", on="bucket", paths=("a/*",)),),
    )
    rows = [(r.grant, r.action, r.resources, r.bounds) for r in rights_of(subject)]
    assert rows == [
        ("p/statement 1", "all but iam:*", ("all but x",), ("k Bool true",)),
        ("roles/viewer", "roles/viewer", ("projects/p",), ()),
        ("custom", "a.b.get", ("projects/p",), ("c",)),
        ("custom", "a.b.list", ("projects/p",), ("c",)),
        ("r", "A/*", ("/s",), ("not A/x",)),
        ("r", "B/y", ("/s",), ("not A/x",)),
        ("viewer", "viewer", ("bucket",), ("paths a/*",)),
    ]


def orchestrator(*actions: str) -> Subject:
    return Subject(
        cloud=Cloud.AWS,
        name="skyplan-acme-orchestrator",
        origin="fnd-aws-prod aws_iam_role.orchestrator",
        identity=Identity.ORCHESTRATOR,
        policies=(
            policy(Statement(sid="S", actions=actions, resources=("*",)), name="orchestrator"),
            policy(Statement(actions=("sts:AssumeRole",), principals=(("AWS", "arn:x"),)), kind=PolicyKind.TRUST),
        ),
    )


@pytest.mark.parametrize("asked", ["orchestrator", "skyplan-acme-orchestrator"])
def test_a_permission_is_explained_by_the_operation_that_needs_it(asked: str) -> None:
    needs = {(Identity.ORCHESTRATOR, Cloud.AWS): {"ec2:RunInstances": "create aws_instance"}}
    audited = Audited(subjects=(orchestrator("ec2:RunInstances", "ec2:Describe*", "ec2:RebootInstances"),), needs=needs)
    told = explain(asked, Gathered(audited=audited))
    rows = {r.action: r for r in told.rights}
    assert any("aws_instance" in word and "(compute)" in word for word in rows["ec2:RunInstances"].needed_by)
    assert rows["ec2:Describe*"].needed_by
    assert rows["ec2:RebootInstances"].needed_by == ()
    assert [rows[a].used for a in ("ec2:RunInstances", "ec2:RebootInstances")] == [True, False]
    assert [(one.subject, one.place, one.trusted) for one in told.who] == [
        ("skyplan-acme-orchestrator", "fnd-aws-prod", ("AWS arn:x",))
    ]


def founded(cloud: Cloud, address: str, target: str = "prod", **held: Any) -> Subject:
    return Subject(
        cloud=cloud,
        name="skyplan-acme-orchestrator",
        origin=f"fnd-{cloud.value}-{target} {address}.orchestrator",
        identity=Identity.ORCHESTRATOR,
        **held,
    )


def test_identities_of_one_name_are_explained_apart_by_cloud_and_account() -> None:
    door = policy(Statement(actions=("sts:AssumeRole",), principals=(("AWS", "arn:x"),)), kind=PolicyKind.TRUST)
    cap = policy(Statement(actions=("s3:*",), resources=("*",)), kind=PolicyKind.BOUNDARY, name="cap")
    audited = Audited(
        subjects=(
            orchestrator("ec2:RunInstances"),
            founded(Cloud.AWS, "aws_iam_role", "lab", policies=(door, cap)),
            founded(
                Cloud.AZURE,
                "azurerm_user_assigned_identity",
                assignments=(RoleAssignment(role="Reader", scope="/s"),),
            ),
        )
    )
    told = explain("orchestrator", Gathered(audited=audited))
    assert [(one.cloud, one.place, one.limits, one.trusted) for one in told.who] == [
        ("aws", "fnd-aws-lab", ("within the boundary cap",), ("AWS arn:x",)),
        ("aws", "fnd-aws-prod", (), ("AWS arn:x",)),
        ("azure", "fnd-azure-prod", (), ()),
    ]
    assert [len(told.of(one)) for one in told.who] == [0, 1, 1]


def test_who_may_become_an_identity_is_told_of_every_cloud() -> None:
    account = "projects/p/serviceAccounts/skyplan-acme-orchestrator@p.iam.gserviceaccount.com"
    member = "principal://iam.googleapis.com/projects/1/pool/subject/repo:acme/infra:ref:refs/heads/main"
    pool = Subject(
        cloud=Cloud.GCP,
        name=member,
        origin="fnd-gcp-prod google_service_account_iam_member.ci",
        bindings=(RoleBinding(member=member, role="roles/iam.workloadIdentityUser", on=account),),
    )
    azure = founded(Cloud.AZURE, "azurerm_user_assigned_identity")
    token = Provider(
        cloud=Cloud.AZURE, origin="o", issuer="https://i", audiences=("a",), condition="sub == 's'", opens=azure.origin
    )
    audited = Audited(
        subjects=(founded(Cloud.GCP, "google_service_account"), azure, pool),
        providers=(token, replace(token, opens="", issuer="https://other")),
    )
    told = {one.cloud: one.trusted for one in explain("orchestrator", Gathered(audited=audited)).who}
    assert told == {
        "gcp": (f"principal {member.partition(':')[2]} if by roles/iam.workloadIdentityUser",),
        "azure": ("token of https://i if sub == 's' and audience a",),
    }


def test_a_policy_that_is_managed_elsewhere_is_explained_as_one_line() -> None:
    admin = AwsPolicy(kind=PolicyKind.IDENTITY, name="arn:aws:iam::aws:policy/AdministratorAccess", statements=())
    subject = replace(orchestrator(), policies=(admin,))
    (right,) = explain("orchestrator", Gathered(audited=Audited(subjects=(subject,)))).rights
    assert right.action == "all of arn:aws:iam::aws:policy/AdministratorAccess"
    assert "not in this document" in right.reason


def test_a_boundary_is_explained_and_is_nobody(folder: Path, one_rule: None) -> None:
    lets = Statement(sid="L", actions=("s3:GetObject",), resources=("*",))
    cap = policy(lets, kind=PolicyKind.BOUNDARY, name="arn:aws:iam::1:policy/acme-orchestrator-boundary")
    loose = Subject(
        cloud=Cloud.AWS,
        name="acme-node-boundary",
        origin="fnd-aws-prod aws_iam_policy.node",
        policies=(replace(cap, name="acme-node-boundary"),),
    )
    audited = Audited(subjects=(founded(Cloud.AWS, "aws_iam_role", policies=(cap,)), loose))
    told = explain("acme-orchestrator-boundary", Gathered(audited=audited))
    assert [(r.grant, r.action) for r in told.rights] == [("acme-orchestrator-boundary/L", "s3:GetObject")]
    assert told.who[0].limits[1] == "bounds skyplan-acme-orchestrator"
    told = explain("acme-node-boundary", Gathered(audited=audited))
    assert len(told.rights) == 1
    assert told.who[0].limits[1].startswith("bounds nobody")


def test_a_role_whose_trust_was_not_read_is_one_identity_with_what_others_give_it() -> None:
    give = policy(Statement(sid="Pass", actions=("iam:PassRole",), resources=("arn:x",)), name="skyplan-pass")
    given = replace(orchestrator(), origin="acc-train--aws-prod-us-east-1 aws_iam_role_policy.pass", policies=(give,))
    home = replace(orchestrator("a:B"), origin="shown.json module.f.aws_iam_role.orchestrator[0]")
    home = replace(home, policies=home.policies[:1])
    (found,) = connected(Audited(subjects=(home, given))).subjects
    assert give in found.policies


def test_the_pipelines_own_role_is_explained_by_its_word() -> None:
    entry = replace(orchestrator("sts:AssumeRole"), name="x-ci", origin="fnd-aws-prod aws_iam_role.ci", identity=None)
    told = explain("ci", Gathered(audited=Audited(subjects=(entry, orchestrator("a:B")))))
    assert [(one.subject, len(told.of(one))) for one in told.who] == [("x-ci", 1)]


def test_a_policy_for_a_role_of_two_accounts_is_joined_by_its_target() -> None:
    give = policy(Statement(sid="Pass", actions=("iam:PassRole",), resources=("arn:x",)), name="skyplan-pass")
    given = replace(orchestrator(), origin="acc-train--aws-lab-us-east-1 aws_iam_role_policy.pass", policies=(give,))
    lab = replace(orchestrator("a:B"), origin="fnd-aws-lab aws_iam_role.orchestrator")
    found = connected(Audited(subjects=(orchestrator("a:B"), lab, given))).subjects
    assert [(s.origin.split()[0], give in s.policies) for s in found] == [
        ("fnd-aws-prod", False),
        ("fnd-aws-lab", True),
    ]


def test_without_a_plan_nothing_is_said_of_use() -> None:
    told = explain("orchestrator", Gathered(audited=Audited(subjects=(orchestrator("ec2:RunInstances"),))))
    assert [r.used for r in told.rights] == [None]


def test_a_nodes_two_identities_are_told_apart_with_the_grants_reason() -> None:
    node = Subject(
        cloud=Cloud.AWS,
        name="n",
        origin="o",
        identity=Identity.NODE_DATA,
        job="train",
        policies=(
            policy(
                Statement(sid="R", actions=("s3:GetObject",), resources=("arn:aws:s3:::acme-corpus/llama/*",)),
                name="node-data",
            ),
            policy(
                Statement(sid="W", actions=("s3:PutObject",), resources=("arn:aws:s3:::acme-ckpt/x/*",)),
                name="node-checkpoint",
            ),
        ),
    )
    given = {
        Grant(
            identity=Identity.NODE_DATA,
            permission=Permission.READ_OBJECTS,
            resource="s3://acme-corpus/llama/",
            reason="training data",
        ),
        Grant(
            identity=Identity.NODE_CHECKPOINT,
            permission=Permission.WRITE_CHECKPOINTS,
            resource="s3://acme-ckpt/x/",
            reason="checkpoints",
        ),
    }
    one = replace(source(), plan=replace(source().plan, grants={"d": tuple(sorted(given))}))
    gathered = Gathered(audited=Audited(subjects=(node,)), plans=(one,))
    data, checkpoint = explain("node-data", gathered).rights, explain("node-checkpoint", gathered).rights
    assert [(r.action, r.reason) for r in data] == [("s3:GetObject", "training data: s3://acme-corpus/llama/")]
    assert [(r.action, r.reason) for r in checkpoint] == [("s3:PutObject", "checkpoints: s3://acme-ckpt/x/")]


def test_an_identity_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(InputError) as caught:
        explain("broker", Gathered(audited=Audited(subjects=(orchestrator("a:B"),))))
    assert caught.value.diagnostics[0].code == "SKY-IAM-907"
    assert "skyplan-acme-orchestrator" in caught.value.diagnostics[0].hint


def test_gather_reads_nothing_of_nothing() -> None:
    from planner.app.audit_sources import Around
    from tests.unit.app.world import PROJECT

    assert gather((), (), WorkingTree(), Around(project=PROJECT, market=small_market)).audited == Audited()


# --- rights of one identity in several places


def trusted(*, name: str = "ci", origin: str = "a") -> Subject:
    trust = policy(Statement(actions=("sts:AssumeRole",)), kind=PolicyKind.TRUST, name="trust")
    return Subject(cloud=Cloud.AWS, name=name, origin=origin, policies=(trust,))


def test_a_policy_that_another_file_gives_is_the_roles() -> None:
    more = Subject(cloud=Cloud.AWS, name="ci", origin="b", policies=(policy(Statement(actions=("iam:PassRole",))),))
    (one,) = connected(Audited(subjects=(more, trusted()))).subjects
    assert (one.origin, [p.name for p in one.policies]) == ("a", ["trust", "p"])


def test_of_two_roles_of_one_name_nobody_knows_which_is_meant() -> None:
    more = Subject(cloud=Cloud.AWS, name="ci", origin="b", policies=(policy(Statement(actions=("iam:PassRole",))),))
    given = Audited(subjects=(more, trusted(), trusted(origin="other account")))
    assert connected(given) == given


def test_a_boundary_named_by_its_arn_gets_its_statements() -> None:
    arn = "arn:aws:iam::111122223333:policy/cap"
    cap = policy(Statement(actions=("s3:*",)), kind=PolicyKind.BOUNDARY, name=arn)
    bare = replace(trusted(), policies=(*trusted().policies, replace(cap, statements=())))
    own = Subject(cloud=Cloud.AWS, name="cap", origin="b", policies=(cap,))
    first, second = filled(Audited(subjects=(bare, own))).subjects
    assert first.of_kind(PolicyKind.BOUNDARY) == (cap,)
    assert second == own


def test_a_boundary_that_nobody_has_read_hides_no_widening(folder: Path, one_rule: None) -> None:
    def bounded(statement: dict[str, Any]) -> dict[str, Any]:
        document = role(statement)
        document["resource"]["aws_iam_role"]["ci"]["permissions_boundary"] = "arn:aws:iam::111122223333:policy/cap"
        return document

    put(folder / "old.tf.json", bounded(NARROW))
    put(folder / "new.tf.json", bounded(WIDE))
    assert {f.rule for f in run("new.tf.json", base="old.tf.json").findings} == {"SKY-IAM-605", "SKY-IAM-109"}
    put(folder / "new.tf.json", role(NARROW))
    (gone,) = run("new.tf.json", base="old.tf.json").findings
    assert "boundary" in gone.message


def test_half_of_an_administrator_taken_away_is_nothing_new(folder: Path) -> None:
    """What an administrator's finding took in was there before."""
    ends = ["ec2:TerminateInstances", "ec2:StopInstances"]
    for name, actions in (("base", "*"), ("now", ends)):
        held = role({"Sid": "All", "Effect": "Allow", "Action": actions, "Resource": "*"})
        put(folder / name / "iam.tf.json", held)
    assert "SKY-IAM-102" not in {f.rule for f in run("base/iam.tf.json").findings}
    report = run("now/iam.tf.json", base="base/iam.tf.json")
    assert report.standing > 0
    assert "SKY-IAM-102" not in {f.rule for f in report.findings}
