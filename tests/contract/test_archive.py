"""The record in files: from each database into each, while it is written to; a file that is not whole is not taken at all."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from planner.app import state_files
from planner.model.errors import InputError
from planner.model.record import stamp
from planner.model.runtime import CredentialIssue, Kind
from planner.state import archive as archives
from planner.state import engine, tables
from planner.state.archive import Archive
from planner.state.record import EVERY_PROJECT, Record
from planner.state.runtime import Runtime
from tests.contract.beds import NOW, PROJECT, Bed, item, report, seat, told


@pytest.fixture
def full(bed: Bed) -> Bed:
    """Something in every table that a run fills."""
    bed.launch("i-0", "i-1")
    bed.join()
    ckpt = bed.checkpoint(10)
    bed.deliver(
        report(
            item(1, step=10, loss=0.25, metrics={"lr": 0.1}),
            told(ckpt, 2),
            item(3, Kind.LOG, text="hello"),
            item(4, Kind.HEARTBEAT, gpu_memory_mib=5),
        )
    )
    bed.runtime.request("train", 1, "checkpoint", "x", NOW)
    bed.runtime.expect("train", 1, [{"name": "r00"}])
    bed.runtime.put_one_time(seat(), "t1", NOW, NOW)
    bed.runtime.issue(
        CredentialIssue(
            id="l1",
            seat=seat(),
            store="s3",
            uri="s3://x/",
            access="read",
            identity="r",
            issued_at=stamp(NOW),
            expires_at=stamp(NOW),
        ),
        NOW,
    )
    bed.launch("i-2")
    bed.runtime.begin_cut(seat(2), NOW)
    bed.runtime.choose_cut(seat(2), NOW, [ckpt])
    bed.launch("i-9", job="other")
    return bed


def contents(url: str) -> dict[str, list[tuple]]:
    opened = engine.open_engine(url)
    with opened.connect() as connection:
        found = {
            t.name: sorted(tuple(row) for row in connection.execute(select(t)))
            for t in tables.metadata.sorted_tables
            if t.name not in archives.LEFT_OUT
        }
    opened.dispose()
    return found


def exported(url: str, path: Path, project: str = PROJECT) -> state_files.Written:
    archive = state_files.opened(url, project, make=False)
    try:
        return state_files.export(archive, path, project=project, at=NOW)
    finally:
        archive.close()


def imported(url: str, path: Path, project: str = PROJECT) -> state_files.Written:
    archive = state_files.opened(url, project, make=True)
    try:
        return state_files.take_in(archive, path, project=project)
    finally:
        archive.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Another database, without even tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'other.sqlite'}"
    else:
        from tests.contract.conftest import _new_database

        yield _new_database(request.getfixturevalue("postgresql"))


def test_out_of_each_database_into_each(full: Bed, made: str, empty: str, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    written = exported(made, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert imported(empty, path).rows == written.rows
    assert contents(empty) == contents(made)
    assert {"run_key", "progress", "checkpoint", "credential", "candidate", "one_time"} <= set(written.rows)
    again = Bed(Record.open(empty, PROJECT), Runtime.open(empty, PROJECT))
    try:
        assert again.runtime.manifest_key("train", 1) == full.runtime.manifest_key("train", 1)
        # ids go on, streams go on where they were, machines join again by their keys
        assert again.runtime.request("train", 2, "stop", "x", NOW) > full.runtime.requests(seat())[-1].id
        assert again.launch("i-3") == 3
        assert again.join(seat(3), "i-3").session
        assert again.deliver(report(item(1, step=1), of=seat(2)))[0].through == 1
    finally:
        again.close()


def test_only_the_projects_own_part_goes_along(full: Bed, made: str, tmp_path: Path) -> None:
    other = Bed(Record.open(made, "other"), Runtime.open(made, "other"))
    other.launch("i-7")
    other.close()
    exported(made, tmp_path / "mine.jsonl")
    rows = [json.loads(line).get("row") for line in (tmp_path / "mine.jsonl").read_text().splitlines()]
    assert {row["project"] for row in rows if row} == {PROJECT}
    exported(made, tmp_path / "all.jsonl", EVERY_PROJECT)
    assert '"project":"other"' in (tmp_path / "all.jsonl").read_text()


def test_a_record_that_holds_anything_is_left_alone(full: Bed, made: str, tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    exported(made, path)
    before = contents(made)
    with pytest.raises(InputError, match="not empty"):
        imported(made, path)
    assert contents(made) == before


def test_an_export_is_of_one_moment_and_holds_nobody_up(full: Bed, made: str, tmp_path: Path) -> None:
    archive = Archive.open(made, PROJECT, upgrade=False)
    rows = archive.rows()
    first = next(rows)
    for k in range(20):
        assert full.deliver(report(item(k + 1, step=1000 + k), of=seat(2)))[0].through == k + 1
    rest = [first, *rows]
    archive.close()
    assert not [row for name, row in rest if name == "progress" and row["step"] >= 1000]


def test_a_backup_while_others_write_is_whole(full: Bed, made: str, empty: str, tmp_path: Path) -> None:
    if not empty.startswith("sqlite"):
        pytest.skip("a backup goes where it came from")
    stop = threading.Event()

    def write() -> None:
        seq = 0
        while not stop.is_set():
            seq += 1
            full.deliver(report(item(seq, step=seq), of=seat(2)))

    writer = threading.Thread(target=write)
    writer.start()
    archive = state_files.opened(made, None, make=False)
    try:
        state_files.backup(archive, tmp_path / "backup", at=NOW)
    finally:
        stop.set()
        writer.join(60)
        archive.close()
    if made.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / 'backup'}"
        with sqlite3.connect(tmp_path / "backup") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
    else:
        imported(empty, tmp_path / "backup")
        url = empty
    found = contents(url)
    streams = {row[3]: row for row in found["delivery"]}
    assert streams
    # a report and how far its stream was taken are one transaction, in the copy too
    runtime = Runtime.open(url, PROJECT)
    try:
        (row,) = [row for row in found["delivery"] if row[2] == 2] or [None]
        told_steps = [p.step for p in runtime.progress("train", generation=2, limit=10**6)]
        assert told_steps == list(range(1, (row[5] if row else 0) + 1))
    finally:
        runtime.close()


def test_no_file_is_overwritten_and_none_is_left_half_written(
    full: Bed, made: str, tmp_path: Path, monkeypatch
) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        exported(made, path)
    assert path.read_text() == "mine"
    with pytest.raises(InputError):
        exported(made, tmp_path / "no folder" / "record.jsonl")
    before = set(tmp_path.iterdir())

    def full_disk(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_files, "_line", full_disk)
    with pytest.raises(InputError, match="No space"):
        exported(made, tmp_path / "other.jsonl")
    assert set(tmp_path.iterdir()) == before


def edited(path: Path, change) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join(change(lines)) + "\n")


def replaced(at: int, **changes):
    def change(lines: list[str]) -> list[str]:
        lines[at] = json.dumps(json.loads(lines[at]) | changes)
        return lines

    return change


def row_changed(table: str, **changes):
    def change(lines: list[str]) -> list[str]:
        at = next(k for k, line in enumerate(lines) if json.loads(line).get("table") == table)
        document = json.loads(lines[at])
        document["row"] |= changes
        lines[at] = json.dumps(document)
        return lines

    return change


BAD = {
    "no end": (lambda lines: lines[:-1], "too early"),
    "a row less": (lambda lines: [*lines[:3], *lines[4:]], "digest"),
    "a row more": (lambda lines: [*lines[:3], lines[2], *lines[3:]], "digest"),
    "half a line": (lambda lines: [*lines[:-2], lines[-2][:20]], "torn"),
    "more behind": (lambda lines: [*lines, lines[-2]], "follows"),
    "another format": (replaced(0, format="x"), "not an exported record"),
    "a newer format": (replaced(0, format_version=2), "of format 2"),
    "another schema": (replaced(0, schema="0001"), "of schema '0001'"),
    "another project": (replaced(0, project="them"), "of project 'them'"),
    "a value altered": (row_changed("run", plan_digest="sha256:2"), "digest"),
    "a key altered": (row_changed("run_key", key="00"), "digest"),
    "a wrong type": (row_changed("run", generation="1"), "not of its type"),
    "no characters": (row_changed("run", zone="\ud800"), "not of its type"),
    "a missing value": (row_changed("run", job=None), "is missing"),
    "a column too many": (row_changed("run", x=1), "not the columns"),
    "no table": (replaced(2, table="users"), "no table"),
    "no row": (replaced(2, table="job", row=[1]), "not the columns"),
    "order": (lambda lines: [lines[0], lines[-2], *lines[1:-2], lines[-1]], "comes after"),
    "no text": (lambda _: ["\x00\x01"], "torn"),
    "a number": (lambda _: ["1"], "torn"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_not_whole_or_was_changed_is_not_taken(full: Bed, made: str, tmp_path: Path, name: str) -> None:
    if not made.startswith("sqlite"):
        pytest.skip("about files")
    path, url = tmp_path / "record.jsonl", f"sqlite:///{tmp_path / 'other.sqlite'}"
    exported(made, path)
    change, words = BAD[name]
    edited(path, change)
    with pytest.raises(InputError, match=words) as caught:
        imported(url, path)
    assert {d.code for d in caught.value.diagnostics} == {"SKY-RUN-524"}
    assert not any(contents(url).values())


def test_rows_that_contradict_each_other_leave_nothing(full: Bed, made: str, empty: str, tmp_path: Path) -> None:
    if not made.startswith("sqlite"):
        pytest.skip("one source is enough")
    archive = Archive.open(made, PROJECT, upgrade=False)
    lines = [line for line in archive.rows() if line[0] != "job"]
    archive.close()
    other = Archive.open(empty, PROJECT, upgrade=True)
    try:
        with pytest.raises(InputError, match="contradict"):
            other.fill(lines)
        assert other.occupied() is None
    finally:
        other.close()
