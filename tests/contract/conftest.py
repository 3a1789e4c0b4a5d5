"""Databases the record must behave alike on."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.beds import PROJECT, Bed

pytest.register_assert_rewrite("tests.contract.feeds")

FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt")


def _program(name: str) -> str | None:
    found = [p for folder in FOLDERS for p in sorted(Path(folder).glob(f"*/bin/{name}"))]
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URL prefix of a server on a unix socket, started for the tests; skips where there is none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra `postgres`)")
    initdb, server = _program("initdb"), _program("postgres")
    if not initdb or not server:
        pytest.skip("no PostgreSQL server on this machine")
    # PostgreSQL refuses root, and nobody cannot enter pytest's own folders
    as_root = os.getuid() == 0
    if as_root and not shutil.which("setpriv"):
        pytest.skip("PostgreSQL does not run as root, and there is no setpriv")
    folder = Path(
        subprocess.run(["mktemp", "-d", "/tmp/pg.XXXXXX"], capture_output=True, text=True, check=True).stdout.strip()
    )
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if as_root else []
    if as_root:
        os.chown(folder, 65534, 65534)
    subprocess.run(
        [
            *drop,
            initdb,
            "-D",
            folder / "data",
            "-U",
            "skyplan",
            "-A",
            "trust",
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        ],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    process = subprocess.Popen(
        [*drop, server, "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        _wait(folder)
        yield f"host={folder}&user=skyplan"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(folder: Path) -> None:
    import time

    import psycopg

    for _ in range(200):
        try:
            psycopg.connect(host=str(folder), user="skyplan", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.skip("PostgreSQL did not start")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'folder' / 'record.sqlite'}"
    return _new_database(request.getfixturevalue("postgresql"))


def _new_database(server: str, like: str = "template1") -> str:
    import psycopg

    name = f"t{uuid.uuid4().hex[:12]}"
    host = server.split("&", maxsplit=1)[0].removeprefix("host=")
    with psycopg.connect(host=host, user="skyplan", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
    return f"postgresql://skyplan@/{name}?host={host}"


@pytest.fixture(scope="session")
def made_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with nothing in it, to copy: making its tables takes ten times as long as copying it."""
    path = tmp_path_factory.mktemp("made") / "record.sqlite"
    Record.open(f"sqlite:///{path}", PROJECT).close()
    return path


@pytest.fixture(scope="session")
def made_postgresql(postgresql: str) -> str:
    """The name of the same on PostgreSQL."""
    url = _new_database(postgresql)
    Record.open(url, PROJECT).close()
    return url.split("/")[3].split("?")[0]


@pytest.fixture(params=["sqlite", "postgresql"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a record with nothing in it."""
    if request.param == "sqlite":
        path = shutil.copy(request.getfixturevalue("made_sqlite"), tmp_path / "record.sqlite")
        return f"sqlite:///{path}"
    like = request.getfixturevalue("made_postgresql")
    return _new_database(request.getfixturevalue("postgresql"), like)


@pytest.fixture
def bed(made: str) -> Iterator[Bed]:
    """A record with nothing in it, and its runtime."""
    it = Bed(Record.open(made, PROJECT), Runtime.open(made, PROJECT))
    yield it
    it.close()
