"""`skyplan diff` as it is called: folders, revisions, formats, exit codes, and what it says to what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from planner.app import schemas
from planner.cli.entry import call
from planner.migration.document import to_document
from planner.model.digest import digest, pretty
from planner.render.diff_markdown import read_tag
from tests.unit.app.diffing import at, plan, put, resource, terraform
from tests.unit.migration.diffs import diff as migration_diff

PROJECT = """\
project: acme
targets:
  - {name: prod, cloud: aws}
clouds: [aws]
stop_after: 21d
"""
JOB = """\
name: train
resources: {accelerators: "A100-80GB:8", capacity: [spot, on_demand]}
work: {hours: 10, on: "A100-80GB:8"}
image: {ref: "ghcr.io/acme/train:1", size: 18GB}
run: python train.py
data:
  - {uri: s3://acme-data/web/, size: 1TB, region: us-east-1}
checkpoint: {uri: s3://acme-ckpt/train/, size: 10GB, region: us-east-1, every: 30m}
"""
Git = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def git(folder: Path) -> Git:
    """A repository with one job, committed."""

    def run(*arguments: str) -> str:
        setting = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *setting, *arguments], check=True, capture_output=True, text=True).stdout

    run("init", "-q", "-b", "main")
    (folder / "skyplan.yaml").write_text(PROJECT)
    (folder / "jobs").mkdir()
    (folder / "jobs" / "train.yaml").write_text(JOB)
    run("add", "-A")
    run("commit", "-q", "-m", "one")
    return run


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_exit_codes_and_the_headline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = put(folder / "a", plan(at()))
    head = put(folder / "b", plan(at("us-west-2", placed="p2222222222"), at()))
    assert call(["diff", str(base), str(head)]) == 0
    assert "1 to migrate" in capsys.readouterr().out
    assert call(["diff", "a", "b", "--detailed-exitcode"]) == 2
    assert call(["diff", "a", "a", "--detailed-exitcode"]) == 0


def test_json_is_what_its_schema_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder / "a", plan(at()))
    put(folder / "b", plan(at("us-west-2", placed="p2222222222")), plan(at(), name="new"))
    assert call(["diff", "a", "b", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schemas.one("diff")).validate(document)
    assert {c["job"]: c["action"] for c in document["changes"]} == {"train": "migrate", "new": "create"}
    assert call(["schema", "diff"]) == 0
    assert json.loads(capsys.readouterr().out) == schemas.one("diff")


def test_several_formats_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder / "a", plan(at()))
    put(folder / "b", plan(at("us-west-2", placed="p2222222222")))
    formats = ["--format", "markdown", "--output", "d.md", "--format", "html", "--output", "d.html"]
    assert call(["diff", "a", "b", *formats, "--format", "table", "--output", "-", "--tag", "prod"]) == 0
    assert "1 to migrate" in capsys.readouterr().out
    found = read_tag((folder / "d.md").read_text())
    assert found == ("prod", "2026-11-30T12:00:00Z")
    assert (folder / "d.html").read_text().startswith("<!doctype html>")


def test_a_step_summary_is_added_below_what_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder / "a", plan(at()))
    put(folder / "b", plan(at("us-west-2", placed="p2222222222")))
    summary = folder / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    summary.write_text("before\n")
    assert call(["diff", "a", "b", "--step-summary"]) == 0
    assert summary.read_text().startswith("before\n## skyplan diff")
    summary.write_text("x" * 999_000)
    assert call(["diff", "a", "b", "--step-summary"]) == 0
    assert summary.stat().st_size == 999_000
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert call(["diff", "a", "b", "--step-summary"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give BASE and HEAD"),
        (["a"], "give BASE and HEAD"),
        (["a", "b", "--base", "main"], "not both"),
        (["a", "b", "--head", "main"], "--head REV goes with"),
        (["a", "b", "--tag", "x -->"], "is no tag"),
        (["a", "b", "--format", "json", "--format", "html"], "give one --output for each"),
        (["none", "b"], "none: is not there"),
        (["a", "b", "--terraform-plan", "none.json"], "none.json"),
        (["--base", "no-such-revision"], "no-such-revision"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    put(folder / "a", plan(at()))
    put(folder / "b", plan(at()))
    assert call(["diff", *arguments]) == 1
    assert said in capsys.readouterr().err


def test_terraforms_deletions_are_shown_and_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(folder / "a", plan(at()))
    terraform(folder / "tf.json", resource("aws_iam_role.x", "delete"))
    assert call(["diff", "a", "a", "--terraform-plan", "tf.json", "--detailed-exitcode"]) == 2
    assert "Terraform destroys 1" in capsys.readouterr().out


def test_a_revision_is_planned_with_the_prices_of_today(
    folder: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["diff", "--base", "main", "--detailed-exitcode"]) == 0
    edit(folder / "jobs" / "train.yaml", "[spot, on_demand]", "[on_demand]")
    assert call(["diff", "--base", "main", "--detailed-exitcode"]) == 2
    out = capsys.readouterr().out
    assert "spot -> on_demand" in out
    assert "for this diff: base and head" in out
    git("commit", "-aqm", "two")
    assert call(["diff", "--base", "HEAD~1", "--head", "HEAD", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["valid_at"] >= document["price_snapshots"][0]
    assert len(document["price_snapshots"]) == 1
    assert document["inputs"]["head"]["commit"] == git("rev-parse", "HEAD").strip()


@pytest.mark.usefixtures("git")
def test_a_wider_prefix_is_the_first_thing_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder / "jobs" / "train.yaml", "s3://acme-data/web/", "s3://acme-data/")
    assert call(["diff", "--base", "main", "--format", "markdown"]) == 0
    text = capsys.readouterr().out
    assert "### :warning: Grants widen (2)" in text
    assert text.index("Grants widen") < text.index("| all jobs (1)")


def test_a_plan_older_than_its_job_is_planned_anew_and_said(
    folder: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["plan", "jobs/train.yaml", "--out", "plans", "--offline"]) == 0
    git("add", "-A")
    git("commit", "-qm", "two")
    capsys.readouterr()
    assert call(["diff", "--base", "main", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["replanned"] == []
    edit(folder / "jobs" / "train.yaml", "acme/train:1", "acme/train:2")
    assert call(["diff", "--base", "main", "--json"]) == 0
    found = capsys.readouterr()
    (change,) = json.loads(found.out)["changes"]
    assert (change["action"], change["replanned"]) == ("update", ["head"])
    assert "is older than jobs/train.yaml" in found.err


@pytest.mark.usefixtures("git")
def test_what_grew_comes_before_what_a_new_job_brings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = folder / "jobs"
    (jobs / "another.yaml").write_text(JOB.replace("name: train", "name: another"))
    edit(jobs / "train.yaml", "s3://acme-data/web/", "s3://acme-data/")
    assert call(["diff", "--base", "main", "--json"]) == 0
    origins = [f["origin"].split("--")[0] for f in json.loads(capsys.readouterr().out)["widenings"]]
    assert origins[:2] == ["acc-train", "acc-train"]
    assert set(origins[2:]) == {"acc-another"}


@pytest.mark.usefixtures("git")
def test_causes_are_told_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder / "jobs" / "train.yaml", "hours: 10", "hours: 20")
    edit(folder / "skyplan.yaml", "clouds: [aws]", "clouds: [aws]\nregions: [eu-*]")
    assert call(["diff", "--base", "main", "--attribute", "--json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert [c["what"] for c in change["causes"]] == ["project", "job"]
    shares = sum(float(c["total_usd"]["usd"]) for c in change["causes"])
    assert shares == pytest.approx(float(change["total_usd"]["difference"]["usd"]), abs=1e-4)


def test_what_a_base_has_wrong_is_told_and_stops_no_change_that_mends_it(
    folder: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder / "jobs" / "train.yaml", "hours: 10", "hours: many")
    (folder / "plans").mkdir()
    (folder / "plans" / "other.plan.json").write_text("{\n]")
    git("add", "-A")
    git("commit", "-qm", "two")
    edit(folder / "jobs" / "train.yaml", "hours: many", "hours: 10")
    (folder / "plans" / "other.plan.json").unlink()
    assert call(["diff", "--base", "main", "--json"]) == 0
    found = capsys.readouterr()
    assert "jobs/train.yaml:3: in the base: in main" in found.err
    assert "plans/other.plan.json:2: in the base" in found.err
    assert json.loads(found.out)["changes"][0]["action"] == "create"


@pytest.mark.usefixtures("git")
def test_every_problem_of_the_head_has_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder / "jobs" / "train.yaml", "hours: 10", "hours: many")
    edit(folder / "skyplan.yaml", "stop_after: 21d", "stop_after: never")
    assert call(["diff", "--base", "main"]) == 1
    err = capsys.readouterr().err
    assert "jobs/train.yaml:3: in working tree" in err
    assert "skyplan.yaml:5: in working tree" in err


@pytest.mark.usefixtures("git")
def test_the_same_inputs_give_the_same_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder / "jobs" / "train.yaml", "[spot, on_demand]", "[on_demand]")
    found: set[str] = set()
    for _ in range(2):
        assert call(["diff", "--base", "main", "--format", "markdown", "--tag", "prod"]) == 0
        found.add(capsys.readouterr().out)
    assert len(found) == 1


def test_nothing_is_imported_that_two_folders_do_not_need(folder: Path) -> None:
    put(folder / "a", plan(at()))
    code = (
        "import sys; from planner.cli.entry import call; call(['diff', 'a', 'a']);"
        "print(sorted({'numpy', 'networkx', 'sqlalchemy', 'scipy', 'boto3', 'cdktf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_new_migration_diff_is_a_move_and_one_that_stands_is_none(
    folder: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["plan", "jobs/train.yaml", "--out", "plans", "--offline"]) == 0
    git("add", "-A")
    git("commit", "-qm", "two")
    (folder / "migrations").mkdir()
    document = to_document(replace(migration_diff(), job="train"))
    (folder / "migrations" / "train.diff.json").write_bytes(pretty(document))
    capsys.readouterr()
    assert call(["diff", "--base", "main", "--detailed-exitcode"]) == 2
    out = capsys.readouterr().out
    assert "the job stops for 6.5 min" in out
    assert "1 to migrate" in out
    git("add", "-A")
    git("commit", "-qm", "three")
    assert call(["diff", "--base", "main", "--detailed-exitcode"]) == 0


@pytest.mark.usefixtures("git")
def test_what_the_market_moved_is_told_from_what_the_job_moved(
    folder: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan file of other prices: its share is the market's, and the shares add up."""
    assert call(["plan", "jobs/train.yaml", "--out", "plans", "--offline"]) == 0
    path = folder / "plans" / "train.plan.json"
    document = json.loads(path.read_text())
    del document["digest"]
    first = document["ranked"][0]
    first["total_usd"] = f"{float(first['total_usd']) + 100:.4f}"
    first["terms_usd"]["compute"] = f"{float(first['terms_usd']['compute']) + 100:.4f}"
    document["inputs"]["catalog"]["digest"] = "sha256:other"
    document["inputs"]["as_of"] = "2026-01-01T00:00:00Z"
    document["digest"] = digest(document)
    path.write_bytes(pretty(document))
    git("add", "-A")
    git("commit", "-qm", "two")
    edit(folder / "jobs" / "train.yaml", "hours: 10", "hours: 20")
    assert call(["plan", "jobs/train.yaml", "--out", "plans", "--offline"]) == 0
    capsys.readouterr()
    assert call(["diff", "--base", "main", "--attribute", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (change,) = found["changes"]
    shares = {c["what"]: float(c["total_usd"]["usd"]) for c in change["causes"]}
    assert shares["market"] == pytest.approx(-100)
    assert shares["job"] > 0
    assert sum(shares.values()) == pytest.approx(float(change["total_usd"]["difference"]["usd"]), abs=1e-4)
    assert len(found["price_snapshots"]) == 2
    assert call(["diff", "--base", "main", "--replan", "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)["changes"]
    assert float(again["total_usd"]["difference"]["usd"]) == pytest.approx(shares["job"])
