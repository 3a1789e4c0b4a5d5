"""skyplan.yaml -> Project, with every problem at its line.

Decides what the project file may say.  Pure: no file is read, no clock.  A limit whose pattern matches nothing that is known is a warning
here, an error in a job: this file is shared by many jobs, and the catalog moves under it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model import iam_codes
from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.offer import Cloud
from planner.model.project import ControlPlane, Project, Rendezvous, Suppression, default_targets
from planner.spec import parts, secret, stores, units
from planner.spec.backend import backend
from planner.spec.constraints import CLOUDS, constraints
from planner.spec.dates import moment
from planner.spec.federation import federations
from planner.spec.fields import Fields, Report
from planner.spec.fleet import budgets
from planner.spec.foundation import ci_settings
from planner.spec.market import market_settings
from planner.spec.migration import migration_settings
from planner.spec.near import did_you_mean
from planner.spec.patterns import is_glob, specific_first
from planner.spec.prices import price_overrides, reservations
from planner.spec.server import audience_word
from planner.spec.targets import targets
from planner.spec.yaml_lines import Mapping, documents

if TYPE_CHECKING:
    from planner.model.words import Words
    from planner.spec.yaml_lines import Node

#: name under which a node has the join secret while it joins
JOIN_SECRET: Final = "SKYPLAN_JOIN_SECRET"  # noqa: S105 -- a name
_AUDIENCE_HINT: Final = "on Azure nodes ask a token for an application, not for an address: write `azure_audience: api://…` as `identity.azure` of server.yaml has it, or name `targets`, none on Azure"
_LENT_HINT: Final = "on Azure nodes ask a token for an application: write `azure_broker_audience: api://…` as `identity.azure` of broker.yaml has it"
_NAME: Final = r"[a-z][a-z0-9-]{0,38}[a-z0-9]"
_VERSION: Final = r"(?:=|!=|>=|<=|~>|>|<)?\s*[0-9]+(?:\.[0-9]+){0,2}(?:-[0-9A-Za-z.]+)?"
#: rules whose findings may be accepted: what says that an audit itself is wrong may not
_RULES: Final = frozenset(code for code, _, _ in iam_codes.ROWS) - {"SKY-IAM-901", "SKY-IAM-902", "SKY-IAM-904"}


def parse_project(text: str, file: str, words: Words) -> tuple[Project, tuple[Diagnostic, ...]]:
    """The project and all diagnostics, sorted.  What is wrong in it has its default in the value: use it only where nothing is an error."""
    nodes, problems = documents(text, file)
    report = Report(list(problems))
    project = Project(targets=default_targets())
    if len(nodes) > 1:
        report.error(nodes[1].at, "SKY-SPEC-110", "the project file holds a second document", "keep one of them")
    if nodes and isinstance(nodes[0], Mapping):
        fields = Fields(report, nodes[0])
        project = _project(fields, words)
        fields.finish()
    elif nodes:
        report.error(
            nodes[0].at, "SKY-SPEC-104", "the project file must be a mapping of fields", "begin with `project: …`"
        )
    elif not report.failed:
        report.warning(
            Location(file, 1, 1), "SKY-SPEC-103", "the project file is empty: every default holds", "name the project"
        )
    return project, ordered(report.problems)


def _project(f: Fields, words: Words) -> Project:
    defaults = Project()
    own = targets(f, words)
    stand = own if "targets" in f.node.entries else default_targets()
    agent_url, agent_sha256 = _agent(f)
    tolerance = f.read("price_tolerance", _fraction)
    tunnels = f.boolean("tunnels")
    return Project(
        name=f.read("project", _name, required="name the project, such as acme-llm") or defaults.name,
        targets=stand,
        default_targets=stand is not own,
        limits=constraints(f, words, strict=False),
        data_prefixes=f.words("data_prefixes", lambda path, node: _data_prefix(f.report, path, node)),
        prices=price_overrides(f, words),
        reserved=reservations(f, stand, words),
        pool_cap_nodes=f.read("pool_cap_nodes", lambda text: units.integer(text, 1, 1_000_000)),
        backend=backend(f),
        provider_versions=_providers(f),
        policy=f.text("policy"),
        suppressions=_suppressions(f),
        tags=parts.tags(f),
        images=_images(f),
        agent_url=agent_url,
        agent_sha256=agent_sha256,
        price_tolerance=defaults.price_tolerance if tolerance is None else tolerance,
        tunnels=defaults.tunnels if tunnels is None else tunnels,
        federation=federations(f),
        rendezvous=_rendezvous(f),
        ci=ci_settings(f),
        control_plane=_control_plane(f, agent=agent_url is not None, azure=any(t.cloud is Cloud.AZURE for t in stand)),
        migration=migration_settings(f),
        market=market_settings(f),
        budgets=budgets(f),
    )


def _name(text: str) -> str:
    if not re.fullmatch(_NAME, text, re.ASCII):
        raise units.Malformed("is no name", "2 to 40 lower-case letters, digits and `-`, beginning with a letter")
    return text


def _fraction(text: str) -> float:
    if not re.fullmatch(units.NUMBER, text, re.ASCII) or float(text) > 1:
        raise units.Malformed("is no fraction", "write a number from 0 to 1, such as 0.10 for 10 %")
    return float(text)


def _data_prefix(report: Report, path: str, node: Node) -> str | None:
    text = report.text(path, node)
    found = stores.location(report, path, node.at, text) if text else None
    return found.uri if found else None


def _providers(f: Fields) -> tuple[tuple[str, str], ...]:
    def check(name: str, at: Location, path: str) -> bool:
        if name not in CLOUDS:
            f.report.error(
                at, "SKY-SPEC-102", f"`{path}` is no cloud", f"providers are named by cloud: {', '.join(CLOUDS)}"
            )
        return name in CLOUDS

    found = f.strings("providers", check=check)
    for name, version in found:
        if not all(re.fullmatch(_VERSION, part.strip(), re.ASCII) for part in version.split(",")):
            hint = 'write a version or a range, such as "5.100.0" or ">= 5.100.0, < 7.0.0"'
            f.report.error(f.report.places["providers"], "SKY-SPEC-105", f"`providers.{name}` is no version", hint)
    return found


def _images(f: Fields) -> tuple[tuple[str, str], ...]:
    """The most specific pattern first, since the first that matches wins."""

    def check(name: str, at: Location, path: str) -> bool:
        cloud, *rest = name.split("/")
        good = len(rest) == 2 and all(rest) and (cloud in CLOUDS or is_glob(cloud))  # noqa: PLR2004
        if not good:
            hint = "write CLOUD/REGION/INSTANCE_TYPE, such as aws/us-east-1/p5*"
            f.report.error(at, "SKY-SPEC-105", f"`{path}` is no pattern of machine images", hint)
        return good

    found = f.strings("images", check=check)
    return tuple(sorted(found, key=lambda p: specific_first(p[0])))


def _agent(f: Fields) -> tuple[str | None, str | None]:
    a = f.fields("agent")
    if a is None:
        return None, None
    url = a.read(
        "url", _agent_url, required="say where nodes fetch the agent, such as https://skyplan.example.com/agent.pyz"
    )
    sha256 = a.read("sha256", _sha256, required="give the SHA-256 of the agent, 64 hex digits")
    a.finish()
    return (url, sha256) if url and sha256 else (None, None)


def _rendezvous(f: Fields) -> Rendezvous | None:
    """`rendezvous: {url, secrets: {CLOUD: REFERENCE}}`."""
    r = f.fields("rendezvous")
    if r is None:
        return None

    def check(name: str, at: Location, path: str) -> bool:
        if name not in CLOUDS:
            f.report.error(at, "SKY-SPEC-102", f"`{path}` is no cloud", f"write one of {', '.join(CLOUDS)}")
        return name in CLOUDS

    url = r.read("url", _service_url, required="say where nodes reach it, such as https://meet.example.com")
    found = r.strings("secrets", check=check)
    r.finish()
    refs = [(cloud, secret.reference(text, JOIN_SECRET)) for cloud, text in found]
    for cloud, ref in refs:
        if ref is None:
            where = f.report.places["rendezvous.secrets"]
            f.report.error(
                where, "SKY-SPEC-111", f"`rendezvous.secrets.{cloud}` is no reference", secret.REFERENCE_HINT
            )
    return Rendezvous(url=url, secrets=tuple((cloud, ref) for cloud, ref in refs if ref)) if url else None


def _control_plane(f: Fields, *, agent: bool, azure: bool) -> ControlPlane | None:
    """`control_plane: {url, ca_file?, broker?, azure_audience?, azure_broker_audience?}`.  It is the agent that speaks to it."""
    c = f.fields("control_plane")
    if c is None:
        return None
    url = c.read(
        "url", _secure_url, required="say where nodes reach `skyplan serve`, such as https://skyplan.example.com"
    )
    ca_file = c.read("ca_file", _node_file)
    broker = c.read("broker", _secure_url)
    audience = c.read("azure_audience", audience_word, required=_AUDIENCE_HINT if azure else "")
    lent = c.read(
        "azure_broker_audience", audience_word, required=_LENT_HINT if azure and "broker" in c.node.entries else ""
    )
    if audience and audience == lent:
        where = f.report.places["control_plane.azure_broker_audience"]
        hint = "register a second application: with one, the control plane could show nodes' proofs to the broker"
        f.report.error(where, "SKY-SPEC-105", "`control_plane` has one audience for both services", hint)
    c.finish()
    if not agent:
        hint = "say where nodes fetch the agent, and its SHA-256: it is what speaks to the control plane"
        f.missing("`agent`", hint)
    if not url:
        return None
    return ControlPlane(url=url, ca_file=ca_file, broker=broker, azure_audience=audience, azure_broker_audience=lent)


def _secure_url(text: str) -> str:
    if not text.startswith("https://"):
        raise units.Malformed("is no address of a service", "write https://HOST: tokens go there")
    return _service_url(text)


def _node_file(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9._/-]+", text, re.ASCII) or ".." in text.split("/"):
        raise units.Malformed(
            "is no file on the nodes", "write its whole path in the machine image, such as /etc/ssl/acme.pem"
        )
    return text


def _service_url(text: str) -> str:
    found = re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::([0-9]{1,5}))?/?", text, re.ASCII)
    if not found:
        raise units.Malformed("is no address of a service", "write https://HOST, without credentials and path")
    if found[1] not in {None, "80", "443"}:
        raise units.Malformed(
            "is on a port that nodes may not reach", "nodes open ports 80 and 443 to the outside only"
        )
    return text.rstrip("/")


def _agent_url(text: str) -> str:
    if not re.fullmatch(r"(?:https|s3|gs|az|nebius)://[A-Za-z0-9._~/:-]+", text, re.ASCII):
        raise units.Malformed("is no address for the agent", "write https://… or a data location, without credentials")
    return text


def _sha256(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise units.Malformed("is no SHA-256", "write 64 hex digits")
    return text.lower()


def _suppressions(f: Fields) -> tuple[Suppression, ...]:
    iam = f.fields("iam")
    if iam is None:
        return ()
    out: list[Suppression] = []
    for s in iam.records("suppressions"):
        rule = s.read("rule", _rule, required="name the rule, such as SKY-IAM-605")
        reason = s.text("reason", required="say why this finding is accepted")
        expires = s.read("expires", moment, required="say until when, such as 2027-06-30; then it is looked at again")
        grant = s.text("grant")
        s.finish()
        if rule and reason and expires:
            out.append(Suppression(rule=rule, reason=reason, expires=expires, grant=grant or "*"))
    iam.finish()
    return tuple(out)


def _rule(text: str) -> str:
    if text not in _RULES:
        hint = did_you_mean(text, _RULES) or "write a rule's code, such as SKY-IAM-605"
        raise units.Malformed("is no rule whose findings can be accepted", hint)
    return text
