"""Group commit: together, in order, each answered once and only after the commit, and never more waiting than fits."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from planner.model.runtime import Delivered, Item, Kind, Report, Seat
from planner.server import committer as module
from planner.server.answers import Busy
from planner.server.committer import Committer
from planner.server.log import Log
from planner.server.metrics import Metrics
from tests.unit.server.server_bed import NOW


class Database:
    """Writes when it is let."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.entered = threading.Event()
        self.batches: list[list[int]] = []

    def deliver(self, reports: Sequence[Report], at: datetime) -> tuple[Delivered, ...]:
        self.entered.set()
        assert self.may.wait(30)
        self.batches.append([r.seat.rank for r in reports])
        return tuple(Delivered(through=r.items[-1].seq) for r in reports)


def report(rank: int, seq: int = 1) -> Report:
    item = Item(seq=seq, kind=Kind.PROGRESS, at="", body={"step": seq})
    return Report(seat=Seat(job="train", generation=1, rank=rank), stream="s", items=(item,))


def made(database: Any) -> Committer:
    return Committer(database.deliver, lambda: NOW, Metrics(), Log(io.StringIO()))


def test_what_arrives_during_a_commit_goes_together_into_the_next() -> None:
    database = Database()
    committer = made(database)

    async def run() -> list[int]:
        first = asyncio.create_task(committer.submit(report(0), 10))
        await asyncio.to_thread(database.entered.wait, 30)
        rest = [asyncio.create_task(committer.submit(report(k), 10)) for k in range(1, 20)]
        await asyncio.sleep(0)
        assert not first.done()
        database.may.set()
        return [d.through for d in await asyncio.gather(first, *rest)]

    assert asyncio.run(run()) == [1] * 20
    committer.stop()
    assert database.batches == [[0], list(range(1, 20))]


def test_one_seat_is_once_in_a_transaction_and_in_order() -> None:
    database = Database()
    committer = made(database)

    async def run() -> list[int]:
        tasks = [asyncio.create_task(committer.submit(report(0, seq), 10)) for seq in (1, 2, 3)]
        await asyncio.to_thread(database.entered.wait, 30)
        database.may.set()
        return [d.through for d in await asyncio.gather(*tasks)]

    assert asyncio.run(run()) == [1, 2, 3]
    committer.stop()
    assert all(len(batch) == len(set(batch)) for batch in database.batches)


def test_more_than_fits_is_told_to_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_BYTES", 25)
    database = Database()
    committer = made(database)

    async def run() -> None:
        first = asyncio.create_task(committer.submit(report(0), 10))
        await asyncio.to_thread(database.entered.wait, 30)
        kept = [asyncio.create_task(committer.submit(report(k), 10)) for k in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="waiting"):
            await committer.submit(report(3), 10)
        database.may.set()
        await asyncio.gather(first, *kept)
        assert (await committer.submit(report(3), 10)).through == 1

    asyncio.run(run())
    committer.stop()


def test_a_database_that_hangs_is_told_and_the_caller_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    database = Database()
    committer = made(database)

    async def run() -> None:
        with pytest.raises(Busy, match="slow"):
            await committer.submit(report(0), 10)

    asyncio.run(run())
    database.may.set()
    committer.stop()
    assert database.batches == [[0]]


def test_to_stop_writes_what_waits_and_takes_nothing_more() -> None:
    database = Database()
    committer = made(database)

    async def run() -> None:
        tasks = [asyncio.create_task(committer.submit(report(k), 10)) for k in range(3)]
        await asyncio.to_thread(database.entered.wait, 30)
        stopping = asyncio.create_task(asyncio.to_thread(committer.stop))
        database.may.set()
        await stopping
        assert [d.through for d in await asyncio.gather(*tasks)] == [1, 1, 1]
        with pytest.raises(Busy, match="stopping"):
            await committer.submit(report(4), 10)

    asyncio.run(run())
    assert sorted(rank for batch in database.batches for rank in batch) == [0, 1, 2]


def test_who_cannot_be_told_keeps_no_other_from_being_told() -> None:
    database = Database()
    database.may.set()
    log = io.StringIO()
    committer = Committer(database.deliver, lambda: NOW, Metrics(), Log(log))

    async def run() -> int:
        def broken(_result: Delivered | Exception) -> None:
            raise KeyError("hunter2")

        committer.put(report(0), 10, broken)
        return (await committer.submit(report(1), 10)).through

    assert asyncio.run(run()) == 1
    committer.stop()
    assert database.batches == [[0, 1]]
    assert '"error": "KeyError"' in log.getvalue()
    assert "hunter2" not in log.getvalue()
