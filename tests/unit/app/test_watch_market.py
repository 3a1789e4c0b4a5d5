"""The loop: what is proposed, what is carried out, what ends it (R17, R23)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from planner.app.migrate import Migrated
from planner.app.replan import Replanned
from planner.app.replan_diff import Proposal
from planner.app.watch_market import Acts, Round, StoppableClock, Watch
from planner.model.diagnostic import Diagnostic
from planner.model.errors import LeaseHeld, Unavailable
from planner.model.migration import Kept, MigrationDiff
from tests.unit.app.replanning import NOW, Bench, market_of, move
from tests.unit.migration.diffs import diff

PLAN = Bench(market_of()).plan


def proposal(job: str = "train", *, reviewed: bool = True, prepared: bool = True, **changes: Any) -> Proposal:
    one: MigrationDiff = replace(diff(), job=job, reviewed=reviewed, prepared=prepared, **changes)
    return Proposal(diff=one, plan=PLAN, new_plan=not reviewed)


def stays(job: str = "train", code: str = "SKY-MOVE-406") -> Kept:
    return Kept(job=job, code=code, text="")


@dataclass
class Stage:
    """Decisions to be made, one a round; the last one holds on.  What was carried out, and what was told."""

    out: Path
    decisions: Sequence[tuple[Sequence[Proposal], Sequence[Kept]]]
    ready: Sequence[Proposal] = ()
    apply: bool = False
    open_moves: Sequence[str] = ()
    carry: Callable[[str], Migrated] | None = None
    asked: list[bool] = field(default_factory=list)
    carried: list[tuple[str, bool]] = field(default_factory=list)
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stop = threading.Event()
        self.watch = Watch(
            acts=Acts(
                decide=self.decide,
                unfinished=lambda: self.open_moves,
                carry_out=self.carry_out if self.apply else None,
            ),
            out=self.out,
            log=lambda event, **fields: self.told.append((event, fields)),
            stop=self.stop,
            now=lambda: NOW,
        )

    def decide(self, _now: datetime, only_ready: bool) -> Replanned:
        if only_ready:
            return Replanned(proposals=tuple(self.ready), kept=(), as_of="")
        self.asked.append(only_ready)
        proposals, kept = self.decisions[min(len(self.asked), len(self.decisions)) - 1]
        return Replanned(proposals=tuple(proposals), kept=tuple(kept), as_of="2026-11-30T12:00:00Z")

    def carry_out(self, job: str, given: Proposal | None) -> Migrated:
        self.carried.append((job, given is not None))
        if self.carry is not None:
            return self.carry(job)
        return Migrated(move=replace(move("saving"), job=job), run=None, changed=True)

    @property
    def files(self) -> list[str]:
        return sorted(p.relative_to(self.out).as_posix() for p in self.out.rglob("*") if p.is_file())


def test_a_move_is_proposed_once_and_taken_back_when_it_does_not_hold_any_more(tmp_path: Path) -> None:
    new = proposal(reviewed=False)
    dearer = replace(new, diff=replace(new.diff, text="saves a little less"))
    stage = Stage(tmp_path, [([new], []), ([dearer], []), ([], [stays()])])
    first = stage.watch.round()
    assert stage.files == ["migrations/train.diff.json", "plans/train.plan.json"]
    assert len(first.written) == 2
    assert stage.watch.round().written == (), "the same move, a minute later"
    last = stage.watch.round()
    assert (stage.files, len(last.taken_back)) == ([], 2)
    stage.watch.close()


def test_another_place_is_another_proposal(tmp_path: Path) -> None:
    one = proposal()
    other = replace(one, diff=replace(one.diff, to=one.diff.to[1:]))
    stage = Stage(tmp_path, [([one], []), ([other], [])])
    assert stage.watch.round().written
    assert stage.watch.round().written
    stage.watch.close()


def test_a_job_whose_move_is_under_way_keeps_its_files(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [([proposal()], []), ([], [stays(code="SKY-MOVE-419")])])
    stage.watch.round()
    stage.watch.round()
    assert stage.files == ["migrations/train.diff.json"]
    stage.watch.close()


def test_unattended_only_what_is_ready_is_carried_out_and_the_rest_is_written(tmp_path: Path) -> None:
    ready, better, unprepared = proposal("a"), proposal("a", reviewed=False), proposal("b", prepared=False)
    stage = Stage(tmp_path, [([better, unprepared], [])], ready=[ready, unprepared], apply=True)
    done, well = stage.watch.once()
    assert well
    assert stage.carried == [("a", True)]
    assert done.started == ("a",)
    assert stage.files == ["migrations/b.diff.json"]


def test_without_apply_nothing_is_carried_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [([proposal()], [])], ready=[proposal()])
    stage.watch.once()
    assert stage.carried == []
    assert stage.files == ["migrations/train.diff.json"]


def test_what_an_earlier_process_began_is_gone_on_with(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [([], [stays(code="SKY-MOVE-419")])], apply=True, open_moves=["train"])
    stage.watch.once()
    assert stage.carried == [("train", False)]


def test_a_move_that_fails_is_told_and_ends_once_badly(tmp_path: Path) -> None:
    problem = Diagnostic(code="SKY-MOVE-425", summary="no checkpoint in time")

    def carry(job: str) -> Migrated:
        return Migrated(move=replace(move("saving", "reverted"), job=job), run=None, changed=True, problems=(problem,))

    stage = Stage(tmp_path, [([proposal()], [])], ready=[proposal()], apply=True, carry=carry)
    assert stage.watch.once()[1] is False


def test_moves_go_on_beside_the_rounds_and_each_job_moves_once_at_a_time(tmp_path: Path) -> None:
    go, begun = threading.Event(), threading.Event()

    def carry(job: str) -> Migrated:
        begun.set()
        assert go.wait(30)
        return Migrated(move=replace(move("saving"), job=job), run=None, changed=True)

    stage = Stage(tmp_path, [([proposal()], [])], ready=[proposal()], apply=True, carry=carry)
    first = stage.watch.round()
    assert begun.wait(30)
    second = stage.watch.round()
    assert (first.under_way, second.under_way, second.started) == (("train",), ("train",), ())
    go.set()
    stage.watch._moves["train"].result(30)
    third = stage.watch.round()
    assert third.finished == (("train", "retired", ()),)
    assert third.started == ("train",), "free for the next decision"
    stage.watch.close()


def test_a_round_that_fails_is_told_and_the_next_one_comes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [([], [stays()])])
    sound = stage.decide
    failures = [Unavailable([Diagnostic(code="SKY-APPLY-319", summary="the record does not answer")])]

    def decide(now: datetime, only_ready: bool) -> Replanned:
        if failures:
            raise failures.pop()
        return sound(now, only_ready)

    rounds: list[Round] = []

    def tell(done: Round) -> None:
        rounds.append(done)
        stage.stop.set()

    stage.watch.acts = replace(stage.watch.acts, decide=decide)
    stage.watch.run(0.001, tell)
    assert len(rounds) == 1
    assert [event for event, _ in stage.told] == ["failed", "round"]


def test_a_stop_ends_a_move_at_its_next_wait_and_leaves_it_open(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [([proposal()], [])], ready=[proposal()], apply=True)
    begun = threading.Event()

    def carry(job: str) -> Migrated:
        clock = StoppableClock(stage.stop)
        begun.set()
        while True:
            clock.sleep(60)

    stage.carry = carry

    def tell(_done: Round) -> None:
        assert begun.wait(30)
        stage.stop.set()

    stage.watch.run(60, tell)
    assert stage.watch._result("train") == ("train", "stopped", ())


def test_somebody_else_carries_it_out_already(tmp_path: Path) -> None:
    def carry(job: str) -> Migrated:
        raise LeaseHeld([Diagnostic(code="SKY-APPLY-305", summary=f"{job} is being worked on")])

    stage = Stage(tmp_path, [([proposal()], [])], ready=[proposal()], apply=True, carry=carry)
    stage.watch.round()
    assert stage.watch._result("train")[1] == "held"
    stage.watch.close()


def test_a_round_is_one_line_of_json(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [([proposal()], [stays("other")])])
    document = json.loads(json.dumps(stage.watch.round().document()))
    assert document["round"] == 1
    assert [m["job"] for m in document["migrations"]] == ["train"]
    assert [k["job"] for k in document["kept"]] == ["other"]
    stage.watch.close()


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"to": []}'])
def test_a_file_that_is_no_proposal_is_written_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "migrations" / "train.diff.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    stage = Stage(tmp_path, [([proposal()], [])])
    assert stage.watch.round().written
    stage.watch.close()
