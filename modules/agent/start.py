"""Everything that a new attempt at the job waits for, in a thread: the seat, the credentials, the checkpoint to go on from.

Waits as long as it takes: a node that began on its own while the control plane is away could be an older generation beside a newer one.  The hard end bounds it.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

from .errors import AgentError, Away, Denied

if TYPE_CHECKING:
    from collections.abc import Callable

    from .checkpoints import Checkpoints
    from .parts import Leases
    from .reporter import Reporter

LEASES_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 60.0
_LONGEST_HELD_SECONDS = 8.0
"""Where the control plane answers `early`: a move holds this run, and what the older nodes do between its release and our next question is done twice."""


class Start:
    """`leave` gets one of `("ready", variables)`, `("failed", words)`, `("final", words)`; nothing where the seat itself was refused, which the reporter tells."""

    def __init__(
        self,
        reporter: Reporter | None,
        leases: Leases | None,
        checkpoints: Checkpoints | None,
        *,
        leave: Callable[[str, Any], None],
        told: Callable[[str], None],
    ) -> None:
        self._reporter, self._leases, self._checkpoints = reporter, leases, checkpoints
        self._leave, self._told = leave, told
        self._over = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._prepare, name="start", daemon=True).start()

    def stop(self) -> None:
        """Give up, after the attempt that is under way."""
        self._over.set()

    def _prepare(self) -> None:
        try:
            if self._reporter is not None:
                while not self._reporter.first.wait(1.0):
                    if self._over.is_set():
                        return
                if self._reporter.over:
                    return
            found: dict[str, str | None] = {}
            if self._leases is not None:
                self._again("the broker lent nothing yet", self._lent)
                found.update(self._leases.environment())
            if self._checkpoints is not None:
                found.update(self._again("the checkpoint to go on from cannot be had yet", self._checkpoints.resume))
                self._checkpoints.start()
            self._leave("ready", found)
        except Denied as denied:
            self._leave("final", f"{denied.word}: {denied}")
        except Exception as error:  # noqa: BLE001 - a thread that ends silently would leave the node waiting, and billed
            self._leave("failed", f"{type(error).__name__}: {error}")

    def _lent(self) -> None:
        if self._leases is not None and not self._leases.ready(LEASES_SECONDS):
            raise Away("no credential for a store")

    def _again(self, words: str, attempt: Callable[[], Any]) -> Any:
        """Until it works, or this run ends.  Raises Denied where that is final."""
        failures, last, before = 0, "", False
        while not self._over.is_set():
            held = False
            try:
                return attempt()
            except (Away, AgentError, OSError) as away:
                text, held = str(away), isinstance(away, Away) and away.word == "early"
            except Denied as denied:
                if denied.final:
                    raise
                text = str(denied)
            if text != last:
                last = text
                self._told(f"{words}: {text}")
            failures, before = failures + 1 if held is before else 1, held
            longest = _LONGEST_HELD_SECONDS if held else _LONGEST_PAUSE_SECONDS
            self._over.wait(min(longest, 2.0 ** min(failures, 10)) * (0.5 + random.random() / 2))  # noqa: S311 - no secret
        raise Away(words)
