"""A forge's API over httpx: one host, JSON, pages, bounded retries; every failure is a ForgeError in words that hold no token.

The token goes to the API's own scheme, host and port and nowhere else, whatever a redirect or a link to a next page says.  What was sent without an answer is
sent again only where twice is the same as once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urljoin, urlsplit

from planner.forges.address import is_near, origin, refuse_address
from planner.forges.again import Patience
from planner.forges.port import Unknown
from planner.forges.telling import failed, said
from planner.model.errors import ForgeError

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS: Final = 30.0
LARGEST: Final = 64 * 2**20
"""Bytes of one answer: a page of 100 comments of a forge's greatest length is smaller on GitHub, and larger is no answer to us."""
MOST_PAGES: Final = 1_000
_MOST_REDIRECTS = 3
_SHOWN = 300
_NOT_OK = 300
_REDIRECTS = (301, 302, 307, 308)
_BUSY = (500, 502, 503, 504)
_FORBIDDEN, _TOO_MANY = 403, 429
_TOKEN = re.compile(r"[!-~]{1,4096}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, parsed; `body` is None where there was none, `following` the link to the next page, "" on the last."""

    status: int
    body: object
    headers: Mapping[str, str]
    url: str
    following: str = ""


class _Again(Exception):
    """No answer, or one that asking again may mend.  `maybe`: what was asked may have been done all the same."""

    def __init__(self, why: ForgeError, *, asked: float | None = None, maybe: bool = False) -> None:
        super().__init__(str(why))
        self.why = why
        self.asked = asked
        self.maybe = maybe


class Refusal(Exception):
    """An answer with an error that asking again does not mend, for the adapter to judge."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a forge's people are told: which permission, and what about forks."""

    name: str
    token: str
    allowed: str
    limit: re.Pattern[str]
    not_found: str


@dataclass(slots=True)
class Rest:
    """One API.  `headers` carry the token and are never shown."""

    base: str
    headers: Mapping[str, str] = field(repr=False)
    words: Words
    patience: Patience
    secret: str = field(default="", repr=False)
    _client: httpx.Client | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        refuse_address(self.base)
        if self.secret and not _TOKEN.fullmatch(self.secret):
            raise failed("SKY-APPLY-331", "the token has blanks or signs in it that no token has", "copy it again")

    def close(self) -> None:
        """End its connections."""
        if self._client is not None:
            self._client.close()

    def ask(self, method: str, path: str, sent: object = None, *, once: bool = False) -> Answer:
        """The answer.  `once`: what must not be done twice; raises Unknown where it may have been.  Raises Refusal, ForgeError."""
        url = self._whole(path)
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(method, url, sent)
            except _Again as again:
                if once and again.maybe:
                    raise Unknown(again.why) from None
                if not self.patience.wait(attempt, again.asked):
                    raise again.why from None

    def _attempt(self, method: str, url: str, sent: object) -> Answer:
        import httpx  # noqa: PLC0415 - optional

        try:
            answer = self._followed(method, url, sent)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise _Again(self._failed(f"{self._host} does not answer: {type(error).__name__}")) from None
        except httpx.InvalidURL:
            raise self._failed(f"{self._host} leads on to what is no address") from None
        except httpx.HTTPError as error:
            raise _Again(self._failed(f"{self._host} gave no answer: {type(error).__name__}"), maybe=True) from None
        if answer.status < _NOT_OK:
            return self._json(answer)
        asked = self.patience.asked(answer.headers)
        message = self._message(answer)
        if self._limited(answer, message, asked):
            raise _Again(self._too_long(asked, message), asked=asked)
        if answer.status in _BUSY:
            why = self._failed(f"{self._host} answered {answer.status}: {message}")
            raise _Again(why, asked=asked, maybe=True)
        raise Refusal(answer.status, message)

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every row of every page, as Link headers or X-Next-Page lead on.  Raises Refusal, ForgeError."""
        seen: set[str] = set()
        url: str | None = self._whole(path)
        while url is not None:
            if url in seen or len(seen) >= MOST_PAGES:
                raise self._failed(f"{self._host}: the pages of comments have no end")
            seen.add(url)
            answer = self.ask("GET", url)
            rows = answer.body
            if not isinstance(rows, list):
                raise self._failed(f"{self._host} answered no list of comments")
            for row in cast("list[object]", rows):
                if isinstance(row, dict):
                    yield cast("dict[str, Any]", row)
            url = self._next(answer)

    def told(self, refusal: Refusal) -> ForgeError:
        """A refusal in words, with what to do."""
        said = f"{self.words.name} says: {refusal.message}" if refusal.message else f"{self._host}: {refusal.status}"
        match refusal.status:
            case 401:
                return failed("SKY-APPLY-331", said, self.words.token)
            case 403:
                return failed("SKY-APPLY-332", said, self.words.allowed)
            case 404:
                return failed("SKY-APPLY-333", said, self.words.not_found)
            case _:
                return failed("SKY-APPLY-335", f"{self._host} answered {refusal.status}: {refusal.message}")

    def _whole(self, path: str) -> str:
        whole = path if "://" in path else f"{self.base}{path}"
        if origin(whole) != origin(self.base):
            raise failed(
                "SKY-APPLY-336",
                f"{self._host} leads on to {self.clean(urlsplit(whole).hostname or 'nowhere')}: the token does not go there",
                "name the API's own address with --api; a proxy or a sign-in page may stand in between",
            )
        return whole

    def _joined(self, url: str, to: str) -> str:
        """Where a link leads from there.  Raises ForgeError where that is elsewhere, or nowhere."""
        try:
            return self._whole(urljoin(url, to))
        except ValueError:
            raise self._failed(f"{self._host} leads on to what is no address") from None

    @property
    def _host(self) -> str:
        return urlsplit(self.base).hostname or self.base

    def _followed(self, method: str, url: str, sent: object) -> Answer:
        for _ in range(_MOST_REDIRECTS):
            answer = self._once(method, url, sent)
            to = answer.headers.get("location", "")
            if answer.status not in _REDIRECTS or not to:
                return answer
            url = self._joined(url, to)
        raise self._failed(f"{self._host} sends on from one address to the next")

    def _once(self, method: str, url: str, sent: object) -> Answer:
        client = self._opened()
        kept: list[bytes] = []
        size = 0
        with client.stream(method, url, json=sent, headers=dict(self.headers)) as got:
            for part in got.iter_bytes():
                size += len(part)
                if size > LARGEST:
                    raise self._failed(f"{self._host}: an answer of more than {LARGEST // 2**20} MiB")
                kept.append(part)
            following = got.links.get("next", {}).get("url", "")
            return Answer(
                status=got.status_code, body=b"".join(kept), headers=got.headers, url=url, following=following
            )

    def _opened(self) -> httpx.Client:
        if self._client is None:
            import httpx  # noqa: PLC0415 - optional

            # this machine is never reached through a proxy
            far = not is_near(self.base)
            self._client = httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=far)
        return self._client

    def _json(self, answer: Answer) -> Answer:
        if not answer.body:
            return replace(answer, body=None)
        try:
            body: object = json.loads(cast("bytes", answer.body))
        except (ValueError, RecursionError):
            raise self._failed(
                f"{self._host} answered {answer.status} with what is no JSON: a proxy's or a sign-in page may stand in between"
            ) from None
        return replace(answer, body=body)

    def _message(self, answer: Answer) -> str:
        """What the forge says, in one line, short and without the token."""
        try:
            body: object = json.loads(cast("bytes", answer.body))
        except (ValueError, RecursionError):
            return "no JSON: a proxy's page?" if answer.body else ""
        return self.clean(said(body))

    def clean(self, text: str) -> str:
        """A stranger's words in one printable line, without the token."""
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        line = line.replace(self.secret, "[token]") if self.secret else line
        return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"

    def _limited(self, answer: Answer, message: str, asked: float | None) -> bool:
        """Told apart: a 403 that will pass, and one that will not."""
        if answer.status == _TOO_MANY:
            return True
        return answer.status == _FORBIDDEN and (asked is not None or bool(self.words.limit.search(message)))

    def _too_long(self, asked: float | None, message: str) -> ForgeError:
        wait = f"; it asks to wait for {round(asked)} s" if asked else ""
        return failed("SKY-APPLY-334", f"{self.words.name}'s rate limit: {message or 'too many requests'}{wait}")

    def _failed(self, summary: str) -> ForgeError:
        return failed("SKY-APPLY-335", self.clean(summary))

    def _next(self, answer: Answer) -> str | None:
        if answer.following:
            return self._joined(answer.url, answer.following)
        page = answer.headers.get("x-next-page", "").strip()
        if not (page.isascii() and page.isdigit()):
            return None
        bare = re.sub(r"([?&])page=\d+&?", r"\1", answer.url).rstrip("?&")
        return f"{bare}{'&' if '?' in bare else '?'}page={page}"
