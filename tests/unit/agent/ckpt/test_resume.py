"""From where a node goes on: the newest that is valid at the cut, whatever else lies in the store, and never from a listing that failed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from modules.agent.ckpt import fetch as fetching
from modules.agent.ckpt import manifest
from modules.agent.ckpt.errors import StoreError
from modules.agent.ckpt.local import LocalStore
from modules.agent.ckpt.resume import Resumed, resume
from modules.agent.ckpt.scan import scan
from modules.agent.ckpt.store import Content
from modules.agent.ckpt.upload import Uploader
from tests.unit.agent.ckpt.jobs import Failing, Plane, Seat, describe, key, make, store_of


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return store_of(tmp_path / "store")


def put_away(store: LocalStore, folder: Path, seat: Seat, step: int, **other: Any) -> None:
    folder.mkdir(exist_ok=True)
    make(folder, store.uri, seat, step, **other)
    assert Uploader(store, seat, lambda *_: None, folder=folder, key=key(seat.generation)).once()


def go_on(store: Any, plane: Plane | None, seat: Seat, folder: Path, **other: Any) -> Resumed | None:
    signed = key(seat.generation) if plane is not None else other.pop("key", key(1))
    return resume(store, plane, seat, folder, key=signed, **other)


def test_the_newest_of_all_generations_is_brought_whole(store: LocalStore, tmp_path: Path) -> None:
    put_away(store, tmp_path / "n1", Seat(1), 100)
    put_away(store, tmp_path / "n2", Seat(2), 200, files={"a/b.pt": b"x" * 100_000, "c": b""})
    put_away(store, tmp_path / "n1b", Seat(1), 150)
    plane = Plane((1, 2, 3))
    found = go_on(store, plane, Seat(3), tmp_path / "here")
    assert found == (tmp_path / "here" / "resume-g2-step-000000000200", 200, f"{store.uri}g2/step-000000000200/", 2)
    assert (found.folder / "a" / "b.pt").read_bytes() == b"x" * 100_000
    assert [document["phase"] for document in plane.asked] == ["begin", "choose"]
    assert [one["step"] for one in plane.asked[1]["candidates"]] == [200, 150, 100]
    assert go_on(store, plane, Seat(3), tmp_path / "here") == found


def test_an_empty_store_is_a_first_start(store: LocalStore, tmp_path: Path) -> None:
    assert go_on(store, Plane((1,)), Seat(1), tmp_path / "here") is None


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_store_that_fails_is_no_first_start_and_makes_no_cut(store: LocalStore, tmp_path: Path, nth: int) -> None:
    put_away(store, tmp_path / "n1", Seat(1), 100)
    plane = Plane((1, 2))
    try:
        found = go_on(Failing(store, nth, after=False), plane, Seat(2), tmp_path / "here")
    except StoreError:
        assert (plane.cut_ is None) == (nth <= 3)
        found = go_on(store, plane, Seat(2), tmp_path / "here")
    assert found
    assert found.step == 100


def spoil(store: LocalStore, root: Path, how: str) -> tuple[str, str]:
    """Something that looks newer than step 100 of generation 1, and the reason it is skipped for."""
    at, content = root / "g1" / "step-000000000900", {"model-0.pt": b"content"}
    uri = f"{store.uri}g1/step-000000000900/"
    reasons = {
        "no manifest": "never whole",
        "missing file": "missing: torn",
        "short file": "7 bytes, not 16: torn",
        "other content": "another content",
        "copied": "a copy",
        "forged": "mac",
        "torn manifest": "torn",
    }
    files = {} if how == "missing file" else content
    listed = {"short file": b"content and more", "other content": b"CONTENT"}.get(how, b"content")
    seats = {
        "of another job": Seat(1, job="other"),
        "of another project": Seat(1, project="else"),
        "of another generation": Seat(2),
    }
    at.mkdir(parents=True)
    for path, raw in files.items():
        (at / path).write_bytes(raw)
    if how != "no manifest":
        says = f"{store.uri}g1/step-000000000900-1/" if how == "copied" else uri
        found = describe(store.uri, seats.get(how, Seat(1)), 900, {"model-0.pt": listed}, uri=says)
        found = found.signed(key(9)) if how == "forged" else found
        (at / manifest.MANIFEST).write_bytes(found.text()[: -5 if how == "torn manifest" else None])
    return uri, reasons.get(how, "foreign")


KINDS = (
    "no manifest",
    "missing file",
    "short file",
    "other content",
    "of another job",
    "of another project",
    "of another generation",
    "copied",
    "forged",
    "torn manifest",
)


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("alone", [False, True])
def test_what_is_no_checkpoint_is_skipped_with_its_reason(
    store: LocalStore, tmp_path: Path, how: str, alone: bool
) -> None:
    put_away(store, tmp_path / "n1", Seat(1), 100)
    uri, reason = spoil(store, tmp_path / "store", how)
    told: list[tuple[str, str]] = []
    plane = None if alone else Plane((1, 2))
    found = go_on(store, plane, Seat(2), tmp_path / "here", told=lambda uri, why: told.append((uri, why)))
    assert found
    assert found.step == 100
    skipped = dict(plane.skipped if plane else told)
    assert reason in skipped[uri]


def test_generations_that_were_not_issued_count_nothing(store: LocalStore, tmp_path: Path) -> None:
    put_away(store, tmp_path / "n1", Seat(1), 100)
    put_away(store, tmp_path / "n7", Seat(7), 10**9)
    put_away(store, tmp_path / "n2", Seat(2), 500)
    found = go_on(store, Plane((1, 3)), Seat(3), tmp_path / "here")
    assert found
    assert found.step == 100


def test_what_an_older_generation_writes_after_the_cut_counts_nothing(store: LocalStore, tmp_path: Path) -> None:
    put_away(store, tmp_path / "n1", Seat(1), 100)
    plane = Plane((1, 2))
    assert go_on(store, plane, Seat(2), tmp_path / "here")
    put_away(store, tmp_path / "n1", Seat(1), 900)
    found = go_on(store, plane, Seat(2), tmp_path / "other")
    assert found
    assert found.step == 100


def test_a_restart_in_the_same_generation_goes_on_from_its_own_newest(store: LocalStore, tmp_path: Path) -> None:
    put_away(store, tmp_path / "n1", Seat(1), 100)
    plane = Plane((1, 2))
    go_on(store, plane, Seat(2), tmp_path / "here")
    put_away(store, tmp_path / "n2", Seat(2), 300)
    found = go_on(store, plane, Seat(2), tmp_path / "here")
    assert found
    assert (found.step, found.generation) == (300, 2)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"generations": None},
        {"generations": ["x"]},
        {"cut": {}},
        {"cut": {"step": 3}},
        {"cut": 5},
        {"cut": {"uri": 1}},
    ],
)
def test_an_answer_without_a_cut_is_asked_for_again(store: LocalStore, tmp_path: Path, answer: dict[str, Any]) -> None:
    """It ends no run, and is no start from the beginning."""

    class Strange:
        def cut(self, _document: dict[str, Any]) -> dict[str, Any]:
            return answer

        def chosen(self) -> dict[str, Any] | None:
            return answer

    with pytest.raises(StoreError, match="the control plane"):
        resume(store, Strange(), Seat(), tmp_path / "node", key=key(Seat().generation))


class TestOtherRanks:
    def follow(self, store: LocalStore, plane: Plane, folder: Path, then: dict[int, Any]) -> Resumed | None:
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds
            then.pop(int(now[0]), lambda: None)()

        seat, self.waits = Seat(2, rank=1, nodes=2), []
        return go_on(store, plane, seat, folder, steady=lambda: now[0], sleep=sleep, waits=self.waits.append)

    def test_follow_rank_0(self, store: LocalStore, tmp_path: Path) -> None:
        put_away(store, tmp_path / "n1", Seat(1), 100)
        plane = Plane((1, 2))
        first = Seat(2, rank=0, nodes=2)
        found = self.follow(store, plane, tmp_path / "r1", {10: lambda: go_on(store, plane, first, tmp_path / "r0")})
        assert found
        assert found.step == 100
        assert self.waits == ["waiting for rank 0 to choose the checkpoint to go on from: rank 0 has not chosen"]

    def test_start_from_the_beginning_where_rank_0_does(self, store: LocalStore, tmp_path: Path) -> None:
        plane = Plane((1, 2))
        plane.cut_ = {"step": None}
        assert self.follow(store, plane, tmp_path / "r1", {}) is None

    def test_take_the_next_where_rank_0_rejects(self, store: LocalStore, tmp_path: Path) -> None:
        put_away(store, tmp_path / "n1", Seat(1), 100)
        spoil(store, tmp_path / "store", "other content")
        plane = Plane((1, 2))
        plane.cut({"phase": "begin"})
        bad = describe(store.uri, Seat(1), 900, {"model-0.pt": b"CONTENT"})
        plane.cut_ = {"step": 900, "uri": bad.uri, "generation": 1, "digest": bad.digest}

        def first() -> None:
            plane.cut_ = None
            go_on(store, plane, Seat(2, rank=0, nodes=2), tmp_path / "r0")

        found = self.follow(store, plane, tmp_path / "r1", {20: first})
        assert found
        assert found.step == 100

    def test_give_up_in_the_end(self, store: LocalStore, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="rank 0 has not chosen"):
            self.follow(store, Plane((1, 2)), tmp_path / "r1", {})


class TestAlone:
    def test_only_the_own_key_counts(self, store: LocalStore, tmp_path: Path) -> None:
        put_away(store, tmp_path / "n1", Seat(1), 100)
        told: list[tuple[str, str]] = []
        found = go_on(store, None, Seat(1), tmp_path / "here", key=key(5), told=lambda *one: told.append(one))
        assert found is None
        assert "forged" in told[0][1]

    def test_a_later_generation_is_foreign(self, store: LocalStore, tmp_path: Path) -> None:
        put_away(store, tmp_path / "n9", Seat(9), 100)
        told: list[tuple[str, str]] = []
        assert go_on(store, None, Seat(1), tmp_path / "here", told=lambda *one: told.append(one)) is None
        assert told == [(f"{store.uri}g9/", "generation 9 is later than this one, 1: foreign")]


class TestFetch:
    def test_a_folder_that_is_there_is_not_fetched_again_unless_it_differs(
        self, store: LocalStore, tmp_path: Path
    ) -> None:
        put_away(store, tmp_path / "n1", Seat(1), 100)
        first = go_on(store, None, Seat(1), tmp_path / "here")
        assert first
        inode = (first.folder / "model-0.pt").stat().st_ino
        again = go_on(store, None, Seat(1), tmp_path / "here")
        assert again == first
        assert (first.folder / "model-0.pt").stat().st_ino == inode
        (first.folder / "model-0.pt").write_bytes(b"a job wrote here")
        go_on(store, None, Seat(1), tmp_path / "here")
        assert b"step 100" in (first.folder / "model-0.pt").read_bytes()

    def test_a_full_disk_is_an_error_and_no_reason_to_take_an_older_one(
        self, store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put_away(store, tmp_path / "n1", Seat(1), 100)
        usage = fetching.shutil.disk_usage(str(tmp_path))
        monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: usage._replace(free=1000))
        with pytest.raises(StoreError, match="MiB left"):
            go_on(store, Plane((1, 2)), Seat(2), tmp_path / "here")

    def test_a_longer_file_is_read_no_further_than_it_should_be(self, store: LocalStore, tmp_path: Path) -> None:
        put_away(store, tmp_path / "n1", Seat(1), 100)
        found = describe(store.uri, Seat(1), 900, {"big": b"1"})
        store.put("g1/step-000000000900/big", Content.of(b"1" * 3_000_000))
        read: list[int] = []

        class Counting(Failing):
            def opened(self, name: str) -> Any:
                opened = super().opened(name)
                if name.endswith("/big"):
                    read.append(1)
                return opened

        from modules.agent.ckpt.errors import Invalid

        with pytest.raises(Invalid, match="another content"):
            fetching.fetch(Counting(store, 0, after=False), found, tmp_path / "here")
        assert read == [1]
        assert not list((tmp_path / "here").iterdir())


def test_candidates_are_held_without_their_files(store: LocalStore, tmp_path: Path) -> None:
    """200 checkpoints of 10,000 files each would be most of a GiB beside the job."""
    files = {f"part-{n:05d}": b"" for n in range(300)}
    for step in range(8):
        put_away(store, tmp_path / "n", Seat(), step, files=files)
    tracemalloc.start()
    found = scan(store, Seat(), [Seat().generation], key)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.checkpoints) == 8
    assert held < 200_000
