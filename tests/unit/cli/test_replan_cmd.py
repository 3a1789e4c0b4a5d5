"""`skyplan replan` on a record and the packaged catalog: exit codes, files, what is asked again says the same."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from planner.app import schemas
from planner.app.inputs import read_plan
from planner.app.watch_market import LEASE
from planner.app.wire import database_url
from planner.cli.entry import call
from planner.migration.document import from_document
from planner.model.record import Node, RunStatus
from planner.state import engine
from planner.state.record import Record
from tests.unit.app.replanning import run_of

JOB = """\
name: train
resources: {accelerators: A100-80GB:8, capacity: [spot, on_demand]}
work: {hours: 200, on: A100-80GB:8}
run: python train.py
checkpoint: {uri: "s3://acme-ckpt/train/", region: us-east-1, size: 10GB, every: 30m}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which `train` was planned, and runs on the dearest of its ranked places."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.yaml").write_text(JOB, encoding="utf-8")
    (tmp_path / "skyplan.yaml").write_text("project: acme\nclouds: [aws]\n", encoding="utf-8")
    assert call(["plan", "jobs/train.yaml", "--out", "plans", "--offline"]) == 0
    plan = read_plan(Path("plans/train.plan.json"))
    dear = max(plan.ranked, key=lambda p: p.usd_per_hour)
    now = datetime.now(UTC)
    record = Record.open(database_url(), "acme")
    try:
        writer = record.writer(record.take_lease("train", "me", now, timedelta(minutes=1)))
        run = writer.issue(replace(run_of(plan, dear.offer_id), generation=0, started_at=""), now)
        writer.seen(run.generation, [Node(rank=0, instance_id="i-0", address="")], RunStatus.RUNNING, now, "launched")
    finally:
        record.close()
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_what_should_move_is_told_by_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["replan"]) == 0
    text = capsys.readouterr().out
    assert "> train" in text
    assert "1 to move, 0 stay" in text
    assert call(["replan", "train", "--detailed-exitcode"]) == 2
    assert "SKY-MOVE-424" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_the_files_of_a_pull_request_hold_what_was_told(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    at = ["--as-of", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")]
    assert call(["replan", "--json", "--out", "out", *at]) == 0
    told = json.loads(capsys.readouterr().out)
    file = json.loads(Path("out/migrations/train.diff.json").read_text(encoding="utf-8"))
    assert told["migrations"] == [file]
    jsonschema.Draft202012Validator(schemas.one("migration")).validate(file)
    diff = from_document(file, "x")
    assert diff.standing.generation == 1
    plan = Path("out/plans/train.plan.json")
    assert plan.exists() is not diff.reviewed
    assert (read_plan(plan) if plan.exists() else read_plan(Path("plans/train.plan.json"))).digest == diff.plan_digest
    assert call(["replan", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out) == told, "the same inputs, the same bytes"
    assert call(["replan", "--markdown", *at]) == 0
    assert capsys.readouterr().out.startswith("## skyplan replan")


@pytest.mark.usefixtures("folder")
def test_unattended_nothing_is_prepared_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["replan", "--reviewed-only", "--explain", "--detailed-exitcode"]) == 0
    text = capsys.readouterr().out
    assert "= train" in text
    assert "[SKY-MOVE-40" in text


@pytest.mark.usefixtures("folder")
def test_a_job_that_never_ran_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["replan", "other"]) == 1
    assert "SKY-APPLY-323" in capsys.readouterr().err


def test_without_a_record_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["replan"]) == 1
    assert not (tmp_path / ".skyplan").exists()


def test_the_schema_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["schema", "migration"]) == 0
    assert json.loads(capsys.readouterr().out) == schemas.one("migration")


@pytest.mark.usefixtures("folder")
def test_watch_once_proposes_and_a_second_watch_does_not_act_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert call(["watch", "--once", "--no-refresh", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["written"][-1] == ".skyplan/proposals/migrations/train.diff.json"
    now = datetime.now(UTC)
    record = Record.open(database_url(), "acme")
    try:
        lease = record.take_lease(LEASE, "another pid 1#x", now, timedelta(minutes=1))
        assert call(["watch", "--once", "--no-refresh"]) == 1
        assert "SKY-APPLY-305" in capsys.readouterr().err
        record.release(lease, now)
    finally:
        record.close()
    assert call(["watch", "--once", "--no-refresh", "--out", "."]) == 1, "proposals would pass for reviewed plans"
    assert call(["watch", "--once", "--no-refresh", "--apply"]) == 1, "the project does not allow it"
    assert capsys.readouterr().err.count("SKY-APPLY-322") == 2
    assert call(["watch", "--every", "5"]) == 1


@pytest.mark.usefixtures("folder")
def test_watch_ends_cleanly_when_it_is_told_to() -> None:
    def soon() -> None:
        proposed = Path(".skyplan/proposals/migrations/train.diff.json")
        for _ in range(6000):
            if proposed.exists():
                break
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=soon, daemon=True)
    stopper.start()
    assert call(["watch", "--no-refresh", "--every", "1h"]) == 0
    stopper.join(60)
    assert call(["watch", "--once", "--no-refresh"]) == 0, "the lease was given back"


@pytest.mark.usefixtures("folder")
def test_a_record_of_an_older_skyplan_is_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    from alembic import command
    from alembic.config import Config

    for path in Path(".skyplan").glob("record.sqlite*"):
        path.unlink()
    old = engine._engine(database_url(), make=True, connections=0)
    with old.connect().execution_options(writes=True) as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(Path(engine.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
    old.dispose()
    capsys.readouterr()
    assert call(["replan"]) == 1
    told = capsys.readouterr().err
    assert "SKY-APPLY-319" in told
    assert "the record has schema 0002" in told
    assert "`skyplan status` brings it up to date" in told
    assert call(["status"]) == 0
    assert call(["replan"]) == 0
