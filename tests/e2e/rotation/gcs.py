"""The node's side for Cloud Storage: google-auth's real impersonation and downscoping against local token services, google-cloud-storage in the job.

Runs under libfaketime: `python -m tests.e2e.rotation.gcs FAKE_GCS_URL FOLDER CLOCK`.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from google.auth import credentials

from modules.agent.cred.environment import google_file
from modules.agent.cred.grants import wanted
from planner.clouds.mint.gcp import GcpMinter
from tests.e2e.rotation import stage
from tests.emulators.google_sts import Gate

ACCOUNT = "job-train@acme-gpu.iam.gserviceaccount.com"
JOB = """
import json, os, sys
import google.auth
from google.cloud import storage
url, ckpt_file = sys.argv[1:]
client = storage.Client(client_options={"api_endpoint": url})
ckpt = storage.Client(credentials=google.auth.load_credentials_from_file(
    ckpt_file, scopes=["https://www.googleapis.com/auth/devstorage.read_write"])[0], client_options={"api_endpoint": url})
bucket = client.bucket("data")
for line in sys.stdin:
    used, failed = [], []
    try:
        if line.strip() == "read":
            for n in range(2):
                assert bucket.blob("train/%d" % n).download_as_bytes() == b"shard %d" % n
                used.append(client._credentials.token)
        else:
            ckpt.bucket("ckpt").blob("train/g3/last").upload_from_string(b"weights")
    except Exception as error:
        failed.append(repr(error))
    print(json.dumps({"used": used, "failed": failed, "pid": os.getpid()}), flush=True)
"""


class Source(credentials.Credentials):
    """The broker's own identity."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._own = token

    def refresh(self, request: Any) -> None:
        self.token = self._own


class Broker:
    def __init__(self, gate: Gate) -> None:
        self.minted = 0
        source = Source(gate.tokens.source)
        self.minter = GcpMinter(source=source, iam_url=gate.iam_url(ACCOUNT), sts_url=gate.sts_url)

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        self.minted += 1
        return stage.minted(self.minter, uri, access, ACCOUNT, self.minted)


def main() -> None:
    behind, folder, clock = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with Gate(behind) as gate:
        for bucket in ("data", "ckpt"):
            put(f"{behind}/storage/v1/b?project=p", json.dumps({"name": bucket}).encode())
        for n in range(3):
            put(f"{behind}/upload/storage/v1/b/data/o?uploadType=media&name=train%2F{n}", b"shard %d" % n)
        put(f"{behind}/upload/storage/v1/b/data/o?uploadType=media&name=other%2F0", b"not yours")
        broker = Broker(gate)
        grants = wanted([("gs://data/train/", "read"), ("gs://ckpt/train/g3/", "write")])
        frozen = broker.lease("gs://data/train/", "read")["gcp"]["access_token"]
        stolen = {name: status(gate.url, path, frozen) for name, path in STOLEN.items()}
        result = stage.live(
            broker,
            grants,
            folder,
            clock,
            lambda _endpoint, environment: stage.Job(
                JOB, [gate.url, f"{folder}/{google_file(grants[1])}"], environment
            ),
            after_an_hour=lambda: status(gate.url, STOLEN["mine"], frozen),
        )
        result |= {"stolen": stolen, "refused": gate.refused}
        result["exchanges"] = gate.tokens.exchanges
    sys.stdout.write(json.dumps(result))


STOLEN = {
    "mine": "/storage/v1/b/data/o/train%2F0?alt=media",
    "other": "/storage/v1/b/data/o/other%2F0?alt=media",
    "list mine": "/storage/v1/b/data/o?prefix=train/",
    "list all": "/storage/v1/b/data/o",
    "buckets": "/storage/v1/b?project=p",
}


def put(url: str, body: bytes) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=10):
        pass


def status(url: str, path: str, token: str) -> int:
    asked = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


if __name__ == "__main__":
    main()
