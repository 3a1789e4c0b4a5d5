"""Reading server.yaml and the files that it names.  Decides where relative names begin: at the settings' own folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError
from planner.model.server import IdentityTrust, ServerSettings
from planner.spec.server import parse_server

MAX_BYTES: Final = 1024 * 1024
_HINT: Final = "write it: three lines are enough on one machine (docs/runtime.md, `A control plane on a laptop`), examples/server.yaml has every field; or name it with `--settings`"


def read(path: Path) -> ServerSettings:
    """The settings, with certificates in place of their files' names and absolute names for the rest.  Raises InputError with all problems."""
    settings, problems = parse_server(text_of(path, path, _HINT), str(path))
    if settings is None:
        raise InputError(problems)
    return replace(
        settings,
        identity=_identity(path, settings.identity),
        tls=(_beside(path, settings.tls[0]), _beside(path, settings.tls[1])) if settings.tls else None,
    )


def _identity(path: Path, trust: IdentityTrust) -> IdentityTrust:
    certificates = tuple((region, text_of(Path(_beside(path, file)), path)) for region, file in trust.aws_certificates)
    return replace(
        trust, aws_certificates=certificates, ca_file=_beside(path, trust.ca_file) if trust.ca_file else None
    )


def _beside(path: Path, name: str) -> str:
    return str(path.absolute().parent / name)


def text_of(file: Path, settings: Path, missing: str = "") -> str:
    """A file that the settings are or name.  `missing`: what to do where it is not there.  Raises InputError."""
    hint = ""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
        if len(content) <= MAX_BYTES:
            return content.decode("utf-8-sig")
        why = "it is larger than 1 MiB"
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        hint = missing if isinstance(error, FileNotFoundError) else ""
    summary = f"{file} cannot be read: {why}"
    raise InputError([Diagnostic(code="SKY-SPEC-101", summary=summary, hint=hint, location=Location(str(settings)))])
