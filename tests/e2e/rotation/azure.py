"""The node's side for Azure Blob: user-delegation SAS by skyplan's minter, azure-storage-blob in the job by the recipe of docs/node-credentials.md.

Runs under libfaketime: `python -m tests.e2e.rotation.azure AZURITE_URL FOLDER CERTIFICATE CLOCK`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import jwt
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient

from modules.agent.cred.grants import wanted
from planner.clouds.mint.azure import AzureMinter
from tests.e2e.rotation import stage
from tests.emulators.azurite import ACCOUNT

RECIPE = Path(__file__).parents[3] / "docs" / "node-credentials.md"
JOB = """
import json, os, sys
from azure.storage.blob import ContainerClient
url, ckpt_file = sys.argv[1:]
data = ContainerClient(url, "data", credential=NodeSas())
ckpt = ContainerClient(url, "ckpt", credential=NodeSas(ckpt_file))
for line in sys.stdin:
    used, failed = [], []
    def sent(response):
        used.append(response.http_request.url.partition("sig=")[2].partition("&")[0])
    try:
        if line.strip() == "read":
            for n in range(2):
                assert data.download_blob("train/%d" % n, raw_response_hook=sent).readall() == b"shard %d" % n
        else:
            ckpt.upload_blob("train/g3/last", b"weights")
    except Exception as error:
        failed.append(repr(error))
    print(json.dumps({"used": used, "failed": failed, "pid": os.getpid()}), flush=True)
"""


class Identity:
    """The broker's own; Azurite takes any unsigned token of the right form."""

    def get_token(self, *_scopes: str, **_more: Any) -> AccessToken:
        now = int(time.time())
        tenant = "ab1f708d-50f6-404c-a006-d71b2ac7a606"
        claims = {"aud": "https://storage.azure.com", "iss": f"https://sts.windows.net/{tenant}/", "tid": tenant}
        times = {"iat": now, "nbf": now - 60, "exp": now + 3600}
        claims |= {**times, "appid": "broker", "oid": "11111111-1111-1111-1111-111111111111"}
        return AccessToken(jwt.encode(claims, "x" * 32, algorithm="HS256"), now + 3600)


class Broker:
    def __init__(self, url: str) -> None:
        self.minted = 0
        self.minter = AzureMinter(credential=Identity(), endpoint=url, hierarchical=lambda _account: False)

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        self.minted += 1
        return stage.minted(self.minter, uri, access, ACCOUNT, self.minted)


def recipe() -> str:
    """As users copy it."""
    return re.findall(r"```python\n(.*?)```", RECIPE.read_text("utf-8"), re.DOTALL)[0]


def main() -> None:
    url, folder, certificate, clock = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    service = BlobServiceClient(url, credential=Identity())
    for container in ("data", "ckpt"):
        service.create_container(container)
    for n in range(2):
        service.get_blob_client("data", f"train/{n}").upload_blob(b"shard %d" % n)
    broker = Broker(url)
    grants = wanted([(f"az://{ACCOUNT}/data/", "read"), (f"az://{ACCOUNT}/ckpt/", "write")])
    sas = broker.lease(grants[0].uri, "read")["azure"]["sas"]
    stolen = {
        "mine": lambda: ContainerClient(url, "data", credential=sas).download_blob("train/0").readall(),
        "other": lambda: ContainerClient(url, "ckpt", credential=sas).download_blob("x").readall(),
        "write": lambda: ContainerClient(url, "data", credential=sas).upload_blob("x", b""),
        "delete": lambda: ContainerClient(url, "data", credential=sas).delete_blob("train/0"),
    }
    tried = {name: outcome(attempt) for name, attempt in stolen.items()}

    def job(_endpoint: object, environment: dict[str, str]) -> stage.Job:
        arguments = [url, f"{folder}/azure-{grants[1].grant}.sas"]
        return stage.Job(recipe() + JOB, arguments, {**environment, "REQUESTS_CA_BUNDLE": certificate})

    result = stage.live(broker, grants, folder, clock, job, after_an_hour=lambda: outcome(stolen["mine"]))
    sys.stdout.write(json.dumps({**result, "stolen": tried}))


def outcome(attempt: Any) -> int:
    try:
        attempt()
    except HttpResponseError as error:
        return error.status_code or 0
    return 200


if __name__ == "__main__":
    main()
