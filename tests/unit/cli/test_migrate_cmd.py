"""`skyplan migrate` before it does anything: what is refused, and the graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.app import migrate_review
from planner.cli.entry import call
from planner.migration.document import to_document
from tests.unit.migration.diffs import diff

PROJECT = "project: acme\ntargets:\n  - {name: prod, cloud: aws}\n"
CONTROL = "agent: {url: 'https://a.test/agent.pyz', sha256: '%s'}\ncontrol_plane: {url: 'https://c.test'}\n" % (
    "0" * 64
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skyplan.yaml").write_text(PROJECT + CONTROL)
    (tmp_path / "train.diff.json").write_text(json.dumps(to_document(diff())))
    return tmp_path


@pytest.mark.parametrize(("form", "begins"), [("dot", "digraph"), ("mermaid", "flowchart"), ("svg", "<svg")])
def test_the_graph_needs_no_record_and_no_project(
    folder: Path, form: str, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "skyplan.yaml").unlink()
    assert call(["migrate", "train.diff.json", "--graph", form]) == 0
    assert capsys.readouterr().out.startswith(begins)
    assert not (folder / ".skyplan").exists()


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert call(["migrate", *arguments, "--json"]) == 1
    return [d["code"] for d in json.loads(capsys.readouterr().out)["diagnostics"]]


def test_an_edited_diff_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "train.diff.json"
    file.write_text(file.read_text().replace("us-west-2", "us-east-9"))
    assert refused(["train.diff.json", "--auto-approve"], capsys) == ["SKY-MOVE-423"]
    file.write_text("{")
    assert refused(["train.diff.json", "--auto-approve"], capsys) == ["SKY-MOVE-423"]


def test_without_the_plan_that_it_was_made_from_it_is_stale(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(["train.diff.json", "--auto-approve"], capsys) == ["SKY-MOVE-422"]


def test_giving_up_a_move_that_never_began_begins_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not so much as look for the plan that a beginning needs."""
    monkeypatch.setattr(migrate_review, "plan_of", lambda *_: pytest.fail("a move was about to begin"))
    assert call(["migrate", "train.diff.json", "--revert", "--auto-approve", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (found["code"], found["summary"]) == ("SKY-MOVE-422", "no move of `train` is under way")


def test_a_plan_file_is_told_from_a_diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "train.plan.json").write_text(json.dumps({"format_version": "1.1", "job": {}, "ranked": []}))
    assert call(["migrate", "train.plan.json"]) == 1
    assert "this is a plan, not a migration diff" in capsys.readouterr().err


def test_a_job_without_a_move_has_nothing_to_go_on_with(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(["--job", "train"], capsys) == ["SKY-MOVE-422"]


def test_without_a_control_plane_no_job_is_moved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "skyplan.yaml").write_text(PROJECT)
    assert refused(["train.diff.json", "--auto-approve"], capsys) == ["SKY-RUN-501"]


@pytest.mark.parametrize("arguments", [[], ["train.diff.json", "--job", "train"]])
def test_a_diff_or_a_job_not_both(folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["migrate", *arguments]) == 1
    assert "--job NAME" in capsys.readouterr().err
