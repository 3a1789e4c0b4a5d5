"""What a newcomer does first, and does wrong first: every answer says where it looked and what to do."""

from __future__ import annotations

import hashlib
import json
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from planner.app import wire
from planner.cli.entry import call
from planner.model.digest import pretty
from planner.model.plan import to_document
from planner.model.runtime import NodeIdentity, Seat
from planner.state.engine import shown, sqlite_url
from planner.state.runtime import Runtime
from tests.unit.app.world import World, planned

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


# settings

LAPTOP = "url: http://127.0.0.1:8443\nlisten: 127.0.0.1:8443\nidentity: {one_time: true}\n"
BROKER = "url: https://broker.example.com\nlisten: 127.0.0.1:0\nidentity: {gcp: {}}\n"


def test_no_settings(here: Path, run: Run) -> None:
    code, _, err = run("serve")
    assert code == 1
    assert "server.yaml cannot be read: No such file" in err
    assert "examples/server.yaml" in err
    assert "docs/runtime.md" in err
    (here / "approved").mkdir()
    code, _, err = run("broker", "--plans", "approved")
    assert code == 1
    assert "broker.yaml cannot be read: No such file" in err
    assert "skyplan schema broker" in err


def test_a_port_that_is_taken_says_how_to_take_another(here: Path, run: Run, socket_enabled: None) -> None:
    (here / "server.yaml").write_text(LAPTOP)
    (here / "broker.yaml").write_text(BROKER)
    (here / "approved").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("serve", "--listen", f"127.0.0.1:{port}")
        assert (code, f"127.0.0.1:{port} cannot be listened at" in err) == (1, True)
        assert "--listen HOST:PORT" in err
        (here / "broker.yaml").write_text(BROKER.replace(":0", f":{port}"))
        code, _, err = run("broker", "--plans", "approved")
        assert (code, "as `listen` in the settings" in err) == (1, True)


def test_serve_says_which_database_it_serves(here: Path, run: Run, socket_enabled: None) -> None:
    (here / "server.yaml").write_text(LAPTOP + "tls: {certificate: tls/a.pem, key: tls/a.key}\n")
    code, _, err = run("serve", "--listen", "127.0.0.1:0")
    assert code == 1
    assert '"event": "database", "text": ".skyplan/record.sqlite", "project": "acme"' in err
    for name, file in (("tls.certificate", "a.pem"), ("tls.key", "a.key")):
        assert f"`{name}` names {here / 'tls' / file}, which cannot be read" in err


@pytest.mark.parametrize(("file", "warned"), [(None, True), ("train.plan.json", False)])
def test_a_broker_without_plans_says_so(
    here: Path, run: Run, socket_enabled: None, file: str | None, warned: bool
) -> None:
    (here / "broker.yaml").write_text(BROKER + "tls: {certificate: none.pem, key: none.key}\n")
    (here / "approved").mkdir()
    if file:
        (here / "approved" / file).write_bytes(pretty(to_document(planned()[0])))
    _, _, err = run("broker", "--plans", "approved")
    assert ("approved holds no approved plan" in err) == warned


def test_the_brokers_schema(run: Run) -> None:
    code, out, _ = run("schema", "broker")
    schema = json.loads(out)
    Draft202012Validator.check_schema(schema)
    valid = Draft202012Validator(schema).is_valid
    assert code == 0
    assert valid(yaml.safe_load(BROKER))
    more = "principals: [{job: train, target: neb, principal: x}]\nhierarchical_accounts: [acmeckpt]\n"
    assert valid(yaml.safe_load(BROKER + more))
    assert not valid(yaml.safe_load(BROKER + "people: {}\n"))
    assert not valid(yaml.safe_load(BROKER + "hierarchical_accounts: [A]\n"))


# files of the record


def test_a_backup_is_not_imported_but_put_in_place(
    world: World, here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply()
    assert run("state", "backup", "copy.sqlite")[0] == 0
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", sqlite_url(here / "new.sqlite"))
    code, _, err = run("state", "import", "copy.sqlite")
    assert code == 1
    assert "this is a backup" in err
    assert "SKYPLAN_DATABASE_URL=sqlite:///copy.sqlite" in err
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", "sqlite:///copy.sqlite")
    assert "train" in run("status")[1]
    with sqlite3.connect(here / "copy.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (1,)
    connection.close()
    code, _, err = run("state", "export", "copy.sqlite")
    assert (code, "name a new file" in err) == (1, True)
