"""Job, uploader, store, cut and record together, each the real one: the newest valid file's step is where the next generation goes on, whatever the record was told."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from modules.agent.ckpt.resume import resume
from modules.agent.ckpt.store import Content
from modules.agent.ckpt.upload import Uploader
from planner.model.runtime import Item, Kind, Report, Session
from planner.server import bodies, cutting
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.beds import NOW, PROJECT, Bed, seat
from tests.unit.agent.ckpt.jobs import store_of

JOB = Path(__file__).parents[2] / "modules" / "job" / "skyplan_job.py"


class Place(NamedTuple):
    project: str
    job: str
    generation: int
    rank: int
    nodes: int


class Client:
    """POST and GET /v1/cut without HTTP: the server's own reading of what is sent, and its own answers."""

    def __init__(self, bed: Bed, generation: int):
        self._services: Any = SimpleNamespace(runtime=bed.runtime, clock=lambda: NOW)
        self._session = Session(seat=seat(generation), instance_id="i-0", expires_at="2026-07-30T13:00:00Z")

    def cut(self, document: dict[str, Any]) -> dict[str, Any]:
        match document["phase"]:
            case "begin":
                answer: Any = cutting.begin(self._services, self._session)
            case "choose":
                answer = cutting.choose(self._services, self._session, bodies.Choose.model_validate(document))
            case _:
                answer = cutting.reject(self._services, self._session, bodies.Reject.model_validate(document))
        found: dict[str, Any] = answer.model_dump(mode="json")
        return found

    def chosen(self) -> dict[str, Any] | None:
        raise AssertionError("rank 0 does not ask this")


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    url = f"sqlite:///{tmp_path / 'record.sqlite'}"
    it = Bed(Record.open(url, PROJECT), Runtime.open(url, PROJECT))
    yield it
    it.close()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("skyplan_job", JOB)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "skyplan_job", module)
    spec.loader.exec_module(module)
    return module


class Node:
    """One generation's node."""

    def __init__(self, bed: Bed, folder: Path, store: Any, monkeypatch: pytest.MonkeyPatch):
        generation = bed.launch("i-0")
        self.bed, self.store, self.folder = bed, store, folder / f"node{generation}"
        self.folder.mkdir()
        self.place = Place(PROJECT, "train", generation, 0, 1)
        self.key = bed.runtime.manifest_key("train", generation)
        (self.folder / "key").write_text(self.key.hex())
        self._monkeypatch, self._sent = monkeypatch, 0
        self.client = Client(bed, generation)

    def checkpoint(self, job: Any, step: int, *, told: bool = True) -> None:
        """Made, put away and, if `told`, reported."""
        given = {
            "PROJECT_NAME": PROJECT,
            "JOB": "train",
            "GENERATION": str(self.place.generation),
            "CHECKPOINTS": str(self.folder / "made"),
            "CHECKPOINT_URI": f"{self.store.uri}g{self.place.generation}/",
            "CHECKPOINT_KEY_FILE": str(self.folder / "key"),
        }
        with self._monkeypatch.context() as environment:
            for name, value in given.items():
                environment.setenv(f"SKYPLAN_{name}", value)
            with job.checkpoint(step) as folder:
                (folder / "model.pt").write_text(f"step {step}")
        spool: list[Item] = []

        def add(kind: str, body: dict[str, Any]) -> None:
            self._sent += 1
            spool.append(Item(seq=self._sent, kind=Kind(kind), at="2026-07-30T12:00:00.000000Z", body=body))

        assert Uploader(self.store, self.place, add, folder=self.folder / "made", key=self.key).once()
        if told:
            (done,) = self.bed.deliver(Report(seat=seat(self.place.generation), stream="s", items=tuple(spool)))
            assert (done.refused, done.through) == (None, self._sent)

    def resume(self) -> int | None:
        found = resume(self.store, self.client, self.place, self.folder, key=self.key)
        if found is None:
            return None
        assert (found.folder / "model.pt").read_text() == f"step {found.step}"
        return found.step


def test_the_files_step_wins_and_the_record_is_corrected(
    bed: Bed, job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(tmp_path / "store")
    first = Node(bed, tmp_path, store, monkeypatch)
    assert first.resume() is None
    first.checkpoint(job, 100)
    first.checkpoint(job, 200, told=False)  # the node was taken before its report
    second = Node(bed, tmp_path, store, monkeypatch)
    assert second.resume() == 200
    assert [(c.step, c.source) for c in bed.runtime.checkpoints("train")] == [(100, "report"), (200, "cut")]
    assert bed.kinds()[-1] == "corrected"

    first.checkpoint(job, 900, told=False)  # it comes back, fenced, with a credential that still writes
    assert second.resume() == 200
    third = Node(bed, tmp_path, store, monkeypatch)
    assert third.resume() == 200


def test_what_the_store_lost_or_somebody_forged_is_skipped(
    bed: Bed, job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(tmp_path / "store")
    first = Node(bed, tmp_path, store, monkeypatch)
    first.resume()
    for step in (100, 200, 300):
        first.checkpoint(job, step)
    (tmp_path / "store" / "g1" / "step-000000000300" / "model.pt").write_text("STEP 300")  # same size, other content
    (tmp_path / "store" / "g1" / "step-000000000200" / "model.pt").unlink()
    forger = Node(bed, tmp_path, store, monkeypatch)
    forger.key = first.key  # not generation 2's
    (forger.folder / "key").write_text(first.key.hex())
    forger.checkpoint(job, 10**9, told=False)
    store.put("g7/step-000000999999/skyplan-checkpoint.json", Content.of(b"{}"))
    third = Node(bed, tmp_path, store, monkeypatch)
    assert third.resume() == 100
    cut = bed.runtime.cut("train", 3)
    assert cut
    reasons = {uri[len(store.uri) :]: reason for uri, reason in cut.skipped}
    assert set(reasons) == {f"g1/step-{300:012d}/", f"g1/step-{200:012d}/", f"g2/step-{10**9:012d}/"}
    assert "another content" in reasons[f"g1/step-{300:012d}/"]
    assert reasons[f"g1/step-{200:012d}/"] == "model.pt is missing: torn"
    assert third.resume() == 100
