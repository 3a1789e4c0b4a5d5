"""Answers of HTTP APIs that may end neither soon nor small: read piece by piece, up to so many bytes unpacked, in so much time in all.

Timeouts of `requests` count between two pieces, and its bodies are unpacked whole: a server that drips would hold a refresh for days, one that packs zeros would take the memory.
"""

# pyright: basic

from __future__ import annotations

import time
from typing import Any

from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException

MOST_BYTES = 1 << 26
"""The longest page that is asked for, 5,000 of Google's SKUs, has some ten million."""
MOST_SECONDS = 300.0
PIECE = 1 << 16


class Bounded(HTTPAdapter):
    """For `Session.mount`.  What is too long or too slow is a `RequestException`, as any other answer that does not come."""

    def send(self, *args: Any, **options: Any) -> Any:
        """The answer, its body read."""
        until = time.monotonic() + MOST_SECONDS
        answer = super().send(*args, **{**options, "stream": True})
        body = bytearray()
        for piece in answer.iter_content(PIECE):
            body += piece
            if len(body) > MOST_BYTES or time.monotonic() > until:
                answer.close()
                raise RequestException(f"an answer of more than {MOST_BYTES >> 20} MiB or {MOST_SECONDS:g} s")
        answer._content = bytes(body)  # noqa: SLF001 - what `content` gives
        return answer


def bounded(session: Any) -> Any:
    """The session, with every answer bounded."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, Bounded())
    return session
