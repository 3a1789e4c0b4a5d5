"""The emulator `ministack` with its own IAM: the judge of session policies, boundaries, bucket policies, trust and expiry in real calls.

Its verdicts are its own code's.  It knows no tags of EC2 requests, so it is asked about S3, STS and IAM only.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import boto3

ACCOUNT = "000000000000"
ROOT = {"aws_access_key_id": "test", "aws_secret_access_key": "root"}


class Ministack:
    """Its process, on a free port of the loopback; `close` ends it."""

    def __init__(self, folder: Path, timeout: float = 60.0) -> None:
        self._clients: list[Any] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        own = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "AUTH": "true", "DOCKER_HOST": "unix:///nowhere"}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "COV_"))}
        self._log = (folder / "ministack.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ministack"],
            cwd=folder,
            env={**inherited, **own},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + timeout
        while not self._up():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"ministack did not start:\n{(folder / 'ministack.log').read_text()}")
            time.sleep(0.05)

    def _up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=2) as reply:
                return bool(reply.status < 500)
        except (urllib.error.URLError, OSError):
            return False

    def client(self, service: str, **credentials: Any) -> Any:
        made: Any = boto3.client(
            service,  # pyright: ignore[reportArgumentType]
            endpoint_url=self.url,
            region_name="us-east-1",
            **(credentials or ROOT),
        )
        self._clients.append(made)
        return made

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
