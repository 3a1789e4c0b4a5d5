"""The job's file against docs/job-protocol.md, and its manifests against the agent's reader and the record's words."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.agent.ckpt import manifest
from modules.agent.ckpt.errors import Invalid
from planner.model import runtime
from tests.unit.job.conftest import KEY, SOURCE


def lines(seat: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (seat / "progress").read_text().splitlines()]


def test_it_needs_nothing_but_the_standard_library_and_python_3_8() -> None:
    tree = ast.parse(SOURCE.read_text("utf-8"), feature_version=(3, 8))
    for node in tree.body:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


class TestCommand:
    """A job in another language."""

    def made(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SOURCE), "checkpoint", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_what_a_command_writes_becomes_whole(self, seat: Path) -> None:
        write = 'mkdir "$SKYPLAN_CHECKPOINT_FOLDER/w" && echo 7 > "$SKYPLAN_CHECKPOINT_FOLDER/w/model"; echo said'
        done = self.made("--step", "7", "--", "sh", "-c", write, "--", "--step", "8")
        assert (done.returncode, done.stdout, done.stderr) == (0, "said\n", "")
        folder = seat / "checkpoints" / "step-000000000007"
        assert manifest.parse((folder / "skyplan-checkpoint.json").read_bytes()).step == 7
        assert (folder / "w" / "model").read_text() == "7\n"
        assert lines(seat) == [{"skyplan": "checkpoint", "folder": folder.name}]

    def test_a_command_that_fails_leaves_nothing(self, seat: Path) -> None:
        done = self.made("--step", "7", "--", "sh", "-c", 'echo > "$SKYPLAN_CHECKPOINT_FOLDER/a"; exit 3')
        assert (done.returncode, "status 3" in done.stderr) == (3, True)
        assert self.made("--step", "7", "--", "/nowhere/at/all").returncode == 1
        assert self.made("--step", "-7", "--", "true").returncode == 1
        assert self.made("--step", "7").returncode == 2
        assert not list((seat / "checkpoints").glob("*step-*"))
        assert not (seat / "progress").exists()


class TestReport:
    def test_tells_step_loss_and_metrics_in_one_line(self, job: ModuleType, seat: Path) -> None:
        job.report(7, loss=0.5, rate=2.0, lr=3e-4)
        assert lines(seat) == [{"step": 7, "loss": 0.5, "rate": 2.0, "lr": 3e-4}]

    def test_works_out_the_rate_between_two_steps(self, job: ModuleType, seat: Path) -> None:
        job.report(1)
        job.report(11)
        first, second = lines(seat)
        assert "rate" not in first
        assert second["rate"] > 0  # type: ignore[operator]

    def test_leaves_out_what_is_no_number(self, job: ModuleType, seat: Path) -> None:
        job.report(1, loss=float("nan"), grad="much", inf=float("inf"), ok=1)
        assert lines(seat) == [{"step": 1, "ok": 1.0}]

    def test_a_line_too_long_is_not_written_and_said_once(
        self, job: ModuleType, seat: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for step in (1, 2):
            job.report(step, rate=1, **{"m" * 5000: 1.0})
        assert not (seat / "progress").exists()
        assert capsys.readouterr().err.count("not written") == 1

    def test_a_full_disk_ends_no_training(
        self, job: ModuleType, seat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("SKYPLAN_PROGRESS", str(seat))  # a folder
        job.report(1)
        assert "progress is not told" in capsys.readouterr().err

    @pytest.mark.parametrize("step", [None, "x", float("nan"), float("inf"), [1]])
    def test_no_step_is_too_strange(self, job: ModuleType, seat: Path, step: object) -> None:
        job.report(step)
        assert not (seat / "progress").exists()

    def test_no_number_is_too_strange(self, job: ModuleType, seat: Path) -> None:
        class Tensor:
            def __float__(self) -> float:
                raise RuntimeError("a tensor of two elements, or a device that failed")

        job.report(1, loss=Tensor(), huge=10**400, ok=1)
        assert lines(seat) == [{"step": 1, "ok": 1.0}]

    def test_tells_nothing_outside_of_skyplan_or_from_a_second_process(
        self, job: ModuleType, seat: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LOCAL_RANK", "1")
        job.report(1)
        monkeypatch.delenv("LOCAL_RANK")
        monkeypatch.delenv("SKYPLAN_PROGRESS")
        job.report(2)
        assert not (seat / "progress").exists()

    def test_lines_of_several_threads_do_not_mix(self, job: ModuleType, seat: Path) -> None:
        threads = [
            threading.Thread(target=lambda: [job.report(n, text_of_some_length=1) for n in range(200)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(lines(seat)) == 800


class TestControl:
    def ask(self, seat: Path, **words: object) -> None:
        (seat / "new").write_text(json.dumps({"checkpoint": 0, "reason": "", "deadline": None, "stop": False, **words}))
        (seat / "new").rename(seat / "control.json")

    def test_nothing_is_asked_where_there_is_no_file(self, job: ModuleType, seat: Path) -> None:
        assert not job.should_checkpoint()
        assert not job.should_stop()
        assert job.remaining_seconds() is None

    def test_asks_until_a_checkpoint_is_made_and_again_when_the_count_rises(self, job: ModuleType, seat: Path) -> None:
        self.ask(seat, checkpoint=1, deadline=4e9)
        assert job.should_checkpoint()
        assert job.remaining_seconds() > 0
        with job.checkpoint(1):
            assert job.should_checkpoint()
        assert not job.should_checkpoint()
        self.ask(seat, checkpoint=2, stop=True)
        assert job.should_checkpoint()
        assert job.should_stop()

    def test_a_request_that_comes_while_a_checkpoint_is_written_is_still_open_after_it(
        self, job: ModuleType, seat: Path
    ) -> None:
        self.ask(seat, checkpoint=1)
        with job.checkpoint(1):
            self.ask(seat, checkpoint=2)
        assert job.should_checkpoint()

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"checkpoint": "x"}', "null", '{"checkpoint": 1, "deadline": {}}']
    )
    def test_a_file_that_makes_no_sense_asks_nothing(self, job: ModuleType, seat: Path, text: str) -> None:
        (seat / "control.json").write_text(text)
        assert job.request() == (0, "", None, False)

    def test_is_signalled_where_it_asked_for_it(self, job: ModuleType, seat: Path) -> None:
        import signal

        seen: list[object] = []
        before = signal.getsignal(signal.SIGUSR1)
        try:
            job.ask_for_signal(then=seen.append)
            assert lines(seat) == [{"skyplan": "signals", "pid": os.getpid(), "signal": int(signal.SIGUSR1)}]
            self.ask(seat, checkpoint=1)
            signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert seen == [(1, "", None, False)]


class TestCheckpoint:
    def test_describes_itself_as_reader_and_record_have_it(self, job: ModuleType, seat: Path) -> None:
        with job.checkpoint(1200, framework="torch", world_size=8) as folder:
            (folder / "model.pt").write_bytes(b"m" * 2048)
            (folder / "a" / "b").mkdir(parents=True)
            (folder / "a" / "b" / ".metadata").write_bytes(b"")
        whole = seat / "checkpoints" / "step-000000001200"
        raw = (whole / "skyplan-checkpoint.json").read_bytes()
        found = manifest.parse(raw)
        assert found.text() == raw
        assert found.uri == "s3://acme-ckpt/train/g3/step-000000001200/"
        assert [file.path for file in found.files] == ["a/b/.metadata", "model.pt"]
        assert found.files[1] == ("model.pt", 2048, hashlib.sha256(b"m" * 2048).hexdigest())
        assert (found.bytes, found.world_size, found.framework, found.run) == (2048, 8, "torch", "train-g3")
        assert found.holds(KEY)
        assert not found.holds(b"\0" * 32)
        said = runtime.checkpoint_message(
            project="acme", job="train", generation=3, step=1200, uri=found.uri, digest=found.digest
        )
        assert runtime.checkpoint_mac(KEY, said) == found.mac
        assert (
            (runtime.MANIFEST, runtime.MANIFEST_DOMAIN)
            == (manifest.MANIFEST, manifest.DOMAIN)
            == (job.MANIFEST, job.DOMAIN)
        )
        assert lines(seat) == [{"skyplan": "checkpoint", "folder": "step-000000001200"}]

    def test_of_one_of_several_nodes_is_a_part(
        self, job: ModuleType, seat: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SKYPLAN_NODES", "2")
        monkeypatch.setenv("SKYPLAN_RANK", "1")
        with job.checkpoint(5) as folder:
            (folder / "x").write_text("x")
        part = manifest.parse((seat / "checkpoints" / "step-000000000005" / manifest.part_name(1)).read_bytes())
        assert (part.rank, part.nodes) == (1, 2)
        assert part.holds(KEY)

    def test_one_step_never_has_one_name_twice(self, job: ModuleType, seat: Path) -> None:
        for _ in range(3):
            with job.checkpoint(5):
                pass
        names = sorted(path.name for path in (seat / "checkpoints").glob("step-*"))
        assert names == ["step-000000000005", "step-000000000005-1", "step-000000000005-2"]

    def test_nor_the_name_of_one_that_the_agent_put_away(self, job: ModuleType, seat: Path) -> None:
        (seat / "checkpoints" / ".stored").mkdir()
        (seat / "checkpoints" / ".stored" / "step-000000000005-1").touch()
        with job.checkpoint(5) as folder:
            assert folder.name == ".step-000000000005-2"

    def test_one_that_fails_leaves_nothing(self, job: ModuleType, seat: Path) -> None:
        with pytest.raises(ZeroDivisionError), job.checkpoint(5) as folder:
            (folder / "x").write_text(str(1 / 0))
        assert not list((seat / "checkpoints").glob("*step*"))
        assert not (seat / "progress").exists()

    def test_takes_no_link_and_no_name_of_ours(self, job: ModuleType, seat: Path) -> None:
        with pytest.raises(job.CheckpointError, match="neither a file"), job.checkpoint(5) as folder:
            (folder / "x").symlink_to("/etc/passwd")
        with pytest.raises(job.CheckpointError, match="no name"), job.checkpoint(5) as folder:
            (folder / "skyplan-checkpoint.json").write_text("{}")
        assert not list((seat / "checkpoints").glob("*step*"))

    def test_outside_of_skyplan_it_is_written_and_thrown_away(
        self, job: ModuleType, seat: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.delenv("SKYPLAN_CHECKPOINTS")
        with job.checkpoint(5) as folder:
            (folder / "x").write_text("x")
        assert not folder.exists()
        assert "thrown away" in capsys.readouterr().err
        assert job.resume_from() is None
        assert job.resume_step() == 0

    def test_without_a_key_the_mac_is_left_to_the_agent(
        self, job: ModuleType, seat: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("SKYPLAN_CHECKPOINT_KEY_FILE")
        with job.checkpoint(5):
            pass
        raw = (seat / "checkpoints" / "step-000000000005" / manifest.MANIFEST).read_bytes()
        assert manifest.parse(raw).mac == ""


def document(**other: object) -> dict[str, object]:
    return {
        "bytes": 1, "created_at": "2026-11-30T12:00:00.000000Z", "files": [{"bytes": 1, "path": "m", "sha256": "0" * 64}], "format": 1,
        "framework": "", "generation": 3, "job": "train", "mac": "", "nodes": 1, "project": "acme", "run": "train-g3", "step": 5,
        "uri": "s3://b/train/g3/step-000000000005/", "world_size": 1, **other,
    }  # fmt: skip


class TestManifest:
    def test_reads_what_it_writes(self) -> None:
        raw = manifest.canonical(document())
        assert manifest.parse(raw).text() == raw

    @pytest.mark.parametrize(
        ("other", "reason"),
        [
            ({"bytes": 2}, "sum"),
            ({"step": 6}, "do not say the same"),
            ({"step": True}, "whole number"),
            ({"step": 10**12}, "whole number"),
            ({"format": 2}, "format 2"),
            ({"job": "a\nb"}, "no text"),
            ({"colour": "red"}, "unknown fields"),
            ({"files": [{"bytes": 1, "path": "m", "sha256": "0" * 64, "x": 1}]}, "unknown fields"),
            (
                {
                    "files": [
                        {"bytes": 0, "path": "m", "sha256": "0" * 64},
                        {"bytes": 1, "path": "m", "sha256": "0" * 64},
                    ]
                },
                "twice",
            ),
            (
                {
                    "files": [
                        {"bytes": 0, "path": "n", "sha256": "0" * 64},
                        {"bytes": 1, "path": "m", "sha256": "0" * 64},
                    ]
                },
                "order",
            ),
            ({"files": [{"bytes": 1, "path": "m", "sha256": "0" * 63}]}, "not allowed"),
            ({"files": [{"bytes": -1, "path": "m", "sha256": "0" * 64}]}, "malformed"),
            ({"files": {}}, "missing"),
            ({"rank": -1}, "rank"),
        ],
    )
    def test_refuses_with_the_reason(self, other: dict[str, object], reason: str) -> None:
        with pytest.raises(Invalid, match=reason):
            manifest.parse(manifest.canonical(document(**other)))

    @pytest.mark.parametrize(
        "path",
        [
            "../x",
            "/x",
            "a//b",
            "a/./b",
            "",
            "a\\b",
            "a\nb",
            "skyplan-checkpoint.json",
            "skyplan-part-r00.json",
            "x" * 901,
            "\ud800",
        ],
    )
    def test_no_file_leaves_its_folder(self, path: str) -> None:
        with pytest.raises(Invalid, match="not allowed"):
            manifest.parse(manifest.canonical(document(files=[{"bytes": 1, "path": path, "sha256": "0" * 64}])))

    @given(st.data())
    def test_a_torn_or_changed_text_is_none_or_has_another_digest(self, data: st.DataObject) -> None:
        raw = manifest.canonical(document())
        whole = manifest.parse(raw)
        at = data.draw(st.integers(0, len(raw) - 1))
        cut = data.draw(st.booleans())
        other = raw[:at] if cut else raw[:at] + bytes([data.draw(st.integers(32, 126))]) + raw[at + 1 :]
        try:
            found = manifest.parse(other)
        except Invalid:
            return
        assert other == raw or found.digest != whole.digest or found.mac != whole.mac


def test_a_process_that_was_forked_meanwhile_holds_no_checkpoint_up(job: ModuleType, seat: Path) -> None:
    """As a data loader's workers are, where a job evaluates while it saves: they have the lock's descriptor too."""
    fcntl = pytest.importorskip("fcntl")
    with job.checkpoint(1) as folder:
        (folder / "a").write_text("1")
        lock = (seat / "checkpoints" / ".skyplan-lock").stat()
        open_here = [int(path.name) for path in Path("/proc/self/fd").iterdir() if path.exists()]
        inherited = [os.dup(fd) for fd in open_here if os.path.samestat(os.fstat(fd), lock)]
    assert len(inherited) == 1
    try:
        with (seat / "checkpoints" / ".skyplan-lock").open("ab") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where it is still held
    finally:
        os.close(inherited[0])
