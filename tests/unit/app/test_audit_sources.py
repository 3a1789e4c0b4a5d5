"""What an audit reads, what it cannot read and what it says then."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.app.audit_sources import merged
from planner.iam.audit import registry
from planner.model.diagnostic import Severity
from planner.model.errors import InputError
from planner.model.finding import Level
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    Subject,
)
from tests.unit.app.auditing import (
    WIDE,
    put,
    role,
    run,
    wide_resources,
)


@pytest.fixture
def one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = registry.Rule(id="SKY-IAM-109", level=Level.HIGH, why="w", fix="f", check=wide_resources)
    monkeypatch.setattr(registry, "RULES", {"SKY-IAM-109": rule})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
