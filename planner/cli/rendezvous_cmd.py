"""`skyplan rendezvous`: the meeting point of a tunnel's nodes, until SIGTERM.  Its bound address is one JSON line on stdout; its log is on stderr."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli.numbers import Finite

if TYPE_CHECKING:
    from types import FrameType

_LISTEN = re.compile(r"([0-9.]+|localhost):([0-9]{1,5})", re.ASCII)


@click.command("rendezvous")
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Port 0 takes a free one. Open it to the job's nodes only.",
)
@click.option(
    "--peers",
    "peers_file",
    required=True,
    type=click.Path(path_type=Path),
    help="Who must come: {job, generation, members: [{name, tunnel_address, secret_sha256, endpoint}]}.",
)
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The join secret that the nodes read from their secret stores, for members without `secret_sha256`.",
)
@click.option(
    "--timeout",
    type=Finite(min=0, min_open=True),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="From the start; then whoever waits is told who is missing.",
)
def command(listen: str, peers_file: Path, secret_file: Path | None, timeout: float) -> None:
    """Let the nodes of a job that spans clouds learn each other's WireGuard keys and endpoints.

    Each node proves itself with its one-time join secret. The peer set is given out when all are there, or never.
    """
    from planner.server.http import RendezvousServer
    from planner.server.peers_file import read, shared_secret
    from planner.server.rendezvous import Clock, Rendezvous

    at = _LISTEN.fullmatch(listen)
    if not at or int(at[2]) > 65535:  # noqa: PLR2004 - the last port
        raise click.BadParameter(f"`{listen}` is no HOST:PORT, such as 127.0.0.1:8080")
    expected = read(peers_file, shared_secret(secret_file) if secret_file else None)
    clock = Clock(wall=time.time, steady=time.monotonic)
    server = RendezvousServer(at[1], int(at[2]), Rendezvous(expected, clock=clock, timeout_seconds=timeout))

    def end(_signal: int, _frame: FrameType | None) -> None:
        # `end` waits for `serve_forever`, which this signal has interrupted
        threading.Thread(target=server.end).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with server:
        click.echo(json.dumps({"job": expected.job, "generation": expected.generation, "url": server.url}))
        sys.stdout.flush()
        server.serve_forever(poll_interval=0.1)
