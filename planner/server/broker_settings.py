"""broker.yaml, read: where the broker listens, whom it believes about machines, and node identities whose names do not tell.

    url: https://broker.acme.example          # as nodes reach it, and what their proofs must be made for
    listen: 0.0.0.0:443
    tls: {certificate: broker.pem, key: broker.key}
    identity:                                 # as in server.yaml
      aws: {sts: [sts.us-east-1.amazonaws.com]}
      gcp: {}
      azure: {tenant: UUID, audience: api://skyplan-broker}
    principals: [{job: train, target: neb, principal: serviceaccount-e00…}]
    hierarchical_accounts: [acmeckpt]         # Azure: storage accounts with hierarchical namespace, where they do not tell

Decides what is safe: TLS off loopback, an audience that the control plane does not have, no proof that is for nobody in particular.  Every problem at its line.
Files are named relative to broker.yaml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from planner.model.diagnostic import Location, ordered
from planner.model.errors import InputError
from planner.model.project import Project
from planner.model.server import IdentityTrust, KnownPrincipal
from planner.server.settings_file import text_of
from planner.spec.fields import Fields, Report
from planner.spec.server import identity_trust, is_loopback, listen_place, principals, service, tls_files
from planner.spec.yaml_lines import Mapping, Node, documents

CODE: Final = "SKY-RUN-520"
_HINT: Final = "write it: docs/runtime.md, `From zero on AWS`, has one, docs/broker.md its fields, and `skyplan schema broker`; or name it with `--settings`"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """As read.  `tls`: (certificate file, key file)."""

    url: str
    listen: tuple[str, int]
    identity: IdentityTrust
    tls: tuple[str, str] | None = None
    principals: tuple[KnownPrincipal, ...] = ()
    hierarchical: tuple[str, ...] = ()


def read(path: Path, project: Project) -> BrokerSettings:
    """The settings of a file.  Raises InputError with every problem."""
    return parse_broker(text_of(path, path, _HINT), str(path), project)


def parse_broker(text: str, file: str, project: Project) -> BrokerSettings:
    """Raises InputError with every problem."""
    nodes, problems = documents(text, file)
    report = Report(list(problems))
    found: BrokerSettings | None = None
    if len(nodes) > 1:
        report.error(nodes[1].at, "SKY-SPEC-110", "the settings hold a second document", "keep one of them")
    if nodes and isinstance(nodes[0], Mapping):
        fields = Fields(report, nodes[0])
        found = _settings(fields, Path(file).absolute().parent, project)
        fields.finish()
    elif not report.failed:
        at = nodes[0].at if nodes else Location(file, 1, 1)
        report.error(at, "SKY-SPEC-104", "the settings must be a mapping of fields", "begin with `url: https://…`")
    if report.failed or found is None:
        raise InputError(ordered(report.problems))
    return found


def _settings(f: Fields, folder: Path, project: Project) -> BrokerSettings | None:
    url = f.read("url", service, required="say how nodes reach the broker, such as https://broker.example.com")
    listen = f.read("listen", listen_place, required="write HOST:PORT, such as 0.0.0.0:443 or 127.0.0.1:8444")
    tls = tls_files(f)
    identity = _identity(f, folder, url or "")
    hierarchical = f.words("hierarchical_accounts", lambda path, node: _account(f.report, path, node))
    known = principals(f)
    if listen is not None and not is_loopback(listen[0]) and tls is None and "tls" not in f.node.entries:
        hint = "add `tls: {certificate: FILE, key: FILE}`, or listen on 127.0.0.1 behind a proxy that has TLS"
        f.report.error(
            f.report.places["listen"],
            CODE,
            "off loopback the broker speaks TLS only: it answers with credentials",
            hint,
        )
    if url is None or listen is None:
        return None
    _apart(f, url, identity, project)
    beside = (str(folder / tls[0]), str(folder / tls[1])) if tls else None
    return BrokerSettings(
        url=url, listen=listen, identity=identity, tls=beside, principals=known, hierarchical=hierarchical
    )


def _apart(f: Fields, url: str, identity: IdentityTrust, project: Project) -> None:
    """A proof that a node shows to the control plane must be none here: whoever has stolen that one would have the node's data."""
    control = project.control_plane
    if control is None:
        return
    theirs = control.url.rstrip("/")
    if theirs in {url, identity.audience}:
        words = (
            "the broker has the control plane's address: a proof that a node shows to one would be taken by the other"
        )
        f.report.error(f.report.places["url"], CODE, words, "give the broker an address and an audience of its own")
    for issuer in (*identity.gcp, *identity.azure, *identity.nebius):
        if issuer.audience.rstrip("/") == theirs:
            words = f"tokens of {issuer.issuer} are taken here that were made for the control plane"
            f.report.error(f.report.places["identity"], CODE, words, "give them an audience of the broker's own")
    if control.broker and control.broker.rstrip("/") != url:
        words = f"skyplan.yaml sends nodes to {control.broker}, and their proofs are made for that"
        f.report.error(f.report.places["url"], CODE, words, "write it as it stands there")


def _identity(f: Fields, folder: Path, url: str) -> IdentityTrust:
    found = identity_trust(f, url)
    where = f.report.places.get("identity", f.node.at)
    if found.aws_certificates:
        words = "an identity document is for nobody in particular, and the broker takes none: `aws.sts` says the hosts to ask instead"
        f.report.error(where, CODE, words, "leave `certificates` out")
    if not (found.aws_sts or found.gcp or found.azure or found.nebius) and not f.report.failed:
        hint = "add `identity: {gcp: {}}`, or aws, azure, nebius"
        f.report.error(where, CODE, "no platform is believed about its machines, so no node can have a lease", hint)
    ca_file = str(folder / found.ca_file) if found.ca_file else None
    return replace(found, one_time=False, ca_file=ca_file)


def _account(report: Report, path: str, node: Node) -> str | None:
    text = report.text(path, node)
    if text is None or re.fullmatch(r"[a-z0-9]{3,24}", text, re.ASCII):
        return text
    report.error(
        node.at,
        "SKY-SPEC-105",
        f"`{path}` is no storage account",
        "write its name: 3 to 24 lower-case letters and digits",
    )
    return None
