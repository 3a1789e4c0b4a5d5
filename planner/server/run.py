"""Running the application: one process, one event loop, one listening socket, TLS, an orderly end.

Decides the HTTP library's limits.  A signal ends it: what waits for its commit is written first.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import resource
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.server.app import ControlPlane
from planner.server.connections import LOOK_SECONDS, Connection, Look
from planner.server.direct import Direct, Heads
from planner.server.log import Bridge, Log

if TYPE_CHECKING:
    from fastapi import FastAPI

MAX_CONNECTIONS: Final = 20_000
BACKLOG: Final = 4096
KEEP_ALIVE_SECONDS: Final = 75
"""Longer than agents pause between reports: they keep their connection."""
STOP_SECONDS: Final = 15
_FILES_APIECE: Final = 1.2
_SWITCH_SECONDS: Final = 0.0005
"""The committer waits for the database about ten times a batch, and each time may have to wait for the interpreter again while requests are read: by Python's
own 5 ms a report took twice as long (benchmarks/serve.py, 2026-11-30)."""

_YOUNG_OBJECTS: Final = 20_000
"""New ones before Python looks for circles among them; its own 700 are those of ten requests."""


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound; port 0 takes a free one.  Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # what is accepted takes these over.  Head and body of an answer are two writes: without this the second waits for the caller's delayed
        # acknowledgement, 40 ms, and asyncio sets it only where a socket's protocol is named
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # nodes that were taken away leave connections that nobody ends
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def bound(place: tuple[str, int], elsewhere: str) -> socket.socket:
    """The same.  `elsewhere`: how to name another place.  Raises InputError, which says what to do."""
    try:
        return listening(*place)
    except OSError as error:
        where = f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
        summary = f"{where} cannot be listened at: {error.strerror or error}"
        hint = {
            errno.EADDRINUSE: f"another process listens there (another of these?): end it, or {elsewhere}",
            errno.EACCES: f"ports below 1024 need a right (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE); or {elsewhere}",
        }.get(error.errno or 0, elsewhere)
        raise InputError([Diagnostic(code="SKY-RUN-520", summary=summary, hint=hint)]) from error


def serve(
    app: FastAPI,
    at: socket.socket,
    log: Log,
    *,
    tls: tuple[str, str] | None = None,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT.  `started`: called when requests are answered.  Raises InputError where TLS cannot be."""
    _more_files(log)
    sys.setswitchinterval(_SWITCH_SECONDS)
    _collect_less()
    library = logging.getLogger("uvicorn")
    library.handlers = [Bridge(log)]
    library.propagate = False
    with at:
        server = _Server(_config(app, tls), started, log)
        with server.ended_by_signals():
            server.run(sockets=[at])


def _config(app: FastAPI, tls: tuple[str, str] | None) -> uvicorn.Config:
    front = app.hot if isinstance(app, ControlPlane) else None
    protocol: Any = partial(Direct, front=front, heads=Heads(front)) if front else Connection
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        http=protocol,
    )
    config.load()
    if tls:
        config.ssl = tls_context(*tls)
    return config


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS 1.2 or newer.  Raises InputError for files that are no certificate and its key."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # a key that needs a password would ask for it on the terminal
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        files = (("tls.certificate", certificate), ("tls.key", key))
        if unread := [problem for name, file in files if (problem := _unread(name, file))]:
            raise InputError(unread) from error
        why = (error.strerror if isinstance(error, OSError) else None) or "no certificate with its key"
        summary = f"`tls.certificate` {certificate} and `tls.key` {key} cannot be used for TLS: {why}"
        hint = "both in PEM, the key without a password and of that certificate"
        raise InputError([Diagnostic(code="SKY-RUN-520", summary=summary, hint=hint)]) from error
    return context


def _unread(name: str, file: str) -> Diagnostic | None:
    try:
        with Path(file).open("rb"):
            return None
    except OSError as error:
        summary = f"`{name}` names {file}, which cannot be read: {error.strerror}"
        hint = "relative names begin at the settings' own folder; on loopback `tls` may be left out"
        return Diagnostic(code="SKY-RUN-520", summary=summary, hint=hint)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None], log: Log) -> None:
        super().__init__(config)
        self._tell = started
        self._log = log
        self._look = Look()
        self._looked = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell that requests are answered."""
        await super().startup(sockets)
        if self.started:
            self._tell()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: end who keeps us waiting."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            if late := self._look.late(self.server_state.connections, now):
                self._log.line("late", connections=len(late))
                for one in late:
                    one.transport.abort()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Ours are set before: the library would raise the signal again once it has ended, and the exit code would say so."""
        yield

    @contextlib.contextmanager
    def ended_by_signals(self) -> Any:
        """SIGTERM and SIGINT end it in order."""

        def end(_number: int, _frame: FrameType | None) -> None:
            self.should_exit = True

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _collect_less() -> None:
    """Ten thousand connections are some hundred thousand objects: while Python looks for circles among them, nobody is answered."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 50)


def _more_files(log: Log) -> None:
    """Each connection is a file."""
    wanted = int(MAX_CONNECTIONS * _FILES_APIECE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (OSError, ValueError):
        log.line("files", limit=soft)
