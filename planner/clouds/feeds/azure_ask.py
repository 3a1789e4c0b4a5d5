"""How Azure is asked: one call of azure-mgmt-compute or of the Retail Prices API, its errors mapped, and lists read page by page until they end.

Only here are the SDK and HTTP touched.  Retries are not: a call that Azure was too busy for raises `Busy` or `Unavailable`, and `Again` decides.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from planner.clouds import errors_map
from planner.clouds.feeds.again import Again, Busy
from planner.model.errors import CloudError, Unavailable

T = TypeVar("T")
SCOPE = "https://management.azure.com/.default"
TIMEOUT_SECONDS = (10, 60)
"""To connect, to be answered."""
MOST_PAGES = 1000
"""A region has some tens: a list that goes on for longer has no end."""
OK = 200
PORTS = {"https": 443, "http": 80}


def token(credential: Any) -> None:
    """Whether there are credentials at all.  Raises CloudError."""
    token_for(credential, SCOPE)


def token_for(credential: Any, scope: str) -> str:
    """A token for that API.  Raises CloudError."""
    return _of_sdk("credentials", lambda: credential.get_token(scope).token)


def listed(operation: str, base: str, begin: Callable[..., Any], again: Again, **asked: str) -> Iterator[object]:
    """The items of a list of the SDK's as plain JSON; a page that failed is asked for again, not the list.  Raises CloudError.

    The SDK would follow a link anywhere, and take the token along: one that leads away from `base` is refused.
    """
    # pages are held by position: after a failure the same one comes
    pages = _of_sdk(operation, lambda: begin(**asked).by_page())
    links: set[str] = set()
    while True:
        page = again.ask(lambda: _of_sdk(operation, lambda: _next(pages)))
        if page is None:
            return
        for item in page:
            yield item.as_dict() if hasattr(item, "as_dict") else item
        if pages.continuation_token is not None:
            _followed(operation, base, links, pages.continuation_token)


class Retail:
    """The Retail Prices API, which asks for no credentials and gets none."""

    def __init__(self, session: Any, url: str) -> None:
        self._session = session
        self._url = url

    def rows(self, where: str, again: Again) -> Iterator[object]:
        """The rows that an OData filter lets through.  Raises CloudError."""
        params: dict[str, str] | None = {"api-version": "2023-01-01-preview", "$filter": where}
        url, links = self._url, set[str]()
        while True:
            page = again.ask(lambda url=url, params=params: self._page(url, params))
            found = page.get("Items")
            if not isinstance(found, list):
                raise errors_map.unexpected("Azure", "retail prices", "an answer without `Items`")
            yield from found
            link = page.get("NextPageLink")
            if not link:
                return
            url, params = _followed("retail prices", self._url, links, link), None

    def _page(self, url: str, params: dict[str, str] | None) -> dict[str, Any]:
        import requests  # noqa: PLC0415 - optional

        try:
            got = self._session.get(url, params=params, timeout=TIMEOUT_SECONDS, allow_redirects=False)
            body = got.json() if got.status_code == OK else None
        except requests.exceptions.JSONDecodeError as error:
            raise errors_map.unexpected("Azure", "retail prices", "an answer that is no JSON") from error
        except requests.RequestException as error:
            raise errors_map.unreachable("retail prices", str(error), "Azure") from error
        except (ValueError, RecursionError) as error:  # a number longer than Python reads, lists in lists without end
            raise errors_map.unexpected("Azure", "retail prices", str(error)) from error
        if got.status_code != OK:
            words = errors_map.http_error("Azure", "retail prices", got.status_code, "", got.reason or "")
            _raise(words, got.headers)
        if not isinstance(body, dict):
            raise errors_map.unexpected("Azure", "retail prices", "an answer that is no JSON object")
        return body


def _of_sdk(operation: str, ask: Callable[[], T]) -> T:
    from azure.core import exceptions  # noqa: PLC0415 - optional

    try:
        return ask()
    except exceptions.ClientAuthenticationError as error:
        if error.status_code is None:
            raise errors_map.no_credentials(str(error), "Azure") from error
        raise errors_map.http_error("Azure", operation, error.status_code, _code(error), error.message) from error
    except (exceptions.DecodeError, exceptions.DeserializationError) as error:
        raise errors_map.unexpected("Azure", operation, str(error)) from error
    except exceptions.HttpResponseError as error:
        words = errors_map.http_error("Azure", operation, error.status_code or 0, _code(error), error.message)
        _raise(words, getattr(error.response, "headers", {}), error)
        raise words from error
    except exceptions.AzureError as error:
        raise errors_map.unreachable(operation, str(error), "Azure") from error
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        # the SDK takes an answer of another form for granted until it falls over it
        raise errors_map.unexpected("Azure", operation, f"an answer of another form: {error}") from error


def _raise(words: CloudError, headers: Any, cause: BaseException | None = None) -> None:
    """With the wait that the answer names, where it names one in seconds."""
    after = headers.get("Retry-After", "")
    if isinstance(words, Unavailable) and after.isascii() and after.isdigit():
        raise Busy(words, float(after)) from cause
    raise words from cause


def _next(pages: Any) -> list[Any] | None:
    page = next(pages, None)
    return None if page is None else list(page)


def _followed(operation: str, base: str, links: set[str], link: object) -> str:
    """The link, if it leads on and not away.  Links may name the port, which addresses do not: `https://prices.azure.com:443/…`."""
    whole = urljoin(base, str(link))
    if not _is_same(whole, base):
        raise errors_map.unexpected("Azure", operation, f"its link leads elsewhere: {whole[:200]}")
    if whole in links or len(links) >= MOST_PAGES:
        raise errors_map.unexpected("Azure", operation, "its pages have no end")
    links.add(whole)
    return whole


def _is_same(link: str, base: str) -> bool:
    """The same scheme, host and port."""
    try:
        one, other = ((u.scheme, u.hostname, u.port or PORTS.get(u.scheme)) for u in map(urlsplit, (link, base)))
    except ValueError:
        return False
    return one == other


def _code(error: Any) -> str:
    return str(getattr(error.error, "code", "") or "")
