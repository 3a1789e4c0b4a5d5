"""`skyplan serve`: the control plane, until SIGTERM.  Its bound address is one JSON line on stdout; its log is on stderr, one JSON object a line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.model.server import ServerSettings


@click.command("serve")
@click.option(
    "--settings",
    "settings_file",
    envvar="SKYPLAN_SETTINGS",
    type=click.Path(path_type=Path),
    default=Path("server.yaml"),
    show_default=True,
    help="Whom it believes, who of the people may do what, where it listens.",
)
@click.option("--listen", metavar="HOST:PORT", help="Another place to listen at. Port 0 takes a free one.")
@options.project
@options.catalog
def command(settings_file: Path, listen: str | None, project_file: Path | None, catalog: Path | None) -> int:
    """Take what running nodes report, let them join and meet, and show jobs to people.

    It holds the record's database (SKYPLAN_DATABASE_URL) and no cloud credential; several may run on one PostgreSQL. Off loopback it speaks TLS only.
    SKYPLAN_COOKIE_KEY (32 characters or more, the same for all of them) lets people stay signed in over a restart;
    SKYPLAN_OIDC_CLIENT_SECRET is for issuers that want one. Prometheus reads /metrics as a person with any role does.
    """
    from planner.app import review, wire
    from planner.app.mint_nodes import NodeNames
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import MissingPart
    from planner.server.settings_file import read

    try:
        from planner.server import app, run
        from planner.server.log import Log
        from planner.server.services import Services
    except ImportError as error:
        summary = f"`skyplan serve` needs {error.name}; install the extra `server` from your checkout of skyplan: pip install '.[server]'"
        raise MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)]) from error
    from planner.server.identity import verifiers
    from planner.state.engine import shown

    settings = _listening(read(settings_file), listen)
    project = review.setting(project_file, catalog).project
    judges = verifiers(settings.identity)
    log = Log()
    record = wire.record(project)
    runtime = wire.runtime(project)
    try:
        clock = wire.SystemClock()
        services = Services(
            record=record,
            runtime=runtime,
            settings=settings,
            verifiers=judges,
            clock=clock.now,
            project=project.name,
            accounts={(t.cloud.value, t.name): t.account for t in project.targets if t.account},
            names=NodeNames(project=project, principals=settings.principals),
        )
        at = run.bound(settings.listen, "name another place with `--listen HOST:PORT` (port 0: a free one)")

        log.line("database", text=shown(wire.database_url()), project=project.name)

        def started() -> None:
            host, port = at.getsockname()[:2]
            scheme = "https" if settings.tls else "http"
            click.echo(json.dumps({"url": f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"}))
            sys.stdout.flush()

        run.serve(app.make_app(services, log=log), at, log, tls=settings.tls, started=started)
    finally:
        runtime.close()
        record.close()
    return 0


def _listening(settings: ServerSettings, listen: str | None) -> ServerSettings:
    """Elsewhere, by the same rules.  Raises BadParameter."""
    from dataclasses import replace

    from planner.spec.server import is_loopback, listen_place
    from planner.spec.units import Malformed

    if listen is None:
        return settings
    try:
        place = listen_place(listen)
    except Malformed as error:
        raise click.BadParameter(f"`{listen}` {error}: {error.hint}") from error
    if not is_loopback(place[0]) and (settings.tls is None or settings.people is None):
        raise click.BadParameter("off loopback the settings must have `tls` and `people`")
    return replace(settings, listen=place)
