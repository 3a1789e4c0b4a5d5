"""At every write, flush and rename: a crash leaves no checkpoint or a whole one, and one step is never visible twice under one name."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from modules.agent.ckpt import manifest
from tests.unit.job import boundaries
from tests.unit.job.conftest import KEY, SOURCE, environment


def whole(folder: Path) -> list[str]:
    """Names of the checkpoints that are visible, each proven whole."""
    found = sorted(path for path in (folder / "checkpoints").iterdir() if path.name.startswith("step-"))
    for path in found:
        read = manifest.parse((path / manifest.MANIFEST).read_bytes())
        assert read.holds(KEY)
        assert read.folder == path.name
        on_disk = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()} - {manifest.MANIFEST}
        assert on_disk == {file.path for file in read.files}
        for file in read.files:
            content = (path / file.path).read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)
    return [path.name for path in found]


def test_a_disk_that_fails_at_any_boundary(job: ModuleType, seat: Path) -> None:
    outcomes: set[int] = set()
    for nth in range(1, 200):
        left = [nth]

        def act(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise boundaries.Crash(28, "No space left on device")

        before = whole(seat)
        failed = False
        with boundaries.crashing(act):
            try:
                boundaries.write(job, 7, bytes([nth % 256]) * 3000)
            except (OSError, job.CheckpointError):
                failed = True
        after = whole(seat)
        assert after[: len(before)] == before or set(before) <= set(after)
        assert len(after) - len(before) in ({0, 1} if failed else {1})
        outcomes.add(len(after) - len(before))
        if left[0] > 0:
            break
    else:
        pytest.fail("it never ran to its end")
    assert nth > 15, "the boundaries were not met"
    assert outcomes == {0, 1}


def test_a_process_killed_at_any_boundary(job: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**os.environ, **environment(tmp_path)}
    names: set[str] = set()
    counts: list[int] = []
    for nth in range(1, 100):
        done = subprocess.run(
            [sys.executable, "-S", boundaries.__file__, str(SOURCE), str(nth), "7"],
            env=given,
            capture_output=True,
            check=False,
        )
        found = whole(tmp_path)
        assert names <= set(found)
        names = set(found)
        counts.append(len(found))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    else:
        pytest.fail("it never ran to its end")
    assert nth > 12
    assert counts[0] == 0
    assert counts[-1] >= 2, "killed after the rename: whole, and the next has another name"
    assert not list((tmp_path / "checkpoints").glob(".step-*")), "the next writer removes what a killed one left"


def test_everything_is_on_disk_before_the_name_is_there(
    job: ModuleType, seat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut would need: every file and folder flushed, then the rename, then the folder above."""
    trace: list[str] = []
    flush, rename = os.fsync, os.rename
    monkeypatch.setattr(os, "fsync", lambda fd: (trace.append(Path(f"/proc/self/fd/{fd}").readlink().name), flush(fd)))
    monkeypatch.setattr(os, "rename", lambda old, new: (trace.append("rename"), rename(old, new)))
    boundaries.write(job, 7, b"x")
    at = trace.index("rename")
    assert set(trace[:at]) == {"model.pt", "state.pt", "skyplan-checkpoint.json", "optimizer", ".step-000000000007"}
    assert trace[at - 1] == ".step-000000000007"
    assert trace[at + 1 :] == ["checkpoints"]
