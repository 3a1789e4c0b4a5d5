"""By whose credential a run reaches its checkpoint store: the node's own identity where no lease is held, else the lease for what is done there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from modules.agent import settings as settings_module
from modules.agent.checkpoints import Checkpoints
from modules.agent.cred.grants import wanted
from modules.agent.cred.holder import Holder
from modules.agent.place import Place
from modules.agent.spool import Spool
from tests.emulators.imds import Metadata
from tests.unit.agent.ckpt.blobs import Blobs, Wish
from tests.unit.agent.ckpt.jobs import Seat, key, make
from tests.unit.agent.plane import until

URI = "az://acme/ckpt/train/"
Made = Callable[..., Checkpoints]


@pytest.fixture
def imds(socket_enabled: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    with Metadata() as service:
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)
        yield service


@pytest.fixture
def serve(socket_enabled: None) -> Iterator[Callable[[Callable[[Wish], bool]], Blobs]]:
    made: list[Blobs] = []

    def start(may: Callable[[Wish], bool]) -> Blobs:
        made.append(Blobs(may))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def seated(tmp_path: Path) -> Iterator[Made]:
    """`seated(generation, store, reach, holder)`: a generation's checkpoints, on a machine that keeps its key."""
    undo: list[Callable[[], None]] = []
    told: list[str] = []

    def at(generation: int, store: Blobs, reach: str, holder: Holder | None = None) -> Checkpoints:
        document = {
            "project": "acme",
            "job": "train",
            "generation": generation,
            "state_folder": str(tmp_path / "state"),
            "run_folder": str(tmp_path / f"run-{generation}"),
            "checkpoint": {"uri": URI, "folder": str(tmp_path / "here")},
            "stores": [{"uri": URI, "access": "write", "reach": reach, "endpoint": store.url}],
            **({"broker": {"url": "https://broker.example.com"}} if reach == "broker" else {}),
        }
        found = settings_module.parse(document, {})
        assert found.checkpoint is not None
        place = Place(found.state_folder, found.run_folder, found.seat)
        spool = Spool(place.base / "spool", 4 << 20, told.append)
        made = Checkpoints(found, found.checkpoint, place, spool, plane=None, holder=holder, told=told.append)
        keep = Path(found.state_folder) / "checkpoint.key"
        keep.write_text(key(1).hex())
        keep.chmod(0o600)
        undo.extend([made.stop, lambda: cast("Any", made._opened()).close(), spool.close, place.close])
        return made

    yield at
    for one in undo:
        one()


def make_here(tmp_path: Path, generation: int, step: int) -> None:
    folder = tmp_path / "here" / f"g{generation}"
    folder.mkdir(parents=True, exist_ok=True)
    make(folder, URI, Seat(generation), step)


def put_away(made: Checkpoints, store: Blobs, name: str) -> None:
    made.start()
    until(lambda: f"train/{name}/skyplan-checkpoint.json" in store.kept)
    until(made.settled)


def test_without_a_lease_the_nodes_own_identity_reaches_the_store(
    imds: Metadata, serve: Any, seated: Made, tmp_path: Path
) -> None:
    """Azure's, whose tokens come from the metadata service: put away by one generation, resumed by the next."""
    store = serve(lambda wish: wish.authorization.startswith("Bearer ey") and "sig" not in wish.query)
    first = seated(1, store, "platform")
    make_here(tmp_path, 1, 100)
    put_away(first, store, "g1/step-000000000100")
    assert seated(2, store, "platform").resume()["SKYPLAN_RESUME_STEP"] == "100"
    assert {wish.access for wish in store.wishes} == {"list", "read", "write"}
    asked = [path for path in imds.paths if "/oauth2/token" in path]
    assert len(asked) == 2, "one token a generation, kept in memory"
    assert all("resource=https%3A%2F%2Fstorage.azure.com%2F" in path for path in asked)


class Lender:
    """Lends as the broker does on Azure: a SAS has one directory, and a writing one that of its generation."""

    def __init__(self, generation: int) -> None:
        self.generation, self.count = generation, 0

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        self.count += 1
        at = "train/" + (f"g{self.generation}/" if access == "write" else "")
        return {
            "id": f"lease-{self.count}",
            "store": "az",
            "uri": uri,
            "access": access,
            "issued_at": "2026-11-30T12:00:00Z",
            "expires_at": "2026-11-30T13:00:00Z",
            "azure": {"account": "acme", "container": "ckpt", "sas": f"sr=d&sp={access[0]}&sig={at}"},
        }


def by_directory(wish: Wish) -> bool:
    """What a directory's SAS allows: reading and listing within it, and writing where it says so."""
    at, sp = wish.query.get("sig", "nowhere"), wish.query.get("sp")
    return not wish.authorization and wish.name.startswith(at) and (wish.access != "write" or sp == "w")


def test_a_run_resumes_by_the_lease_that_reads_and_puts_away_by_the_one_that_writes(
    serve: Any, seated: Made, tmp_path: Path
) -> None:
    store = serve(by_directory)
    for generation, step in ((1, 100), (2, 200)):
        holder = Holder(Lender(generation), wanted([(URI, "write")]), lambda: 1_796_040_000.0)
        holder.step()
        made = seated(generation, store, "broker", holder)
        resumed = made.resume()["SKYPLAN_RESUME_STEP"]
        assert resumed == (None if generation == 1 else "100")
        if generation == 2:
            (tmp_path / "state" / "checkpoint.key").write_text(key(2).hex())
        make_here(tmp_path, generation, step)
        put_away(made, store, f"g{generation}/step-{step:012d}")
    by = {(wish.access, wish.query["sp"]) for wish in store.wishes}
    assert by == {("list", "r"), ("read", "r"), ("write", "w")}
    assert all(wish.name.endswith("/") for wish in store.wishes if wish.access == "list"), "never the whole container"


def test_by_the_writing_lease_alone_an_older_generation_is_out_of_reach(serve: Any, seated: Made) -> None:
    """What this would be without: no listing, so no start that forgets what was computed."""
    from modules.agent.cred.lease import Wanted
    from modules.agent.errors import Away

    store = serve(by_directory)
    holder = Holder(Lender(2), [Wanted("ckpt", URI, "write")], lambda: 1_796_040_000.0)
    holder.step()
    with pytest.raises(Away, match="SKY-RUN-523"):
        seated(2, store, "broker", holder).resume()


def test_directories_of_a_hierarchical_account_are_no_files(serve: Any, seated: Made) -> None:
    store = serve(lambda _wish: True)
    store.kept["train/g1/step-1/sub/model.pt"] = json.dumps([]).encode()
    from modules.agent.ckpt.azure import AzureStore

    opened = AzureStore(URI, lambda _access, _refused: {"azure": {"sas": "sig=x"}}, endpoint=store.url)
    try:
        assert [entry.name for entry in opened.entries("g1/")] == ["g1/step-1/sub/model.pt"]
    finally:
        opened.close()
