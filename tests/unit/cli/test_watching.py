"""`status`, `logs`, `events` and `reap` as a person and a pipeline see them, over a record that nodes told things."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from planner.app import schemas, wire
from planner.app.lease import held
from planner.cli.entry import call
from planner.model.record import RunStatus, stamp
from planner.model.runtime import Item, Kind, Report, Seat
from planner.state.engine import sqlite_url
from planner.state.runtime import Runtime
from tests.unit.app.world import NOW, World
from tests.unit.spec.closed import closed

STATUS = Draft202012Validator(closed(schemas.one("status")))
Run = Callable[..., tuple[int, str, str]]


class Slept(KeyboardInterrupt):
    """Somebody presses Ctrl-C."""


class Clock:
    """`asleep`: what happens during each wait, in order; after the last one somebody interrupts."""

    def __init__(self) -> None:
        self.at = NOW + timedelta(hours=2)
        self.asleep: list[Callable[[], None]] = []

    def now(self):
        return self.at

    def sleep(self, seconds: float) -> None:
        if not self.asleep:
            raise Slept
        self.asleep.pop(0)()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(wire, "SystemClock", lambda: made)
    return made


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path / "world")
    (tmp_path / "skyplan.yaml").write_text(
        "project: acme\ntargets:\n  - {name: prod, cloud: aws, account: '123456789012'}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(made.path))
    yield made
    made.close()


@pytest.fixture
def told(world: World) -> Iterator[Runtime]:
    made = Runtime.open(sqlite_url(world.path), "acme", upgrade=False)
    yield made
    made.close()


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runs(*arguments: str) -> tuple[int, str, str]:
        code = call(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return runs


class Node:
    """Tells things as an agent does."""

    def __init__(self, told: Runtime, generation: int = 1, rank: int = 0) -> None:
        self.seat = Seat(job="train", generation=generation, rank=rank)
        self.told, self.seq = told, 0

    def say(self, kind: Kind, at, **body) -> None:
        self.seq += 1
        item = Item(seq=self.seq, kind=kind, at=stamp(at), body=body)
        stream = f"00000000-0000-4000-8000-{self.seat.generation:06d}{self.seat.rank:06d}"
        (done,) = self.told.deliver([Report(seat=self.seat, stream=stream, items=(item,))], at)
        assert done.refused is None, done


def finish(world: World, status: RunStatus = RunStatus.EXITED) -> None:
    def end(ports) -> None:
        with held(ports, "train", wait_seconds=0) as lease:
            ports.record.writer(lease).run_status(1, status, ports.clock.now(), "told")

    world.live(end)


def test_status_shows_how_far_a_job_is_and_what_it_cost(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply()
    node, began = Node(told), NOW + timedelta(hours=1)
    for step in (100, 160):
        node.say(Kind.PROGRESS, began + timedelta(seconds=step), step=step, loss=0.25)
    clock.at = began + timedelta(seconds=172)
    code, out, err = run("status")
    head, row = out.splitlines()
    assert (code, err) == (0, "")
    assert head.split()[-6:] == ["STEP", "LOSS", "STEPS/S", "HEARD", "SO", "FAR"]
    assert "160  0.25        1  12 s ago" in row
    # three nodes at $10 an hour, for 1 h 2 min 52 s less the seconds before the launch
    printed = json.loads(run("status", "--json")[1])
    assert list(STATUS.iter_errors(printed)) == []
    document = printed["jobs"][0]["told"]
    assert (document["step"], document["steps_per_second"], document["heard_seconds"]) == (160, 1.0, 12.0)
    assert 31.3 < float(document["usd_so_far"]) < 31.5


def test_status_of_a_job_whose_nodes_tell_nothing_shows_dashes(world: World, run: Run, clock: Clock) -> None:
    world.apply()
    _, out, _ = run("status", "train")
    assert "-        -      -" in out.splitlines()[1]
    code, _, err = run("status", "nobody")
    assert (code, "SKY-APPLY-323" in err) == (1, True)


def test_status_says_that_a_move_is_under_way_and_at_which_step(world: World, run: Run, clock: Clock) -> None:
    world.apply()
    assert json.loads(run("status", "--json")[1])["jobs"][0]["move"] is None

    def decide(ports) -> None:
        with held(ports, "train", wait_seconds=0) as lease:
            writer = ports.record.writer(lease)
            move = writer.decide(1, "saving", {}, NOW)
            writer.go_on(move, NOW, status="saved", to_generation=2)

    world.live(decide)
    assert "train: move 1 (saving) from train-g1 to train-g2: saved: the new nodes are released" in run("status")[1]
    printed = json.loads(run("status", "--json")[1])
    assert list(STATUS.iter_errors(printed)) == []
    move = printed["jobs"][0]["move"]
    assert (move["status"], move["to_generation"], move["reason"]) == ("saved", 2, "saving")


def test_status_watch_shows_it_anew_until_interrupted(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply()
    node = Node(told)
    clock.asleep = [lambda: node.say(Kind.PROGRESS, clock.at, step=7)]
    code, out, _ = run("status", "--watch", "--json")
    steps = [json.loads(line)["jobs"][0]["told"]["step"] for line in out.splitlines()]
    assert (code, steps) == (130, [None, 7])


def test_logs_of_one_node_and_of_all(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply(nodes=3)
    Node(told, rank=0).say(Kind.LOG, clock.at, text="loading\nloaded\n")
    Node(told, rank=2).say(Kind.LOG, clock.at, text="ready")
    assert run("logs", "train") == (0, "r00 loading\nr00 loaded\nr02 ready\n", "")
    assert run("logs", "train", "--rank", "2") == (0, "ready\n", "")
    _, out, _ = run("logs", "train", "--json")
    assert [json.loads(line)["rank"] for line in out.splitlines()] == [0, 2]
    assert run("logs", "train", "--generation", "9")[0] == 1
    assert run("logs", "other")[0] == 1


def test_what_a_job_prints_cannot_steer_the_terminal(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply()
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b[2Jy\n 10%\r 90%\rdone\nbell\x07 \x9b2J\u202eturned"
    Node(told).say(Kind.LOG, clock.at, text=text)
    _, out, _ = run("logs", "train", "--rank", "0")
    assert out == "red xy\ndone\nbell\ufffd \ufffd2J\ufffdturned\n"


def test_logs_follow_ends_with_the_job(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply()
    node = Node(told)
    node.say(Kind.LOG, clock.at, text="one")
    clock.asleep = [lambda: node.say(Kind.LOG, clock.at, text="two"), lambda: finish(world)]
    assert run("logs", "train", "--follow", "--rank", "0") == (0, "one\ntwo\n", "")


def test_logs_follow_goes_on_with_the_next_run(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply()
    Node(told).say(Kind.LOG, clock.at, text="first")

    def again() -> None:
        finish(world, RunStatus.ENDED)
        world.apply(again=True)
        Node(told, generation=2).say(Kind.LOG, clock.at, text="second")

    clock.asleep = [again]
    code, out, _ = run("logs", "train", "--follow", "--rank", "0")
    assert (code, out) == (130, "first\nsecond\n")


def test_events_in_order_and_as_they_come(world: World, told: Runtime, run: Run, clock: Clock) -> None:
    world.apply()
    Node(told).say(Kind.NOTICE, clock.at, what="spot", deadline="2026-01-02T02:02:00Z")
    code, out, _ = run("events", "train")
    kinds = [line.split("  ")[2] for line in out.splitlines()]
    assert code == 0
    assert kinds == ["issued", "running", "notice"]
    clock.asleep = [lambda: finish(world)]
    code, out, _ = run("events", "train", "--follow", "--json", "--last", "1")
    assert (code, [json.loads(line)["kind"] for line in out.splitlines()]) == (130, ["notice", "exited"])


def test_reap_once_ends_what_is_over_and_says_so(
    world: World, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.clouds.choose.RealClouds", lambda: world.cloud)
    world.apply()
    assert run("reap", "--once") == (0, "nothing to end\n", "")
    finish(world)
    code, out, err = run("reap", "--once")
    assert (code, out) == (0, "3 machine(s) ended; train-g1 holds nothing any more\n")
    assert "i-0001, i-0002, i-0003: its job has exited [SKY-RUN-519]" in err
    assert not world.cloud.machines
    assert run("reap", "nobody", "--once")[0] == 1


def test_reap_shows_a_cloud_that_does_not_answer_and_exits_1(
    world: World, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import PermissionDenied

    class Closed:
        def lister(self, where):
            raise PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary="not you")])

    monkeypatch.setattr("planner.clouds.choose.RealClouds", Closed)
    world.apply()
    code, out, err = run("reap", "--once", "--json")
    assert code == 1
    assert json.loads(out)["problems"] == [{"code": "SKY-APPLY-317", "summary": "aws:prod us-east-1: not you"}]
    assert "aws:prod us-east-1: not you" in err
    code, out, _ = run("reap", "--once")
    assert (code, "nothing to end" in out) == (1, False)
    assert out == "not everything could be looked at, so machines may run on: see the 1 problem(s) above\n"


def test_reap_goes_on_pass_after_pass_with_fresh_credentials(
    world: World, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def clouds():
        made.append(1)
        return world.cloud

    monkeypatch.setattr("planner.clouds.choose.RealClouds", clouds)
    world.apply()
    clock.asleep = [lambda: finish(world), lambda: None]
    code, out, _ = run("reap")
    assert (code, out.count("machine(s) ended")) == (130, 1)
    assert len(made) >= 3
