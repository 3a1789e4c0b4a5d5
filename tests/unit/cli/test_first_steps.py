"""What a newcomer does first, and does wrong first: every answer says where it looked and what to do."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.app import wire
from planner.cli.entry import call
from planner.model.runtime import NodeIdentity, Seat
from planner.state.engine import shown, sqlite_url
from planner.state.runtime import Runtime
from tests.unit.app.world import World

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "skyplan.yaml").write_text("project: acme\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SKYPLAN_DATABASE_URL", raising=False)
    return tmp_path


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runs(*arguments: str) -> tuple[int, str, str]:
        code = call(list(arguments))
        out, err = capfd.readouterr()
        return code, out, " ".join(err.split())

    return runs


@pytest.fixture
def world(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(here / "world")
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(made.path))
    yield made
    made.close()


@pytest.mark.parametrize("words", [("status",), ("events", "train"), ("logs", "train")])
def test_looking_makes_no_record(here: Path, run: Run, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert "there is no record yet in .skyplan/record.sqlite" in err
    assert "SKYPLAN_DATABASE_URL" in err
    assert not (here / ".skyplan").exists()


def test_a_database_that_cannot_hold_a_record(here: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", "mysql://me:secret@db.example/skyplan")
    code, _, err = run("status")
    assert code == 1
    assert "`mysql://`" in err
    assert "postgresql://" in err
    assert "sqlite:///" in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///.skyplan/record.sqlite", ".skyplan/record.sqlite"),
        ("postgresql://me:secret@db.example:5433/skyplan?sslmode=require", "postgresql://me@db.example:5433/skyplan"),
        ("postgres://db.example/skyplan", "postgresql://db.example/skyplan"),
        ("nonsense", "SKYPLAN_DATABASE_URL"),
    ],
)
def test_a_database_is_named_without_its_password(url: str, words: str) -> None:
    assert shown(url) == words


def test_a_rank_that_is_none_names_those_there_are(world: World, run: Run) -> None:
    world.apply()
    code, _, err = run("logs", "train", "--rank", "7")
    assert code == 1
    assert "train-g1 has 3 nodes, ranks 0 to 2: there is no rank 7" in err
    assert run("logs", "train", "--rank", "7", "--follow")[0] == 1
    assert run("logs", "train", "--rank", "2")[0] == 0


# a node set up by hand


def token(path: Path) -> str:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text("ascii").strip()


def test_a_token_lets_one_machine_in(world: World, here: Path, run: Run) -> None:
    world.apply()
    code, out, err = run("agent", "token", "train", "--rank", "1", "--out", "r01.token", "--hours", "2", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert {said[name] for name in ("job", "file")} == {"train", "r01.token"}
    assert (said["generation"], said["rank"]) == (1, 1)
    secret = token(here / "r01.token")
    assert secret not in out
    ends, now = datetime.fromisoformat(said["expires_at"]), datetime.now(UTC)
    assert timedelta(hours=1.9) < ends - now <= timedelta(hours=2)
    told = Runtime.open(wire.database_url(), "acme", upgrade=False)
    seat = Seat(job="train", generation=1, rank=1)
    machine = next(n.instance_id for n in world.record.nodes("train", 1) if n.rank == 1)
    given = {
        "instance_id": machine,
        "key_sha256": "k" * 64,
        "proof_sha256": hashlib.sha256(secret.encode()).hexdigest(),
        "token_sha256": "t" * 64,
        "at": now,
        "expires_at": now + timedelta(hours=1),
    }
    joined = told.admit(seat, NodeIdentity(scheme="one-time", cloud=""), **given)
    told.close()
    assert joined.session.seat == seat


def test_a_token_is_never_written_over_a_file_or_shown(world: World, here: Path, run: Run) -> None:
    world.apply()
    code, out, _ = run("agent", "token", "train", "--rank", "0", "--out", "r00.token")
    assert (code, token(here / "r00.token") in out) == (0, False)
    before = token(here / "r00.token")
    code, _, err = run("agent", "token", "train", "--rank", "0", "--out", "r00.token")
    assert (code, "is there already" in err) == (1, True)
    assert token(here / "r00.token") == before
    assert run("agent", "token", "train", "--rank", "0", "--out", "none/r00.token")[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("other", "--rank", "0"), "no job `other` was ever applied"),
        (("train", "--rank", "3"), "ranks 0 to 2: there is no rank 3"),
        (("train", "--rank", "0", "--generation", "9"), "no generation 9"),
    ],
)
def test_a_token_for_no_seat(world: World, here: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    world.apply()
    code, out, err = run("agent", "token", *words, "--out", "a.token")
    assert (code, out) == (1, "")
    assert said in err
    assert "SKY-APPLY-323" in err
    assert not (here / "a.token").exists()


def test_a_token_for_a_run_that_is_over(world: World, here: Path, run: Run) -> None:
    world.apply()
    world.destroy()
    code, _, err = run("agent", "token", "train", "--rank", "0", "--generation", "1", "--out", "a.token")
    assert (code, "train-g1 takes no node" in err) == (1, True)
    assert not (here / "a.token").exists()
