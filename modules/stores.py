"""How a node reaches its stores: tokens exchanged in other clouds, mounts, copies at the start.  Pure text; decides no right.

Which way a store is reached (platform identity, federation, broker) was decided while planning (`DataPath`).  A store without credentials in this
version stops the node only where skyplan itself would have to read it (mount, copy); a job may bring credentials of its own.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from planner.model.offer import Cloud
from planner.model.stack import DataPath, Reach
from planner.model.workload import Dataset, ObjectPrefix, Store, Workload

TOKENS = "/run/skyplan/tokens"
GOOGLE_FILE = "/opt/skyplan/google.json"
CACHE = "/scratch/.cache"
#: audience that Microsoft's token exchange asks for, and the one for AWS where skyplan.yaml names none
AZURE_AUDIENCE = "api://AzureADTokenExchange"
AWS_AUDIENCE = "sts.amazonaws.com"
#: Mountpoint for S3, a release that is kept (awslabs/mountpoint-s3 releases, 2026-09)
MOUNT_S3 = "1.19.0"
#: what Google's token exchange is given (RFC 8693 names)
_AWS_REQUEST = "urn:ietf:params:aws:token-type:aws4_request"
_JWT = "urn:ietf:params:oauth:token-type:jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An identity token of the node, written to `TOKENS/name` and renewed."""

    name: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A store seen as a folder."""

    path: str
    tool: str
    install: str
    command: str
    cache: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Data that is on the disk before the job starts.  `install` brings the tool, where the image has none."""

    path: str
    command: str
    tool: str = "true"
    install: str = "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSetup:
    """All of it; `volumes` are what the job's container must see."""

    tokens: tuple[Token, ...]
    environment: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    mounts: tuple[Mount, ...]
    copies: tuple[Copy, ...]
    volumes: tuple[str, ...]


def store_setup(workload: Workload, cloud: Cloud, paths: tuple[DataPath, ...], *, nvme: bool) -> StoreSetup:
    """What start.sh does before the job, for the stores of this workload."""
    shared = _Federation(tokens={}, environment={}, files={})
    for path in paths:
        if path.reach is Reach.FEDERATION:
            _federate(workload.name, cloud, path, shared)
    by_uri = {path.uri: path for path in paths}
    mounts = [_mount(d, by_uri.get(d.at.uri), nvme=nvme) for d in workload.data if d.mount]
    copies = [_copy(d, by_uri.get(d.at.uri)) for d in workload.data if d.copy_to]
    volumes = [f"{d.mount}:{d.mount}:ro" for d in workload.data if d.mount]
    volumes += [f"{d.copy_to}:{d.copy_to}" for d in workload.data if d.copy_to and not d.copy_to.startswith("/scratch")]
    volumes += [f"{TOKENS}:{TOKENS}:ro"] * bool(shared.tokens) + [f"{GOOGLE_FILE}:{GOOGLE_FILE}:ro"] * bool(
        shared.files
    )
    return StoreSetup(
        tokens=tuple(shared.tokens.values()),
        environment=tuple(sorted(shared.environment.items())),
        files=tuple(shared.files.items()),
        mounts=tuple(mounts),
        copies=tuple(copies),
        volumes=tuple(shlex.quote(volume) for volume in volumes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Federation:
    """What federated stores need together.  The first store of a cloud decides: SDKs read one role per process."""

    tokens: dict[str, Token]
    environment: dict[str, str]
    files: dict[str, str]


def _federate(job: str, cloud: Cloud, path: DataPath, into: _Federation) -> None:
    """Add what one federated store needs."""
    settings = dict(path.settings)
    tokens, environment, files = into.tokens, into.environment, into.files
    match path.uri.split(":", 1)[0]:
        case "s3":
            audience = settings.get("aws_audience") or (AZURE_AUDIENCE if cloud is Cloud.AZURE else AWS_AUDIENCE)
            tokens.setdefault("aws", Token(name="aws", command=_identity(cloud, audience)))
            environment.setdefault("AWS_ROLE_ARN", settings["aws_role_arn"])
            environment.setdefault("AWS_WEB_IDENTITY_TOKEN_FILE", f"{TOKENS}/aws")
            environment.setdefault("AWS_ROLE_SESSION_NAME", f"skyplan-{job}"[:64])
        case "gs":
            files.setdefault(GOOGLE_FILE, _external_account(cloud, settings))
            environment.setdefault("GOOGLE_APPLICATION_CREDENTIALS", GOOGLE_FILE)
        case "az":
            tokens.setdefault("azure", Token(name="azure", command=_identity(cloud, AZURE_AUDIENCE)))
            environment.setdefault("AZURE_CLIENT_ID", settings["azure_client_id"])
            environment.setdefault("AZURE_TENANT_ID", settings["azure_tenant_id"])
            environment.setdefault("AZURE_FEDERATED_TOKEN_FILE", f"{TOKENS}/azure")
            environment.setdefault("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.com/")
        case other:
            raise ValueError(f"{other}: no federation is known")


def _identity(cloud: Cloud, audience: str) -> str:
    """Shell: the node's own identity token for an audience, on stdout."""
    match cloud:
        case Cloud.GCP:
            return f"meta {shlex.quote(f'service-accounts/default/identity?audience={audience}&format=full')}"
        case Cloud.AZURE:
            return f"identity_token {shlex.quote(audience)}"
        case Cloud.AWS:
            return (
                f"aws sts get-web-identity-token --audience {shlex.quote(audience)} --signing-algorithm RS256"
                " --duration-seconds 3600 --query WebIdentityToken --output text"
            )
        case Cloud.NEBIUS:
            raise ValueError("nodes on Nebius have no identity token for other clouds")


def _external_account(cloud: Cloud, settings: dict[str, str]) -> str:
    """Google's credential file for an identity of another cloud.  It holds no secret."""
    document: dict[str, Any] = {
        "type": "external_account",
        "audience": settings["gcp_provider"],
        "token_url": "https://sts.googleapis.com/v1/token",
    }
    if account := settings.get("gcp_service_account"):
        document["service_account_impersonation_url"] = (
            f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
        )
    metadata = "http://169.254.169.254"
    if cloud is Cloud.AWS:
        document["subject_token_type"] = _AWS_REQUEST
        document["credential_source"] = {
            "environment_id": "aws1",
            "region_url": f"{metadata}/latest/meta-data/placement/availability-zone",
            "url": f"{metadata}/latest/meta-data/iam/security-credentials",
            "regional_cred_verification_url": "https://sts.{region}.amazonaws.com"
            "?Action=GetCallerIdentity&Version=2011-06-15",
            "imdsv2_session_token_url": f"{metadata}/latest/api/token",
        }
    else:
        resource = settings.get("gcp_audience") or AZURE_AUDIENCE
        document["subject_token_type"] = _JWT
        document["credential_source"] = {
            "url": f"{metadata}/metadata/identity/oauth2/token?api-version=2018-02-01&resource={resource}",
            "headers": {"Metadata": "True"},
            "format": {"type": "json", "subject_token_field_name": "access_token"},
        }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _refused(at: ObjectPrefix) -> str:
    words = f"skyplan: SKY-RUN-502: there are no credentials for {at.uri} here"
    return f"{{ echo {shlex.quote(words)} >&2; exit 78; }}"


def _mount(data: Dataset, path: DataPath | None, *, nvme: bool) -> Mount:
    at, to = data.at, str(data.mount)
    cache = f"{CACHE}/{at.store.value}" if nvme else ""
    if path is None or path.reach is Reach.BROKER:
        return Mount(path=to, tool="true", install="true", command=_refused(at), cache="")
    q = shlex.quote
    match at.store:
        case Store.S3:
            region = f" --region {q(at.region)}" if at.region else ""
            prefix = f" --prefix {q(at.prefix.rstrip('/') + '/')}" if at.prefix else ""
            kept = f" --cache {cache}" if cache else ""
            url = f"https://s3.amazonaws.com/mountpoint-s3-release/{MOUNT_S3}/x86_64/mount-s3-{MOUNT_S3}-x86_64.deb"
            return Mount(
                path=to,
                tool="mount-s3",
                install=f'curl -sfL --retry 5 -o /tmp/mount-s3.deb {url}; apt-get "${{apt[@]}}" install -y /tmp/mount-s3.deb',
                command=f"mount-s3 --read-only --allow-other{region}{prefix}{kept} {q(at.bucket)} {q(to)}",
                cache=cache,
            )
        case Store.GCS:
            only = f" --only-dir {q(at.prefix.rstrip('/'))}" if at.prefix else ""
            kept = f" --cache-dir {cache} --file-cache-max-size-mb=-1" if cache else ""
            return Mount(
                path=to,
                tool="gcsfuse",
                install=_apt(
                    "https://packages.cloud.google.com/apt/doc/apt-key.gpg",
                    "https://packages.cloud.google.com/apt gcsfuse-$(lsb_release -cs) main",
                    "gcsfuse",
                ),
                command=f"gcsfuse --implicit-dirs -o ro,allow_other{only}{kept} {q(at.bucket)} {q(to)}",
                cache=cache,
            )
        case Store.AZURE_BLOB:
            account, _, container = at.bucket.partition("/")
            only = f" --subdirectory={q(at.prefix.rstrip('/'))}" if at.prefix else ""
            way = "msi" if path.reach is Reach.PLATFORM else "workloadidentity"
            return Mount(
                path=to,
                tool="blobfuse2",
                install=_apt(
                    "https://packages.microsoft.com/keys/microsoft.asc",
                    "https://packages.microsoft.com/ubuntu/22.04/prod jammy main",
                    "blobfuse2",
                ),
                command=f"AZURE_STORAGE_ACCOUNT={q(account)} AZURE_STORAGE_AUTH_TYPE={way} blobfuse2 mount {q(to)} --read-only"
                f" --allow-other --container-name={q(container)}{only} --tmp-path={cache or '/var/cache/blobfuse2'}",
                cache=cache or "/var/cache/blobfuse2",
            )
        case Store.NEBIUS:
            return Mount(path=to, tool="true", install="true", command=_refused(at), cache="")


def _apt(key: str, source: str, package: str) -> str:
    ring = f"/usr/share/keyrings/{package}.asc"
    return (
        f"curl -sfL --retry 5 -o {ring} {key};"
        f' echo "deb [signed-by={ring}] {source}" > /etc/apt/sources.list.d/{package}.list;'
        f' apt-get "${{apt[@]}}" update -q; apt-get "${{apt[@]}}" install -y -q {package}'
    )


def _copy(data: Dataset, path: DataPath | None) -> Copy:
    at, to = data.at, str(data.copy_to)
    if path is None or path.reach is Reach.BROKER:
        return Copy(path=to, command=_refused(at))
    q = shlex.quote
    match at.store:
        case Store.S3:
            region = f" --region {q(at.region)}" if at.region else ""
            return Copy(
                path=to,
                tool="aws",
                install='apt-get "${apt[@]}" update -q; apt-get "${apt[@]}" install -y -q awscli',
                command=f"aws s3 sync --only-show-errors{region} {q(at.uri)} {q(to)}",
            )
        case Store.GCS:
            # the CLI does not read the libraries' variable: it has one of its own for the same file
            own = f"CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE={GOOGLE_FILE} " if path.reach is Reach.FEDERATION else ""
            return Copy(
                path=to,
                tool="gcloud",
                install=_apt(
                    "https://packages.cloud.google.com/apt/doc/apt-key.gpg",
                    "https://packages.cloud.google.com/apt cloud-sdk main",
                    "google-cloud-cli",
                ),
                command=f"{own}gcloud storage rsync --recursive {q(at.uri.rstrip('/'))} {q(to)}",
            )
        case Store.AZURE_BLOB:
            account, _, container = at.bucket.partition("/")
            url = f"https://{account}.blob.core.windows.net/{container}/{at.prefix}*"
            way = "MSI" if path.reach is Reach.PLATFORM else "WORKLOAD"
            return Copy(
                path=to,
                tool="azcopy",
                install=_apt(
                    "https://packages.microsoft.com/keys/microsoft.asc",
                    "https://packages.microsoft.com/ubuntu/22.04/prod jammy main",
                    "azcopy",
                ),
                command=f"AZCOPY_AUTO_LOGIN_TYPE={way} azcopy copy --recursive {q(url)} {q(to.rstrip('/') + '/')}",
            )
        case Store.NEBIUS:
            return Copy(path=to, command=_refused(at))
