"""R22, R25: files that commands write are written whole, all or none, and what is no file is written to, not replaced."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from planner.app.files import write_together
from planner.cli.entry import call
from planner.model.errors import InputError


def test_where_one_is_a_folder_none_is_touched(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("before")
    (tmp_path / "b").mkdir()
    with pytest.raises(InputError, match="directory"):
        write_together({tmp_path / "a": b"after", tmp_path / "b": b"after"})
    assert (tmp_path / "a").read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """As /dev/stdout and /dev/null are, which root could replace."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_together({tmp_path / "link": b"text", tmp_path / "other": b"file"})
    reader.join(10)
    assert read == [b"text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert (tmp_path / "other").read_bytes() == b"file"


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    """Of `skyplan schema --out` too: a repository's link leads anywhere."""
    mine = tmp_path / "mine"
    mine.write_text("mine")
    out = tmp_path / "schemas"
    out.mkdir()
    (out / "job.schema.json").symlink_to(mine)
    assert call(["schema", "job", "--out", str(out)]) == 0
    assert mine.read_text() == "mine"
    assert not (out / "job.schema.json").is_symlink()


@pytest.mark.parametrize("where", ["file/x", "loop/x", "taken"])
def test_schemas_that_cannot_be_written_are_told_and_none_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "taken" / "status.schema.json").mkdir(parents=True)
    assert call(["schema", "--out", str(tmp_path / where)]) == 1
    assert "[SKY-SPEC-101]" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["status.schema.json"]


@pytest.mark.parametrize("url", ["postgresql://u:pa/ss@h/x", "postgresql://u:p@h:hush/x", "sqlite", "://"])
@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_url_that_is_none_is_told_without_a_part_of_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], url: str, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", url.replace("pa/ss@h/", "hush/5@h/"))
    assert call([command, *(["--offline"] if command == "doctor" else [])]) == 1
    out, err = capfd.readouterr()
    assert "hush" not in out + err
    assert "Traceback" not in err
    assert "SKY-APPLY-319" in out + err
