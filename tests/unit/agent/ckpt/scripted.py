"""A store that says what a test has written down: requests are recorded, answers are taken in order, a connection may break in the middle of one."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Say(NamedTuple):
    """One answer.  `cut`: so many bytes of the body are sent, then the connection ends; -1: all."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cut: int = -1


HANG_UP = Say(0)
"""No answer at all, after the request was taken."""


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Scripted:
    """The server; `asked` is what came.  An answer more than was written down is a 599, which nothing takes for good."""

    def __init__(self, answers: Iterable[Say]):
        self.asked: list[Asked] = []
        left, one = list(answers), threading.Lock()
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                with one:
                    asked.append(Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                    say = left.pop(0) if left else Say(599)
                if say.status == 0:
                    self.close_connection = True
                    return
                self.send_response(say.status)
                for name, value in say.headers:
                    self.send_header(name, value)
                if not any(name.lower() == "content-length" for name, _ in say.headers):
                    self.send_header("Content-Length", str(len(say.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(say.body if say.cut < 0 else say.body[: say.cut])
                if say.cut >= 0:
                    self.close_connection = True

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815  http.server's names

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
