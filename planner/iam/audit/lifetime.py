"""Rules 5xx: how long credentials live, who renews them, and where they can be read.  Pure arithmetic over what is planned; looks for no secret itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planner.iam.audit.find import of_subject
from planner.iam.audit.registry import Rule
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, LeasePath, Machine, Subject

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
#: botocore renews inside the last 15 minutes: at 900 s each call fetched anew, at 960 s one did (measured with botocore 1.44.8)
STORM_SECONDS: Final = 16 * _MINUTE
#: what the cloud gives at most: STS 12 h, chained 1 h; iamcredentials 1 h without an organisation policy; a user delegation key 7 days
LONGEST_SECONDS: Final[dict[str, int]] = {
    "assume-role": 12 * _HOUR,
    "azure-sas": 7 * _DAY,
    "chained-role": _HOUR,
    "gcp-token": _HOUR,
}
_FEDERATION: Final = {Cloud.AWS: 12 * _HOUR, Cloud.GCP: _HOUR}
#: ways that running programs never look at again, whoever rewrites what is behind them
_READ_ONCE: Final = {
    "static-file": "programs read a credentials file once and never again, whoever rewrites it (test-infra#971)",
    "azcli": "the Azure CLI's login is a person's, and dies within hours on a node (azure-storage-fuse#1609)",
}
_INSTEAD: Final = {
    Cloud.AWS: "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:PORT/…, or credential_process with Expiration",
    Cloud.GCP: "credential_source of type url or file in an external_account, or the machine's service account",
    Cloud.AZURE: "AZURE_FEDERATED_TOKEN_FILE, or the machine's managed identity (authtype: msi)",
    Cloud.NEBIUS: "the machine's service account, or keys with expires_at that the broker rotates",
}


def long_lived(audited: Audited) -> Iterator[Finding]:
    """501."""
    for subject in audited.subjects:
        for key in subject.keys:
            yield of_subject(
                subject,
                f"a long-lived key: {key}",
                grant=key,
                resource=key,
                evidence=key,
                fix=f"delete the key, and use {_INSTEAD[subject.cloud]}",
            )


def lifetimes(audited: Audited) -> Iterator[Finding]:
    """502."""
    for lease in audited.leases:
        seconds = lease.lifetime_seconds
        if seconds is None:
            continue
        longest = _FEDERATION.get(lease.cloud) if lease.kind == "federation" else LONGEST_SECONDS.get(lease.kind)
        if seconds <= STORM_SECONDS:
            message = f"{_span(seconds)} ({lease.kind}) is too short: clients renew in the last 15 minutes, and so on every call"
        elif longest is not None and seconds > longest:
            message = f"{_span(seconds)} is longer than {lease.kind} gives, {_span(longest)}: the request is refused"
        else:
            continue
        yield _about(lease, message, f"lifetime_seconds = {min(longest or _HOUR, _HOUR)}")


def outlived(audited: Audited) -> Iterator[Finding]:
    """503."""
    for lease in audited.leases:
        why = _dies(lease)
        if why:
            yield _about(lease, why, f"renew it without a restart: {_INSTEAD[lease.cloud]}")


def _dies(lease: LeasePath) -> str:
    """Why the run loses its credential; "" where it does not."""
    run = (
        "the run has no end that is known" if lease.run_hours is None else f"the run lasts up to {lease.run_hours:g} h"
    )
    lasts = lease.lifetime_seconds is not None and lease.run_hours is not None
    within = lasts and (lease.run_hours or 0) * _HOUR <= (lease.lifetime_seconds or 0)
    if lease.kind == "azcli":
        return f"nodes sign in by azcli: {_READ_ONCE['azcli']}"
    if within:
        return ""
    if lease.kind in _READ_ONCE:
        return f"{run}, and {_READ_ONCE[lease.kind]}"
    if lease.renewed or lease.lifetime_seconds is None:
        return ""
    return f"{run}, its credential ({lease.kind}) {_span(lease.lifetime_seconds)}, and nothing renews it"


def leaked(audited: Audited) -> Iterator[Finding]:
    """504."""
    for leak in audited.leaks:
        yield Finding(
            rule="",
            level=Level.INFO,
            cloud="",
            identity="",
            origin=leak.origin,
            message=f"looks like a secret: {leak.kind}",
            grant=leak.kind,
            resource=leak.shown,
            evidence=leak.shown,
            fix="take it out, give a reference (`secrets: {NAME: STORE://PATH}`), and have the secret itself replaced",
            location=leak.location,
        )


def metadata(audited: Audited) -> Iterator[Finding]:
    """505."""
    for machine in audited.machines:
        if machine.cloud is not Cloud.AWS:
            continue
        faults = list(_faults(machine))
        if faults:
            holder = Subject(cloud=machine.cloud, name=machine.job or machine.origin, origin=machine.origin)
            yield of_subject(
                holder,
                " and ".join(faults),
                evidence=f"http_tokens required: {machine.tokens_required}, hop limit: {machine.hop_limit}, containers: {machine.containers}",
                fix='metadata_options { http_endpoint = "enabled", http_tokens = "required", http_put_response_hop_limit = 1 }',
                location=machine.location,
            )


def _faults(machine: Machine) -> Iterator[str]:
    # a machine whose template is not here says neither: the template's own row does
    elsewhere = machine.tokens_required is None and machine.hop_limit is None and machine.has_identity is None
    if machine.tokens_required is not True and not elsewhere:
        yield "the metadata service answers without a session token (IMDSv1)"
    if machine.containers and (machine.hop_limit or 0) > 1:
        yield f"hop limit {machine.hop_limit} lets every container have the machine's credentials"


def _about(lease: LeasePath, message: str, fix: str) -> Finding:
    holder = Subject(cloud=lease.cloud, name=lease.job, origin=lease.origin, location=lease.location)
    span = "not known" if lease.lifetime_seconds is None else _span(lease.lifetime_seconds)
    return of_subject(
        holder,
        message,
        grant=lease.kind,
        evidence=f"{lease.kind}: lifetime {span}, renewed {lease.renewed}, run hours {lease.run_hours}",
        fix=fix,
        location=lease.location,
    )


def _span(seconds: int) -> str:
    """In the largest unit that it is a whole number of."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-501",
        level=Level.HIGH,
        why=(
            "A key that does not expire is a key that leaks once and works for years: in a notebook, in a log, in a former colleague's home. Machines have "
            "identities of their own, and pipelines have federation, so that none is needed."
        ),
        fix="Delete it; use the machine's identity, federation or a broker's lease.",
        maps=("CKV2_AZURE_40", "prowler iam_sa_no_user_managed_keys"),
        check=long_lived,
        clouds="Access keys, service account keys, storage account keys, and Nebius keys without expires_at, as the reader of the source finds them.",
    ),
    Rule(
        id="SKY-IAM-502",
        level=Level.HIGH,
        why=(
            "Up to 16 minutes, clients that renew in the last 15 ask for a new credential on every call, and the cloud throttles them. Beyond what the cloud "
            "gives the request is refused, hours into a run: a chained role has one hour whatever one asks for (aws-vault#263, prowler#7721)."
        ),
        fix="30 to 60 minutes.",
        maps=("CKV2_AZURE_41",),
        check=lifetimes,
        clouds="AWS: 12 h, chained 1 h. Google: 1 h, unless an organisation policy extends it, which is not seen here. Azure: 7 days for a delegated SAS.",
    ),
    Rule(
        id="SKY-IAM-503",
        level=Level.HIGH,
        why=(
            "Training that loses its credential after twenty hours loses what it did since its last checkpoint, which it can no longer write. A file that is "
            "rewritten does not help: running programs keep what they read at their start (test-infra#971, dlt#4004)."
        ),
        fix="A way that is asked again: the metadata service, the agent's endpoint, a token file of federation.",
        check=outlived,
        clouds="All. A lifetime that is not known, on a way that renews itself, is fine. The Azure CLI's login on a node never is (azure-storage-fuse#1609).",
    ),
    Rule(
        id="SKY-IAM-504",
        level=Level.CRITICAL,
        why=(
            "User data, tags, outputs and state are read by everybody who may describe: many more than may have the secret. From there it goes to logs, "
            "backups and pull requests, and stays."
        ),
        fix="Give a reference to a secret store; replace the secret, since it was out.",
        maps=("CKV_AWS_46", "TRV AWS-0029", "CKV_SECRET_*"),
        check=leaked,
        clouds="All; what looks like a secret decides the scanner.",
    ),
    Rule(
        id="SKY-IAM-505",
        level=Level.HIGH,
        why=(
            "One request that a program can be talked into (SSRF) reads the machine's credentials from IMDSv1. A hop limit above 1 hands them to every "
            "container on the machine as well, whoever's image it is."
        ),
        fix="IMDSv2 only, hop limit 1; the agent on the host serves containers.",
        maps=("CKV_AWS_79", "CKV_AWS_341", "TRV AWS-0028"),
        check=metadata,
        clouds="AWS only: the other clouds' metadata services ask for a header that a forged request does not carry. Not said counts as IMDSv1.",
    ),
)
