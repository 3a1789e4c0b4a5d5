"""From which checkpoint a node goes on, brought to its disk.  With a control plane: the cut, which rank 0 brings about and all nodes follow; alone: the newest that this
machine's own key has signed.

A restart of one node in the same generation goes on from that generation's own newest checkpoint, which is newer than the cut; with several nodes all follow the cut,
since nothing tells them of one another's listing.  What does not count is told with its reason; a store that cannot be listed is an error, never a first start.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import scan
from .errors import Absent, Invalid, StoreError
from .fetch import fetch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Protocol

    from .store import Place, Store

    class Client(Protocol):
        """The control plane, as this seat."""

        def cut(self, document: dict[str, Any]) -> dict[str, Any]:
            """POST /v1/cut."""
            ...

        def chosen(self) -> dict[str, Any] | None:
            """GET /v1/cut; None while rank 0 has not chosen."""
            ...


CHOICE_SECONDS = 1800.0
"""How long other nodes wait for rank 0, which may be fetching and rejecting."""
_LOOK_SECONDS = 2.0
_MAX_REASON = 300


class Resumed(NamedTuple):
    """The checkpoint to go on from."""

    folder: Path
    step: int
    uri: str
    generation: int


def _untold(uri: str, reason: str) -> None:
    """Nobody listens."""


def _silent(words: str) -> None:
    """Nobody listens."""


def resume(
    store: Store,
    client: Client | None,
    seat: Place,
    folder: Path,
    *,
    key: bytes,
    told: Callable[[str, str], None] = _untold,
    waits: Callable[[str], None] = _silent,
    clock: Callable[[], float] = time.time,
    steady: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Resumed | None:
    """None: from the beginning.  `told(uri, reason)` hears of what was skipped where the control plane does not, `waits(words)` what another node is waited for.

    Raises StoreError, and what the client raises. May be called again after it raised: the cut is made once.
    """
    if client is None:
        return _alone(store, seat, folder, key, told)
    if seat.rank:
        return _follow(store, client, folder, waits, steady=steady, sleep=sleep)
    answer = client.cut({"phase": "begin"})
    if answer.get("cut") is None:
        generations = [one for one in _generations(answer) if one <= seat.generation]
        found = scan.scan(store, seat, generations, lambda one: key if one == seat.generation else None)
        answer = client.cut(_chosen(found, clock()))
    elif seat.nodes == 1:
        newest = _first(store, scan.scan(store, seat, (seat.generation,), lambda _: key), folder, told)
        if newest is not None:
            return newest
    while True:
        uri, digest = _cut(answer)
        if not uri:
            return None
        try:
            return _brought(store, uri, digest, folder)
        except Invalid as invalid:
            answer = client.cut({"phase": "reject", "uri": uri, "reason": invalid.reason[:_MAX_REASON]})
            if _cut(answer)[0] == uri:
                raise StoreError(f"{uri} is wrong ({invalid.reason}), and the control plane keeps to it") from invalid


def _follow(
    store: Store,
    client: Client,
    folder: Path,
    waits: Callable[[str], None],
    *,
    steady: Callable[[], float],
    sleep: Callable[[float], None],
) -> Resumed | None:
    """What rank 0 has chosen, and where that proves wrong what it chooses next."""
    until, wrong, words = steady() + CHOICE_SECONDS, "", "rank 0 has not chosen"
    said = ""
    while steady() < until:
        answer = client.chosen()
        if answer is None and words != said:
            waits(f"waiting for rank 0 to choose the checkpoint to go on from: {words}")
            said = words
        uri, digest = _cut(answer) if answer else (wrong, "")
        if not uri:
            if answer:
                return None
        elif uri != wrong:
            try:
                return _brought(store, uri, digest, folder)
            except Invalid as invalid:
                wrong, words = uri, f"{uri} is wrong here ({invalid.reason}), and rank 0 keeps to it"
        sleep(_LOOK_SECONDS)
    raise StoreError(f"after {CHOICE_SECONDS:.0f} s there is no checkpoint to go on from: {words}")


def _alone(store: Store, seat: Place, folder: Path, key: bytes, told: Callable[[str, str], None]) -> Resumed | None:
    """Without a control plane there is one key, this machine's."""
    generations: set[int] = set()
    for entry in store.entries(""):
        first = entry.name.partition("/")[0]
        if first[:1] == "g" and first[1:].isdecimal() and str(int(first[1:])) == first[1:]:
            generations.add(int(first[1:]))
    for late in sorted(one for one in generations if one > seat.generation):
        told(f"{store.uri}g{late}/", f"generation {late} is later than this one, {seat.generation}: foreign")
    found = scan.scan(store, seat, (one for one in generations if one <= seat.generation), lambda _: key)
    return _first(store, found, folder, told)


def _first(store: Store, found: scan.Found, folder: Path, told: Callable[[str, str], None]) -> Resumed | None:
    """The newest whose content is right."""
    for uri, reason in found.skipped:
        told(uri, reason)
    for one in found.checkpoints:
        try:
            return _brought(store, one.uri, one.digest, folder)
        except Invalid as invalid:
            told(one.uri, invalid.reason)
    return None


def _brought(store: Store, uri: str, digest: str, folder: Path) -> Resumed:
    """Raises Invalid where it is not what was chosen."""
    try:
        found = scan.read(store, uri)
    except Absent:
        raise Invalid("it is no longer there") from None
    if found.digest != digest:
        raise Invalid("its manifest is another than the one that was chosen")
    return Resumed(fetch(store, found, folder), found.step, uri, found.generation)


def _generations(answer: dict[str, Any]) -> list[int]:
    """Raises StoreError: without them everything would be foreign."""
    said = answer.get("generations")
    if not isinstance(said, list) or any(type(one) is not int for one in cast("list[Any]", said)):
        raise StoreError("the control plane's answer has no generations")
    return cast("list[int]", said)


def _cut(answer: dict[str, Any]) -> tuple[str, str]:
    """(uri, digest); "" from the beginning.  Raises StoreError."""
    if not isinstance(answer.get("cut"), dict):
        raise StoreError("the control plane's answer has no cut")
    cut = cast("dict[str, Any]", answer["cut"])
    if "step" in cut and cut["step"] is None:
        return "", ""
    if not isinstance(cut.get("uri"), str) or not isinstance(cut.get("digest"), str):
        raise StoreError("the control plane's cut names no checkpoint")
    return cut["uri"], cut["digest"]


def _chosen(found: scan.Found, now: float) -> dict[str, Any]:
    candidates = [
        {"generation": m.generation, "step": m.step, "uri": m.uri, "digest": m.digest, "mac": m.mac, "bytes": m.bytes}
        for m in found.checkpoints
    ]
    skipped = [[uri[:1000], reason[:_MAX_REASON]] for uri, reason in found.skipped[: scan.MAX_SKIPPED]]
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
    return {"phase": "choose", "listed_at": at, "candidates": candidates, "skipped": skipped}
