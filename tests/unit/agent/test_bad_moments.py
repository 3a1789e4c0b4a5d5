"""What goes wrong at a bad moment, and must neither lose what was asked, nor silence the agent, nor keep the node from being ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from modules.agent.attempt import Attempt
from modules.agent.client import stamp
from modules.agent.job import Exit, Job
from modules.agent.local import local
from modules.agent.output import SHOWN_BYTES, Output
from modules.agent.place import Place
from modules.agent.run import Run
from modules.agent.settings import Seat
from modules.agent.spool import Spool
from tests.unit.agent.plane import Plane, until
from tests.unit.agent.test_agent_asked import SAVES, WAITS, Metadata, metadata, with_checkpoints
from tests.unit.agent.test_agent_process import Node, done, node, plane

__all__ = ["metadata", "node", "plane"]


def test_a_job_that_wants_a_signal_gets_it_from_the_next_agent_too(
    node: Node, plane: Plane, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
    agent = node.start(sys.executable, "-c", WAITS, cloud="aws")
    until(plane.steps)
    until(lambda: node.exists("jobs/1/signals"))
    agent.kill()
    agent.communicate()
    metadata.action = {"action": "terminate", "time": stamp(time.time() + 120)[:19] + "Z"}
    code, told = done(node.start(sys.executable, "-c", WAITS, cloud="aws"))
    assert code == 0, told


def test_a_notice_that_comes_before_the_job_is_handed_on_to_it(
    node: Node, plane: Plane, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
    metadata.action = {"action": "terminate", "time": stamp(time.time() + 120)[:19] + "Z"}
    plane.fault = lambda path, _body: "away" if path == "/v1/join" else None
    waits = "import os, time\nwhile not os.path.exists(os.environ['SKYPLAN_CONTROL']): time.sleep(0.01)"
    agent = node.start(sys.executable, "-c", waits, cloud="aws")
    assert agent.stderr
    for line in agent.stderr:
        if "SKY-RUN-518" in line:
            break
    plane.fault = lambda *_: None
    assert done(agent)[0] == 0
    assert [n["what"] for n in plane.kinds("notice")] == ["spot"]


def test_an_agent_that_was_asked_to_stop_the_job_is_followed_by_one_that_does(node: Node, plane: Plane) -> None:
    agent = node.start("sleep", "60")
    until(lambda: plane.kinds("event"))
    plane.requests = [{"id": 1, "word": "stop", "reason": "enough", "deadline": stamp(time.time() + 8)}]
    until(lambda: [e for e in plane.kinds("event") if e["word"] == "asked"])
    agent.kill()
    agent.communicate()
    plane.requests = []
    assert done(node.start("sleep", "60"), 45)[0] == 128 + signal.SIGTERM


def test_a_disk_without_room_for_the_end_keeps_no_node_from_being_ended(node: Node, plane: Plane) -> None:
    (node.base / "ended").mkdir(parents=True)  # nothing can be written there
    for folder in (node.base.parent, node.base):
        folder.chmod(0o700)
    code, told = done(node.start("true"))
    assert code == 0, told
    assert node.ended


def test_a_job_that_cannot_be_laid_out_ends_its_node(node: Node, plane: Plane) -> None:
    (node.folder / "run" / "job" / "python" / "skyplan_job.py").mkdir(parents=True)
    (node.folder / "run").chmod(0o700)
    code, told = done(node.start("true"))
    assert "the job cannot begin" in told
    assert [i["code"] for i in plane.kinds("exit")] == [code]
    assert node.ended


@pytest.mark.parametrize(("words", "ended"), [("exit 0", Exit(0, None)), ("kill -9 $$", Exit(137, 9))])
def test_a_full_disk_makes_no_failure_of_a_success(tmp_path: Path, words: str, ended: Exit) -> None:
    job = Job(tmp_path / "1")
    (tmp_path / "1" / "exit.new").mkdir(parents=True)  # the code cannot be written down
    (tmp_path / "1").chmod(0o700)
    job.start(("/bin/sh", "-c", words), os.environ)
    assert until(job.poll) == ended
    job.sweep()


def test_a_clock_that_is_set_back_lets_no_job_outlive_its_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    back = [0.0]

    def told(words: str) -> None:
        if "is stopped" in words:
            back[0] = -3600.0

    settings = local("agent", "train")._replace(grace_seconds=0.5, stop_after_hours=2 / 3600, terminal=False)
    stubborn = ("/bin/sh", "-c", "trap : TERM; while :; do sleep 0.1; done")
    began = time.monotonic()
    assert Run(settings, stubborn, told=told, clock=lambda: time.time() + back[0]).go() == 128 + signal.SIGKILL
    assert time.monotonic() - began < 30


def test_who_writes_faster_than_a_terminal_shows_has_not_all_of_it_shown(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"y\n" * (SHOWN_BYTES // 2 + 1000) + b"the end\n")
    spool = Spool(tmp_path / "spool", 8 << 20, print)
    Output(path, spool, "log-1", report=False, show=True).poll()
    shown = capfdbinary.readouterr().out
    assert len(shown) < 1 << 20
    assert b"bytes of output left out]" in shown
    assert shown.endswith(b"y\nthe end\n")
    spool.close()


def test_what_a_job_leaves_running_cannot_keep_its_agent_reading(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "state"), str(tmp_path / "run"), Seat("acme", "train", 1, 0, 1))
    progress = Path(place.lay_out(1, None)["SKYPLAN_PROGRESS"])
    progress.write_text("step=0\n")
    job = Job(tmp_path / "1")
    job.folder.mkdir()
    seen: list[Any] = []

    class Growing(Spool):
        def add(self, kind: str, body: Any, **more: Any) -> None:
            if kind == "progress":
                seen.append(body)
                assert len(seen) < 100, "it reads for ever"
                with progress.open("a") as opened:
                    opened.write(json.dumps({"step": len(seen)}) + "\n")
            super().add(kind, body, **more)

    spool = Growing(tmp_path / "spool", 8 << 20, print)
    attempt = Attempt(job, place, spool, made=lambda _: None, told=print, report=False, show=False)
    attempt.read(last=True)
    assert len(seen) == 1
    spool.close()
    place.close()


def test_a_reboot_goes_on_from_what_was_not_yet_put_away(node: Node, plane: Plane) -> None:
    more = with_checkpoints(node)
    store = node.folder / "store"
    first = node.start(sys.executable, "-c", SAVES + "\ntime.sleep(60)\n", "2", **more)
    until(lambda: {i["step"] for i in plane.kinds("checkpoint")} == {1, 2})
    first.kill()
    first.communicate()
    os.killpg(node.job_pid(), signal.SIGKILL)
    shutil.rmtree(store / "g3" / "step-000000000002")  # as if the agent had been killed a little earlier
    (node.folder / "checkpoints" / "g3" / ".stored" / "step-000000000002").unlink()
    (node.base / "jobs/1/boot").write_text("another boot")
    code, told = done(node.start(sys.executable, "-c", SAVES, "1", **more))
    assert code == 0, told
    assert [i["text"] for i in plane.kinds("log")] == ["resumed 2\n"]
