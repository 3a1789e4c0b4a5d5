"""Comments of a GitHub pull request: the REST API's issue comments, and GraphQL for whose they are and to hide one.

Which comments are the token's own is asked of GraphQL (`viewerDidAuthor`), the one question that every kind of token may ask; where GraphQL does not answer, of
`/user`; where that does not either, which is so for an app's token, comments of bots count and a note says so.  Never run against github.com: the forms of
requests and answers are those of its documentation (REST version 2022-11-28, as of 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

from planner.forges.again import Patience
from planner.forges.port import Comment, Gone, Place, TooLong
from planner.forges.rest import Answer, Refusal, Rest, Words
from planner.forges.telling import failed
from planner.model.errors import ForgeError

LONGEST: Final = 65_000
"""Bytes: GitHub refuses more than 65,536 characters (its API's own message, 2026-09), and bytes are never fewer."""
T = TypeVar("T")
_VERSION = "2022-11-28"
_ASKED_AT_ONCE = 100
"""GraphQL's `nodes` takes no more ids."""
_OWN = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { id viewerDidAuthor isMinimized } } }"
_HIDE = "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) { minimizedComment { isMinimized } } }"
_NOT_FOUND, _GONE, _REFUSED = 404, 410, 422
_TOO_LONG = re.compile(r"too long", re.IGNORECASE)
WORDS: Final = Words(
    name="GitHub",
    token="give the job's own token: `env: {GITHUB_TOKEN: ${{ github.token }}}`",  # noqa: S106 - no token
    allowed=(
        "the job needs `permissions: {pull-requests: write}`. Under `on: pull_request` a pull request from a fork has a token that only reads, whatever the workflow says:"
        " leave it at the step summary, or read the fork's files as data (docs/ci.md). Never check out or run a fork's code under `pull_request_target`"
    ),
    limit=re.compile(r"secondary rate limit|abuse detection|rate limit exceeded", re.IGNORECASE),
    not_found="check --repo OWNER/NAME and --number; to a token without rights a private repository is not found",
)


class GitHub:
    """A pull request's comments."""

    longest = LONGEST

    def __init__(self, place: Place, token: str, patience: Patience) -> None:
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": _VERSION,
            "User-Agent": "skyplan",
        }
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._rest = Rest(place.api, headers, WORDS, patience, token)
        self._place = place
        self._notes: list[str] = []

    def close(self) -> None:
        """End its connections."""
        self._rest.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What its user should know of what was asked so far."""
        return tuple(dict.fromkeys(self._notes))

    def safe(self, body: str) -> str:
        """GitHub takes no orders from comments."""
        return body

    def comments(self, wanted: Callable[[str], bool]) -> list[Comment]:
        """Those wanted that the token's user wrote and that are not hidden; oldest first."""
        rows = self._told(lambda: list(self._rest.pages(f"{self._issue}/comments?per_page=100")))
        found = [r for r in rows if wanted(_text(r, "body")) and isinstance(r.get("id"), int)]
        return sorted(map(_comment, self._own(found)), key=lambda c: c.order) if found else []

    def create(self, body: str) -> Comment:
        """Raises TooLong, Unknown, ForgeError."""
        return self._write("POST", f"{self._issue}/comments", body, once=True)

    def update(self, comment: Comment, body: str) -> Comment:
        """Raises TooLong, Gone, ForgeError."""
        return self._write("PATCH", self._one(comment), body, gone=True)

    def hide(self, comment: Comment, folded: str) -> None:  # noqa: ARG002 - GitHub hides it as it is
        """As outdated."""
        self._graph(_HIDE, {"id": comment.node})

    def delete(self, comment: Comment) -> None:
        """One that is gone is deleted."""
        try:
            self._rest.ask("DELETE", self._one(comment))
        except Refusal as refusal:
            if refusal.status not in {_NOT_FOUND, _GONE}:
                raise self._rest.told(refusal) from None

    @property
    def _repo(self) -> str:
        return f"/repos/{self._place.repo}"

    @property
    def _issue(self) -> str:
        return f"{self._repo}/issues/{self._place.number}"

    def _one(self, comment: Comment) -> str:
        return f"{self._repo}/issues/comments/{comment.id}"

    def _write(self, method: str, path: str, body: str, *, once: bool = False, gone: bool = False) -> Comment:
        try:
            answer = self._rest.ask(method, path, {"body": body}, once=once)
        except Refusal as refusal:
            if refusal.status == _REFUSED and _TOO_LONG.search(refusal.message):
                raise TooLong from None
            if gone and refusal.status in {_NOT_FOUND, _GONE}:
                raise Gone from None
            raise self._rest.told(refusal) from None
        row = _row(answer)
        if not isinstance(row.get("id"), int):
            raise failed("SKY-APPLY-335", "GitHub answered with no comment: a proxy may stand in between")
        return _comment(row)

    def _own(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            mine = self._authored([_text(r, "node_id") for r in rows])
        except ForgeError:
            return self._by_name(rows)
        return [r for r in rows if _text(r, "node_id") in mine]

    def _authored(self, ids: Sequence[str]) -> set[str]:
        mine: set[str] = set()
        for k in range(0, len(ids), _ASKED_AT_ONCE):
            # of a comment that was deleted meanwhile GraphQL tells an error beside the others' answers
            data = self._graph(_OWN, {"ids": list(ids[k : k + _ASKED_AT_ONCE])}, whole=False)
            nodes = data.get("nodes")
            for node in cast("list[object]", nodes) if isinstance(nodes, list) else []:
                row = cast("dict[str, object]", node) if isinstance(node, dict) else {}
                if row.get("viewerDidAuthor") is True and row.get("isMinimized") is not True:
                    mine.add(str(row.get("id")))
        return mine

    def _by_name(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Without GraphQL."""
        try:
            login = _text(_row(self._rest.ask("GET", "/user")), "login")
        except Refusal:
            login = ""
        if login:
            return [r for r in rows if _text(_part(r, "user"), "login") == login]
        self._notes.append("GitHub does not say whose the token is: comments with this tag by any bot count as its own")
        return [r for r in rows if _text(_part(r, "user"), "type") == "Bot"]

    def _graph(self, query: str, variables: dict[str, object], *, whole: bool = True) -> dict[str, object]:
        """GraphQL's data.  Raises ForgeError, also where it answers 200 with errors; not `whole`: with errors alone."""
        base = self._place.api
        path = f"{base.removesuffix('/v3')}/graphql" if base.endswith("/api/v3") else f"{base}/graphql"
        answer = self._told(lambda: self._rest.ask("POST", path, {"query": query, "variables": variables}))
        body = _row(answer)
        data = body.get("data")
        if (
            (whole and body.get("errors"))
            or not isinstance(data, dict)
            or not any(cast("dict[str, object]", data).values())
        ):
            said = self._rest.clean(str(_first(body.get("errors"))))
            raise failed("SKY-APPLY-332", f"GitHub's GraphQL says: {said or 'nothing'}", WORDS.allowed)
        return cast("dict[str, object]", data)

    def _told(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except Refusal as refusal:
            raise self._rest.told(refusal) from None


def _comment(row: dict[str, Any]) -> Comment:
    return Comment(id=row["id"], body=_text(row, "body"), url=_text(row, "html_url"), node=_text(row, "node_id"))


def _row(answer: Answer) -> dict[str, Any]:
    body = answer.body
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _part(row: dict[str, Any], name: str) -> dict[str, Any]:
    found = row.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _text(row: dict[str, Any], name: str) -> str:
    found = row.get(name)
    return found if isinstance(found, str) else ""


def _first(errors: object) -> object:
    if isinstance(errors, list) and errors:
        one: object = cast("list[object]", errors)[0]
        return cast("dict[str, object]", one).get("message", "") if isinstance(one, dict) else one
    return ""
