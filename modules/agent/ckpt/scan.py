"""What checkpoints a store holds.  Decides which are complete as far as names and sizes tell, and says of every other why it does not count; fetches no content.

Whether a manifest is authentic is for who has the key of its generation: the control plane, and for the own generation this node.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from . import manifest
from .errors import Invalid, StoreError
from .manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest
from .store import read_small

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .store import Place, Store

MAX_CANDIDATES = 200
MAX_SKIPPED = 100
_READERS = 8

if TYPE_CHECKING:
    KeyOf = Callable[[int], "bytes | None"]


class Candidate(NamedTuple):
    """A checkpoint without its list of files: of 200 with thousands each, those would be hundreds of MiB."""

    step: int
    generation: int
    uri: str
    digest: str
    mac: str
    bytes: int


class Found(NamedTuple):
    """`checkpoints`: the highest (step, generation) first.  `skipped`: (uri, reason)."""

    checkpoints: tuple[Candidate, ...]
    skipped: tuple[tuple[str, str], ...]


def scan(store: Store, seat: Place, generations: Iterable[int], key_of: KeyOf) -> Found:
    """List these generations.  `key_of(generation)` is its key where this node has it.  Raises StoreError: a listing that fails is no empty listing."""
    folders = _folders(store, generations)
    skipped: list[tuple[str, str]] = []
    named: list[tuple[int, int, str]] = []
    for (generation, folder), files in folders.items():
        step = manifest.step_of(folder)
        if step is None or MANIFEST not in files:
            reason = "it is no name of a checkpoint" if step is None else "it has no manifest: it was never whole"
            skipped.append((f"{store.uri}g{generation}/{folder}/", reason))
        else:
            named.append((step, generation, folder))
    named.sort(reverse=True)

    def look(one: tuple[int, int, str]) -> Candidate | tuple[str, str]:
        _, generation, folder = one
        uri = f"{store.uri}g{generation}/{folder}/"
        try:
            m = described(store, seat, uri, folders[generation, folder], key_of(generation))
            return Candidate(m.step, m.generation, m.uri, m.digest, m.mac, m.bytes)
        except Invalid as invalid:
            return uri, invalid.reason

    good: list[Candidate] = []
    with ThreadPoolExecutor(_READERS) as pool:
        for start in range(0, len(named), _READERS):
            seen = list(pool.map(look, named[start : start + _READERS]))
            good += [one for one in seen if isinstance(one, Candidate)]
            skipped += [one for one in seen if not isinstance(one, Candidate)]
            if len(good) >= MAX_CANDIDATES:
                break
    good.sort(key=lambda found: (found.step, found.generation, found.uri), reverse=True)
    return Found(tuple(good[:MAX_CANDIDATES]), tuple(skipped))


def _folders(store: Store, generations: Iterable[int]) -> dict[tuple[int, str], dict[str, int]]:
    """(generation, folder) -> its files with their sizes."""
    found: dict[tuple[int, str], dict[str, int]] = {}
    for generation in sorted(set(generations)):
        at = f"g{generation}/"
        for entry in store.entries(at):
            folder, _, path = entry.name[len(at) :].partition("/")
            if path:
                found.setdefault((generation, folder), {})[path] = entry.bytes
    return found


def described(store: Store, seat: Place, uri: str, sizes: dict[str, int], key: bytes | None) -> Manifest:
    """The manifest at `uri`, held to where it lies and to the sizes that are there.  Raises Invalid, StoreError."""
    found = read(store, uri)
    generation = int(uri[len(store.uri) :].partition("/")[0][1:])
    if (found.project, found.job, found.generation) != (seat.project, seat.job, generation):
        raise Invalid(f"it is of {found.project}/{found.job}, generation {found.generation}: foreign")
    if found.rank is not None:
        raise Invalid("it is one node's part")
    if key is not None and not found.holds(key):
        raise Invalid("its mac is not by its generation's key: forged")
    for file in found.files:
        size = sizes.get(file.path)
        if size != file.bytes:
            raise Invalid(
                f"{file.path} " + ("is missing" if size is None else f"has {size} bytes, not {file.bytes}") + ": torn"
            )
    return found


def read(store: Store, uri: str) -> Manifest:
    """The manifest that lies at `uri` and says so.  Raises Invalid, Absent, StoreError."""
    if not uri.startswith(store.uri) or not uri.endswith("/"):
        raise StoreError(f"{uri} does not lie under {store.uri}")
    found = manifest.parse(read_small(store, uri[len(store.uri) :] + MANIFEST, MAX_MANIFEST_BYTES))
    if found.uri != uri:
        raise Invalid(f"it says that it lies at {found.uri[:300]}: a copy")
    return found
