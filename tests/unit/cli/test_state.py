"""`skyplan state`: out of one record, into another, and a copy."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.cli.entry import call
from planner.state.record import Record

NOW = datetime(2026, 7, 30, 12, tzinfo=UTC)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skyplan.yaml").write_text("project: acme\n", encoding="utf-8")
    url = f"sqlite:///{tmp_path / 'record.sqlite'}"
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", url)
    record = Record.open(url, "acme")
    writer = record.writer(record.take_lease("train", "me", NOW, timedelta(minutes=1)))
    writer.event(None, NOW, "x", "y")
    record.close()

    def call_it(*arguments: str, database: str | None = None) -> tuple[int, str, str]:
        if database:
            monkeypatch.setenv("SKYPLAN_DATABASE_URL", f"sqlite:///{tmp_path / database}")
        code = call(["state", *arguments])
        return code, *capsys.readouterr()

    return call_it


def test_out_and_in(run) -> None:
    code, out, err = run("export", "record.jsonl")
    assert (code, err) == (0, "")
    assert "1 job" in out
    assert "1 event" in out
    code, out, err = run("import", "record.jsonl", "--json", database="new/record.sqlite")
    assert (code, err) == (0, "")
    assert json.loads(out)["rows"] == {"event": 1, "job": 1, "lease": 1}
    code, _, err = run("import", "record.jsonl")
    assert code == 1
    assert "not empty" in err


def test_a_backup_is_a_database(run, tmp_path: Path) -> None:
    code, out, _ = run("backup", "copy.sqlite")
    assert code == 0
    assert "copy.sqlite" in out
    with sqlite3.connect(tmp_path / "copy.sqlite") as connection:
        assert connection.execute("SELECT name FROM job").fetchall() == [("train",)]
    connection.close()


@pytest.mark.parametrize("word", ["export", "backup"])
def test_nothing_is_made_where_there_is_no_record(run, tmp_path: Path, word: str) -> None:
    code, _, err = run(word, "file", database="none.sqlite")
    assert code == 1
    assert "there is no record yet" in err
    assert not (tmp_path / "none.sqlite").exists()
    assert not (tmp_path / "file").exists()


def test_a_file_that_is_not_there(run) -> None:
    code, _, err = run("import", "missing.jsonl", database="new.sqlite")
    assert code == 1
    assert "No such file" in err
