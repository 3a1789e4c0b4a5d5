"""Azurite (npm) in a process of its own, on the loopback.  It checks signatures, permissions and expiry of shared access signatures; it takes user delegation
keys of any bearer token, and so needs TLS; the account key is public.

Found on PATH, by SKYPLAN_TEST_AZURITE (its `azurite-blob`), or where `make azurite` puts it; tests skip with a reason where it is not.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.emulators.ports import free_port

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_NAMED = os.environ.get("SKYPLAN_TEST_AZURITE", "")  # read here: tests see no SKYPLAN_ variable
_MADE = Path(sys.prefix) / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_QUIET = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")


def program() -> str | None:
    return next(
        (found for found in (_NAMED, shutil.which("azurite-blob"), str(_MADE)) if found and Path(found).exists()), None
    )


class Azurite:
    """The emulator; `url` is the account's address.  `tls`: (certificate, key) files, then also OAuth."""

    def __init__(self, folder: Path, *, tls: tuple[Path, Path] | None = None, timeout: float = 60.0):
        found = program()
        if found is None:
            pytest.skip("azurite is not installed: `make azurite`")
        port = free_port()
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{port}/{ACCOUNT}"
        secure = ["--oauth", "basic", "--cert", str(tls[0]), "--key", str(tls[1])] if tls else []
        self._log = (folder / "azurite.log").open("wb")
        self._process = subprocess.Popen(
            [
                found,
                "--blobHost",
                "127.0.0.1",
                "--blobPort",
                str(port),
                "--inMemoryPersistence",
                "--skipApiVersionCheck",
                "--disableTelemetry",
                "--silent",
                *secure,
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=folder,
        )
        import socket

        deadline = time.monotonic() + timeout
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"azurite did not start:\n{(folder / 'azurite.log').read_text()}")
            time.sleep(0.1)

    def create_container(self, name: str) -> None:
        sas = account_sas()
        asked = urllib.request.Request(f"{self.url}/{name}?restype=container&{sas}", b"", method="PUT")
        with urllib.request.urlopen(asked, timeout=10) as reply:
            assert reply.status == 201

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def _time(seconds: float) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _signed(text: str) -> str:
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def account_sas() -> str:
    """For everything, an hour."""
    version, rights, ends = "2021-12-02", "rwdlac", _time(3600)
    text = f"{ACCOUNT}\n{rights}\nb\nsco\n\n{ends}\n\nhttps,http\n{version}\n\n"
    given = {
        "sv": version,
        "ss": "b",
        "srt": "sco",
        "sp": rights,
        "se": ends,
        "spr": "https,http",
        "sig": _signed(text),
    }
    return urllib.parse.urlencode(given)


def container_sas(container: str, rights: str, *, seconds: float = 3600) -> str:
    """A service SAS of one container; `seconds` below 0: it is over."""
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    now = dt.datetime.now(dt.UTC)
    return generate_container_sas(
        ACCOUNT,
        container,
        account_key=KEY,
        permission=ContainerSasPermissions.from_string(rights),
        start=now - dt.timedelta(hours=1),
        expiry=now + dt.timedelta(seconds=seconds),
    )
