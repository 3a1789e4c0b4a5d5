"""The hold, on both databases: a generation that a move has launched fences nobody before the old one's checkpoint is durable, and what is given up never can (R16)."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest

from planner.model.errors import StateConflict
from planner.model.migration import MigrationStatus
from planner.model.record import RunStatus
from planner.model.runtime import Kind, Refusal, Refused
from planner.state.history import Move
from planner.state.writer import Writer
from tests.contract.beds import AWS, MINUTE, NOW, Bed, item, report, seat

LATER = NOW + MINUTE


def writer(bed: Bed, at: datetime = NOW) -> Writer:
    return bed.record.writer(bed.record.take_lease("train", "me", at, timedelta(hours=1), gone=lambda _: True))


def moving(bed: Bed) -> tuple[Writer, Move]:
    """Generation 1 runs, 2 was launched by a move."""
    bed.launch("i-0")
    move = writer(bed).decide(1, "saving", {}, NOW)
    bed.launch("i-1")
    hand = writer(bed)
    return hand, hand.go_on(move, NOW, to_generation=2)


def begins(bed: Bed, generation: int) -> Refusal | None:
    try:
        bed.runtime.begin_cut(seat(generation), LATER)
    except Refused as refused:
        return refused.word
    return None


def fenced(bed: Bed) -> list[bool]:
    return [r.fenced_at is not None for r in bed.record.runs("train")]


def test_a_generation_that_a_move_has_launched_waits_until_the_checkpoint_is_durable(bed: Bed) -> None:
    hand, move = moving(bed)
    assert begins(bed, 2) is Refusal.EARLY
    move = hand.go_on(move, NOW, status=MigrationStatus.LAUNCHED)
    assert begins(bed, 2) is Refusal.EARLY
    assert fenced(bed) == [False, False]
    bed.join(seat(2), "i-1", AWS)
    assert bed.deliver(report(item(1, step=5)), report(of=seat(2)))[0].through == 1, (
        "the old one is heard, and the new one"
    )
    hand.go_on(move, NOW, status=MigrationStatus.SAVED)
    assert begins(bed, 2) is None
    assert fenced(bed) == [True, False]


def test_the_old_generation_itself_is_not_held(bed: Bed) -> None:
    """Its node boots again while the move is under way."""
    moving(bed)
    assert begins(bed, 1) is None


def test_no_cut_can_be_chosen_past_the_hold(bed: Bed) -> None:
    moving(bed)
    with pytest.raises(Refused, match="begin the cut first"):
        bed.runtime.choose_cut(seat(2), NOW, [])


def test_a_move_of_another_job_holds_nobody(bed: Bed) -> None:
    moving(bed)
    bed.launch("j-0", job="other")
    bed.launch("j-1", job="other")
    bed.runtime.begin_cut(seat(2, job="other"), NOW)


@pytest.mark.parametrize("status", [MigrationStatus.PROPOSED, MigrationStatus.LAUNCHED, MigrationStatus.SAVED])
def test_what_is_given_up_can_never_begin_and_the_old_one_computes_on(bed: Bed, status: MigrationStatus) -> None:
    hand, move = moving(bed)
    move = hand.go_on(move, NOW, status=status)
    reverted = hand.give_up(move, NOW, "no reason")
    assert reverted is not None
    assert reverted.status == MigrationStatus.REVERTED
    assert begins(bed, 2) is Refusal.ENDED
    assert [r.status for r in bed.record.runs("train")] == [RunStatus.RUNNING, RunStatus.FAILED]
    assert bed.deliver(report(item(1, step=5)))[0].through == 1
    assert bed.record.open_move("train") is None


@pytest.mark.parametrize("taken", [False, True])
def test_a_job_that_has_ended_is_not_begun_again_unless_the_cloud_took_its_nodes(bed: Bed, taken: bool) -> None:
    hand, move = moving(bed)
    hand.go_on(move, NOW, status=MigrationStatus.SAVED)
    first = [item(1, Kind.NOTICE, what="spot")] if taken else []
    assert bed.deliver(report(*first, item(2, Kind.EXIT, code=143)))[0].refused is None
    assert bed.record.runs("train")[0].status is RunStatus.EXITED
    assert begins(bed, 2) is (None if taken else Refusal.EARLY)
    assert begins(bed, 2) is (None if taken else Refusal.EARLY), "and asked again it is the same"


def test_there_is_no_way_back_once_the_cut_has_begun(bed: Bed) -> None:
    hand, move = moving(bed)
    move = hand.go_on(move, NOW, status=MigrationStatus.SAVED)
    bed.runtime.begin_cut(seat(2), NOW)
    assert hand.give_up(move, NOW, "too late") is None
    assert bed.record.moves("train")[-1].status == MigrationStatus.SAVED
    assert bed.record.runs("train")[1].status is RunStatus.RUNNING


def test_of_a_cut_and_a_revert_at_the_same_moment_one_wins(bed: Bed) -> None:
    hand, move = moving(bed)
    move = hand.go_on(move, NOW, status=MigrationStatus.SAVED)
    for _ in range(10):
        gate, found = threading.Barrier(2), list[Refusal | None]()

        def begin(gate: threading.Barrier = gate, found: list[Refusal | None] = found) -> None:
            gate.wait()
            found.append(begins(bed, bed.record.runs("train")[-1].generation))

        thread = threading.Thread(target=begin)
        thread.start()
        gate.wait()
        reverted = hand.give_up(move, NOW, "a race")
        thread.join()
        assert found == [Refusal.ENDED if reverted else None]
        if reverted is None:
            hand.go_on(move, NOW, status=MigrationStatus.RETIRED)
        start = max(r.generation for r in bed.record.runs("train") if r.status is RunStatus.RUNNING)
        hand = writer(bed)
        move = hand.decide(start, "saving", {}, NOW)
        bed.launch("i-9")
        hand = writer(bed)
        move = hand.go_on(move, NOW, status=MigrationStatus.SAVED, to_generation=hand.generation)


def test_one_move_at_a_time_and_each_step_once(bed: Bed) -> None:
    hand, move = moving(bed)
    with pytest.raises(StateConflict) as open_one:
        hand.decide(1, "saving", {}, NOW)
    assert [d.code for d in open_one.value.diagnostics] == ["SKY-MOVE-419"]
    further = hand.go_on(move, NOW, status=MigrationStatus.LAUNCHED)
    with pytest.raises(StateConflict, match="another process"):
        hand.go_on(move, NOW, status=MigrationStatus.LAUNCHED)
    with pytest.raises(StateConflict, match="another process"):
        hand.give_up(move, NOW, "stale")
    assert hand.give_up(further, NOW, "now") is not None
    assert hand.decide(1, "saving", {}, NOW).id > move.id


def test_whoever_lost_the_lease_moves_nothing(bed: Bed) -> None:
    hand, move = moving(bed)
    writer(bed)
    with pytest.raises(StateConflict):
        hand.go_on(move, NOW, status=MigrationStatus.SAVED)
    assert begins(bed, 2) is Refusal.EARLY
