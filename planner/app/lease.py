"""Holding a lease while working: waiting for it, signs of life, giving it back.

A holder on this machine whose process is dead loses its lease at once; one elsewhere when it runs out.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.errors import LeaseHeld, SkyplanError, Unavailable

if TYPE_CHECKING:
    from planner.app.ports import Clock, Ports
    from planner.model.record import Lease
    from planner.state.record import Record

LENGTH = timedelta(seconds=120)
"""Long enough for a laptop's hiccup, short enough to wait for; renewed at a quarter of it."""
LOOK_AGAIN_SECONDS = 1.0


def myself() -> str:
    """`HOST pid N#START`: `#START` tells a process from a later one of the same number."""
    return f"{socket.gethostname()} pid {os.getpid()}#{_started(os.getpid()) or '-'}"


def is_gone(holder: str) -> bool:
    """Whether a holder is known to be dead: a process of this machine that does not run any more."""
    name, _, started = holder.partition("#")
    host, _, number = name.rpartition(" pid ")
    if host != socket.gethostname() or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    now = _started(int(number))
    return bool(now) and started not in {"-", now}


def _started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; None where the system does not say.  A zombie counts as dead: it says "zombie"."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return "zombie" if fields[0] == "Z" else fields[19]


@contextmanager
def held(ports: Ports, name: str, *, wait_seconds: float) -> Generator[Lease]:
    """The lease on a job or a network, for as long as the block runs.  Raises LeaseHeld when `wait_seconds` have passed."""
    record, clock = ports.record, ports.clock
    lease = _take(ports, name, wait_seconds)
    stop = threading.Event()
    beat = threading.Thread(target=_beat, args=(record, lease, clock, stop), name=f"lease {name}", daemon=True)
    beat.start()
    try:
        yield lease
    finally:
        stop.set()
        beat.join()
        # whoever took it over holds it now; our next write would have been refused
        with suppress(SkyplanError):
            record.release(lease, clock.now())


def _take(ports: Ports, name: str, wait_seconds: float) -> Lease:
    until = ports.clock.now() + timedelta(seconds=wait_seconds)
    told = False
    while True:
        try:
            return ports.record.take_lease(name, ports.holder, ports.clock.now(), LENGTH, gone=is_gone)
        except LeaseHeld as error:
            if ports.clock.now() >= until:
                raise
            if not told:
                ports.tell("", f"waiting: {error}")
                told = True
        ports.clock.sleep(LOOK_AGAIN_SECONDS)


def _beat(record: Record, lease: Lease, clock: Clock, stop: threading.Event) -> None:
    while not stop.wait(LENGTH.total_seconds() / 4):
        try:
            record.renew(lease, clock.now(), LENGTH)
        except Unavailable:
            continue  # a database that was started anew: the next sign of life may still come in time
        except SkyplanError:
            return
