"""GitHub's and GitLab's comment APIs on loopback, with what goes wrong with them: pages, limits, permissions, throttling, answers that never come.

Answers have the form of the documented ones (GitHub REST 2022-11-28 and GraphQL, GitLab API v4, as of 2026-11); what a client must not do is an error here: an unknown token,
a body that is no string, a second write where the first one was lost.  What no emulator proves is that the forges' own servers behave so.
"""

from __future__ import annotations

import abc
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, Any, dict[str, str]]
GITHUB_LONGEST = 65_536
GITLAB_LONGEST = 1_000_000


@dataclass
class Asked:
    method: str
    path: str
    token: str
    body: Any


@dataclass
class Trouble:
    """Answers that are given instead of the right ones, to the first `times` requests that match.

    happens   the request is carried out all the same
    dropped   no answer at all: the connection ends
    held      the answer waits until this is set
    """

    method: str
    path: str
    status: int = 500
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    happens: bool = False
    dropped: bool = False
    raw: bytes | None = None
    held: threading.Event | None = None


@dataclass
class Forge(abc.ABC):
    """What both have: users by token, comments by place, a log."""

    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    prefix: str = ""
    url: str = ""
    next_id: int = 1000
    lock: threading.RLock = field(default_factory=threading.RLock)
    before: Callable[[Asked], None] | None = None

    def user(self, token: str, login: str, *, role: str = "write", kind: str = "User") -> str:
        self.users[token] = {"id": len(self.users) + 1, "login": login, "role": role, "type": kind}
        return token

    def place(self, repo: str, number: int) -> list[dict[str, Any]]:
        return self.comments.setdefault((repo, number), [])

    def bodies(self, repo: str, number: int) -> list[str]:
        return [c["body"] for c in self.comments[repo, number]]

    def writes(self) -> list[Asked]:
        """Requests that change something."""
        return [a for a in self.asked if a.method != "GET" and "nodes(ids" not in str(a.body)]

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    @abc.abstractmethod
    def answer(self, asked: Asked, query: dict[str, list[str]]) -> Answer:
        """What the forge says to it."""

    def by(self, comment_id: int) -> tuple[list[dict[str, Any]], dict[str, Any]] | None:
        for rows in self.comments.values():
            for row in rows:
                if row["id"] == comment_id:
                    return rows, row
        return None

    def page(
        self, rows: list[dict[str, Any]], asked: Asked, query: dict[str, list[str]]
    ) -> tuple[list[Any], int | None]:
        size = min(int(query.get("per_page", ["20"])[0]), 100)
        page = int(query.get("page", ["1"])[0])
        return rows[(page - 1) * size : page * size], page + 1 if page * size < len(rows) else None


class GitHub(Forge):
    def answer(self, asked: Asked, query: dict[str, list[str]]) -> Answer:  # noqa: PLR0911 - one an endpoint
        user = self.users.get(asked.token.removeprefix("Bearer "))
        if user is None:
            return 401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"}, {}
        if asked.path == "/graphql":
            return self.graph(asked.body, user)
        if asked.path == "/user":
            if user["type"] == "Bot":
                return 403, {"message": "Resource not accessible by integration"}, {}
            return 200, {"login": user["login"], "id": user["id"]}, {}
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments", asked.path)
        if found:
            key = (found[1], int(found[2]))
            if key not in self.comments:
                return 404, {"message": "Not Found"}, {}
            return self.listed(key, asked, query) if asked.method == "GET" else self.created(key, asked, user)
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)", asked.path)
        there = self.by(int(found[2])) if found else None
        if there is None:
            return 404, {"message": "Not Found"}, {}
        if user["role"] != "write":
            return 403, {"message": "Resource not accessible by integration"}, {}
        rows, row = there
        if asked.method == "DELETE":
            rows.remove(row)
            return 204, None, {}
        wrong = self.wrong(asked.body)
        if wrong:
            return wrong
        row["body"] = asked.body["body"]
        return 200, self.shown(row), {}

    def listed(self, key: tuple[str, int], asked: Asked, query: dict[str, list[str]]) -> Answer:
        rows, following = self.page(self.comments[key], asked, query)
        size = query.get("per_page", ["30"])[0]
        links = f'<{self.url}{asked.path}?per_page={size}&page=1>; rel="first"'
        if following:
            links = f'<{self.url}{asked.path}?per_page={size}&page={following}>; rel="next", {links}'
        return 200, [self.shown(r) for r in rows], {"Link": links}

    def created(self, key: tuple[str, int], asked: Asked, user: dict[str, Any]) -> Answer:
        if user["role"] != "write":
            return 403, {"message": "Resource not accessible by integration"}, {}
        wrong = self.wrong(asked.body)
        if wrong:
            return wrong
        return 201, self.shown(self.write(key, asked.body["body"], user)), {}

    def write(
        self, key: tuple[str, int], body: str, user: dict[str, Any], *, minimised: bool = False
    ) -> dict[str, Any]:
        row = {"id": self.new_id(), "body": body, "user": user, "at": key, "minimised": minimised}
        self.place(*key).append(row)
        return row

    def wrong(self, body: Any) -> Answer | None:
        if not isinstance(body, dict) or not isinstance(body.get("body"), str) or not body["body"].strip():
            return 422, {"message": "Validation Failed", "errors": [{"message": "Body cannot be blank"}]}, {}
        if len(body["body"]) > GITHUB_LONGEST:
            said = f"Body is too long (maximum is {GITHUB_LONGEST} characters)"
            row = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": said}
            return 422, {"message": "Validation Failed", "errors": [row]}, {}
        return None

    def shown(self, row: dict[str, Any]) -> dict[str, Any]:
        repo, number = row["at"]
        user = {"login": row["user"]["login"], "type": row["user"]["type"]}
        url = f"https://github.example/{repo}/pull/{number}#issuecomment-{row['id']}"
        return {"id": row["id"], "node_id": f"IC_{row['id']}", "body": row["body"], "user": user, "html_url": url}

    def graph(self, body: Any, user: dict[str, Any]) -> Answer:
        query, variables = body["query"], body["variables"]
        if "minimizeComment" in query:
            found = self.by(int(variables["id"].removeprefix("IC_")))
            if found is None or user["role"] != "write":
                said = "Resource not accessible by integration" if found else "Could not resolve to a node"
                return 200, {"data": {"minimizeComment": None}, "errors": [{"type": "FORBIDDEN", "message": said}]}, {}
            assert "OUTDATED" in query
            found[1]["minimised"] = True
            return 200, {"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}}, {}
        assert len(variables["ids"]) <= 100, "GraphQL's nodes takes no more"
        nodes = []
        for name in variables["ids"]:
            row = self.by(int(name.removeprefix("IC_")))
            mine = bool(row) and row[1]["user"] is user
            nodes.append({"id": name, "viewerDidAuthor": mine, "isMinimized": row[1]["minimised"]} if row else None)
        return 200, {"data": {"nodes": nodes}}, {}


class GitLab(Forge):
    """`orders`: the quick actions that notes gave."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[str] = []
        self.links = True

    def answer(self, asked: Asked, query: dict[str, list[str]]) -> Answer:  # noqa: PLR0911 - one an endpoint
        user = self.users.get(asked.token)
        if user is None:
            return 401, {"message": "401 Unauthorized"}, {}
        if asked.path == "/user":
            return 200, {"id": user["id"], "username": user["login"]}, {}
        found = re.fullmatch(r"/projects/([^/]+)/merge_requests/(\d+)/notes(?:/(\d+))?", asked.path)
        key = (unquote(found[1]), int(found[2])) if found else ("", 0)
        if found is None or key not in self.comments:
            return 404, {"message": "404 Project Not Found"}, {}
        if asked.method != "GET" and user["role"] != "write":
            return 403, {"message": "403 Forbidden"}, {}
        if found[3] is None:
            return self.listed(key, asked, query) if asked.method == "GET" else self.created(key, asked.body, user)
        row = next((r for r in self.comments[key] if r["id"] == int(found[3])), None)
        if row is None:
            return 404, {"message": "404 Not found"}, {}
        if asked.method == "DELETE":
            self.comments[key].remove(row)
            return 204, None, {}
        if wrong := self.wrong(asked.body):
            return wrong
        row["body"] = asked.body["body"].rstrip()
        return 200, self.shown(row), {}

    def listed(self, key: tuple[str, int], asked: Asked, query: dict[str, list[str]]) -> Answer:
        rows, following = self.page(self.comments[key], asked, query)
        headers = {"X-Next-Page": str(following or "")}
        if following and self.links:
            path = urlsplit(asked.path).path
            headers["Link"] = f'<{self.url}{path}?per_page=100&page={following}>; rel="next"'
        return 200, [self.shown(r) for r in rows], headers

    def created(self, key: tuple[str, int], body: Any, user: dict[str, Any]) -> Answer:
        if wrong := self.wrong(body):
            return wrong
        return 201, self.shown(self.write(key, body["body"], user)), {}

    def write(self, key: tuple[str, int], body: str, user: dict[str, Any], *, system: bool = False) -> dict[str, Any]:
        self.orders += re.findall(r"^/\w+", body, re.MULTILINE)
        row = {"id": self.new_id(), "body": body.rstrip(), "user": user, "system": system}
        self.place(*key).append(row)
        return row

    def wrong(self, body: Any) -> Answer | None:
        if not isinstance(body, dict) or not isinstance(body.get("body"), str) or not body["body"].strip():
            return 400, {"message": '400 Bad request - Note {:note=>["can\'t be blank"]}'}, {}
        if len(body["body"]) > GITLAB_LONGEST:
            return 400, {"message": {"note": [f"is too long (maximum is {GITLAB_LONGEST} characters)"]}}, {}
        return None

    def shown(self, row: dict[str, Any]) -> dict[str, Any]:
        author = {"id": row["user"]["id"], "username": row["user"]["login"]}
        return {"id": row["id"], "body": row["body"], "author": author, "system": row["system"]}


@contextmanager
def served(forge: Forge) -> Iterator[Forge]:
    """On a free port of loopback until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Quiet."""

        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length) if length else b""
            parts = urlsplit(self.path)
            path = parts.path.removeprefix(forge.prefix)
            if forge.prefix.endswith("/v3") and parts.path == forge.prefix.removesuffix("/v3") + "/graphql":
                path = "/graphql"
            token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
            asked = Asked(self.command, path, token, json.loads(raw) if raw else None)
            if forge.before:
                forge.before(asked)
            with forge.lock:
                forge.asked.append(asked)
                trouble = next(
                    (t for t in forge.troubles if t.times and t.method == asked.method and re.fullmatch(t.path, path)),
                    None,
                )
                if trouble:
                    trouble.times -= 1
                answer = None
                if trouble is None or trouble.happens:
                    answer = forge.answer(asked, parse_qs(parts.query))
            if trouble and trouble.held:
                trouble.held.wait(30)
            if trouble and trouble.dropped:
                self.close_connection = True
                return
            if trouble and trouble.raw is not None:
                self.put(trouble.status, trouble.raw, {"Content-Type": "text/html", **trouble.headers})
            elif trouble:
                self.put(trouble.status, json.dumps(trouble.body).encode(), trouble.headers)
            elif answer:
                status, body, headers = answer
                self.put(status, b"" if body is None else json.dumps(body).encode(), headers)

        def put(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_one  # noqa: N815 - the library's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    forge.url = f"http://127.0.0.1:{server.server_address[1]}{forge.prefix}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
