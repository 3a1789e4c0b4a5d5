"""A minter without a cloud, for tests and for trying things out: its secrets open nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from planner.clouds.mint.port import Minted, Minter, Order

_SECRETS: Final = {
    "s3": ("aws", ("access_key_id", "secret_access_key", "session_token")),
    "gs": ("gcp", ("access_token",)),
    "az": ("azure", ("account", "container", "sas")),
    "nebius": ("nebius", ("access_key_id", "secret_access_key", "endpoint")),
}


@dataclass(slots=True)
class FakeMinter:
    """Mints numbered words and keeps the orders."""

    orders: list[Order] = field(default_factory=list[Order])

    def mint(self, order: Order) -> Minted:
        """See `Minter`."""
        self.orders.append(order)
        kind, names = _SECRETS[order.scope.store]
        secret = {name: f"fake-{name}-{len(self.orders)}" for name in names}
        ends = order.now + timedelta(seconds=order.lifetime_seconds)
        return Minted(kind=kind, secret=secret, expires_at=ends)


@dataclass(slots=True)
class FakeMinters:
    """One for every store."""

    one: FakeMinter = field(default_factory=FakeMinter)

    def minter(self, store: str) -> Minter:  # noqa: ARG002 - the same for all
        """See `Minters`."""
        return self.one
