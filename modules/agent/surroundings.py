"""The job's environment: this process's own, the environment file, and what docs/job-protocol.md promises.  Text only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import thrift
from .errors import CONFIG, AgentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .settings import Settings

MAX_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SYSTEMD = ("INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "MAINPID")


def variables(
    settings: Settings, own: Mapping[str, str], laid_out: Mapping[str, str], python: str, more: Mapping[str, str | None]
) -> dict[str, str]:
    """Name -> value.  `more` comes last; None there takes a name away.  Raises AgentError for an environment file that cannot be read."""
    seat = settings.seat
    found = {name: value for name, value in thrift.without(own).items() if name not in _SYSTEMD}
    if settings.environment_file:
        found.update(read(settings.environment_file))
    found.update(
        {
            "SKYPLAN_PROJECT_NAME": seat.project,
            "SKYPLAN_JOB": seat.job,
            "SKYPLAN_RUN": seat.run,
            "SKYPLAN_GENERATION": str(seat.generation),
            "SKYPLAN_RANK": str(seat.rank),
            "SKYPLAN_NODES": str(seat.nodes),
            **laid_out,
        }
    )
    found["PYTHONPATH"] = python + (":" + found["PYTHONPATH"] if found.get("PYTHONPATH") else "")
    for name, value in more.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def read(path: str) -> dict[str, str]:
    """`KEY=value` lines as systemd and `docker --env-file` read them: no quotes, `#` begins a comment."""
    try:
        text = Path(path).read_bytes()[:MAX_BYTES].decode("utf-8")
    except (OSError, ValueError) as error:
        raise AgentError(CONFIG, f"the environment file cannot be read: {error}") from error
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not sign or not _NAME.fullmatch(name.strip()):
            raise AgentError(CONFIG, f"{path}: `{name.strip()[:40]}` is no KEY=value line")
        found[name.strip()] = value
    return found
