"""`skyplan broker`: mints data credentials for nodes, until SIGTERM.  Its address is one JSON line on stdout; its log is on stderr.

A process and an identity of its own: run it where neither the control plane nor the orchestrator runs, with the cloud credentials of the targets'
`broker_role` in its environment and nothing else.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from planner.server.broker_settings import BrokerSettings


@click.command("broker")
@click.option("--config", "config", required=True, type=click.Path(path_type=Path), metavar="FILE", help="broker.yaml.")
@click.option(
    "--plans",
    "plans",
    required=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Approved plans; only reviewers may write here. New ones count at once, what is taken away counts no more.",
)
@click.option(
    "--project-file",
    "project_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="skyplan.yaml, as reviewed. Default: in the working folder.",
)
@click.option("--fake", is_flag=True, hidden=True, help="Mint words that open nothing.")
def command(config: Path, plans: Path, project_file: Path | None, *, fake: bool) -> None:
    """Mint data credentials: only for nodes that prove who they are, only what an approved plan grants, each lease in the record."""
    from importlib.util import find_spec

    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import MissingPart

    if not (find_spec("fastapi") and find_spec("uvicorn") and find_spec("jwt")):
        summary = (
            "the broker needs the extra `server`; install it from your checkout of skyplan: pip install '.[server]'"
        )
        raise MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)])
    from planner.app import inputs
    from planner.app.mint import Broker
    from planner.app.mint_keys import BoundKeys
    from planner.app.mint_nodes import NodeNames
    from planner.app.mint_plans import ApprovedPlans
    from planner.app.wire import database_url
    from planner.clouds.mint.choose import RealMinters
    from planner.clouds.mint.fake import FakeMinters
    from planner.model.words import words_of
    from planner.server.broker import BrokerServices, make_broker_app
    from planner.server.broker_record import RecordLedger
    from planner.server.broker_settings import parse_broker
    from planner.server.identity import verifiers
    from planner.server.log import Log
    from planner.state.record import Record
    from planner.state.runtime import Runtime

    project = inputs.checked_project(project_file, words_of(inputs.load_market()))
    settings = parse_broker(inputs.read_text(config), str(config), project)
    log = Log()
    # the control plane migrates: the broker's rights in the database are few
    record = Record.open(database_url(), project.name, upgrade=False)
    runtime = Runtime.open(database_url(), project.name, upgrade=False)
    try:
        broker = Broker(
            project=project.name,
            plans=ApprovedPlans(folder=plans, tell=lambda text: log.line("plan", text=text)),
            nodes=NodeNames(project=project, principals=settings.principals),
            ledger=RecordLedger(record=record, runtime=runtime),
            minters=FakeMinters() if fake else RealMinters(),
            keys=BoundKeys(),
        )
        services = BrokerServices(
            broker=broker, verifiers=verifiers(settings.identity), clock=lambda: datetime.now(UTC), log=log
        )
        _serve(make_broker_app(services), settings)
    finally:
        runtime.close()
        record.close()


def _serve(app: object, settings: BrokerSettings) -> None:
    import socket

    import uvicorn

    host, port = settings.listen
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)  # whoever reads the address may ask at once
        certificate, key = settings.tls or (None, None)
        config = uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType] - an ASGI application
            log_config=None,
            access_log=False,
            server_header=False,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            limit_concurrency=512,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=15,
        )
        name = f"[{host}]" if ":" in host else host
        scheme = "https" if certificate else "http"
        click.echo(json.dumps({"url": f"{scheme}://{name}:{listening.getsockname()[1]}", "audience": settings.url}))
        sys.stdout.flush()
        uvicorn.Server(config).run(sockets=[listening])
