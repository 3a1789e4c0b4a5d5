"""server.yaml -> ServerSettings, with every problem at its line.

Decides what a control plane and a broker may be told: TLS wherever others can reach them, people wherever somebody else than this machine can ask.  Pure: files
that are named are read by `planner.server.settings_file`.  Holds no secret: what looks like one is refused.
"""

from __future__ import annotations

import ipaddress
import math
import re
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.server import (
    GOOGLE_ISSUER,
    GOOGLE_KEYS,
    MICROSOFT_KEYS,
    IdentityTrust,
    KnownPrincipal,
    PeopleTrust,
    Role,
    RoleBinding,
    ServerSettings,
    TokenIssuer,
)
from planner.spec import units
from planner.spec.federation import UUID
from planner.spec.fields import Fields, Report
from planner.spec.yaml_lines import Mapping, documents

if TYPE_CHECKING:
    from planner.spec.yaml_lines import Node

GROUPS: Final = {"join": 1.0, "node": 20.0, "people": 20.0}
ROLES: Final = tuple(role.value for role in Role)
DEFAULT_PORT: Final = 8443
LAST_PORT: Final = 65535
URL: Final = r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?"
ADDRESS: Final = URL + r"(?:/[A-Za-z0-9._~%/-]*)?"
JOBS: Final = r"[a-z0-9*?\[\]!-]{1,63}"
_LISTEN: Final = r"(?:([A-Za-z0-9.-]+)|\[([0-9A-Fa-f:]+)\]):([0-9]{1,5})"
_REGION: Final = r"[a-z0-9-]{1,40}|\*"
_HOST: Final = r"[a-z0-9.*?-]{1,253}"
_MICROSOFT: Final = ("https://sts.windows.net/{tenant}/", "https://login.microsoftonline.com/{tenant}/v2.0")
"""By the version of the tokens that an application asks for; managed identities give the first for most resources."""


def parse_server(text: str, file: str) -> tuple[ServerSettings | None, tuple[Diagnostic, ...]]:
    """The settings and all diagnostics, sorted.  None, or wrong, where one is an error."""
    nodes, problems = documents(text, file)
    report = Report(list(problems))
    settings = None
    if len(nodes) > 1:
        report.error(nodes[1].at, "SKY-SPEC-110", "the settings hold a second document", "keep one of them")
    if nodes and isinstance(nodes[0], Mapping):
        fields = Fields(report, nodes[0])
        settings = _settings(fields)
        fields.finish()
    elif not report.failed:
        at = nodes[0].at if nodes else Location(file, 1, 1)
        report.error(at, "SKY-SPEC-104", "the settings must be a mapping of fields", "begin with `url: https://…`")
    return (None if report.failed else settings), ordered(report.problems)


def is_loopback(host: str) -> bool:
    """Only this machine reaches it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _settings(f: Fields) -> ServerSettings | None:
    url = f.read(
        "url", service, required="say how nodes and people reach this service, such as https://skyplan.example.com"
    )
    listen = f.read("listen", listen_place) or ("127.0.0.1", DEFAULT_PORT)
    tls = tls_files(f)
    people = _people(f)
    broker = f.read("broker", service)
    identity = identity_trust(f, url or "")
    rates = _rates(f)
    known = principals(f)
    at = f.report.places.get("listen") or f.node.at
    if not is_loopback(listen[0]):
        if tls is None and "tls" not in f.node.entries:
            hint = "add `tls: {certificate: FILE, key: FILE}`, or listen on 127.0.0.1 behind a proxy that has TLS"
            f.report.error(at, "SKY-RUN-520", "off loopback this service speaks TLS only, and `tls` is missing", hint)
        if people is None and "people" not in f.node.entries:
            hint = "add `people: {issuer, client_id, bindings}`, or listen on 127.0.0.1"
            f.report.error(at, "SKY-RUN-520", "off loopback people must be known, and `people` is missing", hint)
    if url and not is_loopback(_host(url)) and people is None and "people" not in f.node.entries:
        where = f.report.places["url"]
        hint = "add `people: {issuer, client_id, bindings}`: with others, everybody would be an operator"
        f.report.error(where, "SKY-RUN-520", "others reach this address, and `people` is missing", hint)
    if url is None:
        return None
    return ServerSettings(
        url=url,
        listen=listen,
        tls=tls,
        identity=identity,
        people=people,
        broker_url=broker,
        rates=rates,
        principals=known,
    )


def principals(f: Fields) -> tuple[KnownPrincipal, ...]:
    """`principals`: whose nodes run as whom."""
    return tuple(p for one in f.records("principals") if (p := _principal(one)) is not None)


def _principal(f: Fields) -> KnownPrincipal | None:
    job = f.text("job", required="name the job")
    target = f.text("target", required="name the target of skyplan.yaml that its nodes are in")
    principal = f.text("principal", required="write the nodes' identity as the platform does")
    f.finish()
    return KnownPrincipal(job=job, target=target, principal=principal) if job and target and principal else None


def tls_files(f: Fields) -> tuple[str, str] | None:
    """`tls`: names of certificate and key."""
    t = f.fields("tls")
    if t is None:
        return None
    certificate = t.text("certificate", required="name the file with the certificate and its chain, in PEM")
    key = t.text("key", required="name the file with the private key, in PEM")
    t.finish()
    return (certificate, key) if certificate and key else None


def identity_trust(f: Fields, url: str) -> IdentityTrust:
    """`identity`: whose words about a machine are believed; `url` is the audience where none is said."""
    i = f.fields("identity")
    if i is None:
        return IdentityTrust(audience=url)
    audience = i.read("audience", audience_word) or url
    aws = i.fields("aws")
    certificates: tuple[tuple[str, str], ...] = ()
    sts: tuple[str, ...] = ()
    if aws is not None:
        certificates = aws.strings("certificates", check=lambda name, at, path: _region(f.report, name, at, path))
        sts = aws.words("sts", lambda path, node: _sts(f.report, path, node))
        aws.finish()
    one_time = i.boolean("one_time")
    trust = IdentityTrust(
        audience=audience,
        aws_certificates=certificates,
        aws_sts=sts,
        gcp=_issuers(i, "gcp", audience, issuer=GOOGLE_ISSUER, keys=GOOGLE_KEYS),
        azure=_azure(i, audience),
        nebius=_issuers(i, "nebius", audience),
        one_time=True if one_time is None else one_time,
        ca_file=i.text("ca_file"),
    )
    i.finish()
    return trust


def _issuers(i: Fields, key: str, audience: str, *, issuer: str = "", keys: str = "") -> tuple[TokenIssuer, ...]:
    """`gcp: {}` believes Google; what has no default must be said."""
    out: list[TokenIssuer] = []
    for one in i.records(key):
        said = one.read("issuer", https, required="" if issuer else "say whose tokens are believed")
        at = one.read("keys_url", https, required="" if keys else "say where its public keys are")
        own = one.read("audience", audience_word)
        one.finish()
        if (said or issuer) and (at or keys):
            out.append(TokenIssuer(issuer=said or issuer, keys_url=at or keys, audience=own or audience))
    return tuple(out)


def _azure(i: Fields, audience: str) -> tuple[TokenIssuer, ...]:
    out: list[TokenIssuer] = []
    for one in i.records("azure"):
        tenant = one.read("tenant", _tenant, required="name the tenant by its id, a UUID")
        own = one.read("audience", audience_word) or audience
        one.finish()
        if tenant:
            keys = MICROSOFT_KEYS.format(tenant=tenant)
            out += [TokenIssuer(issuer=t.format(tenant=tenant), keys_url=keys, audience=own) for t in _MICROSOFT]
    return tuple(out)


def _people(f: Fields) -> PeopleTrust | None:
    p = f.fields("people")
    if p is None:
        return None
    issuer = p.read("issuer", https, required="say who signs people in, as in the tokens' `iss`")
    client = p.text("client_id", required="give the client id that the issuer knows this service by")
    audience = p.text("audience") or client
    scopes = tuple(dict.fromkeys(s for path, n in p.items("scopes") if (s := p.report.text(path, n))))
    bindings = tuple(b for one in p.records("bindings") if (b := _binding(one)) is not None)
    if "bindings" not in p.node.entries:
        p.missing("bindings", "without one nobody may do anything: - {claim: groups, value: ml, role: viewer}")
    if scopes and "openid" not in scopes:
        p.report.error(p.report.places["people.scopes"], "SKY-SPEC-105", "`people.scopes` lacks `openid`", "add it")
    p.finish()
    if not issuer or not client or not audience:
        return None
    known = PeopleTrust(issuer=issuer, client_id=client, audience=audience, bindings=bindings)
    return (
        known
        if not scopes
        else PeopleTrust(issuer=issuer, client_id=client, audience=audience, bindings=bindings, scopes=scopes)
    )


def _binding(b: Fields) -> RoleBinding | None:
    claim = b.text("claim", required="name a claim of the token, such as groups or email")
    value = b.text("value", required="say which value of it")
    role = b.choice("role", ROLES, required=f"write one of {', '.join(ROLES)}")
    jobs = b.words("jobs", lambda path, node: _jobs(b.report, path, node))
    b.finish()
    if not claim or not value or not role:
        return None
    return RoleBinding(claim=claim, value=value, role=Role(role), jobs=jobs or ("*",))


def _rates(f: Fields) -> tuple[tuple[str, float], ...]:
    r = f.fields("rates")
    if r is None:
        return tuple(GROUPS.items())
    found = tuple((group, r.read(group, _rate) or usual) for group, usual in GROUPS.items())
    r.finish()
    return found


def service(text: str) -> str:
    """The address of a service: no path, and http on loopback only."""
    found = re.fullmatch(URL + "/?", text, re.ASCII)
    if not found or int(found[3] or 1) > LAST_PORT:
        raise units.Malformed("is no address of a service", "write https://HOST or https://HOST:PORT")
    if found[1] == "http" and not is_loopback(found[2]):
        raise units.Malformed("is not https", "http is for 127.0.0.1 and localhost only")
    return text.rstrip("/")


def https(text: str) -> str:
    """Any address over https; http on loopback only."""
    found = re.fullmatch(ADDRESS, text, re.ASCII)
    if not found or int(found[3] or 1) > LAST_PORT:
        raise units.Malformed("is no address", "write https://HOST/PATH, without credentials")
    if found[1] == "http" and not is_loopback(found[2]):
        raise units.Malformed("is not https", "http is for 127.0.0.1 and localhost only")
    return text


def audience_word(text: str) -> str:
    """What a token is made for."""
    if not re.fullmatch(r"[A-Za-z0-9:/._@-]{1,300}", text, re.ASCII):
        raise units.Malformed(
            "is no audience", "write this service's URL, or the application id that tokens are asked for"
        )
    return text


def listen_place(text: str) -> tuple[str, int]:
    """`HOST:PORT`."""
    found = re.fullmatch(_LISTEN, text, re.ASCII)
    if not found or int(found[3]) > LAST_PORT:
        raise units.Malformed("is no place to listen at", "write HOST:PORT, such as 0.0.0.0:8443")
    return (found[1] or found[2], int(found[3]))


def _tenant(text: str) -> str:
    if not re.fullmatch(UUID, text, re.ASCII):
        raise units.Malformed("is no tenant", "write its id, a UUID")
    return text.lower()


def _rate(text: str) -> float:
    if not re.fullmatch(units.NUMBER, text, re.ASCII) or not 0 < float(text) < math.inf:
        raise units.Malformed("is no rate", "write requests per second, above 0")
    return float(text)


def _region(report: Report, name: str, at: Location, path: str) -> bool:
    good = re.fullmatch(_REGION, name, re.ASCII) is not None
    if not good:
        report.error(at, "SKY-SPEC-105", f"`{path}` is no region", 'write a region such as us-east-1, or "*"')
    return good


def _sts(report: Report, path: str, node: Node) -> str | None:
    text = report.text(path, node)
    if text is None or re.fullmatch(_HOST, text, re.ASCII):
        return text
    report.error(node.at, "SKY-SPEC-105", f"`{path}` is no host", "write sts.us-east-1.amazonaws.com or a glob of such")
    return None


def _jobs(report: Report, path: str, node: Node) -> str | None:
    text = report.text(path, node)
    if text is None or re.fullmatch(JOBS, text, re.ASCII):
        return text
    report.error(
        node.at, "SKY-SPEC-105", f"`{path}` is no job or glob of jobs", 'write a name or a glob, such as "llama-*"'
    )
    return None


def _host(url: str) -> str:
    found = re.fullmatch(URL, url, re.ASCII)
    return found[2] if found else ""
