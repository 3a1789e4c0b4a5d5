"""The minter for a store, made once.  Each adapter imports its SDK when it is made."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from planner.clouds.mint.port import Minter
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError


@dataclass(slots=True)
class RealMinters:
    """See `Minters`.  Safe to use from several threads.  `hierarchical`: of Azure's storage accounts, those that are known to be."""

    hierarchical: Collection[str] = ()
    _made: dict[str, Minter] = field(default_factory=dict[str, Minter])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def minter(self, store: str) -> Minter:
        """See `Minters`."""
        with self._lock:
            if store not in self._made:
                self._made[store] = _made(store, self.hierarchical)
            return self._made[store]


def _made(store: str, hierarchical: Collection[str]) -> Minter:
    match store:
        case "s3":
            from planner.clouds.mint.aws import AwsMinter  # noqa: PLC0415 - boto3

            return AwsMinter()
        case "gs":
            from planner.clouds.mint.gcp import GcpMinter  # noqa: PLC0415 - google-auth

            return GcpMinter()
        case "az":
            from planner.clouds.mint.azure import AzureMinter  # noqa: PLC0415 - azure-storage-blob

            return AzureMinter(known=hierarchical)
        case "nebius":
            from planner.clouds.mint.nebius import NebiusMinter  # noqa: PLC0415 - grpc

            return NebiusMinter()
        case _:
            raise InputError([Diagnostic(code="SKY-RUN-515", summary=f"nothing is minted for `{store}`")])
