"""A record that does not answer for a while: what watches goes on, what is asked once says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.app import lease as leases
from planner.app import reap, watching, wire
from planner.cli import entry
from planner.model.diagnostic import Diagnostic
from planner.model.errors import Unavailable
from planner.state.record import Record

ROOT = Path(__file__).parents[3]
AWAY = Unavailable([Diagnostic(code="SKY-APPLY-319", summary="the record does not answer: started anew")])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "skyplan.yaml").write_text("project: acme\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SKYPLAN_DATABASE_URL", raising=False)
    Record.open(wire.database_url(), "acme").close()
    return tmp_path


def away_once() -> tuple[Callable[..., Any], list[int]]:
    """Away at first; at the second time somebody presses Ctrl-C."""
    asked: list[int] = []

    def answer(*_args: Any, **_more: Any) -> Any:
        asked.append(1)
        raise AWAY if len(asked) == 1 else KeyboardInterrupt

    return answer, asked


def test_what_ends_bills_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, asked = away_once()
    monkeypatch.setattr(reap, "reap", answer)
    assert entry.call(["reap", "--every", "1", "--json"]) == 130
    out, err = capsys.readouterr()
    assert len(asked) == 2
    (line,) = out.splitlines()
    assert json.loads(line)["problems"][0]["code"] == "SKY-APPLY-319"
    assert "does not answer" in err


def test_one_pass_says_so(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reap, "reap", away_once()[0])
    assert entry.call(["reap", "--once"]) == 1
    assert "SKY-APPLY-319" in capsys.readouterr().err


def test_who_watches_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer, asked = away_once()
    monkeypatch.setattr(watching, "view", answer)
    assert entry.call(["status", "--watch", "--every", "0.2", "--json"]) == 130
    out, err = capsys.readouterr()
    assert (len(asked), out) == (2, "")
    assert "does not answer" in err
    monkeypatch.setattr(watching, "view", away_once()[0])
    assert entry.call(["status"]) == 1


def test_a_lease_outlives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LENGTH", timedelta(milliseconds=40))
    stop, renewed = threading.Event(), list[int]()

    class Away:
        """Does not answer the first time."""

        def renew(self, *_: Any) -> None:
            renewed.append(1)
            if len(renewed) == 1:
                raise AWAY
            stop.set()

    class Now:
        """A clock."""

        def now(self) -> None:
            return

    thread = threading.Thread(target=leases._beat, args=(Away(), None, Now(), stop))
    thread.start()
    thread.join(20)
    assert len(renewed) == 2


def test_a_reader_that_leaves_is_no_error(here: Path) -> None:
    """Of what goes on for ever: the first lines fit into the pipe, the next have no reader."""
    command = [sys.executable, "-c", "from planner.cli.entry import run; run()", "status", "--watch", "--every", "0.2"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    watcher = subprocess.Popen([*command, "--json"], cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watcher.stdout is not None
    assert watcher.stdout.readline().startswith(b"{")
    watcher.stdout.close()
    assert watcher.wait(60) == 0
    assert watcher.stderr is not None
    with watcher.stderr as said:
        assert said.read() == b""
