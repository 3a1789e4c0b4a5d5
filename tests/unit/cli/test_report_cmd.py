"""`skyplan report`: where it writes, what it reads, and what the record adds (R25)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.app.inputs import read_plan
from planner.app.wire import database_url
from planner.cli.entry import call
from planner.model.record import Node, RunStatus
from planner.state.record import Record
from tests.unit.app.replanning import run_of

JOB = """\
name: train
resources: {accelerators: A100-80GB:8, capacity: [spot, on_demand]}
work: {hours: 200, on: A100-80GB:8}
run: python train.py
checkpoint: {uri: "s3://acme-ckpt/train/", region: us-east-1, size: 10GB, every: 30m}
"""
HEAD = "observed_at,cloud,region,zone,instance_type,capacity,usd_per_hour,word,detail,source\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two jobs and their plans."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.yaml").write_text(JOB, encoding="utf-8")
    (tmp_path / "jobs" / "other.yaml").write_text(JOB.replace("train", "other"), encoding="utf-8")
    (tmp_path / "skyplan.yaml").write_text("project: acme\nclouds: [aws]\n", encoding="utf-8")
    assert call(["plan", "jobs/train.yaml", "jobs/other.yaml", "--out", "plans", "--offline"]) == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_page_of_a_job_is_written_whole_and_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert call(["report", "jobs/train.yaml", "--out", "out/report.html", "--offline"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "wrote out/report.html" in err
    html = Path("out/report.html").read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    plan = read_plan(Path("plans/train.plan.json"))
    assert f"<dd>${plan.choice.total_usd:,.2f}</dd>" in html, "the number of `plan`"
    assert plan.choice.placement_id in html


@pytest.mark.usefixtures("folder")
def test_without_arguments_it_is_of_the_standing_plans() -> None:
    assert call(["report", "--out", "report.html", "--offline"]) == 0
    html = Path("report.html").read_text(encoding="utf-8")
    assert re.findall(r'<article class="panel" id="([^"]*)"', html) == ["overview", "j0", "j1"]
    assert html.count("A plan file holds its ranked set alone") == 2


@pytest.mark.usefixtures("folder")
def test_pictures_of_several_jobs_have_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("resvg_py")
    assert call(["report", "jobs/train.yaml", "--png", "card.png", "--offline"]) == 0
    assert call(["report", "jobs/train.yaml", "jobs/other.yaml", "--png", "card.png", "--offline"]) == 0
    for name in ("card.png", "card-train.png", "card-other.png"):
        assert Path(name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("folder")
def test_the_data_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert call(["report", "jobs/train.yaml", "--json", "--offline"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["project"] == "acme"
    assert told["jobs"][0]["market"]["feasible"] == len(told["jobs"][0]["market"]["columns"]["total"])


@pytest.mark.usefixtures("folder")
def test_nothing_is_written_where_one_file_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("resvg_py")
    Path("taken").write_text("a file")
    assert call(["report", "jobs/train.yaml", "--out", "report.html", "--png", "taken/card.png", "--offline"]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert not Path("report.html").exists()


@pytest.mark.usefixtures("folder")
def test_what_is_no_job_is_told_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    Path("bad.plan.json").write_text("{}")
    assert call(["report", "empty", "bad.plan.json", "--out", "report.html", "--offline"]) == 1
    err = capsys.readouterr().err
    assert "SKY-SPEC-101" in err
    assert "SKY-APPLY-301" in err
    assert call(["report", "--plans", "nowhere", "--out", "report.html", "--offline"]) == 1
    assert "nowhere: no such folder [SKY-SPEC-101]\n  hint: give job files or plan files" in capsys.readouterr().err
    assert call(["report", "jobs/train.yaml"]) == 1, "it must be said where the page goes"
    assert "--out FILE" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_the_record_adds_what_prices_did() -> None:
    plan = read_plan(Path("plans/train.plan.json"))
    p = next(p for p in plan.ranked if p.capacity == "spot")
    until = datetime.fromisoformat(plan.inputs["as_of"])
    rows = "".join(
        f"{until - timedelta(days=day):%Y-%m-%dT%H:%M:%SZ},aws,{p.region},{p.zone},{p.instance_type},spot,{9 + day % 3},,,feed\n"
        for day in range(20, 0, -1)
    )
    Path("recorded.csv").write_text(HEAD + rows)
    assert call(["prices", "import", "recorded.csv"]) == 0
    assert call(["report", "plans/train.plan.json", "--out", "report.html"]) == 0
    html = Path("report.html").read_text(encoding="utf-8")
    prices = html[html.index('<section id="j0-prices"') : html.index('<section id="j0-inputs"')]
    assert "<polyline" in prices
    assert f"aws/{p.region}/{p.zone}/{p.instance_type}/spot" in prices
    assert "$11.00" in prices


@pytest.mark.usefixtures("folder")
def test_a_replan_shows_the_moves_of_the_jobs_reported() -> None:
    now = datetime.now(UTC)
    for name in ("train", "other"):
        plan = read_plan(Path(f"plans/{name}.plan.json"))
        dear = max(plan.ranked, key=lambda p: p.usd_per_hour)
        record = Record.open(database_url(), "acme")
        try:
            writer = record.writer(record.take_lease(name, "me", now, timedelta(minutes=1)))
            run = writer.issue(replace(run_of(plan, dear.offer_id), generation=0, started_at=""), now)
            writer.seen(
                run.generation, [Node(rank=0, instance_id="i-0", address="")], RunStatus.RUNNING, now, "launched"
            )
        finally:
            record.close()
    assert call(["report", "plans/train.plan.json", "--replan", "--out", "report.html"]) == 0
    html = Path("report.html").read_text(encoding="utf-8")
    assert '<svg class="timeline"' in html
    assert "Steps of the move of train" in html
    assert "Steps of the move of other" not in html
