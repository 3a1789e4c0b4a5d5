"""Who may sit where, on both databases: machines, keys, proofs, sessions, one-time tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.model.record import RunStatus, stamp
from planner.model.runtime import Refused
from tests.contract.beds import AWS, BY_HAND, MINUTE, NOW, Bed, item, report, seat


def refused(word: str):
    return pytest.raises(Refused, match=f"^{word}:")


def test_a_machine_takes_its_seat_and_holds_a_session(bed: Bed) -> None:
    bed.launch("i-0", "i-1", stop_after_hours=2.5)
    joined = bed.join()
    assert (joined.nodes, joined.stream, joined.through) == (2, "", 0)
    assert joined.stop_at == stamp(NOW + timedelta(hours=2.5))
    assert len(joined.manifest_key) == 32
    assert bed.runtime.session("token of i-0", NOW) == joined.session
    assert joined.session.seat == seat()
    assert bed.runtime.session("token of i-0", NOW + 60 * MINUTE) is None
    assert bed.runtime.session("token of i-1", NOW) is None
    other = bed.join(seat(rank=1), "i-1")
    assert other.manifest_key == joined.manifest_key == bed.runtime.manifest_key("train", 1)
    assert bed.runtime.machine(seat(rank=1)) == "i-1"
    assert bed.runtime.plan_digest(seat()) == "sha256:1"


def test_keys_differ_between_generations_and_are_of_issued_ones_only(bed: Bed) -> None:
    bed.launch("i-0")
    bed.launch("i-1")
    assert bed.runtime.manifest_key("train", 1) != bed.runtime.manifest_key("train", 2)
    with refused("unknown"):
        bed.runtime.manifest_key("train", 3)


def test_the_wrong_machine_cloud_rank_or_run_is_refused(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    with refused("identity"):
        bed.join(machine="i-1")
    with refused("identity"):
        bed.join(identity=replace(AWS, instance_id="i-1"))
    with refused("identity"):
        bed.join(identity=replace(AWS, cloud="gcp"))
    with refused("unknown"):
        bed.join(seat(rank=2), "i-2")
    with refused("unknown"):
        bed.join(seat(generation=2))
    with refused("unknown"):
        bed.join(seat(job="other"))
    assert bed.runtime.session("token of i-0", NOW) is None


def test_a_node_that_the_record_does_not_know_yet_is_early(bed: Bed) -> None:
    bed.launch()
    with refused("early"):
        bed.join()
    assert bed.runtime.machine(seat()) is None
    bed.renamed(1, 0, "i-0")
    bed.join()


def test_the_first_key_of_a_machine_stays(bed: Bed) -> None:
    bed.launch("i-0")
    bed.join()
    again = bed.join(token_sha256="after a lost reply")
    assert bed.runtime.session("after a lost reply", NOW) == again.session
    assert bed.runtime.session("token of i-0", NOW) is not None
    with refused("key"):
        bed.join(key_sha256="another", proof_sha256="fresh")


def test_a_proof_belongs_to_the_key_it_came_with(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    bed.join()
    with refused("replayed"):
        bed.join(seat(rank=1), "i-1", proof_sha256="proof of i-0")


def test_a_session_is_renewed_by_its_holder_only(bed: Bed) -> None:
    bed.launch("i-0")
    first = bed.join().session
    later = NOW + 50 * MINUTE
    bed.deliver(report(item(3, step=1)))
    renewed = bed.runtime.renew(first, token_sha256="second", at=later, expires_at=later + 60 * MINUTE)
    assert (renewed.stream, renewed.through) == ("s1", 3)
    assert bed.runtime.session("token of i-0", later) is not None
    assert bed.runtime.session("token of i-0", NOW + 61 * MINUTE) is None
    assert bed.runtime.session("second", NOW + 61 * MINUTE) == renewed.session
    bed.renamed(1, 0, "i-9")
    bed.join(machine="i-9")
    assert bed.runtime.session("second", later) is None
    with refused("unknown"):
        bed.runtime.renew(first, token_sha256="third", at=later, expires_at=later)


def test_a_rank_without_a_machine_in_the_record_has_one_at_a_time(bed: Bed) -> None:
    bed.launch("")
    bed.join(machine="i-5")
    assert bed.runtime.machine(seat()) == "i-5"
    with refused("early"):
        bed.join(machine="i-6", at=NOW + MINUTE)
    bed.join(machine="i-6", at=NOW + 61 * MINUTE, expires_at=NOW + 121 * MINUTE)
    with refused("early"):
        bed.join(machine="i-5", at=NOW + 62 * MINUTE)


@pytest.mark.parametrize(("status", "word"), [(RunStatus.FAILED, "ended"), (RunStatus.ENDED, "ended")])
def test_nobody_joins_what_has_ended(bed: Bed, status: RunStatus, word: str) -> None:
    bed.launch("i-0")
    session = bed.join().session
    bed.move(1, status)
    for act in (
        bed.join,
        lambda: bed.runtime.renew(session, token_sha256="x", at=NOW, expires_at=NOW),
        lambda: bed.runtime.check(seat()),
    ):
        with refused(word):
            act()


def test_an_older_generation_is_fenced_once_a_newer_begins_and_not_before(bed: Bed) -> None:
    bed.launch("i-0")
    session = bed.join().session
    bed.launch("i-1")
    bed.runtime.check(seat())
    bed.runtime.begin_cut(seat(generation=2), NOW)
    for act in (
        bed.join,
        lambda: bed.runtime.renew(session, token_sha256="x", at=NOW, expires_at=NOW),
        lambda: bed.runtime.check(seat()),
        lambda: bed.runtime.begin_cut(seat(), NOW),
        lambda: bed.runtime.plan_digest(seat()),
    ):
        with refused("fenced"):
            act()
    (answer,) = bed.deliver(report(item(1, step=1)))
    assert answer.refused is not None
    assert answer.refused.word == "fenced"
    assert bed.runtime.newest("train") is None
    bed.runtime.check(seat(generation=2))


def hand(bed: Bed, machine: str, token: str, at=NOW, **changes):
    given = {"proof_sha256": token, "at": at, "expires_at": at + 60 * MINUTE, **changes}
    return bed.join(machine=machine, identity=BY_HAND, **given)


def test_a_one_time_token_seats_one_machine(bed: Bed) -> None:
    bed.launch()
    with refused("identity"):
        hand(bed, "box", "t1")
    bed.runtime.put_one_time(seat(), "t1", NOW + 10 * MINUTE, NOW)
    hand(bed, "box", "t1")
    with refused("replayed"):
        hand(bed, "thief", "t1")
    hand(bed, "box", "t1", token_sha256="after a lost reply, or hours later", at=NOW + 90 * MINUTE)
    bed.runtime.put_one_time(seat(), "t2", NOW + 10 * MINUTE, NOW)
    with refused("identity"):
        hand(bed, "late", "t2", at=NOW + 11 * MINUTE)
    bed.runtime.put_one_time(seat(), "t3", NOW + 200 * MINUTE, NOW)
    hand(bed, "new box", "t3", at=NOW + 91 * MINUTE)
    assert bed.runtime.session("after a lost reply, or hours later", NOW + 92 * MINUTE) is None
    for minutes in (92, 300):  # also once nobody holds a session any more
        with refused("replayed"):
            hand(bed, "box", "t1", at=NOW + minutes * MINUTE)
    hand(bed, "new box", "t3", at=NOW + 301 * MINUTE)
    with refused("replayed"):  # a copy of its disk
        hand(bed, "copy", "t3", at=NOW + 500 * MINUTE)


def test_members_meet_by_their_first_key(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    members = [{"name": f"r0{k}", "rank": k, "tunnel_address": f"10.9.0.{k}"} for k in (1, 0)]
    bed.runtime.expect("train", 1, members)
    bed.runtime.expect("train", 1, members)
    bed.runtime.meet(seat(), "r00", "key-0", "198.51.100.1:51820", NOW)
    bed.runtime.meet(seat(), "r00", "key-0", "198.51.100.1:51820", NOW)
    assert [(m["name"], m["public_key"]) for m in bed.runtime.met("train", 1)] == [("r00", "key-0"), ("r01", "")]
    with refused("key"):
        bed.runtime.meet(seat(), "r00", "key-1", "198.51.100.1:51820", NOW)
    with refused("identity"):
        bed.runtime.meet(seat(), "r01", "key-1", "198.51.100.1:51820", NOW)
    with refused("unknown"):
        bed.runtime.meet(seat(), "r02", "key-1", "198.51.100.1:51820", NOW)


@pytest.mark.parametrize("text", ["nul \x00", "half a pair \ud800", "x" * 1001, "line\n"])
def test_names_that_no_honest_node_sends_are_malformed(bed: Bed, text: str) -> None:
    bed.launch("i-0")
    bed.runtime.expect("train", 1, [{"name": "r00"}])
    for act in (
        lambda: bed.join(machine=text),
        lambda: bed.join(seat(job=text)),
        lambda: bed.runtime.check(seat(job=text)),
        lambda: bed.runtime.meet(seat(), text, "key", "198.51.100.1:1", NOW),
        lambda: bed.runtime.meet(seat(), "r00", text, "198.51.100.1:1", NOW),
    ):
        with refused("malformed"):
            act()


@pytest.mark.parametrize("generation", [0, -1, 2**31, 2**70])
def test_generations_that_cannot_be_are_unknown(bed: Bed, generation: int) -> None:
    with refused("unknown"):
        bed.join(seat(generation))
    with refused("unknown"):
        bed.runtime.check(seat(generation))
