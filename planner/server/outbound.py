"""Asking an identity provider over HTTPS: small JSON answers, bounded in time and size, redirects not followed.

Decides nothing about what the answers mean.  Plain HTTP is for loopback only, where tests' providers listen.
"""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_SECONDS: Final = 10
MAX_ANSWER_BYTES: Final = 512 * 1024
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Unanswered(Exception):
    """No usable answer.  Its words hold neither what was sent nor what came back."""


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        """A key set or a token endpoint that moves is set up wrongly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """`ca_file`: an extra certificate authority."""

    ca_file: str | None = None

    def get(self, url: str) -> dict[str, Any]:
        """A JSON object.  Raises Unanswered."""
        return self._ask(Request(url, headers={"Accept": "application/json"}))  # noqa: S310 - `_ask` looks at the scheme

    def post(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Send a form, get a JSON object.  Raises Unanswered."""
        return self._ask(Request(url, data=urlencode(form).encode(), headers={"Accept": "application/json"}))  # noqa: S310

    def _ask(self, request: Request) -> dict[str, Any]:
        at = urlsplit(request.full_url)
        if at.scheme != "https" and not (at.scheme == "http" and at.hostname in LOOPBACK):
            raise Unanswered(f"{at.hostname}: only HTTPS is spoken off loopback")
        opener = build_opener(_Stay, HTTPSHandler(context=self._context()))
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                text = answer.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            error.close()
            raise Unanswered(f"{at.hostname} answered {error.code}") from None
        except OSError as error:
            raise Unanswered(f"{at.hostname} does not answer: {type(error).__name__}") from None
        try:
            found = json.loads(text) if len(text) <= MAX_ANSWER_BYTES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Unanswered(f"{at.hostname} answered no JSON object")
        return cast("dict[str, Any]", found)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.ca_file:
            context.load_verify_locations(self.ca_file)
        return context
