"""What one node, or one command, must not be able to do to the others through the database: stand in their way, or spoil what is written with theirs."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from planner.model.errors import InputError, Unavailable
from planner.model.runtime import Candidate, Kind, checkpoint_mac, checkpoint_message
from planner.state import engine
from planner.state.history import History
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.beds import MINUTE, NOW, PROJECT, Bed, item, report, seat, told
from tests.contract.conftest import _new_database


def test_nodes_are_heard_while_a_command_writes_about_their_job(
    postgresql: str, made_postgresql: str, request: pytest.FixtureRequest
) -> None:
    """Each held what the other wanted next (job and run): one report a second came through, and `apply` was thrown out in its place."""
    url = _new_database(postgresql, made_postgresql)
    bed = Bed(Record.open(url, PROJECT), Runtime.open(url, PROJECT))
    request.addfinalizer(bed.close)
    bed.launch("i-0", "i-1")
    lease = bed.record.take_lease("train", "me", NOW, MINUTE, gone=lambda _: True)
    writer = bed.record.writer(lease)
    event = item(1, Kind.EVENT, word="hello", text="there")
    with ThreadPoolExecutor() as pool, writer._transaction(NOW):
        heard = pool.submit(bed.runtime.deliver, [report(event)], NOW)
        (answer,) = heard.result(timeout=20)
        assert answer.through == 1
        pool.submit(bed.runtime.begin_cut, seat(), NOW).result(timeout=20)
        pool.submit(bed.runtime.request, "train", 1, "checkpoint", "a try", NOW).result(timeout=20)


def test_an_address_too_long_for_an_index_spoils_nobody_elses_report(bed: Bed) -> None:
    bed.launch("i-0", "i-1")
    # within the characters allowed, three bytes each, and of the kind that compresses badly
    name = "".join(chr(0x4E00 + (k * 7919) % 20000) for k in range(900))
    uri, digest = f"s3://b/{name}/g1/step-{5:012d}", "a" * 64
    message = checkpoint_message(project=PROJECT, job="train", generation=1, step=5, uri=uri, digest=digest)
    mac = checkpoint_mac(bed.runtime.manifest_key("train", 1), message)
    found = Candidate(generation=1, step=5, uri=uri, digest=digest, mac=mac, bytes=10)
    first, second = bed.deliver(report(told(found, 1)), report(item(1, step=7), of=seat(rank=1), stream="s2"))
    assert (first.through, second.through) == (1, 1)
    assert not bed.runtime.checkpoints("train")
    assert "2000 bytes" in bed.runtime.events("train")[-1][1].text
    bed.runtime.begin_cut(seat(), NOW)
    cut = bed.runtime.choose_cut(seat(), NOW, [found])
    assert cut.chosen is None
    assert "2000 bytes" in cut.skipped[0][1]


def _away(url: str, folder: Path) -> None:
    """Let the database be there no more for whoever comes now."""
    if url.startswith("sqlite"):
        (folder / "record.sqlite").unlink()
        (folder / "record.sqlite").mkdir()
        return
    name, _, host = url.split("/", 3)[3].partition("?host=")
    with psycopg.connect(host=host, user="skyplan", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


def test_a_database_that_is_away_is_said_to_be(made: str, tmp_path: Path) -> None:
    """In the tree of errors, whoever asks: a command that watches, or ends bills, goes on when it is back."""
    record, history = Record.open(made, PROJECT), History.open(made, PROJECT)
    lease = record.take_lease("train", "me", NOW, MINUTE)
    writer = record.writer(lease)
    _away(made, tmp_path)
    for asked in (
        record.jobs,
        lambda: record.take_lease("other", "me", NOW, MINUTE),
        lambda: record.renew(lease, NOW, MINUTE),
        lambda: record.writer(lease),
        lambda: writer.event(None, NOW, "x", "y"),
        history.as_of,
        lambda: history.record([], now=NOW),
    ):
        with pytest.raises(Unavailable, match="does not answer"):
            asked()
    record.close()
    history.close()


def test_a_database_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that takes the connection and never answers: a server hung on it for as long as the kernel did."""
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as pool:
        url = f"postgresql://skyplan@127.0.0.1:{silent.getsockname()[1]}/record?sslmode=disable"
        asked = pool.submit(Record.open, url, PROJECT)
        try:
            with pytest.raises(InputError, match="cannot be opened"):
                asked.result(timeout=30)
        finally:
            silent.close()


def test_how_long_a_database_may_be_silent_is_the_urls_to_say(postgresql: str) -> None:
    url = f"postgresql+psycopg://skyplan@h/d?{postgresql}&connect_timeout=3"
    given = engine._patience(url)["connect_args"]
    assert "connect_timeout" not in given
    assert given["tcp_user_timeout"] == engine.SILENT_SECONDS * 1000
    assert engine._patience("sqlite:///x") == {}
