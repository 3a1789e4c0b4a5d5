"""A cloud's REST API through a `requests` session: pages of JSON, bounded retries, and every failure as one of our errors or as `Refusal`.

The session carries the credentials.  It is sent to the API's own host and nowhere else, whatever link an answer holds.
"""

# pyright: basic

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from planner.clouds import errors_map
from planner.model.errors import CloudError

TIMEOUT_SECONDS = (10, 180)
"""To connect, to be answered: Google holds a `wait` for two minutes."""
RETRIED = (429, 500, 502, 503, 504)
OK = 200
NOT_AN_ANSWER = 300
"""Redirects and up."""
NOT_FOUND = 404


class Refusal(Exception):
    """An answer with an error, for the adapter to judge.  `after` is its `Retry-After`, as it is, "" where there is none."""

    def __init__(self, status: int, code: str, message: str, after: str = "") -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.after = after


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: `body` is {} where there was none."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long an ending is waited for; the clock is given, so that tests wait for nothing."""

    seconds: float = 900.0
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    def turns(self, *, every: float) -> Iterator[None]:
        """One turn at once, then one every so often until the time is over."""
        end = self.now() + self.seconds
        yield
        while self.now() < end:
            self.pause(every)
            yield


class Rest:
    """One API at one host."""

    def __init__(self, cloud: str, session: Any, base: str) -> None:
        self._cloud = cloud
        self._session = session
        self._base = base

    def ask(self, operation: str, method: str, url: str, params: Mapping[str, str] | None = None) -> Answer:
        """The answer to a path, or to a link of an earlier answer.  Raises CloudError, and Refusal where the API says no."""
        import requests  # noqa: PLC0415 - optional

        whole = urljoin(self._base, url)
        if urlsplit(whole)[:2] != urlsplit(self._base)[:2]:
            raise errors_map.unexpected(self._cloud, operation, f"its link leads elsewhere: {whole}")
        try:
            got = self._session.request(method, whole, params=params, timeout=TIMEOUT_SECONDS, allow_redirects=False)
        except requests.RequestException as error:
            raise errors_map.unreachable(operation, str(error), self._cloud) from error
        body = _json(got)
        if got.status_code >= NOT_AN_ANSWER:
            raise _refusal(got.status_code, body or {}, got.reason or "", got.headers.get("Retry-After") or "")
        if body is None and got.status_code == OK and method != "DELETE":
            # a proxy's page must not pass for an empty list: a machine not seen is a machine that runs on
            raise errors_map.unexpected(self._cloud, operation, "an answer that is no JSON object")
        return Answer(status=got.status_code, body=body or {}, headers=got.headers)

    def told(self, operation: str, refusal: Refusal) -> CloudError:
        """The refusal as one of our errors."""
        return errors_map.http_error(self._cloud, operation, refusal.status, refusal.code, refusal.message)


def retrying(session: Any, retries: int) -> Any:
    """The session, trying again what the API is too busy for.  Everything that adapters ask may be asked twice."""
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - optional
    from urllib3.util import Retry  # noqa: PLC0415 - optional

    policy = Retry(
        total=retries,
        backoff_factor=1,
        status_forcelist=RETRIED,
        allowed_methods=None,
        raise_on_status=False,
        respect_retry_after_header=False,  # a bounded wait, whatever the API would like
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=policy))
    return session


def _json(got: Any) -> dict[str, Any] | None:
    try:
        found = got.json()
    except (ValueError, RecursionError):  # an empty body, a proxy's page, lists in lists without end
        return None
    return found if isinstance(found, dict) else None


def _refusal(status: int, body: dict[str, Any], reason: str, after: str) -> Refusal:
    """Google: `errors` with a `reason`; Azure: a `code`."""
    error = body.get("error")
    if not isinstance(error, dict):
        return Refusal(status, "", reason, after)
    details = error.get("errors")
    first = details[0] if isinstance(details, list) and details else None
    code = (first.get("reason") if isinstance(first, dict) else None) or error.get("code") or ""
    return Refusal(status, str(code), str(error.get("message") or reason), after)
