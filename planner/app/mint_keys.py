"""Which key a machine came with first, as this broker has seen it: what it goes by where the record is not to be believed.

Decides that a machine keeps its first key, and a proof its first user, for as long as this process lives; bounded, the longest unheard is forgotten.
What is forgotten, or was seen by another replica, the record still knows (`Ledger.holder`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, TypeVar

from planner.model.runtime import NodeIdentity, Refusal, Refused

K = TypeVar("K")

MOST: Final = 65_536


@dataclass(slots=True)
class BoundKeys:
    """Safe to use from several threads."""

    _machines: OrderedDict[tuple[str, str, str, str], str] = field(
        default_factory=OrderedDict[tuple[str, str, str, str], str]
    )
    _proofs: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bind(self, who: NodeIdentity, key_sha256: str, proof_sha256: str) -> None:
        """Note the first, refuse the second.  A machine that its platform does not name is bound by its proof alone."""
        with self._lock:
            if _first(self._proofs, proof_sha256, key_sha256) != key_sha256:
                raise Refused(Refusal.REPLAYED, "this proof came before, with another key")
            if not who.instance_id:
                return
            machine = (who.cloud, who.account, who.where, who.instance_id)
            if _first(self._machines, machine, key_sha256) != key_sha256:
                raise Refused(Refusal.KEY, f"{who.instance_id} came before with another key")


def _first(seen: OrderedDict[K, str], what: K, key: str) -> str:
    found = seen.setdefault(what, key)
    seen.move_to_end(what)
    if len(seen) > MOST:
        seen.popitem(last=False)
    return found
