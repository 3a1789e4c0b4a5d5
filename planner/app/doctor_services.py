"""The services that nodes will use: the control plane and the broker answer, and the agent at its address is the one that was reviewed.  Reads only."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final

from planner.app.doctor import Row, fail, ok, skipped, warn

if TYPE_CHECKING:
    from planner.model.project import Project

SECONDS: Final = 10.0
MOST_BYTES: Final = 64 << 20
"""An agent has some hundred kilobytes."""


def services(project: Project) -> list[Row]:
    """`control_plane` of skyplan.yaml."""
    plane = project.control_plane
    if plane is None:
        return [skipped("control plane", "skyplan.yaml names none: nodes report to nobody")]
    named = [("control plane", plane.url)] + ([("broker", plane.broker)] if plane.broker else [])
    return [_healthy(name, url, own_authority=plane.ca_file is not None) for name, url in named]


def agent(project: Project) -> list[Row]:
    """`agent` of skyplan.yaml: fetched and measured."""
    url, wanted = project.agent_url, project.agent_sha256
    if not url or not wanted:
        return [skipped("agent", "skyplan.yaml names none: nodes run jobs bare")]
    if not url.startswith("https://"):
        return [skipped("agent", f"{url} is fetched by the nodes' own identity, which is not here")]
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - https alone, as above
            body = answer.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        return [
            fail(
                "agent",
                f"{url} cannot be fetched: {_words(error)}",
                "publish it there: skyplan agent pack agent.pyz",
                "SKY-RUN-501",
            )
        ]
    found = hashlib.sha256(body).hexdigest()
    if len(body) > MOST_BYTES or found != wanted:
        fact = f"what lies at {url} is not what skyplan.yaml names: its SHA-256 is {found}"
        return [
            fail(
                "agent", fact, "publish the reviewed one, or review the other's digest into skyplan.yaml", "SKY-RUN-501"
            )
        ]
    return [ok("agent", f"{url} is the one of skyplan.yaml")]


def _healthy(name: str, url: str, *, own_authority: bool) -> Row:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=SECONDS) as answer:  # noqa: S310 - https alone: skyplan.yaml takes nothing else
            answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        error.close()
        return fail(name, f"{url}/healthz says {error.code}", f"see its log: {_command(name)}", "SKY-RUN-510")
    except (OSError, http.client.HTTPException) as error:
        fact = f"{url} does not answer: {_words(error)}"
        if own_authority and "CERTIFICATE" in fact.upper():
            return warn(
                name,
                f"{url} shows a certificate of your own authority, which is not known here",
                "SSL_CERT_FILE=ca.pem skyplan doctor",
            )
        return fail(name, fact, f"start it, or correct its address: {_command(name)}", "SKY-RUN-510")
    return ok(name, f"{url} answers")


def _command(name: str) -> str:
    return "skyplan serve" if name == "control plane" else "skyplan broker"


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return " ".join(str(reason or error or type(error).__name__).split())
