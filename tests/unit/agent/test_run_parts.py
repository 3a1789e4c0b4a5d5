"""The small parts of a run: lines, tails, output, GPUs, notices, the control file, the environment, the allocator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.agent import gpu, progress, surroundings, thrift
from modules.agent.client import epoch, stamp
from modules.agent.control import Control
from modules.agent.errors import AgentError
from modules.agent.gpu import Gpus
from modules.agent.notices import Notices
from modules.agent.output import PIECE_BYTES, Output, pieces
from modules.agent.progress import Made, Step, Wants
from modules.agent.spool import Spool
from modules.agent.tail import CHUNK_BYTES, Tail
from planner.model import runtime


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"step=1200 loss=0.31 rate=5.2", Step({"step": 1200, "loss": 0.31, "rate": 5.2})),
        (b"  step=3\r", Step({"step": 3})),
        (b'{"step": 2.0, "lr": 3e-4, "note": "x"}', Step({"step": 2, "metrics": {"lr": 0.0003}})),
        (b"step=1 loss=inf lr=nan x=y", Step({"step": 1})),
        (b'{"step": 1, "loss": true}', Step({"step": 1})),
        (b'{"step": 1, "big": ' + b"9" * 400 + b"}", Step({"step": 1})),
        (b'{"skyplan": "checkpoint", "folder": "step-000000000001"}', Made("step-000000000001")),
        (b'{"skyplan": "signals", "pid": 4711, "signal": 10}', Wants(4711, 10)),
        *[
            (line, None)
            for line in (
                b"",
                b"hello",
                b"step",
                b"loss=1",
                b"step=-1",
                b"step=1.5",
                b"step=1e400",
                b"step=0x10",
                b"step=1 and more",
                b'{"step": "1"}',
                b'{"step": true}',
                b"{",
                b"[" * 3000,
                b'{"a":' * 2000,
                b'{"skyplan": "other"}',
                b'{"skyplan": "checkpoint", "folder": 7}',
                b'{"skyplan": "signals", "pid": 1, "signal": 9}',
                b'{"skyplan": "signals", "pid": 77, "signal": 900}',
                b"\xff\xfe=1",
            )
        ],
    ],
)
def test_what_a_line_says(line: bytes, said: Any) -> None:
    assert progress.parse(line) == said


def test_a_step_has_at_most_so_many_metrics() -> None:
    line = " ".join(["step=1", *(f"m{n}={n}" for n in range(50))]).encode()
    said = progress.parse(line)
    assert isinstance(said, Step)
    assert len(said.body["metrics"]) == progress.MOST_METRICS


@given(st.binary(max_size=300))
def test_no_line_is_too_strange(line: bytes) -> None:
    said = progress.parse(line)
    if isinstance(said, Step):
        json.dumps(said.body, allow_nan=False)


def test_a_tail_gives_whole_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "f"
    tail = Tail(path)
    assert tail.lines(4096) == []
    path.write_bytes(b"one\ntw")
    assert tail.lines(4096) == [(b"one", 4)]
    assert tail.lines(4096) == []
    with path.open("ab") as more:
        more.write(b"o\n\nthree\n")
    assert tail.lines(4096) == [(b"two", 8), (b"", 9), (b"three", 15)]
    again = Tail(path, 8)
    assert [line for line, _ in again.lines(4096)] == [b"", b"three"]


def test_a_tail_outlives_a_line_without_end_and_a_shorter_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * (CHUNK_BYTES + 10) + b"\nstep=1\n")
    tail = Tail(path)
    first = tail.lines(4096)
    assert len(first[0][0]) == 4097
    assert [line for line, _ in tail.lines(4096)][-1] == b"step=1"
    path.write_bytes(b"step=2\n")
    assert tail.lines(4096) == [(b"step=2", 7)]


def test_what_was_read_is_given_back_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * (40 << 20))
    before = path.stat().st_blocks
    tail = Tail(path, 40 << 20)
    tail.forget(1 << 20)
    if path.stat().st_blocks == before:
        pytest.skip("no holes can be punched here")
    assert path.stat().st_size == 40 << 20
    assert path.stat().st_blocks * 512 <= 2 << 20


@given(st.text(max_size=30_000))
def test_pieces_are_small_and_lose_nothing(text: str) -> None:
    cut = list(pieces(text.encode()))
    assert "".join(cut) == text.replace("\0", "\ufffd")
    assert all(0 < len(piece.encode()) <= PIECE_BYTES for piece in cut)


def test_pieces_take_bytes_that_are_no_text() -> None:
    assert "".join(pieces(b"\xff" * 9000)) == "\ufffd" * 9000


def test_output_is_told_line_by_line_and_its_end_too(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 8 << 20, print)
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo")
    output = Output(path, spool, "log-1", report=True, show=False)
    output.poll()
    output.poll()
    assert [i["text"] for i in spool.batch(9, 1 << 20)] == ["one\n"]
    again = Output(path, spool, "log-1", report=True, show=False)
    again.poll(last=True)
    assert [i["text"] for i in spool.batch(9, 1 << 20)] == ["one\n", "two"]
    spool.close()


def test_gpu_numbers() -> None:
    assert gpu.parse("1000, 50\n3000, 100\n") == {"gpu_memory_mib": 4000, "gpu_utilization_percent": 75.0}
    assert gpu.parse("[N/A], [N/A]\n") == {}
    assert gpu.parse("") == {}


def test_gpus_are_asked_once_a_minute_and_never_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\necho '81000, 97'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    now = 0.0
    gpus = Gpus(steady=lambda: now)
    assert gpus.poll() == {}
    found: dict[str, float] = {}
    ends = time.monotonic() + 30
    while not found and time.monotonic() < ends:
        found = gpus.poll()
    assert found == {"gpu_memory_mib": 81000, "gpu_utilization_percent": 97.0}
    now = 59.0
    assert gpus.poll() == {}
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_a_gpu_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 100\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    now = 0.0
    gpus = Gpus(steady=lambda: now)
    gpus.poll()
    asking = gpus._asking
    assert asking is not None
    now = 30.0
    gpus.poll()
    asking.wait(timeout=30)
    assert gpus.poll() == {}
    assert gpus._asking is None


class Announcing:
    def __init__(self, *said: Any) -> None:
        self.said = list(said)

    def poll(self) -> Any:
        one = self.said.pop(0)
        if isinstance(one, Exception):
            raise one
        return one


def test_a_notice_is_handed_on_once_and_failures_told_once() -> None:
    spot = {"what": "spot", "deadline": "2026-11-30T12:00:00Z"}
    found: list[Any] = []
    told: list[str] = []
    watcher = Announcing(
        OSError("away"), OSError("away"), None, spot, spot, {"what": "rebalance", "deadline": None}, spot
    )
    notices = Notices(watcher, found.append, told.append)
    for _ in range(7):
        notices.step()
    assert [n["what"] for n in found] == ["spot", "rebalance"]
    assert len(told) == 1


def test_the_control_file_counts_and_signals_only_the_jobs_own(tmp_path: Path) -> None:
    path = tmp_path / "control.json"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as mine:
        control = Control(path, lambda pid: pid == mine.pid)
        control.wants(os.getpid(), signal.SIGKILL)  # the job names a process that is not its own
        control.ask("first", None)
        assert json.loads(path.read_text()) == {"checkpoint": 1, "reason": "first", "deadline": None, "stop": False}
        control.wants(mine.pid, signal.SIGTERM)
        control.ask("second", 5.0, stop=True)
        assert mine.wait(timeout=30) == -signal.SIGTERM
    control.ask("third", None)
    assert json.loads(path.read_text()) == {"checkpoint": 3, "reason": "third", "deadline": None, "stop": True}
    assert Control(path, lambda _: False).count == 3, "the next agent counts on"
    assert path.stat().st_mode & 0o777 == 0o644


def test_an_environment_file_is_read_as_systemd_does(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("# words\n\nA=1\nB=two words = here\n C=3\n")
    assert surroundings.read(str(path)) == {"A": "1", "B": "two words = here", "C": "3"}
    path.write_text("no sign\n")
    with pytest.raises(AgentError, match="`no sign`"):
        surroundings.read(str(path))
    with pytest.raises(AgentError, match="cannot be read"):
        surroundings.read(str(tmp_path / "none"))


def test_the_allocators_settings_are_the_agents_own() -> None:
    before = {"PATH": "/bin", "MALLOC_ARENA_MAX": "4"}
    inside = {**before, "MALLOC_TRIM_THRESHOLD_": "65536", "SKYPLAN_AGENT_THRIFT": "MALLOC_TRIM_THRESHOLD_"}
    assert thrift.without(inside) == before
    assert thrift.without(before) == before


@given(st.floats(min_value=0, max_value=4e9))
def test_times_go_both_ways(seconds: float) -> None:
    assert abs(epoch(stamp(seconds)) - seconds) < 2e-6


@pytest.mark.parametrize("text", ["", "soon", "2026-11-30", "2026-11-30T12:00:00.x1Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        epoch(text)


def test_the_limits_are_the_servers() -> None:
    """The node's copy of `planner.model.runtime`."""
    from modules.agent import reporter
    from modules.agent.spool import DROPPABLE

    assert reporter.MOST_ITEMS == runtime.MAX_REPORT_ITEMS
    assert reporter.MOST_BYTES < runtime.MAX_REPORT_BYTES
    assert {runtime.Kind.PROGRESS, runtime.Kind.LOG, runtime.Kind.HEARTBEAT} == DROPPABLE
