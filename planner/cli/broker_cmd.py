"""`skyplan broker`: mints data credentials for nodes, until SIGTERM.  Its address is one JSON line on stdout; its log is on stderr.

A process and an identity of its own: run it where neither the control plane nor the orchestrator runs, with the cloud credentials of the targets'
`broker_role` in its environment and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from planner.cli import options


@click.command("broker")
@click.option(
    "--settings",
    "settings_file",
    envvar="SKYPLAN_BROKER_SETTINGS",
    type=click.Path(path_type=Path),
    default=Path("broker.yaml"),
    show_default=True,
    help="Whom it believes about machines, where it listens.",
)
@click.option(
    "--plans",
    "plans_folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Approved plans. Only reviewers may write here; what is taken away is approved no longer.",
)
@options.project
@options.catalog
@click.option("--fake", is_flag=True, hidden=True, help="Mint words that open nothing.")
def command(
    settings_file: Path, plans_folder: Path, project_file: Path | None, catalog: Path | None, *, fake: bool
) -> int:
    """Mint data credentials: for nodes that prove who they are, what an approved plan grants, each lease in the record.

    It holds the clouds' credentials of each target's `broker_role`, reads the record (SKYPLAN_DATABASE_URL) and writes leases to it. Off loopback it speaks TLS only.
    """
    from planner.app import review, wire
    from planner.app.mint import Broker
    from planner.app.mint_keys import BoundKeys
    from planner.app.mint_nodes import NodeNames
    from planner.app.mint_plans import ApprovedPlans
    from planner.clouds.mint.choose import RealMinters
    from planner.clouds.mint.fake import FakeMinters
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import MissingPart

    try:
        from planner.server import run
        from planner.server.broker import BrokerServices, make_broker_app
        from planner.server.broker_record import RecordLedger
        from planner.server.identity import verifiers
        from planner.server.log import Log
    except ImportError as error:
        summary = f"`skyplan broker` needs {error.name}; install the extra `server` from your checkout of skyplan: pip install '.[server]'"
        raise MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)]) from error
    from planner.server.broker_settings import read
    from planner.state.engine import shown

    project = review.setting(project_file, catalog).project
    settings = read(settings_file, project)
    judges = verifiers(settings.identity)
    log = Log()
    record = wire.record(project)
    runtime = wire.runtime(project)
    try:
        plans = ApprovedPlans(folder=plans_folder, tell=lambda text: log.line("plan", text=text))
        broker = Broker(
            project=project.name,
            plans=plans,
            nodes=NodeNames(project=project, principals=settings.principals),
            ledger=RecordLedger(record=record, runtime=runtime),
            minters=FakeMinters() if fake else RealMinters(hierarchical=settings.hierarchical),
            keys=BoundKeys(),
        )
        services = BrokerServices(broker=broker, verifiers=judges, clock=wire.SystemClock().now, log=log)
        at = run.bound(settings.listen, "name another place as `listen` in the settings")

        log.line("database", text=shown(wire.database_url()), project=project.name)
        if not plans.count():
            log.line("plan", text=f"{plans_folder} holds no approved plan: every lease is refused until one is there")

        def started() -> None:
            host, port = at.getsockname()[:2]
            scheme = "https" if settings.tls else "http"
            place = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
            click.echo(json.dumps({"url": place, "audience": settings.identity.audience}))
            sys.stdout.flush()

        run.serve(make_broker_app(services), at, log, tls=settings.tls, started=started)
    finally:
        runtime.close()
        record.close()
    return 0
