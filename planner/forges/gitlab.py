"""Notes of a GitLab merge request.  GitLab cannot hide a note: what is to be hidden is folded, its text kept under a line that says it is outdated.

A line that begins with a slash and a word is an order to GitLab (`/merge`, `/close`), from whoever writes it: such lines are escaped.  Never run against gitlab.com: the forms
of requests and answers are those of its documentation (API v4, as of 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

from planner.forges.again import Patience
from planner.forges.port import Comment, Gone, Place, TooLong
from planner.forges.rest import Answer, Refusal, Rest, Words
from planner.forges.telling import failed

T = TypeVar("T")
LONGEST: Final = 900_000
"""Bytes: GitLab refuses a note of more than 1,000,000 characters (its application limits, 2026-11), and bytes are never fewer."""
_NOT_FOUND = 404
_REFUSED = (400, 413, 422)
_TOO_LONG = re.compile(r"too long|too large", re.IGNORECASE)
_ORDER = re.compile(r"^([ \t>]*)/(?=[A-Za-z])", re.MULTILINE)
WORDS: Final = Words(
    name="GitLab",
    token="GITLAB_TOKEN must be a project or group access token with the scope `api`; the job's own CI_JOB_TOKEN may not write notes",  # noqa: S106 - no token
    allowed=(
        "the token needs the scope `api` and the role Reporter or higher in the project. Pipelines of a fork run in the fork, without this project's variables:"
        " leave it at the job's artifact, or let a member run the pipeline in the parent project (docs/ci.md)"
    ),
    limit=re.compile(r"retry later|rate limit", re.IGNORECASE),
    not_found="check --repo (the project's number or path) and --number; to a token without rights a private project is not found",
)


class GitLab:
    """A merge request's notes."""

    longest = LONGEST

    def __init__(self, place: Place, token: str, patience: Patience) -> None:
        headers = {"Accept": "application/json", "User-Agent": "skyplan"}
        if token:
            headers["PRIVATE-TOKEN"] = token
        self._rest = Rest(place.api, headers, WORDS, patience, token)
        self._place = place
        self._me: int | None = None

    def close(self) -> None:
        """End its connections."""
        self._rest.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing so far."""
        return ()

    def safe(self, body: str) -> str:
        """Without orders to GitLab."""
        return _ORDER.sub(r"\1\\/", body)

    def comments(self, wanted: Callable[[str], bool]) -> list[Comment]:
        """Those wanted that the token's user wrote; oldest first."""
        path = f"{self._notes_path}?per_page=100&sort=asc&order_by=created_at"
        rows = self._told(lambda: list(self._rest.pages(path)))
        found = [r for r in rows if wanted(_text(r, "body")) and isinstance(r.get("id"), int) and not r.get("system")]
        if not found:
            return []
        me = self._whose()
        return sorted((self._comment(r) for r in found if _author(r) == me), key=lambda c: c.order)

    def create(self, body: str) -> Comment:
        """Raises TooLong, Unknown, ForgeError."""
        return self._write("POST", self._notes_path, body, once=True)

    def update(self, comment: Comment, body: str) -> Comment:
        """Raises TooLong, Gone, ForgeError."""
        return self._write("PUT", f"{self._notes_path}/{comment.id}", body, gone=True)

    def hide(self, comment: Comment, folded: str) -> None:
        """Folded: GitLab has no hiding."""
        try:
            self.update(comment, folded)
        except Gone:
            return

    def delete(self, comment: Comment) -> None:
        """One that is gone is deleted."""
        try:
            self._rest.ask("DELETE", f"{self._notes_path}/{comment.id}")
        except Refusal as refusal:
            if refusal.status != _NOT_FOUND:
                raise self._rest.told(refusal) from None

    @property
    def _notes_path(self) -> str:
        return f"/projects/{quote(self._place.repo, safe='')}/merge_requests/{self._place.number}/notes"

    def _write(self, method: str, path: str, body: str, *, once: bool = False, gone: bool = False) -> Comment:
        try:
            answer = self._rest.ask(method, path, {"body": body}, once=once)
        except Refusal as refusal:
            if refusal.status in _REFUSED and _TOO_LONG.search(refusal.message):
                raise TooLong from None
            if gone and refusal.status == _NOT_FOUND:
                raise Gone from None
            raise self._rest.told(refusal) from None
        row = _row(answer)
        if not isinstance(row.get("id"), int):
            raise failed("SKY-APPLY-335", "GitLab answered with no note: a proxy may stand in between")
        return self._comment(row)

    def _whose(self) -> int:
        if self._me is None:
            found = _row(self._told(lambda: self._rest.ask("GET", "/user"))).get("id")
            if not isinstance(found, int):
                raise failed("SKY-APPLY-335", "GitLab does not say whose the token is")
            self._me = found
        return self._me

    def _comment(self, row: dict[str, Any]) -> Comment:
        """GitLab tells no address of a note; its pages name them so."""
        web = self._place.web
        return Comment(id=row["id"], body=_text(row, "body"), url=f"{web}#note_{row['id']}" if web else "")

    def _told(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except Refusal as refusal:
            raise self._rest.told(refusal) from None


def _row(answer: Answer) -> dict[str, Any]:
    body = answer.body
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _text(row: dict[str, Any], name: str) -> str:
    found = row.get(name)
    return found if isinstance(found, str) else ""


def _author(row: dict[str, Any]) -> object:
    found = row.get("author")
    return cast("dict[str, Any]", found).get("id") if isinstance(found, dict) else None
