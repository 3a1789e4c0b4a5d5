"""Asking a platform: https with its certificate checked, no redirects, bounded in time and size.  Plain http only to this machine itself, for tests.

Decides nothing about the answer.  Never tells what was sent: it holds signatures.
"""

from __future__ import annotations

import http.client
import ipaddress
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.server.identity.port import Answer, Asked, Fetch, unavailable

TIMEOUT_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 256 * 1024


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_args: object, **_more: object) -> None:
        """The redirect itself is then the answer: not a 200."""


def fetcher(ca_file: str | None = None, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Fetch:
    """A `Fetch` that also believes the authorities in `ca_file`.  Raises InputError (SKY-RUN-520) where that cannot be read."""
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            # what is wrong inside a file has a number and a library's words
            why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            summary = f"`ca_file` {ca_file} cannot be used: {why}"
            raise InputError([Diagnostic(code="SKY-RUN-520", summary=summary)]) from error
    abroad = build_opener(_NoRedirects, HTTPSHandler(context=context))
    at_home = build_opener(_NoRedirects, HTTPSHandler(context=context), ProxyHandler({}))

    def fetch(asked: Asked) -> Answer:
        opener = at_home if is_loopback(asked.url) else abroad
        return _asked(opener, asked, timeout_seconds)

    return fetch


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _asked(opener: OpenerDirector, asked: Asked, timeout_seconds: float) -> Answer:
    parts = urlsplit(asked.url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(asked.url)):
        raise unavailable(f"{parts.hostname} is asked by https only")
    headers: Mapping[str, str] = dict(asked.headers)
    request = Request(asked.url, data=asked.body or None, headers=dict(headers), method=asked.method)  # noqa: S310 - see above
    try:
        with opener.open(request, timeout=timeout_seconds) as got:
            return _read(got, parts.hostname or "")
    except HTTPError as error:
        with error:
            return _read(error, parts.hostname or "")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise unavailable(f"{parts.hostname} did not answer: {type(error).__name__}") from error


def _read(got: http.client.HTTPResponse | HTTPError, host: str) -> Answer:
    body = got.read(MAX_ANSWER_BYTES + 1)
    if len(body) > MAX_ANSWER_BYTES:
        raise unavailable(f"{host} answered with more than {MAX_ANSWER_BYTES} bytes")
    return Answer(status=int(got.status or 0), body=body)
