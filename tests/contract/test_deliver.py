"""Reports, on both databases: each item exactly once, whatever is sent twice, at once or in a wrong shape (R13, R16)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from planner.model.errors import Unavailable
from planner.model.record import RunStatus, stamp
from planner.model.runtime import CredentialIssue, Item, Kind, Refused, Report
from planner.state import deliver
from planner.state.runtime import Runtime
from tests.contract.beds import MINUTE, NOW, Bed, item, report, seat, told


def steps(bed: Bed, **named) -> list[int]:
    return [p.step for p in bed.runtime.progress("train", **named)]


def test_what_is_sent_again_is_taken_once(bed: Bed) -> None:
    bed.launch("i-0")
    first = report(item(1, step=1), item(2, step=2))
    assert bed.deliver(first)[0].through == 2
    assert bed.deliver(first)[0].through == 2
    longer = replace(first, items=(*first.items, item(5, step=3, loss=0.5, rate=2, metrics={"lr": 1e-3})))
    assert [d.through for d in bed.deliver(longer, first, longer)] == [5, 5, 5]
    assert steps(bed) == [1, 2, 3]
    newest = bed.runtime.newest("train")
    assert newest is not None
    assert (newest.loss, newest.rate, newest.metrics) == (0.5, 2.0, {"lr": 1e-3})
    assert bed.deliver(report(item(1, step=9), stream="s2"))[0].through == 1
    assert steps(bed) == [1, 2, 3, 9]


def test_the_newest_steps_are_told_whole(bed: Bed) -> None:
    assert bed.runtime.recent("train") == ()
    for generation in (1, 2):
        bed.launch("i-0", "i-1")
        for rank in (1, 0):
            told_by = seat(generation, rank)
            bed.deliver(report(*(item(k, step=100 * generation + k) for k in range(1, 31)), of=told_by))
    assert [p.step for p in bed.runtime.recent("train", limit=3)] == [228, 229, 230]
    assert [p.step for p in bed.runtime.recent("train", generation=1, limit=2)] == [129, 130]
    assert {p.seat for p in bed.runtime.recent("train")} == {seat(2, 0)}
    assert bed.runtime.recent("train", generation=7) == ()


def test_an_empty_report_is_a_sign_of_life_and_brings_requests(bed: Bed) -> None:
    bed.launch("i-0")
    made = bed.runtime.request("train", 1, "checkpoint", "maintenance", NOW, deadline="2026-07-30T12:30:00.000000Z")
    (answer,) = bed.deliver(report())
    assert [(r.id, r.word, r.deadline) for r in answer.requests] == [
        (made, "checkpoint", "2026-07-30T12:30:00.000000Z")
    ]
    assert bed.runtime.requests(seat()) == answer.requests
    assert bed.runtime.seen("train", 1)[0].at == stamp(NOW)
    with pytest.raises(Refused, match="malformed"):
        bed.runtime.request("train", 1, "dance", "", NOW)
    with pytest.raises(Refused, match="unknown"):
        bed.runtime.request("train", 7, "stop", "", NOW)


def test_all_kinds_find_their_place(bed: Bed) -> None:
    bed.launch("i-0")
    bed.join()
    ckpt = bed.checkpoint(10)
    items = [
        item(1, Kind.HEARTBEAT, gpu_memory_mib=1000, gpu_utilization_percent=50.5),
        told(ckpt, 2),
        item(3, Kind.SKIPPED, uri="s3://x/", reason="torn"),
        item(4, Kind.NOTICE, what="spot", deadline=stamp(NOW)),
        item(5, Kind.CREDENTIAL, uri="s3://x/", state="degraded"),
        item(6, Kind.LOG, text="hello\n"),
        item(7, Kind.EVENT, word="spool-full", text="dropped 3"),
        item(8, Kind.HEARTBEAT),
    ]
    assert bed.deliver(report(*items))[0].through == 8
    assert [(c.step, c.uri, c.source) for c in bed.runtime.checkpoints("train")] == [(10, ckpt.uri, "report")]
    (seen,) = bed.runtime.seen("train", 1)
    assert (seen.gpu_memory_mib, seen.gpu_utilization_percent, seen.instance_id) == (1000, 50.5, "i-0")
    assert seen.exit_code is None
    assert [c.text for c in bed.runtime.logs("train", 1)] == ["hello\n"]
    assert bed.kinds()[-4:] == ["skipped", "notice", "credential", "node-spool-full"]


def test_one_refused_report_leaves_the_others_alone(bed: Bed) -> None:
    bed.launch("i-0")
    bed.launch("i-1", job="other")
    reports = [
        report(item(1, step=1)),
        report(item(1, step=1), of=seat(job="nobody")),
        report(item(1, step=1), of=seat(rank=5)),
        report(item(1, step=1), item(2, step=-1), stream="bad"),
        report(item(1, step=7), of=seat(job="other")),
    ]
    answers = bed.deliver(*reports)
    assert [a.refused.word.value if a.refused else a.through for a in answers] == [
        1,
        "unknown",
        "unknown",
        "malformed",
        1,
    ]
    assert steps(bed) == [1]
    assert bed.deliver(report(item(1, step=2), stream="bad"))[0].through == 1


BAD: dict[str, Item] = {
    "step missing": item(1),
    "step text": item(1, step="1"),
    "step true": item(1, step=True),
    "step huge": item(1, step=2**63),
    "step float": item(1, step=1.5),
    "metrics list": item(1, step=1, metrics=[1]),
    "log number": item(1, Kind.LOG, text=3),
    "exit text": item(1, Kind.EXIT, code="0"),
    "exit huge": item(1, Kind.EXIT, code=2**31),
    "exit missing": item(1, Kind.EXIT),
    "event without a word": item(1, Kind.EVENT, text="x"),
    "event word strange": item(1, Kind.EVENT, word="A B", text="x"),
    "checkpoint without a mac": item(
        1, Kind.CHECKPOINT, step=1, uri="s3://x/g1/step-000000000001/", digest="0" * 64, bytes=1
    ),
    "moment": replace(item(1, step=1), at="yesterday"),
    "moment of another form": replace(item(1, step=1), at="2026-07-30T12:00:00Z"),
    "seq 0": replace(item(1, step=1), seq=0),
    "seq huge": replace(item(1, step=1), seq=2**63),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_malformed_is_refused_whole(bed: Bed, name: str) -> None:
    bed.launch("i-0")
    (answer,) = bed.deliver(report(BAD[name]))
    assert answer.refused is not None
    assert answer.refused.word == "malformed"
    assert not steps(bed)


@pytest.mark.parametrize(
    "bad",
    [
        report(item(2, step=1), item(2, step=2)),
        report(item(2, step=1), item(1, step=2)),
        report(item(1, step=1), stream=""),
        report(item(1, step=1), stream="x" * 65),
        report(*(item(k, step=1) for k in range(1, 502))),
    ],
)
def test_a_report_of_a_wrong_shape_is_refused(bed: Bed, bad: Report) -> None:
    bed.launch("i-0")
    (answer,) = bed.deliver(bad)
    assert answer.refused is not None
    assert answer.refused.word == "malformed"


def test_strange_values_are_bent_into_shape(bed: Bed) -> None:
    bed.launch("i-0")
    nan = float("nan")
    items = [
        item(
            1,
            step=2**63 - 1,
            loss=nan,
            rate=float("inf"),
            metrics={"a": nan, "b\x00": 1, "c": "x", "d": 2**2000, "e": 5},
        ),
        item(2, Kind.LOG, text="nul \x00, half a pair \ud800, " + "x" * 9000),
        item(3, at=NOW + timedelta(days=400), step=5),
        item(4, Kind.HEARTBEAT, gpu_memory_mib=1e30, gpu_utilization_percent="much"),
    ]
    assert bed.deliver(report(*items))[0].through == 4
    first, last = bed.runtime.progress("train")
    assert (first.step, first.loss, first.rate, first.metrics) == (2**63 - 1, None, None, {"b\ufffd": 1.0, "e": 5.0})
    assert last.at == stamp(NOW)
    (chunk,) = bed.runtime.logs("train", 1)
    assert chunk.text.startswith("nul \ufffd, half a pair \ufffd, x")
    assert len(chunk.text) == 8192


def test_a_checkpoint_by_another_key_or_elsewhere_is_told_and_not_kept(bed: Bed) -> None:
    bed.launch("i-0")
    bed.launch("i-1")
    foreign = bed.checkpoint(10, generation=2)
    bent = replace(bed.checkpoint(10), mac="0" * 64)
    moved = bed.checkpoint(11)
    moved = replace(moved, step=12)
    assert bed.deliver(report(told(foreign, 1), told(bent, 2), told(moved, 3)))[0].through == 3
    assert bed.runtime.checkpoints("train") == ()
    assert bed.kinds()[-3:] == ["skipped"] * 3


def test_the_same_checkpoint_told_by_two_streams_is_one(bed: Bed) -> None:
    bed.launch("i-0")
    ckpt = bed.checkpoint(10)
    bed.deliver(report(told(ckpt, 1)), report(told(ckpt, 1), stream="s2"))
    assert len(bed.runtime.checkpoints("train")) == 1


def test_a_run_has_exited_once_every_rank_ended_well_or_not(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    bed.deliver(report(item(1, Kind.EXIT, code=0)))
    assert bed.record.runs()[0].status is RunStatus.RUNNING
    bed.deliver(report(item(1, Kind.EXIT, code=3, signal=9), of=seat(rank=1)))
    assert bed.record.runs()[0].status is RunStatus.EXITED
    assert bed.kinds()[-2:] == ["exit", "exited"]
    assert bed.record.events("train")[-1].text == "the job ended on 2 node(s), on 1 with an error: code 3 (SKY-RUN-522)"
    assert [n.exit_code for n in bed.runtime.seen("train", 1)] == [0, 3]
    assert bed.deliver(report(item(3, Kind.LOG, text="bye")))[0].refused is None
    bed.deliver(report(item(4, Kind.EXIT, code=0)))
    assert bed.kinds().count("exited") == 1


def test_both_last_ranks_exit_in_one_batch(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    bed.deliver(*(report(item(1, Kind.EXIT, code=0), of=seat(rank=k)) for k in range(2)))
    assert bed.record.runs()[0].status is RunStatus.EXITED


def test_logs_are_pruned_per_rank_and_followed_by_id(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "LOG_KEPT", 1000)
    monkeypatch.setattr(deliver, "LOG_SLACK", 100)
    bed.launch("i-0", "i-1")
    bed.deliver(report(item(1, Kind.LOG, text="other"), of=seat(rank=1)))
    for k in range(50):
        bed.deliver(report(item(k + 1, Kind.LOG, text=f"{k:099d}\n")))
    kept = bed.runtime.logs("train", 1, rank=0)
    assert [int(c.text) for c in kept] == list(range(40, 50))
    assert [int(c.text) for c in bed.runtime.logs("train", 1, rank=0, after=kept[-3].id)] == [48, 49]
    assert [int(c.text) for c in bed.runtime.logs("train", 1, rank=0, limit=2)] == [48, 49]
    assert [c.text for c in bed.runtime.logs("train", 1, rank=1)] == ["other"]


def test_progress_is_thinned_evenly_and_keeps_the_newest(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    bed.deliver(report(*(item(k, step=k) for k in range(1, 401))))
    bed.deliver(report(*(item(k, step=k + 1000) for k in range(1, 11)), of=seat(rank=1)))
    thinned = steps(bed, limit=40)
    assert len(thinned) == 40
    assert thinned[-1] == 400
    assert len(set(map(int.__sub__, thinned[1:], thinned))) == 1
    assert steps(bed, rank=1) == list(range(1001, 1011))
    assert steps(bed, generation=2) == []
    assert bed.runtime.newest("train").step == 400  # pyright: ignore[reportOptionalMemberAccess]


def test_events_are_followed_by_id(bed: Bed) -> None:
    bed.launch("i-0")
    for k in range(5):
        bed.deliver(report(item(k + 1, Kind.EVENT, word="w", text=str(k))))
    newest = bed.runtime.events("train", limit=3)
    assert [e.text for _, e in newest] == ["r00: 2", "r00: 3", "r00: 4"]
    assert [e.text for _, e in bed.runtime.events("train", after=newest[0][0])] == ["r00: 3", "r00: 4"]


def test_an_issue_is_noted_once_and_not_for_whom_is_fenced(bed: Bed) -> None:
    bed.launch("i-0")
    given = CredentialIssue(
        id="l1",
        seat=seat(),
        store="s3",
        uri="s3://x/",
        access="read",
        identity="arn:aws:iam::1:role/x",
        issued_at=stamp(NOW),
        expires_at=stamp(NOW + MINUTE),
    )
    bed.runtime.issue(given, NOW)
    bed.runtime.issue(given, NOW)
    assert bed.runtime.issues() == bed.runtime.issues("train") == (given,)
    bed.launch("i-1")
    bed.runtime.begin_cut(seat(2), NOW)
    with pytest.raises(Refused, match="fenced"):
        bed.runtime.issue(replace(given, id="l2"), NOW)
    assert len(bed.runtime.issues("train")) == 1


def test_projects_do_not_see_each_other(bed: Bed, made: str) -> None:
    bed.launch("i-0")
    bed.join()
    bed.deliver(report(item(1, step=1)))
    other = Runtime.open(made, "other")
    try:
        assert other.session("token of i-0", NOW) is None
        assert other.newest("train") is None
        assert other.deliver([report(item(2, step=2))], NOW)[0].refused is not None
    finally:
        other.close()


def _at_once(count: int, act: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(act, range(count)))


def test_several_servers_take_each_item_once(bed: Bed, made: str) -> None:
    """The same reports by several servers at once, in different orders: no item twice, none lost, nobody waits for ever."""
    bed.launch(*(f"i-{k}" for k in range(6)))
    reports = [report(*(item(k, step=k) for k in range(1, 6)), of=seat(rank=r)) for r in range(6)]
    servers = [Runtime.open(made, "acme") for _ in range(4)]

    def act(k: int) -> None:
        for turn in range(5):
            mine = reports[(k + turn) % 6 :] + reports[: (k + turn) % 6]
            assert all(d.through == 5 for d in servers[k].deliver(mine[::-1] if k % 2 else mine, NOW))

    try:
        _at_once(4, act)
    finally:
        for server in servers:
            server.close()
    for rank in range(6):
        assert steps(bed, rank=rank) == [1, 2, 3, 4, 5]


def test_a_fence_and_reports_at_once_leave_nothing_told_after_the_fence(bed: Bed, made: str) -> None:
    bed.launch("i-0")
    bed.launch("i-1")
    server = Runtime.open(made, "acme")
    answers = []

    def act(k: int) -> None:
        if k:
            answers.extend(server.deliver([report(item(n, step=n))], NOW)[0] for n in range(1, 40))
        else:
            bed.runtime.begin_cut(seat(2), NOW)

    try:
        _at_once(2, act)
    finally:
        server.close()
    taken = [a.through for a in answers if a.refused is None]
    assert steps(bed, generation=1) == taken
    assert taken == list(range(1, len(taken) + 1))
    assert bed.deliver(report(item(99, step=99)))[0].refused is not None


def test_a_database_that_is_locked_for_too_long_is_unavailable(bed: Bed, made: str, monkeypatch) -> None:
    from planner.state import engine

    if not made.startswith("sqlite"):
        pytest.skip("SQLite's own")
    bed.launch("i-0")
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0)
    slow = Runtime.open(made, "acme")
    holder = engine.open_engine(made)
    try:
        with holder.connect().execution_options(writes=True) as connection, connection.begin():
            with pytest.raises(Unavailable):
                slow.deliver([report(item(1, step=1))], NOW)
            assert slow.newest("train") is None
        assert slow.deliver([report(item(1, step=1))], NOW)[0].through == 1
    finally:
        holder.dispose()
        slow.close()


def test_a_database_that_was_started_anew_answers_again(bed: Bed, made: str, request) -> None:
    if made.startswith("sqlite"):
        pytest.skip("PostgreSQL's own")
    import psycopg

    bed.launch("i-0")
    assert bed.deliver(report(item(1, step=1)))[0].through == 1
    with psycopg.connect(made, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    assert bed.deliver(report(item(2, step=2)))[0].through == 2
    assert steps(bed) == [1, 2]


def test_rows_are_numbered_beyond_32_bits(bed: Bed, made: str) -> None:
    """A thousand reports a second use them up in 25 days."""
    bed.launch("i-0")
    if not made.startswith("sqlite"):
        import psycopg

        with psycopg.connect(made, autocommit=True) as other:
            for table in ("event", "node", "attempt", "progress", "log"):
                other.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {2**31})")
    else:
        import sqlite3
        from contextlib import closing

        with closing(sqlite3.connect(made.removeprefix("sqlite:///"))) as other, other:
            other.execute(f"UPDATE event SET id = {2**31} WHERE id = (SELECT max(id) FROM event)")
    told = (item(1, step=1), item(2, Kind.EVENT, word="w", text="x"), item(3, Kind.LOG, text="line"))
    assert bed.deliver(report(*told))[0].through == 3
    assert bed.runtime.events("train")[-1][0] > 2**31
    assert steps(bed) == [1]


def test_launches_and_reports_at_once_end_all_well(bed: Bed, made: str) -> None:
    """As `apply` moves a run while its nodes exit and tell events: nobody is turned away by a lock or by a move in between."""
    bed.launch("i-0")
    servers = [Runtime.open(made, "acme") for _ in range(2)]
    lease = bed.record.take_lease("train", "me", NOW, MINUTE, gone=lambda _: True)

    def act(k: int) -> None:
        for n in range(1, 16):
            if k == 2:
                bed.record.writer(lease).run_status(1, RunStatus.RUNNING, NOW, "seen")
            else:
                items = (item(2 * n - 1, Kind.EVENT, word="w", text="x"), item(2 * n, Kind.EXIT, code=0))
                answer = servers[k].deliver([report(*items, stream=f"s{k}")], NOW)[0]
                assert answer.through == 2 * n

    try:
        _at_once(3, act)
    finally:
        for server in servers:
            server.close()
    assert bed.kinds().count("node-w") == 30


def test_who_lost_the_seat_reports_no_more_whatever_a_server_remembers(bed: Bed) -> None:
    """Another replica gave the seat away: here the old session is still known."""
    bed.launch("i-0", "i-1")
    bed.join()
    before = bed.runtime.session("token of i-0", NOW)
    assert before is not None
    old = replace(report(item(1, step=1)), holder=(before.instance_id, before.key_sha256))
    assert bed.deliver(old)[0].through == 1
    bed.renamed(1, 0, "i-9")
    bed.join(machine="i-9")
    beside = report(item(1, step=7), of=seat(rank=1))
    again, other = bed.deliver(replace(old, items=(item(2, step=2),)), beside)
    assert again.refused is not None
    assert again.refused.word.value == "unknown"
    assert other.through == 1
    same_machine = replace(old, items=(item(2, step=2),), holder=("i-9", "key of i-0"))
    assert bed.deliver(same_machine)[0].refused is not None
    assert bed.deliver(replace(same_machine, holder=("i-9", "key of i-9")))[0].through == 2
    assert steps(bed, rank=0) == [1, 2]


def test_a_seat_that_is_being_given_away_takes_nothing_of_its_holder_afterwards(bed: Bed, made: str) -> None:
    """Whoever reports waits for the one who gives the seat away, and looks at the seat after that."""
    bed.launch("i-0")
    bed.join()
    old = replace(report(item(1, step=1)), holder=("i-0", "key of i-0"))
    server = Runtime.open(made, "acme")
    answers = []

    def act(k: int) -> None:
        if k:
            for n in range(1, 60):
                told = replace(old, items=(item(n, step=n),))
                answers.append((server.deliver([told], NOW)[0], n))
        else:
            bed.renamed(1, 0, "i-9")
            bed.join(machine="i-9")

    try:
        _at_once(2, act)
    finally:
        server.close()
    taken = [n for answer, n in answers if answer.refused is None]
    assert taken == list(range(1, len(taken) + 1)) == steps(bed)
    assert bed.deliver(replace(old, items=(item(99, step=99),)))[0].refused is not None
