"""What a job's environment says of credentials, so that unmodified SDKs find the endpoint and nothing shadows it.

    environment(wanted, url, folder, …) -> {name: value, or None for "must not be there"}
    documents(wanted, url, folder)      -> {file name: text}: the files that the variables name; no secret is in them

One S3 identity is the process's own (AWS_CONTAINER_CREDENTIALS_FULL_URI); every one, that too, is an AWS profile by its grant's name, for a client of its
own: `boto3.Session(profile_name=…)`.  Where a store of the same kind is reached by the node's own identity, that stays the default and leases go by profile.
Provider orders by botocore 1.43 and google-auth 2.63 (read 2026-11).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from .files import TOKEN
from .grants import scheme
from .lease import Wanted
from .process import NAME as PROCESS
from .process import PROGRAM

INDEX = "credentials.json"
AWS_CONFIG = "aws-config"
EMPTY = "empty"
NO_PROJECT = "skyplan-none"
"""For nodes outside Google's cloud, which have no project there."""

#: each comes before the container endpoint in botocore's chain, or replaces it
AWS_SHADOWS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CREDENTIAL_FILE",
)
#: an empty profile is an unknown one
_PROFILES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
#: to botocore these are set when they are empty; ECS and people of 2012 set them, images do not
_NOT_EMPTY = frozenset({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CREDENTIAL_FILE"})
GOOGLE_SHADOWS = ("GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE")
#: read once at a client's start, and by some before anything that is handed to them
AZURE_SHADOWS = ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN")
#: a person's own, never a node's (notes/iam.md, case 10)
PERSONS = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_USERNAME", "AZURE_PASSWORD")
_S3 = frozenset({"s3", "nebius"})


def environment(
    wanted: Sequence[Wanted],
    url: str,
    folder: str,
    *,
    own: Iterable[str] = (),
    project: str = "",
    endpoints: Mapping[str, str] | None = None,
) -> dict[str, str | None]:
    """For the job.  `folder` as the job sees it; `own`: URIs of stores that the node's own identity reaches; `project`: what Google's clients should name.

    `endpoints`: grant -> S3 endpoint, of stores that are not AWS's.
    """
    if not wanted:
        return {}
    kinds = {scheme(one.uri) for one in wanted}
    by_node = {scheme(uri) for uri in own}
    found: dict[str, str | None] = {
        "SKYPLAN_CREDENTIALS": url,
        "SKYPLAN_CREDENTIALS_TOKEN_FILE": f"{folder}/{TOKEN}",
        "SKYPLAN_CREDENTIALS_FILE": f"{folder}/{INDEX}",
        **dict.fromkeys(PERSONS),
    }
    if kinds & _S3:
        found.update(_aws(wanted, url, folder, by_node=bool(by_node & _S3), endpoints=endpoints or {}))
    if "gs" in kinds:
        found.update(_google(wanted, folder, by_node="gs" in by_node, project=project))
    if "az" in kinds:
        found.update(dict.fromkeys(AZURE_SHADOWS))
        found["SKYPLAN_AZURE_SAS_FILE"] = f"{folder}/{sas_file(_first(wanted, frozenset({'az'})))}"
    return found


def for_container(found: Mapping[str, str | None]) -> dict[str, str]:
    """For `--env`: an image's own variables cannot be taken away, only emptied.  A test asks botocore whether it then passes over them."""
    emptied = {name: "" for name, value in found.items() if value is None and name not in _NOT_EMPTY}
    profiles = {name: "default" for name in _PROFILES if name in found}
    return {**emptied, **profiles, **{name: value for name, value in found.items() if value is not None}}


def applied(found: Mapping[str, str | None], onto: Mapping[str, str]) -> dict[str, str]:
    """An environment with these over it."""
    kept = {name: value for name, value in onto.items() if name not in found}
    return {**kept, **{name: value for name, value in found.items() if value is not None}}


def documents(
    wanted: Sequence[Wanted], url: str, folder: str, *, endpoints: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Files beside the token: the index, AWS's profiles, Google's configurations, the credential process."""
    index = [{"grant": one.grant, "uri": one.uri, "access": one.access, **_how(one, folder)} for one in wanted]
    found = {INDEX: json.dumps({"endpoint": url, "grants": index}, indent=1) + "\n", PROCESS: PROGRAM, EMPTY: ""}
    s3 = [one for one in wanted if scheme(one.uri) in _S3]
    if s3:
        found[AWS_CONFIG] = "[default]\n\n" + "".join(
            _profile(one, folder, (endpoints or {}).get(one.grant, "")) for one in s3
        )
    for one in wanted:
        if scheme(one.uri) == "gs":
            found[google_file(one)] = json.dumps(google(one, url, folder), indent=1) + "\n"
    return found


def google(one: Wanted, url: str, folder: str) -> dict[str, object]:
    """An `external_account` configuration.  Its audience is no workload identity pool's, so that no client asks Google for the pool's project or region."""
    return {
        "type": "external_account",
        "audience": f"//skyplan/{one.grant}",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{url}/v1/google/{one.grant}/token",
        "credential_source": {"file": f"{folder}/{TOKEN}"},
    }


def google_file(one: Wanted) -> str:
    """Name of a grant's Google configuration."""
    return f"google-{one.grant}.json"


def sas_file(one: Wanted) -> str:
    """Name of the file with a grant's newest SAS."""
    return f"azure-{one.grant}.sas"


def _aws(
    wanted: Sequence[Wanted], url: str, folder: str, *, by_node: bool, endpoints: Mapping[str, str]
) -> dict[str, str | None]:
    config: dict[str, str | None] = {"AWS_CONFIG_FILE": f"{folder}/{AWS_CONFIG}"}
    if by_node:
        return config
    first = _first(wanted, _S3)
    return {
        **dict.fromkeys(AWS_SHADOWS),
        **config,
        # ~/.aws/credentials and ~/.boto come before the endpoint too, and have no variable that switches them off
        "AWS_SHARED_CREDENTIALS_FILE": f"{folder}/{EMPTY}",
        "BOTO_CONFIG": f"{folder}/{EMPTY}",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/v1/creds/{first.grant}",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{folder}/{TOKEN}",
        "AWS_EC2_METADATA_DISABLED": "true",
        **({"AWS_ENDPOINT_URL_S3": endpoints[first.grant]} if first.grant in endpoints else {}),
    }


def _google(wanted: Sequence[Wanted], folder: str, *, by_node: bool, project: str) -> dict[str, str | None]:
    if by_node:
        return {}
    return {
        **dict.fromkeys(GOOGLE_SHADOWS),
        "GOOGLE_APPLICATION_CREDENTIALS": f"{folder}/{google_file(_first(wanted, frozenset({'gs'})))}",
        # without one, `storage.Client()` ends before it begins; objects need none, only making and listing buckets does
        "GOOGLE_CLOUD_PROJECT": project or NO_PROJECT,
    }


def _first(wanted: Sequence[Wanted], kinds: frozenset[str]) -> Wanted:
    """What a process has without saying anything: data to read, if there is any, otherwise the first.  What is written has a lease to read for the agent's sake."""
    mine = [one for one in wanted if scheme(one.uri) in kinds]
    written = {one.uri for one in mine if one.access == "write"}
    return next((one for one in mine if one.access == "read" and one.uri not in written), mine[0])


def _how(one: Wanted, folder: str) -> dict[str, str]:
    kind = scheme(one.uri)
    if kind in _S3:
        return {"aws_profile": one.grant}
    if kind == "gs":
        return {"google_file": f"{folder}/{google_file(one)}"}
    return {"sas_file": f"{folder}/{sas_file(one)}"} if kind == "az" else {}


def _profile(one: Wanted, folder: str, endpoint: str) -> str:
    where = f"endpoint_url = {endpoint}\n" if endpoint else ""
    return f'[profile {one.grant}]\ncredential_process = python3 "{folder}/{PROCESS}" {one.grant}\n{where}\n'
