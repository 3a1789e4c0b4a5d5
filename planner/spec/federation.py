"""`federation` of the project file: stores that nodes in other clouds reach with their own identity tokens.

Decides which entries are whole and make sense for the stores' cloud.  Holds names of roles, providers and tenants, never a secret; asks no
cloud whether they are there.  Which path a job's URI takes is `planner.iam.paths`' business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.offer import Cloud
from planner.model.project import Federation
from planner.model.workload import Store
from planner.spec.constraints import CLOUDS
from planner.spec.secret import shown

if TYPE_CHECKING:
    from planner.spec.fields import Fields
    from planner.spec.yaml_lines import Node

UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
STORE: Final = r"(s3|gs|az)://[a-z0-9*?][A-Za-z0-9._*?/=+@-]{0,250}"
_STORE_EXAMPLE: Final = 'write a location or a glob of them, such as "s3://acme-*"'
#: nodes whose token the store's cloud takes (notes on paths, 2025-12: no outbound issuer of tokens was found for Nebius' machines)
FROM: Final[dict[Store, tuple[Cloud, ...]]] = {
    Store.S3: (Cloud.GCP, Cloud.AZURE),
    Store.GCS: (Cloud.AWS, Cloud.AZURE),
    Store.AZURE_BLOB: (Cloud.AWS, Cloud.GCP),
}
_AUDIENCE: Final = r"[A-Za-z0-9:/._-]{1,300}"
_ROLE: Final = "arn:aws:iam::123456789012:role/skyplan-data"
_PROVIDER: Final = (
    "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/skyplan/providers/aws"
)
_ACCOUNT: Final = "skyplan-data@acme-ml.iam.gserviceaccount.com"
#: setting -> (form, example); what must be there
SETTINGS: Final[dict[Store, dict[str, tuple[str, str]]]] = {
    Store.S3: {
        "aws_role_arn": (r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+", f"an ARN such as {_ROLE}"),
        "aws_audience": (_AUDIENCE, "the audience of the token, such as sts.amazonaws.com"),
    },
    Store.GCS: {
        "gcp_provider": (
            r"//iam\.googleapis\.com/projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+",
            f"a provider's full name, such as {_PROVIDER}",
        ),
        "gcp_service_account": (
            r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z0-9.-]+\.gserviceaccount\.com",
            f"a service account such as {_ACCOUNT}",
        ),
        "gcp_audience": (_AUDIENCE, "the audience of the token, such as api://skyplan-gcp"),
    },
    Store.AZURE_BLOB: {
        "azure_tenant_id": (UUID, "a tenant id (a UUID)"),
        "azure_client_id": (UUID, "an application's client id (a UUID)"),
    },
}
REQUIRED: Final[dict[Store, tuple[str, ...]]] = {
    Store.S3: ("aws_role_arn",),
    Store.GCS: ("gcp_provider",),
    Store.AZURE_BLOB: ("azure_tenant_id", "azure_client_id"),
}


def federations(project: Fields) -> tuple[Federation, ...]:
    """In the order written: the first that matches wins."""
    out: list[Federation] = []
    for f in project.records("federation"):
        found = _entry(f)
        f.finish()
        if found:
            out.append(found)
    return tuple(out)


def _entry(f: Fields) -> Federation | None:
    stores = f.words("stores", lambda path, node: _store(f, path, node))
    clouds = f.words("from", lambda path, node: f.report.choice(path, node, CLOUDS))
    if "stores" not in f.node.entries:
        f.missing("`stores`", _STORE_EXAMPLE)
    if "from" not in f.node.entries:
        f.missing("`from`", "say which clouds' nodes may, such as [gcp, azure]")
    schemes = sorted({text.partition("://")[0] for text in stores})
    if len(schemes) != 1:
        f.known += [name for names in SETTINGS.values() for name in names]  # what they mean depends on the store
        if schemes:
            summary = f"`{f.path}` names stores of several clouds: {', '.join(schemes)}"
            f.report.error(f.report.places[f.name("stores")], "SKY-SPEC-113", summary, "write an entry for each")
        return None
    store = Store(schemes[0])
    settings = {name: _setting(f, name, form, store) for name, form in SETTINGS[store].items()}
    allowed = tuple(cloud for cloud in FROM[store] if cloud.value in clouds)
    good = _from(f, clouds, store) and all(settings[name] for name in REQUIRED[store])
    wrong = any(text is None and f.name(name) in f.report.places for name, text in settings.items())
    if not good or wrong:
        return None
    said = tuple((name, text) for name, text in sorted(settings.items()) if text)
    return Federation(stores=stores, from_clouds=allowed, settings=said)


def _store(f: Fields, path: str, node: Node) -> str | None:
    text = f.report.text(path, node)
    if text is None:
        return None
    if text.startswith("nebius://"):
        summary = f"`{path}`: Nebius Object Storage takes no other cloud's tokens"
        f.report.error(node.at, "SKY-SPEC-105", summary, "leave it out: its keys come from skyplan's broker")
        return None
    if not re.fullmatch(STORE, text, re.ASCII):
        f.report.error(node.at, "SKY-SPEC-108", f"`{path}`: {shown(text)} is no data location", _STORE_EXAMPLE)
        return None
    return text


def _from(f: Fields, clouds: tuple[str, ...], store: Store) -> bool:
    """Each of the clouds has tokens that the store's cloud takes, and is another one."""
    for cloud in clouds:
        if cloud in FROM[store]:
            continue
        own = cloud == store.cloud
        why = "reach it by their own identity" if own else "have no token that another cloud takes"
        at = f.report.places[f"{f.name('from')}={cloud}"]
        code = "SKY-SPEC-113" if own else "SKY-SPEC-105"
        hint = f"here it may be {' or '.join(FROM[store])}"
        f.report.error(at, code, f"`{f.name('from')}`: nodes in {cloud} {why}", hint)
        return False
    return bool(clouds)


def _setting(f: Fields, name: str, form: tuple[str, str], store: Store) -> str | None:
    pattern, example = form
    required = f"write {example}" if name in REQUIRED[store] else ""
    text = f.text(name, required=required)
    if text is None or re.fullmatch(pattern, text, re.ASCII):
        return text
    at = f.report.places[f.name(name)]
    f.report.error(at, "SKY-SPEC-105", f"`{f.name(name)}`: {shown(text)} is malformed", f"write {example}")
    return None
