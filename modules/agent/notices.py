"""Asks the cloud every five seconds whether it will take this node away, in a thread of its own: a metadata service that hangs holds nothing up."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_SECONDS = 5.0


class Watcher(Protocol):
    """One cloud's."""

    def poll(self) -> dict[str, Any] | None:
        """`{"what": "spot" | "rebalance" | "maintenance", "deadline": UTC ISO text or None}`, or None where nothing is announced."""
        ...


class Notices:
    """Each notice is handed on once."""

    def __init__(self, watcher: Watcher, found: Callable[[dict[str, Any]], None], told: Callable[[str], None]) -> None:
        self._watcher, self._found, self._told = watcher, found, told
        self._seen: set[tuple[str, str]] = set()
        self._failed = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the question that is under way."""
        self._ended.set()

    def step(self) -> None:
        """Ask once."""
        try:
            notice = self._watcher.poll()
        except Exception as error:  # noqa: BLE001 - whatever a metadata service does, the node runs on
            if str(error) != self._failed:
                self._failed = str(error)
                self._told(f"the cloud's notices cannot be read: {error}")
            return
        self._failed = ""
        if notice is None:
            return
        one = (str(notice.get("what")), str(notice.get("deadline")))
        if one not in self._seen:
            self._seen.add(one)
            self._found(notice)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_SECONDS):
            self.step()
