"""broker.yaml, read: where the broker listens, whom it believes about machines, and node identities whose names do not tell.

    url: https://broker.acme.example           # as nodes reach it, and what their proofs must be made for
    listen: 0.0.0.0:443
    tls: {certificate: broker.pem, key: broker.key}
    identity:
      aws_sts: [sts.us-east-1.amazonaws.com]   # hosts that a signed GetCallerIdentity may be sent to; globs
      gcp: true                                # Google's own issuer and keys, for `url`
      azure: [{tenant: UUID, audience: api://skyplan-broker}]
      nebius: [{issuer: …, keys_url: …, audience: …}]
      ca_file: ca.pem
    principals: [{job: train, target: neb, principal: serviceaccount-e00…}]

Decides what is whole and safe: TLS off loopback, https for keys off loopback, an audience that no other service has.  Every problem at its place (SKY-RUN-520 and
the codes of all spec files).  Files are named relative to broker.yaml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from planner.app.mint_nodes import KnownPrincipal
from planner.model.diagnostic import Location, Severity, ordered
from planner.model.errors import InputError
from planner.model.project import Project
from planner.model.server import GOOGLE_ISSUER, GOOGLE_KEYS, MICROSOFT_KEYS, IdentityTrust, TokenIssuer
from planner.server.identity.fetch import is_loopback
from planner.spec import units
from planner.spec.federation import UUID
from planner.spec.fields import Fields, Report
from planner.spec.yaml_lines import Mapping, Node, documents

_URL: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?", re.ASCII)
_LISTEN: Final = re.compile(r"([0-9.]+|\[[0-9a-fA-F:]+\]|localhost):([0-9]{1,5})", re.ASCII)
_STS: Final = re.compile(r"sts[a-z0-9.*-]*\.amazonaws\.com(\.cn)?", re.ASCII)
_AUDIENCE: Final = re.compile(r"[A-Za-z0-9:/._-]{1,300}", re.ASCII)
_WORD: Final = re.compile(r"[^\s]{1,300}")
_LAST_PORT: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """As read.  `tls`: (certificate file, key file)."""

    url: str
    listen: tuple[str, int]
    identity: IdentityTrust
    tls: tuple[str, str] | None = None
    principals: tuple[KnownPrincipal, ...] = ()


def parse_broker(text: str, file: str, project: Project) -> BrokerSettings:
    """Raises InputError with every problem."""
    nodes, problems = documents(text, file)
    report = Report(list(problems))
    found: BrokerSettings | None = None
    if len(nodes) == 1 and isinstance(nodes[0], Mapping):
        fields = Fields(report, nodes[0])
        found = _settings(fields, Path(file).parent, project)
        fields.finish()
    elif not report.failed:
        report.error(
            Location(file, 1, 1), "SKY-SPEC-104", "broker.yaml must be one mapping of fields", "begin with `url: …`"
        )
    errors = [p for p in report.problems if p.severity is Severity.ERROR]
    if errors or found is None:
        raise InputError(ordered(report.problems))
    return found


def _settings(f: Fields, folder: Path, project: Project) -> BrokerSettings | None:
    url = f.read("url", _url, required="write the broker's address as nodes reach it, https://HOST[:PORT]")
    listen = f.read("listen", _listen, required="write HOST:PORT, such as 127.0.0.1:8444")
    tls = _tls(f, folder)
    identity = _identity(f, folder, url or "")
    principals = tuple(p for one in f.records("principals") if (p := _principal(one)) is not None)
    if url is None or listen is None:
        return None
    _safe(f, url, listen, tls, project)
    return BrokerSettings(url=url, listen=listen, identity=identity, tls=tls, principals=principals)


def _safe(f: Fields, url: str, listen: tuple[str, int], tls: tuple[str, str] | None, project: Project) -> None:
    def wrong(key: str, summary: str, hint: str) -> None:
        f.report.error(f.report.places[key], "SKY-RUN-520", summary, hint)

    if tls is None and not is_loopback(f"http://{listen[0]}"):
        wrong("listen", "off loopback the broker speaks TLS only: it answers with credentials", "add `tls`")
    if url.startswith("http://") and not is_loopback(url):
        wrong("url", "off loopback the broker's address begins with https://", "")
    control = project.control_plane
    if control is None:
        return
    if control.url.rstrip("/") == url.rstrip("/"):
        words = (
            "the broker has the control plane's address: a proof that a node shows to one would be taken by the other"
        )
        wrong("url", words, "give the broker an address of its own")
    if control.broker and control.broker.rstrip("/") != url.rstrip("/"):
        wrong(
            "url",
            f"skyplan.yaml sends nodes to {control.broker}: their proofs are made for that",
            "write it as it stands there",
        )


def _tls(f: Fields, folder: Path) -> tuple[str, str] | None:
    t = f.fields("tls")
    if t is None:
        return None
    certificate = t.text("certificate", required="name the file with the certificate chain in PEM")
    key = t.text("key", required="name the file with its key in PEM")
    t.finish()
    return (str(folder / certificate), str(folder / key)) if certificate and key else None


def _identity(f: Fields, folder: Path, url: str) -> IdentityTrust:
    i = f.fields("identity", required="say whose words about a machine are believed, such as `gcp: true`")
    if i is None:
        return IdentityTrust(audience=url, one_time=False)
    ca_file = i.text("ca_file")
    found = IdentityTrust(
        audience=url,
        aws_sts=i.words("aws_sts", lambda path, node: _sts(i.report, path, node)),
        gcp=_google(i, url),
        azure=tuple(t for one in i.records("azure") if (t := _microsoft(one)) is not None),
        nebius=tuple(t for one in i.records("nebius") if (t := _issuer(one, url)) is not None),
        one_time=False,
        ca_file=str(folder / ca_file) if ca_file else None,
    )
    if not (found.aws_sts or found.gcp or found.azure or found.nebius) and not i.report.failed:
        i.missing("a platform", "name at least one of aws_sts, gcp, azure, nebius")
    i.finish()
    return found


def _google(i: Fields, url: str) -> tuple[TokenIssuer, ...]:
    """`true`: as Google documents it; else a list of issuers."""
    if "gcp" in i.node.entries and not isinstance(i.node.entries["gcp"].value, Mapping):
        node = i.node.entries["gcp"].value
        if getattr(node, "text", None) in {"true", "false"}:
            asked = i.boolean("gcp")
            return (TokenIssuer(issuer=GOOGLE_ISSUER, keys_url=GOOGLE_KEYS, audience=url),) if asked else ()
    return tuple(t for one in i.records("gcp") if (t := _issuer(one, url)) is not None)


def _microsoft(f: Fields) -> TokenIssuer | None:
    """Tokens of version 1, which managed identities get for an application that asks for nothing else; `version: 2` for the other form."""
    tenant = f.read(
        "tenant",
        _form(re.compile(UUID, re.ASCII), "is no tenant id", "write a UUID"),
        required="name the tenant, a UUID",
    )
    audience = f.read(
        "audience",
        _form(_AUDIENCE, "is no audience", "write the application's id URI"),
        required="name the application that tokens are made for, of the broker's own",
    )
    version = f.choice("version", ("1", "2")) or "1"
    f.finish()
    if tenant is None or audience is None:
        return None
    issuer = (
        f"https://sts.windows.net/{tenant}/" if version == "1" else f"https://login.microsoftonline.com/{tenant}/v2.0"
    )
    return TokenIssuer(issuer=issuer, keys_url=MICROSOFT_KEYS.format(tenant=tenant), audience=audience)


def _issuer(f: Fields, url: str) -> TokenIssuer | None:
    issuer = f.read(
        "issuer",
        _form(_WORD, "is no issuer", "write it as in the token's `iss`"),
        required="name the issuer, as in the token's `iss`",
    )
    keys = f.read("keys_url", _url, required="name the address of its keys (JWKS)")
    audience = f.read("audience", _form(_AUDIENCE, "is no audience", "write one audience"))
    if keys is not None and keys.startswith("http://") and not is_loopback(keys):
        f.report.error(f.report.places[f.name("keys_url")], "SKY-RUN-520", "keys are fetched by https only", "")
    f.finish()
    return TokenIssuer(issuer=issuer, keys_url=keys, audience=audience or url) if issuer and keys else None


def _principal(f: Fields) -> KnownPrincipal | None:
    job = f.text("job", required="name the job")
    target = f.text("target", required="name the target of skyplan.yaml that its nodes are in")
    principal = f.read(
        "principal",
        _form(_WORD, "is no identity", "write it as the platform does"),
        required="name the nodes' identity",
    )
    f.finish()
    return KnownPrincipal(job=job, target=target, principal=principal) if job and target and principal else None


def _sts(report: Report, path: str, node: Node) -> str | None:
    text = report.text(path, node)
    if text is None or _STS.fullmatch(text):
        return text
    report.error(
        node.at, "SKY-RUN-520", f"`{path}` is no host of STS", "write a host, such as sts.us-east-1.amazonaws.com"
    )
    return None


def _url(text: str) -> str:
    good = _URL.fullmatch(text)
    try:
        good = good and urlsplit(text).hostname and (urlsplit(text).port or 1)
    except ValueError:
        good = None
    if not good:
        raise units.Malformed("is no address", "write https://HOST[:PORT]")
    return text


def _listen(text: str) -> tuple[str, int]:
    at = _LISTEN.fullmatch(text)
    if not at or int(at[2]) > _LAST_PORT:
        raise units.Malformed("is no HOST:PORT", "write an address of this machine, such as 127.0.0.1:8444")
    return at[1].strip("[]"), int(at[2])


def _form(pattern: re.Pattern[str], wrong: str, hint: str):  # noqa: ANN202 - a parser
    def parse(text: str) -> str:
        if not pattern.fullmatch(text):
            raise units.Malformed(wrong, hint)
        return text

    return parse
