"""The two ends of what many runs told, on both databases: the same as asking run by run."""

from __future__ import annotations

from planner.model.runtime import Kind
from planner.state.newest import Looker
from tests.contract.beds import AWS, MINUTE, NOW, PROJECT, Bed, item, report, seat, told


def looker(bed: Bed) -> Looker:
    return Looker(bed.record._engine, PROJECT)


def test_first_and_last_step_of_the_lowest_rank_of_each_run(bed: Bed) -> None:
    for job in ("train", "other"):
        bed.launch("i-0", "i-1", job=job)
        for rank in (0, 1):
            bed.join(seat(1, rank, job), f"i-{rank}", AWS, proof_sha256=f"{job}{rank}", token_sha256=f"{job}{rank}")
            if (job, rank) != ("other", 0):
                steps = [item(n, at=NOW + n * MINUTE, step=10 * n + rank) for n in (1, 2, 3)]
                bed.deliver(report(*steps, of=seat(1, rank, job)))
    found = looker(bed).newest([("train", 1), ("other", 1), ("train", 2), ("nobody", 1)]).ends
    assert {key: (e.first.seat.rank, e.first.step, e.last.step) for key, e in found.items()} == {
        ("train", 1): (0, 10, 30),
        ("other", 1): (1, 11, 31),
    }


def test_the_checkpoint_that_a_resume_would_choose_and_the_newest_notice(bed: Bed) -> None:
    bed.launch("i-0")
    bed.join()
    first, best, late = bed.checkpoint(5), bed.checkpoint(30), bed.checkpoint(20)
    bed.deliver(
        report(
            *(told(one, n) for n, one in enumerate((first, best, late), 1)),
            item(4, Kind.NOTICE, what="spot", deadline="2026-07-30T12:02:00.000000Z"),
            item(5, Kind.NOTICE, what="maintenance"),
        )
    )
    found = looker(bed).newest([("train", 1)])
    assert found.checkpoints["train"].step == 30
    assert "maintenance" in found.notices["train", 1].text
    assert looker(bed).newest([("train", 2)]).notices == {}


def test_nothing_is_asked_where_there_are_no_runs(bed: Bed) -> None:
    found = looker(bed).newest([])
    assert (dict(found.ends), dict(found.checkpoints), dict(found.notices)) == ({}, {}, {})
