"""From where a generation starts, on both databases: the file's step wins over the record, and nobody who is fenced, foreign or forging has a say (R15, R16)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.runtime import Candidate, Refused
from tests.contract.beds import MINUTE, NOW, Bed, item, report, seat, told


def began(bed: Bed, generation: int) -> None:
    bed.runtime.begin_cut(seat(generation), NOW)


def chosen(bed: Bed, generation: int, *candidates: Candidate) -> int | None:
    cut = bed.runtime.choose_cut(seat(generation), NOW, candidates)
    assert bed.runtime.cut("train", generation) == cut
    return cut.chosen.step if cut.chosen else None


def test_beginning_fences_all_older_generations_and_names_those_issued(bed: Bed) -> None:
    for machine in ("i-0", "i-1", "i-2", "i-3"):
        bed.launch(machine)
    assert bed.runtime.begin_cut(seat(3), NOW) == ((1, 2, 3), None)
    assert [r.fenced_at is not None for r in bed.record.runs("train")] == [True, True, False, False]
    first = [r.fenced_at for r in bed.record.runs("train")]
    bed.runtime.begin_cut(seat(3), NOW + MINUTE)
    assert [r.fenced_at for r in bed.record.runs("train")] == first
    assert bed.kinds().count("fenced") == 2


def test_the_first_generation_starts_from_the_beginning(bed: Bed) -> None:
    bed.launch("i-0")
    began(bed, 1)
    assert chosen(bed, 1) is None
    assert bed.kinds()[-1] == "cut"


def test_the_files_step_wins_over_the_record_and_the_record_learns_of_it(bed: Bed) -> None:
    bed.launch("i-0")
    low, high = bed.checkpoint(100), bed.checkpoint(200)
    bed.deliver(report(told(low, 1)))
    bed.launch("i-1")
    began(bed, 2)
    cut = bed.runtime.choose_cut(seat(2), NOW, [high, low], [("s3://x/", "torn")])
    assert (cut.chosen, cut.recorded_step, cut.skipped) == (high, 100, (("s3://x/", "torn"),))
    assert [(c.step, c.source) for c in bed.runtime.checkpoints("train")] == [(100, "report"), (200, "cut")]
    assert bed.kinds()[-3:] == ["skipped", "cut", "corrected"]


def test_a_record_that_believed_too_much_is_corrected_too(bed: Bed) -> None:
    bed.launch("i-0")
    low, high = bed.checkpoint(100), bed.checkpoint(200)
    bed.deliver(report(told(low, 1), told(high, 2)))
    bed.launch("i-1")
    began(bed, 2)
    cut = bed.runtime.choose_cut(seat(2), NOW, [low])
    assert (cut.chosen, cut.recorded_step) == (low, 200)
    assert bed.kinds()[-1] == "corrected"
    bed.launch("i-2")
    began(bed, 3)
    again = bed.runtime.choose_cut(seat(3), NOW, [low])
    assert (again.chosen, again.recorded_step) == (low, 100)
    assert bed.kinds()[-1] == "cut"


def test_a_cut_is_chosen_once(bed: Bed) -> None:
    bed.launch("i-0")
    low, high = bed.checkpoint(100), bed.checkpoint(200)
    bed.launch("i-1")
    began(bed, 2)
    assert chosen(bed, 2, low) == 100
    assert chosen(bed, 2, low, high) == 100
    assert bed.runtime.begin_cut(seat(2), NOW) == ((1, 2), bed.runtime.cut("train", 2))


def test_choosing_without_beginning_is_refused(bed: Bed) -> None:
    bed.launch("i-0")
    bed.launch("i-1")
    with pytest.raises(Refused, match=r"^malformed: begin"):
        chosen(bed, 2)


@pytest.mark.parametrize("act", ["begin", "choose", "reject"])
def test_only_rank_0_cuts(bed: Bed, act: str) -> None:
    bed.launch("i-0", "i-1")
    acts = {
        "begin": lambda s: bed.runtime.begin_cut(s, NOW),
        "choose": lambda s: bed.runtime.choose_cut(s, NOW, []),
        "reject": lambda s: bed.runtime.reject_cut(s, NOW, "x", "y"),
    }
    with pytest.raises(Refused, match=r"^malformed"):
        acts[act](seat(rank=1))


def test_what_is_forged_foreign_or_out_of_place_is_skipped_with_its_reason(bed: Bed) -> None:
    bed.launch("i-0")
    good = bed.checkpoint(10)
    bed.launch("i-1")
    bed.launch("i-2")
    bed.launch("i-3")
    own = bed.checkpoint(10**9, generation=3)
    forged = replace(own, generation=1, uri=own.uri.replace("g3", "g1"))  # by a key of another generation
    moved = replace(good, uri="s3://elsewhere/train/g1/step-000000000010/")  # copied
    higher = replace(good, step=11, uri=good.uri.replace("10/", "11/"))
    misplaced = replace(good, uri="s3://ckpt/train/step-000000000010/")
    newer = bed.checkpoint(10**9, generation=4)
    unissued = replace(newer, generation=9, uri=newer.uri.replace("g4", "g9"))
    never_joined = replace(
        forged, generation=2, uri=own.uri.replace("g3", "g2")
    )  # nobody ever got a key of generation 2
    wrong = [forged, moved, higher, misplaced, newer, unissued, never_joined, replace(good, digest="0" * 64)]
    began(bed, 3)
    cut = bed.runtime.choose_cut(seat(3), NOW, [*wrong, good])
    assert cut.chosen == good
    assert len(cut.skipped) == len(wrong)
    assert {reason.split(" ")[0] for _, reason in cut.skipped} == {"its", "not", "generation"}


def test_what_a_fenced_generation_wrote_after_the_cut_is_never_resumed_from(bed: Bed) -> None:
    bed.launch("i-0")
    before, after = bed.checkpoint(100), bed.checkpoint(500)
    bed.launch("i-1")
    began(bed, 2)
    assert chosen(bed, 2, before) == 100
    newer = bed.checkpoint(150, generation=2)
    for generation in (3, 4):
        bed.launch(f"i-{generation}")
        began(bed, generation)
        assert chosen(bed, generation, before, after, newer) == 150
    assert "had taken over" in dict(bed.runtime.cut("train", 4).skipped)[after.uri]  # pyright: ignore[reportOptionalMemberAccess]


def test_a_generation_that_never_chose_hides_nothing(bed: Bed) -> None:
    bed.launch("i-0")
    ckpt = bed.checkpoint(100)
    bed.launch("i-1")
    began(bed, 2)
    bed.launch("i-2")
    began(bed, 3)
    assert chosen(bed, 3, ckpt) == 100


def test_a_rejected_one_makes_way_for_the_next_until_there_is_progress(bed: Bed) -> None:
    bed.launch("i-0")
    found = [bed.checkpoint(step) for step in (100, 200, 300)]
    bed.launch("i-1")
    began(bed, 2)
    with pytest.raises(Refused, match="no cut yet"):
        bed.runtime.reject_cut(seat(2), NOW, found[2].uri, "hash")
    assert chosen(bed, 2, *found) == 300
    cut = bed.runtime.reject_cut(seat(2), NOW, found[2].uri, "hash of model.pt")
    assert cut.chosen == found[1]
    assert cut.skipped == ((found[2].uri, "hash of model.pt"),)
    assert bed.runtime.reject_cut(seat(2), NOW, found[2].uri, "sent again") == cut
    bed.deliver(report(item(1, step=201), of=seat(2)))
    with pytest.raises(Refused, match="final"):
        bed.runtime.reject_cut(seat(2), NOW, found[1].uri, "hash")
    bed.launch("i-2")
    began(bed, 3)
    assert chosen(bed, 3, *found) == 200
    bed.runtime.reject_cut(seat(3), NOW, found[1].uri, "x")
    assert bed.runtime.reject_cut(seat(3), NOW, found[0].uri, "x").chosen is None


def test_a_second_checkpoint_of_one_step_counts_and_the_later_generation_wins(bed: Bed) -> None:
    bed.launch("i-0")
    first = bed.checkpoint(100)
    bed.launch("i-1")
    began(bed, 2)
    chosen(bed, 2, first)
    second, again = bed.checkpoint(100, generation=2), bed.checkpoint(100, generation=2, name="-1")
    bed.launch("i-2")
    began(bed, 3)
    cut = bed.runtime.choose_cut(seat(3), NOW, [first, again, second])
    assert cut.chosen in {second, again}
    assert not cut.skipped


def test_candidates_that_no_database_takes_are_skipped(bed: Bed) -> None:
    bed.launch("i-0")
    good = bed.checkpoint(10)
    bed.launch("i-1")
    began(bed, 2)
    strange = [
        replace(good, uri="s3://\x00" + good.uri),
        replace(good, uri="\ud800" + good.uri),
        replace(good, step=2**64),
        replace(good, bytes=2**64),
        replace(good, bytes=-1),
        replace(good, digest="\x00" * 64),
        replace(good, mac="\ud800"),
        replace(good, generation=2**70),
        replace(good, generation=-1),
    ]
    cut = bed.runtime.choose_cut(seat(2), NOW, [*strange, good], [("\x00", "\ud800")])
    assert cut.chosen == good
    assert len(cut.skipped) == len(strange) + 1
