"""A broker that mints from nothing, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from modules.agent.cred.endpoint import Endpoint
from modules.agent.cred.holder import Holder
from modules.agent.errors import Away


class FakeBroker:
    """Answers as docs/node-protocol.md has it.  `fault` is raised instead, where it is set; `life` in seconds; `clock` may differ from the node's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.fault: Exception | None = None
        self.life = 3600.0
        self.minted: list[dict[str, Any]] = []
        self.asked = 0

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        self.asked += 1
        if self.fault:
            raise self.fault
        number, kind = len(self.minted) + 1, uri.partition("://")[0]
        now = self.clock()
        keys = {"access_key_id": f"AK{number}", "secret_access_key": f"secret-{number}"}
        secret = {
            "s3": {"aws": {**keys, "session_token": f"token-{number}"}},
            "gs": {"gcp": {"access_token": f"down-{number}"}},
            "az": {"azure": {"account": "acct", "container": "data", "sas": f"sig={number}"}},
            "nebius": {"nebius": {**keys, "endpoint": "https://storage.eu-north1.nebius.cloud"}},
        }[kind]
        document = {
            "id": f"lease-{number}",
            "store": kind,
            "uri": uri,
            "access": access,
            "issued_at": iso(now),
            "expires_at": iso(now + self.life),
            **secret,
        }
        self.minted.append(document)
        return document


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


class Bench:
    """A holder on a clock that the test moves; what it told, asked for and ended with."""

    def __init__(self) -> None:
        self.now = 1_793_000_000.0
        self.broker = FakeBroker(lambda: self.now)
        self.told: list[dict[str, Any]] = []
        self.checkpoints: list[tuple[str, float]] = []
        self.finals: list[str] = []

    def holder(self, *wanted) -> Holder:
        return Holder(
            self.broker,
            wanted,
            lambda: self.now,
            tell=self.told.append,
            ask_checkpoint=lambda reason, deadline: self.checkpoints.append((reason, deadline)),
            final=self.finals.append,
            draw=lambda: 0.0,
        )

    def pass_time(self, holder: Holder, seconds: float, *, each: Callable[[], None] = lambda: None) -> None:
        """As the thread would: a step when it is due."""
        end, steps = self.now + seconds, 0
        while self.now < end:
            until = holder.step()
            each()
            assert until >= self.now
            self.now = min(until, end)
            steps += 1
            assert steps < 100_000
        holder.step()

    @property
    def states(self) -> list[str]:
        return [body["state"] for body in self.told]

    def away(self) -> None:
        self.broker.fault = Away("no connection")


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def serving(tmp_path) -> Callable[..., Any]:
    @contextmanager
    def serve(holder: Holder, **more: Any) -> Iterator[Endpoint]:
        endpoint = Endpoint(holder, str(tmp_path / "credentials"), **more)
        endpoint.start()
        try:
            yield endpoint
        finally:
            endpoint.stop()

    return serve
