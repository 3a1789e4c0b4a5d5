"""A disk that fails at any write, flush, link or rename of the agent's own: a name in a store, a fetched folder, is whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from modules.agent.ckpt.errors import Exists, StoreError
from modules.agent.ckpt.resume import resume
from modules.agent.ckpt.store import Content, read_small
from modules.agent.ckpt.upload import Uploader
from tests.unit.agent.ckpt.jobs import Plane, Seat, key, make, store_of
from tests.unit.job.boundaries import Crash, crashing


def at_each(act: Callable[[int], None]) -> int:
    """`act(nth)` with a crash at the nth boundary, until one run meets none; how many there were."""
    for nth in range(1, 200):
        left = [nth]

        def fall(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crash(5, "Input/output error")

        with crashing(fall), contextlib.suppress(Crash, StoreError):
            act(nth)
        if left[0] > 0:
            return nth
    pytest.fail("it never ran to its end")


def test_a_name_in_a_folder_store_is_whole_or_not_there(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s")
    seen: set[int] = set()

    def put(nth: int) -> None:
        try:
            store.put(f"g1/{nth}/deep/x", Content.of(b"x" * 1000))
        finally:
            listed = [entry.bytes for entry in store.entries(f"g1/{nth}/")]
            assert listed in ([], [1000])
            seen.add(len(listed))

    assert at_each(put) > 5
    assert seen == {0, 1}
    assert len(list((tmp_path / "s").rglob(".skyplan-new-*"))) <= 1, "only where removing it was what failed"


def test_putting_away_goes_on_after_any_crash(tmp_path: Path) -> None:
    def run(nth: int) -> None:
        node, store = tmp_path / f"n{nth}", store_of(tmp_path / f"s{nth}")
        told: list[str] = []

        def up() -> Uploader:
            return Uploader(store, Seat(), lambda kind, _: told.append(kind), folder=node, key=key(1), keep=0)

        try:
            up().once()
        finally:
            if "checkpoint" in told:
                assert read_small(store, "g1/step-000000000007/skyplan-checkpoint.json", 9999)
            while up().pending():
                up().once()
            assert set(told) == {"checkpoint"}
            assert 1 <= len(told) <= 2

    for nth in range(1, 200):
        (tmp_path / f"n{nth}").mkdir()
        make(tmp_path / f"n{nth}", store_of(tmp_path / f"s{nth}").uri, Seat(), 7)
        if nth > 60:
            break
    assert 10 < at_each(run) < 60


def test_a_fetched_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s")
    (tmp_path / "n").mkdir()
    make(tmp_path / "n", store.uri, Seat(), 7, files={"a": b"1" * 100, "b/c": b"2"})
    assert Uploader(store, Seat(), lambda *_: None, folder=tmp_path / "n", key=key(1)).once()
    plane = Plane((1, 2))
    outcomes: set[bool] = set()

    def bring(nth: int) -> None:
        here = tmp_path / f"h{nth}"
        try:
            resume(store, plane, Seat(2), here, key=key(2))
        finally:
            whole = list(here.glob("resume-*")) if here.exists() else []
            outcomes.add(bool(whole))
            for path in whole:
                assert {p.name: p.stat().st_size for p in path.rglob("*") if p.is_file() and p.name in "ac"} == {
                    "a": 100,
                    "c": 1,
                }

    assert at_each(bring) > 10
    assert outcomes == {False, True}


def test_a_file_system_without_links_still_takes_no_name_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    store = store_of(tmp_path / "s")
    store.put("g1/x", Content.of(b"first"))
    with pytest.raises(Exists):
        store.put("g1/x", Content.of(b"other"))
    assert read_small(store, "g1/x", 9) == b"first"
    assert [entry.name for entry in store.entries("g1/")] == ["g1/x"]
