"""A headless Chromium that a test drives: the DevTools protocol over a pipe, so that no port is opened and nothing is installed beside the browser.

Skips where the browser is not there.  It may speak to the loopback only; its profile is a folder of the test's.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_SECONDS = 60.0
READ_BYTES = 1 << 16
FIRST_OF_OURS = 10
AT_3_AND_4 = "import os, sys; a = sys.argv; os.dup2(int(a[1]), 3); os.dup2(int(a[2]), 4); os.execv(a[3], a[3:])"


def browser() -> str:
    """The program.  Skips."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    return found


class Chromium:
    """One browser with one tab.  `events`: everything it told that was not an answer."""

    def __init__(self, folder: Path) -> None:
        program = browser()
        # the browser reads commands at 3 and writes answers at 4, not wherever ours happen to be
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        given = [fcntl.fcntl(one, fcntl.F_DUPFD, FIRST_OF_OURS) for one in (to_read, to_write)]
        self._held = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                AT_3_AND_4,
                *map(str, given),
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                f"--user-data-dir={folder / 'profile'}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=given,
            env={**os.environ, "HOME": str(folder)},
        )
        for one in (to_read, to_write, *given):
            os.close(one)
        self._session = ""
        try:
            target = self._tab()
            self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _tab(self) -> str:
        found = self.ask("Target.getTargets")["targetInfos"]
        pages = [one["targetId"] for one in found if one["type"] == "page"]
        return pages[0] if pages else self.ask("Target.createTarget", url="about:blank")["targetId"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A command's answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            told = self._next(until)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self.events.append(told)

    def wait(self, method: str) -> dict[str, Any]:
        """The next event of that name."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            told = self._next(until)
            self.events.append(told)
            if told.get("method") == method:
                return told["params"]

    def visit(self, url: str) -> None:
        """Go there, and wait until it is shown."""
        answer = self.ask("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        self.wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What it evaluates to in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The page as PNG, whole."""
        return base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def told(self, method: str) -> list[dict[str, Any]]:
        """Events of that name so far."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            left = until - time.monotonic()
            ready, _, _ = select.select([self._in], [], [], max(0.0, left))
            assert ready, "the browser does not answer"
            got = os.read(self._in, READ_BYTES)
            assert got, f"the browser has ended with {self._process.poll()}"
            self._held += got
        one, _, self._held = self._held.partition(b"\0")
        return json.loads(one)
