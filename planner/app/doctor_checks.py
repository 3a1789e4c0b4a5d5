"""All checks of a run of `skyplan doctor`, put together for what this repository uses."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.app import doctor_clouds, doctor_files, doctor_record, doctor_services, doctor_tools
from planner.app.doctor import Check, Row, skipped
from planner.app.init_tools import home
from planner.model.diagnostic import Severity
from planner.model.project import Project

if TYPE_CHECKING:
    from planner.app.doctor_clouds import Account, Need
    from planner.app.doctor_files import Repository
    from planner.clouds.checkup.port import Checkups
    from planner.clouds.feeds.port import Feeds

JOBS: Final = (Path("jobs"),)
CLOUDS: Final = ("aws", "gcp", "azure", "nebius")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The flags.  `clouds` () = those of the targets."""

    clouds: tuple[str, ...] = ()
    jobs: tuple[Path, ...] = JOBS
    plans_folder: Path = Path("plans")
    project_file: Path | None = None
    catalog: Path | None = None
    offline: bool = False
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside: clouds, environment, whose machine it is."""

    checkups: Checkups
    feeds: Feeds
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    home: Path = field(default_factory=home)


def checks(asked: Asked, ports: Ports) -> tuple[Check, ...]:
    """In the order in which they are shown.  Raises InputError for a catalog that is none."""
    found = doctor_files.read(asked.project_file, asked.catalog, asked.jobs)
    project = found.project
    clouds = _clouds(asked, project)
    needs, placement = _placed(asked, found)
    return (
        *_tools(asked, ports, found, clouds),
        Check("skyplan.yaml", lambda: doctor_files.project(found)),
        Check("jobs", lambda: doctor_files.jobs(found)),
        Check("plans", lambda: doctor_files.plans(found, asked.plans_folder)),
        Check(
            "prices",
            lambda: doctor_files.prices(found, asked.now, project_file=asked.project_file, offline=asked.offline),
        ),
        Check("record", doctor_record.record),
        placement,
        *_outside(asked, ports, found, clouds, needs),
    )


def _clouds(asked: Asked, project: Project) -> tuple[str, ...]:
    """Those that were asked for; else those that targets name; else all whose extra is installed."""
    if asked.clouds:
        return asked.clouds
    if project.default_targets:
        return tuple(c for c in CLOUDS if doctor_tools.installed(c))
    return tuple(c for c in CLOUDS if any(t.cloud.value == c for t in project.targets))


def _tools(asked: Asked, ports: Ports, found: Repository, clouds: Sequence[str]) -> tuple[Check, ...]:
    project = found.project
    postgres = ports.environment.get("SKYPLAN_DATABASE_URL", "").startswith("postgres")
    named = () if project.default_targets and not asked.clouds else clouds
    needed = ("record", "cdk", *(("postgres",) if postgres else ()), *named)
    return (
        Check("python", lambda: doctor_tools.python(needed)),
        Check("terraform", lambda: doctor_tools.terraform(ports.environment, project.backend)),
        Check("providers", lambda: doctor_tools.providers(clouds, ports.environment, ports.home)),
        Check("node", doctor_tools.node),
        Check("git", lambda: doctor_tools.git(Path.cwd())),
    )


def _outside(
    asked: Asked, ports: Ports, found: Repository, clouds: Sequence[str], needs: Mapping[str, Sequence[Need]]
) -> tuple[Check, ...]:
    """What is asked over the network."""
    if asked.offline:
        return (Check("clouds", lambda: [skipped("clouds", "--offline: no credentials, quotas, backend or services")]),)
    project = found.project
    out = [
        Check("control plane", lambda: doctor_services.services(project)),
        Check("agent", lambda: doctor_services.agent(project)),
        Check("backend", lambda: doctor_clouds.backend(project, ports.checkups)),
    ]
    prefer = ports.environment.get("AWS_REGION") or ports.environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    accounts = doctor_clouds.accounts(project, found.market, needs, clouds=clouds, now=asked.now, prefer=prefer)
    for account in accounts:
        out += _of_account(account, needs.get(account.name, ()), ports, found, certain=_certain(asked, project))
    return tuple(out)


def _certain(asked: Asked, project: Project) -> bool:
    return bool(asked.clouds) or not project.default_targets


def _of_account(
    account: Account, needs: Sequence[Need], ports: Ports, found: Repository, *, certain: bool
) -> tuple[Check, ...]:
    def of_quotas() -> list[Row]:
        return doctor_clouds.quotas(account, needs, ports.feeds, found.market, certain=certain)

    return (
        Check(
            f"credentials {account.name}",
            lambda: doctor_clouds.credentials(account, ports.checkups, certain=certain),
        ),
        Check(f"quotas {account.name}", of_quotas),
    )


def _placed(asked: Asked, found: Repository) -> tuple[Mapping[str, Sequence[Need]], Check]:
    """What the jobs' first places take, by a plan made of files alone; and whether each has one."""
    broken = found.project_problem is not None or any(d.severity is Severity.ERROR for d in found.problems)
    if broken or not found.workloads:
        return {}, Check("placement", lambda: [skipped("placement", "there is no job that could be planned")])
    from planner.app import plan as planning  # noqa: PLC0415 - numpy

    request = planning.Request(
        job_files=tuple(dict.fromkeys(Path(file) for _, file in found.workloads.values())),
        project_file=asked.project_file,
        catalog=asked.catalog,
        offline=True,
    )
    try:
        plans = [one.plan for one in planning.run(request, asked.now).planned]
    except Exception as error:  # noqa: BLE001 - told by its check, beside all the others
        return {}, Check("placement", lambda error=error: _raised(error))
    return doctor_clouds.needs_of(plans), Check("placement", lambda: doctor_files.placement(plans))


def _raised(error: Exception) -> Sequence[Row]:
    raise error


def real_ports() -> Ports:
    """The clouds themselves."""
    from planner.clouds.checkup.choose import RealCheckups  # noqa: PLC0415 - only with a network
    from planner.clouds.feeds.choose import RealFeeds  # noqa: PLC0415

    return Ports(checkups=RealCheckups(), feeds=RealFeeds())
