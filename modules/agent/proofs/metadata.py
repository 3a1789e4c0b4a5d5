"""The metadata services of the clouds, asked: never through a proxy, never after a redirect, little waiting, small answers.

Addresses are the clouds' own, or those of the variables by which the clouds' SDKs are pointed elsewhere (tests do that).
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from ..errors import Away  # noqa: TID252 - packed, there is no `modules` above

AWS = "http://169.254.169.254"
AZURE = "http://169.254.169.254"
GCP_HOST = "metadata.google.internal"
NEBIUS_TOKEN_FILE = "/mnt/cloud-metadata/token"  # noqa: S105 - a path; seen in public repositories, tried on no live machine
MAX_BYTES = 64 * 1024
SECONDS = 2.0


class NoAnswer(Away):
    """The service is not there or said no, which may pass; `status` 0 where it is not there.  The text holds no part of an answer."""

    def __init__(self, what: str, status: int = 0) -> None:
        super().__init__(f"{what}: {f'HTTP {status}' if status else 'no answer'}")
        self.status = status


class _Nowhere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_more: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Nowhere())


def ask(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    seconds: float = SECONDS,
    wanted: str | None = None,
) -> str:
    """The answer's text.  Raises NoAnswer.  `wanted`: a header without which the answer is not the metadata service's."""
    return tagged(url, headers, method=method, seconds=seconds, wanted=wanted)[0]


def tagged(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    seconds: float = SECONDS,
    wanted: str | None = None,
) -> tuple[str, str]:
    """As `ask`, with the answer's ETag."""
    request = urllib.request.Request(url, headers=dict(headers or {}), method=method)  # noqa: S310
    what = url.partition("?")[0]
    try:
        with _OPENER.open(request, timeout=seconds) as answer:
            if wanted and not answer.headers.get(wanted):
                raise NoAnswer(what)
            return answer.read(MAX_BYTES).decode("utf-8"), answer.headers.get("ETag", "")
    except urllib.error.HTTPError as error:
        error.close()
        raise NoAnswer(what, error.code) from None
    except (OSError, HTTPException, UnicodeDecodeError):
        raise NoAnswer(what) from None


def aws(path: str, token: str | None = None, *, seconds: float = SECONDS) -> str:
    """IMDSv2.  Without `token` a new session is begun for this one question (notes/iam.md, case 17: kept tokens run out)."""
    base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", AWS).rstrip("/")
    headers = {"X-aws-ec2-metadata-token": token or aws_session(seconds=seconds)}
    return ask(f"{base}/latest/{path}", headers, seconds=seconds)


def aws_session(lasts_seconds: int = 60, *, seconds: float = SECONDS) -> str:
    """A session's token of IMDSv2; version 1 is never used."""
    base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", AWS).rstrip("/")
    headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(lasts_seconds)}
    return ask(f"{base}/latest/api/token", headers, method="PUT", seconds=seconds)


def gcp(path: str, *, seconds: float = SECONDS) -> str:
    """Under `computeMetadata/v1`.  Whoever answers without Google's header is not it."""
    return gcp_tagged(path, seconds=seconds)[0]


def gcp_tagged(path: str, *, seconds: float = SECONDS) -> tuple[str, str]:
    """With its ETag, by which a change can be waited for."""
    host = os.environ.get("GCE_METADATA_HOST", GCP_HOST)
    url = f"http://{host}/computeMetadata/v1/{path}"
    return tagged(url, {"Metadata-Flavor": "Google"}, seconds=seconds, wanted="Metadata-Flavor")


def azure(path: str, *, seconds: float = SECONDS) -> str:
    """Under `metadata`."""
    base = os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", AZURE).rstrip("/")
    return ask(f"{base}/metadata/{path}", {"Metadata": "true"}, seconds=seconds)
