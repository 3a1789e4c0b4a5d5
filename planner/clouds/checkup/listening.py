"""A `requests` session whose every answer is small, soon, and says the time; and one question by it.

Only GET is sent, whatever is asked.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.clouds import errors_map
from planner.clouds.checkup.port import ANSWER_SECONDS, CONNECT_SECONDS, Now, skew


class Listening:
    """The session carries the credentials; addresses are the adapters' own, links in answers are not followed."""

    def __init__(self, cloud: str, session: Any, now: Now) -> None:
        from planner.clouds.feeds.bounded import bounded  # noqa: PLC0415 - requests, optional

        self._cloud = cloud
        self._session = bounded(session)
        self._now = now
        self.skew_seconds: float | None = None

    def get(
        self,
        operation: str,
        url: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer's JSON object, None where it is of another form.  Raises CloudError for refusals."""
        import requests  # noqa: PLC0415 - optional

        try:
            got = self._session.request(
                "GET",
                url,
                params=params,
                headers=headers,
                timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise errors_map.unreachable(operation, str(error), self._cloud) from error
        self.skew_seconds = skew(got.headers.get("Date"), self._now()) if "Date" in got.headers else self.skew_seconds
        try:
            body = got.json()
        except (ValueError, RecursionError):
            body = None
        if got.status_code >= 300:  # noqa: PLR2004 - redirects and up
            code, message = _words(body, got.reason or "")
            raise errors_map.http_error(self._cloud, operation, got.status_code, code, message)
        return body if isinstance(body, dict) else None

    def close(self) -> None:
        """Let the connections go."""
        self._session.close()


def _words(body: Any, reason: str) -> tuple[str, str]:
    """Google: `errors` with a `reason`; Azure: a `code`."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", reason
    details = error.get("errors")
    first = details[0] if isinstance(details, list) and details and isinstance(details[0], dict) else {}
    return str(first.get("reason") or error.get("code") or ""), str(error.get("message") or reason)
