"""Checkpoints into the store: in what order, what a crash or a failing store leaves, what several nodes make together, what is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from modules.agent.ckpt import manifest, upload
from modules.agent.ckpt.errors import StoreError
from modules.agent.ckpt.local import LocalStore
from modules.agent.ckpt.scan import read, scan
from modules.agent.ckpt.store import Content, read_small
from modules.agent.ckpt.upload import Uploader
from tests.unit.agent.ckpt.jobs import FIRST, Failing, Seat, describe, key, make, store_of


class Spool(list[tuple[str, dict[str, Any]]]):
    def add(self, kind: str, body: dict[str, Any]) -> None:
        self.append((kind, body))


@pytest.fixture
def node(tmp_path: Path) -> Path:
    (tmp_path / "node").mkdir()
    return tmp_path / "node"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return store_of(tmp_path / "store")


def uploader(store: Any, node: Path, spool: Spool, seat: Seat = FIRST, **other: Any) -> Uploader:
    return Uploader(store, seat, spool.add, folder=node, key=key(seat.generation), **other)


def valid(store: LocalStore, seat: Seat = FIRST) -> list[int]:
    return [found.step for found in scan(store, seat, range(1, seat.generation + 1), key).checkpoints]


def test_files_then_the_manifest_then_the_report(store: LocalStore, node: Path) -> None:
    spool, order = Spool(), []

    class Ordered(Failing):
        def put(self, name: str, content: Content) -> None:
            order.append(name.rpartition("/")[2])
            super().put(name, content)

    name = make(node, store.uri, Seat(), 7, files={"a": b"1", "b/c": b"", "z": b"333"})
    up = uploader(Ordered(store, 0, after=False), node, spool)
    assert up.pending() == [name]
    assert up.once()
    assert order[-1] == manifest.MANIFEST
    assert sorted(order[:-1]) == ["a", "c", "z"]
    found = describe(store.uri, Seat(), 7, {"a": b"1", "b/c": b"", "z": b"333"})
    told = {"step": 7, "uri": found.uri, "digest": found.digest, "mac": found.mac, "bytes": 4, "files": 3}
    assert spool == [("checkpoint", told)]
    assert up.pending() == []
    assert up.moved == 4
    assert valid(store) == [7]


def test_the_newest_goes_first(store: LocalStore, node: Path) -> None:
    for step, name in ((5, ""), (1000, ""), (7, ""), (1000, "step-000000001000-1"), (1000, "step-000000001000-10")):
        make(node, store.uri, Seat(), step, files={"x": name.encode()}, name=name)
    spool = Spool()
    uploader(store, node, spool).once()
    assert [body["uri"].split("/")[-2][-8:] for _, body in spool] == [
        "01000-10",
        "001000-1",
        "00001000",
        "00000007",
        "00000005",
    ]


@pytest.mark.parametrize("after", [False, True])
def test_a_store_that_fails_anywhere_is_asked_again_and_nothing_is_twice(tmp_path: Path, after: bool) -> None:
    for nth in range(1, 30):
        (tmp_path / f"n{nth}").mkdir()
        store = store_of(tmp_path / f"s{nth}")
        make(tmp_path / f"n{nth}", store.uri, Seat(), 7, files={"a": b"1" * 5000, "b": b"2"})
        failing, spool = Failing(store, nth, after=after), Spool()
        up = uploader(failing, tmp_path / f"n{nth}", spool)
        try:
            up.once()
        except StoreError:
            assert valid(store) in ([], [7]), "none or a whole one"
            assert spool == []
            assert uploader(store, tmp_path / f"n{nth}", spool).once(), "a new agent goes on"
        else:
            assert nth > 3
            break
        assert valid(store) == [7]
        assert [kind for kind, _ in spool] == ["checkpoint"]
    else:
        pytest.fail("it never ran to its end")


def test_a_crash_between_report_and_mark_reports_again(
    store: LocalStore, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(node, store.uri, Seat(), 7)
    spool = Spool()
    with monkeypatch.context() as broken:
        broken.setattr(Uploader, "_stored", lambda self, name: (_ for _ in ()).throw(OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            uploader(store, node, spool).once()
    uploader(store, node, spool).once()
    assert spool[0] == spool[1], "the record takes one uri once"
    assert valid(store) == [7]


@pytest.mark.parametrize("what", ["size", "missing", "torn", "key", "place", "no manifest", "link"])
def test_what_is_no_checkpoint_is_told_once_and_left_alone(store: LocalStore, node: Path, what: str) -> None:
    name = make(node, store.uri, Seat(), 7)
    file, described = node / name / "model-0.pt", node / name / manifest.MANIFEST
    match what:
        case "size":
            file.write_bytes(b"short")
        case "missing":
            file.unlink()
        case "torn":
            described.write_bytes(described.read_bytes()[:-9])
        case "key":
            described.write_bytes(
                describe(store.uri, Seat(), 7, {"model-0.pt": file.read_bytes()}).signed(key(2)).text()
            )
        case "place":
            described.write_bytes(describe("file:///elsewhere/", Seat(), 7, {"model-0.pt": file.read_bytes()}).text())
        case "link":
            content = file.read_bytes()
            (node / "secret").write_bytes(content)
            file.unlink()
            file.symlink_to(node / "secret")
        case _:
            described.unlink()
    spool = Spool()
    up = uploader(store, node, spool)
    assert up.once()
    assert up.once()
    assert [kind for kind, _ in spool] == ["skipped"]
    assert spool[0][1]["uri"].endswith(f"g1/{name}/")
    assert valid(store) == []


def test_a_name_that_holds_another_content_is_not_overwritten(store: LocalStore, node: Path) -> None:
    name = make(node, store.uri, Seat(), 7)
    store.put(f"g1/{name}/model-0.pt", Content.of(b"somebody else's"))
    spool = Spool()
    uploader(store, node, spool).once()
    assert spool[0][0] == "skipped"
    assert "another content" in spool[0][1]["reason"]
    assert read_small(store, f"g1/{name}/model-0.pt", 99) == b"somebody else's"
    assert valid(store) == []


def test_a_job_without_a_key_is_signed_for_here(store: LocalStore, node: Path) -> None:
    name = make(node, store.uri, Seat(), 7)
    described = node / name / manifest.MANIFEST
    described.write_bytes(manifest.parse(described.read_bytes())._replace(mac="").text())
    uploader(store, node, Spool()).once()
    assert valid(store) == [7]


class TestSeveralNodes:
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
    def test_rank_0_describes_all_parts_once_they_are_there(
        self, store: LocalStore, tmp_path: Path, order: tuple[int, ...]
    ) -> None:
        ups, spools = {}, {}
        for rank in range(3):
            seat, node = Seat(rank=rank, nodes=3), tmp_path / f"n{rank}"
            node.mkdir()
            make(node, store.uri, seat, 7)
            spools[rank] = Spool()
            ups[rank] = uploader(store, node, spools[rank], seat)
        for rank in order:
            done = ups[rank].once()
            assert done is (rank != 0 or order[-1] == 0)
        assert ups[0].once()
        assert [len(spools[rank]) for rank in range(3)] == [1, 0, 0]
        found = scan(store, Seat(nodes=3), [1], key)
        (whole,) = [read(store, one.uri) for one in found.checkpoints]
        assert [file.path for file in whole.files] == ["model-0.pt", "model-1.pt", "model-2.pt"]
        assert whole.created_at == "2026-11-30T12:00:02.000000Z"
        again = uploader(store, tmp_path / "n0", spools[0], Seat(nodes=3))
        (tmp_path / "n0" / upload.STORED / "step-000000000007").unlink()
        assert again.once(), "the same parts make the same bytes"
        assert spools[0][0] == spools[0][1]

    def parts(self, store: LocalStore, tmp_path: Path, second: dict[str, bytes], **other: Any) -> Spool:
        for rank, files in ((1, second), (0, {"x": b"one"})):
            seat, node = Seat(rank=rank, nodes=2, **(other if rank else {})), tmp_path / f"n{rank}"
            node.mkdir()
            make(node, store.uri, seat, 7, files=files)
            spool = Spool()
            uploader(store, node, spool, seat).once()
        return spool

    def test_one_file_with_two_contents_is_no_checkpoint(self, store: LocalStore, tmp_path: Path) -> None:
        for rank, content in ((1, b"two"), (0, b"one")):
            node = tmp_path / f"n{rank}"
            node.mkdir()
            make(node, store.uri, Seat(rank=rank, nodes=2), 7, files={"x": content})
        first, second = Spool(), Spool()
        uploader(store, tmp_path / "n0", first, Seat(nodes=2)).once()
        uploader(store, tmp_path / "n1", second, Seat(rank=1, nodes=2)).once()
        assert [kind for kind, _ in second] == ["skipped"]
        assert valid(store, Seat(nodes=2)) == []

    def test_a_file_that_all_have_alike_is_one(self, store: LocalStore, tmp_path: Path) -> None:
        spool = self.parts(store, tmp_path, {"x": b"one"})
        assert spool[0][0] == "checkpoint"
        assert spool[0][1]["files"] == 1

    def test_a_forged_part_is_no_part(self, store: LocalStore, tmp_path: Path) -> None:
        forged = describe(store.uri, Seat(rank=1, nodes=2), 7, {"y": b"y"}).signed(key(9))
        store.put("g1/step-000000000007/y", Content.of(b"y"))
        store.put(f"g1/step-000000000007/{manifest.part_name(1)}", Content.of(forged.text()))
        (tmp_path / "n0").mkdir()
        make(tmp_path / "n0", store.uri, Seat(nodes=2), 7)
        spool = Spool()
        uploader(store, tmp_path / "n0", spool, Seat(nodes=2)).once()
        assert "rank 1 is not by" in spool[0][1]["reason"]

    def test_parts_that_do_not_come_are_waited_for_and_then_told(self, store: LocalStore, tmp_path: Path) -> None:
        (tmp_path / "n0").mkdir()
        make(tmp_path / "n0", store.uri, Seat(nodes=3), 7)
        spool, now = Spool(), [0.0]
        up = uploader(store, tmp_path / "n0", spool, Seat(nodes=3), steady=lambda: now[0])
        assert not up.once()
        now[0] = upload.PARTS_SECONDS - 1
        assert not up.once()
        assert spool == []
        now[0] += 1
        assert up.once()
        assert spool[0] == (
            "skipped",
            {"uri": f"{store.uri}g1/step-000000000007/", "reason": "the parts of ranks 1, 2 did not come"},
        )


def test_what_was_put_away_is_removed_but_for_the_newest(store: LocalStore, node: Path) -> None:
    for step in (1, 2, 3):
        make(node, store.uri, Seat(), step)
        uploader(store, node, Spool(), keep=2).once()
    assert sorted(path.name for path in node.glob("*step*")) == ["step-000000000002", "step-000000000003"]
    assert sorted(valid(store)) == [1, 2, 3]
    assert len(list((node / upload.STORED).iterdir())) == 3, "names stay taken"


def test_runs_until_it_is_stopped_over_a_store_that_fails(store: LocalStore, node: Path) -> None:
    spool, told, stopped = Spool(), [], threading.Event()
    arrived = threading.Event()

    class Told(Spool):
        def add(self, kind: str, body: dict[str, Any]) -> None:
            super().add(kind, body)
            arrived.set()

    spool = Told()
    failing = Failing(store, 1, after=False)
    up = uploader(failing, node, spool, told=lambda words: (told.append(words), up.wake()))
    thread = threading.Thread(target=up.run, args=(stopped,))
    thread.start()
    try:
        make(node, store.uri, Seat(), 7)
        up.wake()
        assert arrived.wait(20)
    finally:
        stopped.set()
        up.wake()
        thread.join(20)
    assert not thread.is_alive()
    assert len(told) <= 1
    assert valid(store) == [7]


def test_a_job_that_takes_a_name_again_is_told(store: LocalStore, node: Path) -> None:
    """skyplan_job does not; a job in another language may, once the first is removed."""
    import shutil

    name = make(node, store.uri, Seat(), 7)
    spool = Spool()
    up = uploader(store, node, spool)
    up.once()
    shutil.rmtree(node / name)
    make(node, store.uri, Seat(), 7, files={"model-0.pt": b"another"})
    assert up.once()
    assert [kind for kind, _ in spool] == ["checkpoint", "skipped"]
    assert up.pending() == []


def test_a_disk_that_is_full_stops_no_later_checkpoint(
    store: LocalStore, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, stopped, told, real = Spool(), threading.Event(), threading.Event(), Uploader._stored
    failures = [OSError(28, "No space left on device")]

    def stored(self: Uploader, name: str) -> None:
        if failures:
            raise failures.pop()
        real(self, name)
        stopped.set()
        self.wake()

    monkeypatch.setattr(Uploader, "_stored", stored)
    make(node, store.uri, Seat(), 7)
    up = uploader(store, node, spool, told=lambda words: (told.set(), up.wake()))
    up.run(stopped)
    assert told.is_set()
    assert valid(store) == [7]
    assert up.pending() == []


def test_one_that_fails_for_good_holds_up_no_other(store: LocalStore, node: Path) -> None:
    class Choosy(Failing):
        def put(self, name: str, content: Content) -> None:
            if "step-000000000009" in name:
                raise StoreError("not this one")
            super().put(name, content)

    for step in (5, 7, 9):
        make(node, store.uri, Seat(), step, files={"x": b"1"})
    up = uploader(Choosy(store, 0, after=False), node, Spool())
    with pytest.raises(StoreError, match="not this one"):
        up.once()
    assert valid(store) == [7, 5]
    assert up.pending() == ["step-000000000009"]


def test_a_store_that_is_away_is_not_asked_for_each_of_many(store: LocalStore, node: Path) -> None:
    class Away(Failing):
        def put(self, name: str, content: Content) -> None:
            self.calls += 1
            raise StoreError("away")

    for step in range(20):
        make(node, store.uri, Seat(), step, files={})
    away = Away(store, 0, after=False)
    with pytest.raises(StoreError, match="away"):
        uploader(away, node, Spool()).once()
    assert away.calls == upload._FAILURES_IN_A_ROW


def test_what_is_made_meanwhile_goes_before_what_waits(store: LocalStore, node: Path) -> None:
    for step in (5, 7):
        make(node, store.uri, Seat(), step, files={})
    spool = Spool()

    class Slow(Failing):
        def put(self, name: str, content: Content) -> None:
            super().put(name, content)
            if "step-000000000007" in name:  # while it is put away the job makes its last, before the node goes
                make(node, store.uri, Seat(), 9, files={})

    uploader(Slow(store, 0, after=False), node, spool).once()
    assert [body["step"] for _, body in spool] == [7, 9, 5]


def test_on_a_full_disk_a_checkpoint_is_reported_once(store: LocalStore, node: Path) -> None:
    make(node, store.uri, Seat(), 5, files={"x": b"1"})
    spool = Spool()
    up = uploader(store, node, spool)
    (node / upload.STORED / ".step-000000000005").mkdir(parents=True)  # it cannot be remembered
    with pytest.raises(IsADirectoryError):
        up.once()
    assert up.once()
    assert [kind for kind, _ in spool] == ["checkpoint"]
