"""Checkpoints as a job makes them, a control plane that keeps to docs/node-protocol.md, and stores that fail."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from modules.agent.ckpt import manifest
from modules.agent.ckpt.errors import StoreError
from modules.agent.ckpt.local import LocalStore
from modules.agent.ckpt.manifest import File, Manifest
from modules.agent.ckpt.store import Content, Entry


class Seat(NamedTuple):
    """A place in a job."""

    generation: int = 1
    rank: int = 0
    nodes: int = 1
    project: str = "acme"
    job: str = "train"


FIRST = Seat()


def key(generation: int) -> bytes:
    return hashlib.sha256(f"key of {generation}".encode()).digest()


def describe(root: str, seat: Seat, step: int, files: dict[str, bytes], *, name: str = "", **other: Any) -> Manifest:
    """Signed by the seat's generation's key."""
    listed = tuple(File(p, len(c), hashlib.sha256(c).hexdigest()) for p, c in sorted(files.items()))
    given = {
        "project": seat.project,
        "job": seat.job,
        "run": f"{seat.job}-g{seat.generation}",
        "generation": seat.generation,
        "step": step,
        "uri": f"{root}g{seat.generation}/{name or f'step-{step:012d}'}/",
        "created_at": f"2026-11-30T12:00:0{seat.rank}.000000Z",
        "framework": "torch",
        "nodes": seat.nodes,
        "world_size": seat.nodes,
        "files": listed,
        "rank": None if seat.nodes == 1 else seat.rank,
        **other,
    }
    return Manifest(**given).signed(key(seat.generation))


def make(
    folder: Path, uri: str, seat: Seat, step: int, *, files: dict[str, bytes] | None = None, name: str = ""
) -> str:
    """A whole folder on a node, as skyplan_job leaves it."""
    files = {f"model-{seat.rank}.pt": f"step {step} of rank {seat.rank}".encode() * 50} if files is None else files
    found = describe(uri, seat, step, files, name=name)
    at = folder / f".{found.folder}"
    at.mkdir()
    for path, content in files.items():
        (at / path).parent.mkdir(parents=True, exist_ok=True)
        (at / path).write_bytes(content)
    (at / (manifest.MANIFEST if found.rank is None else manifest.part_name(seat.rank))).write_bytes(found.text())
    at.rename(folder / found.folder)
    return found.folder


def store_of(path: Path) -> LocalStore:
    path.mkdir(exist_ok=True)
    return LocalStore(f"{path.as_uri()}/")


class Plane:
    """The cut as the control plane makes it: macs by each generation's key, the highest wins, once."""

    def __init__(self, generations: tuple[int, ...], project: str = "acme", job: str = "train"):
        self.generations, self._project, self._job = generations, project, job
        self.cut_: dict[str, Any] | None = None
        self.skipped: list[tuple[str, str]] = []
        self.asked: list[dict[str, Any]] = []
        self._left: list[dict[str, Any]] = []

    def cut(self, document: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(document)
        match document["phase"]:
            case "begin":
                return {"generations": list(self.generations), "cut": self.cut_}
            case "choose":
                if self.cut_ is None:
                    self.skipped += [tuple(one) for one in document["skipped"]]
                    for one in document["candidates"]:
                        (self._left.append(one) if self._true(one) else self.skipped.append((one["uri"], "mac")))
                    self._left.sort(key=lambda one: (one["step"], one["generation"]))
                    self._next()
            case "reject":
                self.skipped.append((document["uri"], document["reason"]))
                if self.cut_ and self.cut_.get("uri") == document["uri"]:
                    self._next()
            case _:
                raise AssertionError(document)
        return {"cut": self.cut_, "skipped": self.skipped}

    def chosen(self) -> dict[str, Any] | None:
        return {"cut": self.cut_} if self.cut_ is not None else None

    def _next(self) -> None:
        if self._left:
            one = self._left.pop()
            self.cut_ = {name: one[name] for name in ("step", "uri", "generation", "digest")}
        else:
            self.cut_ = {"step": None}

    def _true(self, one: dict[str, Any]) -> bool:
        from planner.model.runtime import checkpoint_mac, checkpoint_message

        said = {name: one[name] for name in ("generation", "step", "uri", "digest")}
        message = checkpoint_message(project=self._project, job=self._job, **said)
        return one["generation"] in self.generations and checkpoint_mac(key(one["generation"]), message) == one["mac"]


class Failing:
    """A store that fails at the nth call, before or after it did what was asked."""

    def __init__(self, store: LocalStore, nth: int, *, after: bool):
        self._store, self._left, self._after = store, nth, after
        self.uri = store.uri
        self.calls = 0

    def _count(self, *, after: bool) -> None:
        if after == self._after:
            self.calls += 1
            self._left -= 1
            if self._left == 0:
                raise StoreError("the connection is gone")

    def entries(self, prefix: str) -> Iterator[Entry]:
        self._count(after=False)
        found = list(self._store.entries(prefix))
        self._count(after=True)
        return iter(found)

    def opened(self, name: str) -> Any:
        self._count(after=False)
        return self._store.opened(name)

    def put(self, name: str, content: Content) -> None:
        self._count(after=False)
        self._store.put(name, content)
        self._count(after=True)
