"""Google's two APIs as a feed asks them: Compute Engine by google-cloud-compute, the price list by REST; one call at a time, every error as one of ours.

The SDK is imported when a feed is made, never before; its own retries are off.  Decides nothing about answers.
"""

# pyright: basic

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from planner.clouds import errors_map
from planner.clouds.feeds.again import Again, Busy
from planner.clouds.gcp import credentials_of
from planner.clouds.port import Where
from planner.clouds.rest import Refusal, Rest
from planner.model.errors import CloudError, Unavailable

T = TypeVar("T")

COMPUTE: Final = "https://compute.googleapis.com"
BILLING: Final = "https://cloudbilling.googleapis.com"
#: Compute Engine in the list of services that Google bills
SERVICE: Final = "6F81-5844-456A"
SKUS_PATH: Final = f"/v1/services/{SERVICE}/skus"
SCOPES: Final = (
    "https://www.googleapis.com/auth/compute.readonly",
    "https://www.googleapis.com/auth/cloud-billing.readonly",
)
SECONDS: Final = 60.0
ROWS: Final = 500
SKUS: Final = 5000
MOST_PAGES: Final = 1000
"""A list has some: one that goes on for longer has no end."""


class Google:
    """One project.  `credentials` and the two addresses are for tests."""

    def __init__(
        self, where: Where, again: Again, *, credentials: Any = None, compute: str = COMPUTE, billing: str = BILLING
    ) -> None:
        sdk, sessions = _imported()
        from planner.clouds.feeds.bounded import bounded  # noqa: PLC0415 - requests, optional

        project = where.account
        if credentials is None:
            credentials, default = credentials_of(where, SCOPES)
            project = project or default
        if not project:
            raise errors_map.no_account("GCP", "project", "set `project` of the target in skyplan.yaml")
        self._project = project
        self._again = again
        options = {"api_endpoint": compute.removeprefix("https://")}
        self._machines = sdk.MachineTypesClient(credentials=credentials, client_options=options)
        self._accelerators = sdk.AcceleratorTypesClient(credentials=credentials, client_options=options)
        self._regions = sdk.RegionsClient(credentials=credentials, client_options=options)
        self._session = bounded(sessions.AuthorizedSession(credentials))
        self._rest = Rest("GCP", self._session, billing)

    def region(self, name: str) -> Any:
        """With its zones and quotas."""
        request = {"project": self._project, "region": name}
        return self._ask("regions.get", lambda: self._regions.get(request=request, retry=None, timeout=SECONDS))

    def machine_types(self, zone: str) -> Iterator[Any]:
        """Of a zone."""
        return self._pages("machineTypes.list", self._machines.list, zone)

    def accelerator_types(self, zone: str) -> Iterator[Any]:
        """Of a zone."""
        return self._pages("acceleratorTypes.list", self._accelerators.list, zone)

    def skus(self) -> Iterator[Any]:
        """Google's whole list for Compute Engine, in USD."""
        params = {"currencyCode": "USD", "pageSize": str(SKUS)}
        seen, token = set[str](), ""
        while True:
            given = {**params, **({"pageToken": token} if token else {})}
            answer = self._ask(
                "skus.list", lambda given=given: self._rest.ask("skus.list", "GET", SKUS_PATH, given).body
            )
            rows, token = answer.get("skus", []), answer.get("nextPageToken") or ""
            if not isinstance(rows, list) or not isinstance(token, str):
                raise errors_map.unexpected("GCP", "skus.list", "an answer without a list")
            yield from rows
            token = _next(token, seen, "skus.list")
            if not token:
                return

    def close(self) -> None:
        """Let the connections go."""
        self._session.close()
        for client in (self._machines, self._accelerators, self._regions):
            client.transport.close()

    def _pages(self, operation: str, listed: Callable[..., Any], zone: str) -> Iterator[Any]:
        seen, token = set[str](), ""
        while True:
            request = {"project": self._project, "zone": zone, "max_results": ROWS, "page_token": token}

            def ask(request: dict[str, Any] = request) -> Any:
                # the first page of what it gives is this answer; the next is asked for here, so that it can be asked again
                return next(iter(listed(request=request, retry=None, timeout=SECONDS).pages))

            page = self._ask(operation, ask)
            yield from page.items
            token = _next(page.next_page_token, seen, operation)
            if not token:
                return

    def _ask(self, operation: str, call: Callable[[], T]) -> T:
        return self._again.ask(lambda: _once(operation, call))


def _next(token: str, seen: set[str], operation: str) -> str:
    """Pages without end are an error, not a reason to ask for ever."""
    if token and (token in seen or len(seen) >= MOST_PAGES):
        raise errors_map.unexpected("GCP", operation, "its pages have no end")
    seen.add(token)
    return token


def _once(operation: str, call: Callable[[], T]) -> T:
    """The answer.  Raises CloudError, of which those worth asking again are Unavailable; and Busy where Google says when."""
    import requests  # noqa: PLC0415 - optional
    from google.api_core import exceptions as api  # noqa: PLC0415 - optional
    from google.auth import exceptions as auth  # noqa: PLC0415 - optional
    from google.protobuf.json_format import ParseError  # noqa: PLC0415 - optional

    try:
        return call()
    except Refusal as refusal:
        error, after = _told(operation, refusal.status, refusal.code, refusal.message), refusal.after
    except api.GoogleAPICallError as refused:
        response = refused.response
        reason = next((e.get("reason", "") for e in refused.errors or () if isinstance(e, dict)), "")
        error = _told(operation, int(refused.code or 0), reason, refused.message or "")
        after = response.headers.get("Retry-After") if response is not None else None
    except (auth.TransportError, requests.RequestException) as failed:
        raise errors_map.unreachable(operation, str(failed), "GCP") from failed
    except auth.GoogleAuthError as refused:
        raise errors_map.no_credentials(str(refused), "GCP") from refused
    except (ParseError, ValueError, AttributeError, KeyError, TypeError, RecursionError) as garbled:
        # the SDK takes an error of another form for granted until it falls over it
        raise errors_map.unexpected("GCP", operation, f"an answer that cannot be read: {garbled}") from garbled
    if isinstance(error, Unavailable) and (seconds := _seconds(after)) is not None:
        raise Busy(error, seconds)
    raise error


def _told(operation: str, status: int, reason: str, message: str) -> CloudError:
    return errors_map.http_error("GCP", operation, status, reason, message)


def _seconds(text: str | None) -> float | None:
    """Google gives seconds; a date is taken for nothing said."""
    try:
        return float(text or "")
    except ValueError:
        return None


def _imported() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about the Python of the future
            from google.auth.transport import requests as sessions  # noqa: PLC0415 - optional
            from google.cloud import compute_v1  # noqa: PLC0415 - seconds, and optional
    except ImportError as error:
        raise errors_map.missing("GCP", "google-auth, google-cloud-compute and requests", "gcp") from error
    return compute_v1, sessions
