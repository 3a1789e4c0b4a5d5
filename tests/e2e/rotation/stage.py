"""A node and its job on a clock that the node moves (libfaketime): a day passes in seconds, for SDKs, stores and agent alike.

The node's side runs under it in a process of its own; the job is another, an SDK's program that knows nothing of any of this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modules.agent.cred import holder as holding
from modules.agent.cred.endpoint import Endpoint
from modules.agent.cred.environment import applied
from modules.agent.cred.holder import Holder
from modules.agent.cred.lease import Wanted
from planner.clouds.mint.port import Minter, Order, Scope

LIBRARY = (
    f"/usr/lib/{os.uname().machine}-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
)
STEP_SECONDS = 20 * 60
DAY_SECONDS = 28 * 3600
"""Longer than a day, and than any key that is kept for one."""


def library() -> str | None:
    """libfaketime, where it is installed."""
    return next((path for path in LIBRARY if Path(path).exists()), None)


def faked(environment: dict[str, str], clock: Path) -> dict[str, str]:
    """The environment of a process that lives by `clock`."""
    return {
        **environment,
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def move(clock: Path, seconds: float) -> None:
    """So far from the real time."""
    new = clock.with_suffix(".new")
    new.write_text(f"+{seconds:.3f}")
    new.rename(clock)


class Job:
    """An SDK's program: one JSON line in, one out, always the same process."""

    def __init__(self, program: str, arguments: Sequence[str], environment: dict[str, str]) -> None:
        command = [sys.executable, "-c", program, *arguments]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, word: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline() or '{"failed": ["the job died"], "used": []}')

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()  # without a limit: sleeping fails under libfaketime, and the test has one


def live(
    broker: Any,
    wanted: Sequence[Wanted],
    folder: Path,
    clock: Path,
    job: Callable[[Endpoint, dict[str, str]], Job],
    *,
    after_an_hour: Callable[[], object] = lambda: None,
    away: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """A day of a job: what every reading used and what failed.  During `away` the broker is: from and to, in seconds.

    `after_an_hour` tries what was resolved once at the start, and `frozen` is what came of it.
    """
    told: list[dict[str, Any]] = []
    checkpoints: list[str] = []
    minting = _Away(broker)
    holding.LONGEST_SLEEP_SECONDS = STEP_SECONDS
    holder = Holder(
        minting,
        wanted,
        tell=told.append,
        ask_checkpoint=lambda reason, _at: checkpoints.append(reason),
        draw=lambda: 0.0,  # all grants at once: half the steps
    )
    endpoint = Endpoint(holder, str(folder))
    endpoint.start()
    holder.step()
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    hostile = {"AWS_ACCESS_KEY_ID": "AKOLD", "AWS_SECRET_ACCESS_KEY": "old", "HOME": str(folder)}
    environment = applied(endpoint.environment(), {**inherited, **hostile})
    running = job(endpoint, faked(environment, clock))
    used: list[str] = []
    failed: list[str] = []
    frozen: object = None
    stopped = False
    began, seconds, tried = time.time(), 0.0, False
    while seconds < DAY_SECONDS:
        move(clock, seconds)
        minting.away = away[0] <= seconds < away[1]
        until = holder.step()
        if checkpoints and not stopped:
            # what a job does that is asked: a checkpoint by the lease that still holds, and then it waits
            stopped = True
            failed += running.ask("write")["failed"]
        if not stopped or all(holder.lease(one.grant) for one in wanted):
            answer = running.ask("read")
            used += answer["used"]
            failed += answer["failed"]
        if seconds > 3600 and not tried:
            tried = True
            frozen = after_an_hour()
        # as its thread would come back, were it not for the job's readings in between
        seconds = min(seconds + STEP_SECONDS, max(until - began, seconds + 1))
    last = running.ask("write")
    result = {
        "reads": len(used),
        "rotations": len(set(used)) - 1,
        "failed": failed + last["failed"],
        "pids": {answer["pid"], last["pid"]} == {running.process.pid},
        "exit": running.end(),
        "told": [body["state"] for body in told],
        "checkpoints": checkpoints,
        "minted": broker.minted,
        "frozen": frozen,
    }
    endpoint.stop()
    return result


def minted(minter: Minter, uri: str, access: str, identity: str, number: int) -> dict[str, Any]:
    """A lease as the broker answers it: an hour, from one of skyplan's minters."""
    store, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    if store == "az":
        container, _, prefix = prefix.partition("/")
        bucket = f"{bucket}/{container}"
    scope = Scope(store=store, bucket=bucket, reads=(prefix,), writes=(prefix,) if access == "write" else ())
    now = datetime.now(UTC)
    order = Order(scope=scope, identity=identity, name=f"lease-{number}", lifetime_seconds=3600, now=now)
    made = minter.mint(order)
    return {
        "id": f"lease-{number}",
        "store": store,
        "uri": uri,
        "access": access,
        "issued_at": now.isoformat(),
        "expires_at": made.expires_at.isoformat(),
        made.kind: dict(made.secret),
    }


class _Away:
    def __init__(self, broker: Any) -> None:
        self.broker, self.away = broker, False

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        if self.away:
            raise OSError("no route to the broker")
        return self.broker.lease(uri, access)
