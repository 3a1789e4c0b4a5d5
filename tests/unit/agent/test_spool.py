"""The spool: in order, exactly once, bounded; over crashes, torn lines and full disks."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modules.agent import segment
from modules.agent.spool import Spool

ROOT = Path(__file__).parents[3]
MIB = 1 << 20


def opened(folder: Path, limit: int = 64 * MIB, told: list[str] | None = None) -> Spool:
    return Spool(folder, limit, (told if told is not None else []).append)


def drain(spool: Spool, most: int = 500) -> list[dict]:
    """Everything, as a control plane that takes all."""
    found = []
    while batch := spool.batch(most, 200 * 1024):
        found += batch
        spool.taken(batch[-1]["seq"])
    return found


def test_items_come_in_order_once_and_flat(tmp_path):
    spool = opened(tmp_path)
    for step in range(5):
        spool.add("progress", {"step": step})
    assert [i["seq"] for i in spool.batch(2, MIB)] == [1, 2]
    assert [i["seq"] for i in spool.batch(2, MIB)] == [1, 2], "not taken yet"
    spool.taken(1)
    assert [i["seq"] for i in spool.batch(2, MIB)] == [2, 3]
    spool.taken(3)
    rest = drain(spool)
    assert [(i["seq"], i["step"], i["kind"]) for i in rest] == [(4, 3, "progress"), (5, 4, "progress")]
    assert rest[0]["at"].endswith("Z")
    assert spool.empty
    assert spool.batch(10, MIB) == []


def test_a_batch_is_bounded_in_bytes_but_never_empty(tmp_path):
    spool = opened(tmp_path)
    for _ in range(4):
        spool.add("log", {"text": "x" * 1000})
    assert len(spool.batch(500, 2500)) == 2
    assert len(spool.batch(500, 10)) == 1


def test_what_is_longer_than_a_line_is_dropped_and_told(tmp_path):
    told: list[str] = []
    spool = opened(tmp_path, told=told)
    spool.add("event", {"word": "x", "text": "y" * segment.LONGEST_LINE})
    spool.add("event", {"word": "x", "text": "z"})
    assert [i["text"] for i in drain(spool)] == ["z"]
    assert "dropped" in told[0]


def test_a_new_agent_goes_on_where_the_killed_one_was(tmp_path):
    spool = opened(tmp_path / "a")
    for step in range(10):
        spool.add("checkpoint", {"step": step}, marks={"progress": step * 100})
    spool.batch(4, MIB)
    spool.taken(4)
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # as SIGKILL leaves it: nothing was closed
    again = opened(tmp_path / "b")
    assert (again.stream, again.marks) == (spool.stream, {"progress": 900})
    again.add("checkpoint", {"step": 10})
    assert [(i["seq"], i["step"]) for i in drain(again)] == [(n + 1, n) for n in range(4, 11)]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_torn_line_is_no_item_and_its_number_is_used_again(tmp_path, cut):
    spool = opened(tmp_path)
    for step in range(3):
        spool.add("checkpoint", {"step": step}, marks={"progress": step})
    spool.close()
    path = next(tmp_path.glob("*.items"))
    whole = path.read_bytes().rstrip(b"\0")
    path.write_bytes(whole[:-cut] + bytes(MIB - len(whole) + cut))
    again = opened(tmp_path)
    assert again.marks == {"progress": 1}
    again.add("checkpoint", {"step": 7})
    assert [(i["seq"], i["step"]) for i in drain(again)] == [(1, 0), (2, 1), (3, 7)]


def test_a_lost_through_file_costs_repetition_only(tmp_path):
    spool = opened(tmp_path)
    spool.add("checkpoint", {"step": 1})
    drain(spool)
    (tmp_path / "through").unlink()
    assert [i["seq"] for i in opened(tmp_path).batch(5, MIB)] == [1]


def test_a_new_disk_begins_a_new_stream(tmp_path):
    assert opened(tmp_path / "a").stream != opened(tmp_path / "b").stream


def test_what_was_taken_leaves_the_disk(tmp_path):
    spool = opened(tmp_path)
    for step in range(6000):
        spool.add("progress", {"step": step, "metrics": {"x" * 500: 1.0}})
    assert len(list(tmp_path.glob("*.items"))) > 2
    assert [i["step"] for i in drain(spool)] == list(range(6000))
    assert len(list(tmp_path.glob("*.items"))) == 1


def fill(spool: Spool, count: int) -> None:
    for n in range(count):
        spool.add("progress", {"step": n, "pad": "x" * 900})
        if n % 10 == 0:
            spool.add("log", {"text": "y" * 900})
        if n % 100 == 0:
            spool.add("checkpoint", {"step": n})


def used(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.iterdir())


def test_it_is_bounded_drops_the_oldest_that_may_go_and_says_so_once(tmp_path):
    told: list[str] = []
    spool = opened(tmp_path, 4 * MIB, told)
    fill(spool, 10_000)
    assert used(tmp_path) <= 4 * MIB + 64 * 1024
    assert len(told) == 1
    assert "SKY-RUN-517" in told[0]
    items = drain(spool)
    assert [i["step"] for i in items if i["kind"] == "checkpoint"] == list(range(0, 10_000, 100)), "never one of these"
    steps = [i["step"] for i in items if i["kind"] == "progress"]
    assert steps == sorted(steps)
    assert steps[-1] == 9999
    assert len(steps) < 4000
    seqs = [i["seq"] for i in items]
    assert seqs == sorted(set(seqs))
    assert [i["word"] for i in items if i["kind"] == "event"] == ["spool"]


def test_output_goes_before_progress(tmp_path):
    spool = opened(tmp_path, 8 * MIB)
    for n in range(5000):
        spool.add("progress", {"step": n})
        spool.add("log", {"text": "y" * 2000})
    items = drain(spool)
    assert [i["step"] for i in items if i["kind"] == "progress"] == list(range(5000))
    assert sum(i["kind"] == "log" for i in items) < 5000


def test_a_full_disk_is_survived_and_ends(tmp_path, monkeypatch):
    """Allocation fails; what has its blocks can still be written."""
    told: list[str] = []
    spool = opened(tmp_path, told=told)

    def refused(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "posix_fallocate", refused)
    monkeypatch.setattr(segment, "rewrite", refused)
    fill(spool, 5000)
    assert [t[:11] for t in told] == ["SKY-RUN-517"]
    assert not list(tmp_path.glob("spare"))
    got = drain(spool)
    monkeypatch.undo()
    spool.flush()
    got += drain(spool)
    assert [i["step"] for i in got if i["kind"] == "checkpoint"] == list(range(0, 5000, 100))
    seqs = [i["seq"] for i in got]
    assert seqs == sorted(set(seqs))
    spool.add("progress", {"step": 1})
    assert [i["step"] for i in drain(spool)] == [1]


def test_a_small_file_system_that_is_really_full(tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", str(room)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small file system here")
    try:
        told: list[str] = []
        spool = opened(room / "spool", 64 * MIB, told)
        (room / "ballast").write_bytes(bytes(2 * MIB))
        fill(spool, 8000)
        assert len(told) == 1
        (room / "ballast").unlink()
        spool.flush()
        items = drain(spool)
        assert [i["step"] for i in items if i["kind"] == "checkpoint"] == list(range(0, 8000, 100))
        spool.close()
    finally:
        subprocess.run(["umount", "--lazy", str(room)], check=False)


WRITER = """
import sys
from pathlib import Path
from modules.agent.spool import Spool
spool = Spool(Path(sys.argv[1]), 64 << 20, print)
step = spool.marks.get("progress", 0)
while True:
    step += 1
    spool.add("checkpoint" if step % 7 == 0 else "progress", {"step": step, "pad": "x" * (step % 400)}, marks={"progress": step})
    items = spool.batch(20, 10_000) if step % 5 == 0 else []
    for item in items:
        print(item["seq"], item["step"], flush=True)
    if items and step % 50 == 0:
        spool.taken(items[-1]["seq"])
"""


def test_a_number_is_never_of_two_items_over_kills(tmp_path):
    """A writer is killed again and again: what was ever sent under a number is the only thing under that number, and no step is missing."""
    chance = random.Random(5)
    sent: dict[int, int] = {}
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "s")], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(chance.random() / 5)
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout.read().splitlines()[:-1]:
                seq, step = map(int, line.split())
                assert sent.setdefault(seq, step) == step
    for item in drain(opened(tmp_path / "s")):
        assert sent.setdefault(item["seq"], item["step"]) == item["step"]
    assert sorted(sent.values()) == list(range(min(sent.values()), max(sent.values()) + 1))
    assert list(sent) != []


def test_wherever_it_is_damaged_it_opens_and_uses_no_number_again(tmp_path):
    """A number that the record has would make a new checkpoint's report one that was taken already."""
    spool = opened(tmp_path / "whole")
    for step in range(6):
        spool.add("checkpoint" if step % 2 else "progress", {"step": step}, marks={"progress-1": step})
    drain(spool)
    spool.close()
    raw = (tmp_path / "whole" / "0000000001.items").read_bytes().rstrip(b"\0") + bytes(100)
    through = (tmp_path / "whole" / "through").read_bytes()
    for at in range(0, len(raw) - 100, 29):
        for value in b'\0"9}\n':
            folder = tmp_path / f"{at}-{value}"
            folder.mkdir(mode=0o700)
            (folder / "0000000001.items").write_bytes(raw[:at] + bytes([value]) + raw[at + 1 :])
            (folder / "through").write_bytes(through)
            again = opened(folder)
            again.add("checkpoint", {"step": 99})
            (last,) = [item for item in again.batch(500, MIB) if item.get("step") == 99]
            assert last["seq"] > 6 or again.stream != spool.stream, (at, value)
            again.close()
            shutil.rmtree(folder)


def test_a_file_whose_beginning_is_gone_gives_its_numbers_to_nobody(tmp_path):
    spool = opened(tmp_path)
    fill(spool, 3_000)
    last = spool.batch(5_000, 64 * MIB)[-1]["seq"]
    spool.close()
    newest = max(tmp_path.glob("*.items"))
    newest.write_bytes(b"?" * 10 + newest.read_bytes()[10:])
    (tmp_path / "lost+found.items").write_text("no file of a spool")
    again = opened(tmp_path)
    assert again.stream == spool.stream
    again.add("checkpoint", {"step": 99})
    assert again.batch(5_000, 64 * MIB)[-1]["seq"] > last
    again.close()
