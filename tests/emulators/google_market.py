"""Compute Engine and the Cloud Billing catalogue on the loopback, as far as a market is read: machine and accelerator types, regions, SKUs, in pages.

Held to the discovery documents that google-api-python-client ships: a path or a query parameter that no method has is an error, and no answer leaves that has a
member which its schema has not, or one of another type.  Knows nothing of skyplan.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import googleapiclient

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
    "array": list,
    "object": dict,
}


class NotGoogles(AssertionError):
    """What Google's own description does not have."""


@cache
def document(name: str) -> dict[str, Any]:
    return json.loads((DOCUMENTS / f"{name}.json").read_text())


def methods(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from resource.get("methods", {}).values()
    for inner in resource.get("resources", {}).values():
        yield from methods(inner)


@cache
def paths(name: str) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    """Every GET of an API."""
    doc = document(name)
    found = []
    for method in methods(doc):
        if method["httpMethod"] == "GET":
            template = "/" + doc["servicePath"] + method.get("flatPath", method["path"])
            found.append((re.compile(re.sub(r"\{\w+\}", r"([^/]+)", template)), method))
    return found


def held(name: str, schema: dict[str, Any], value: Any, at: str = "answer") -> None:
    """Raises NotGoogles where the value is not of that schema."""
    if "$ref" in schema:
        schema = document(name)["schemas"][schema["$ref"]]
    kind = schema.get("type", "any")
    if kind != "any" and (not isinstance(value, TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))):
        raise NotGoogles(f"{at} is no {kind}: {value!r}")
    if schema.get("format") in {"int64", "uint64"} and not re.fullmatch(r"-?\d+", value):
        raise NotGoogles(f"{at} is no number in a text: {value!r}")
    if "enum" in schema and value not in schema["enum"]:
        raise NotGoogles(f"{at} is none of the words: {value!r}")
    if kind == "array":
        for n, one in enumerate(value):
            held(name, schema["items"], one, f"{at}[{n}]")
    if kind == "object":
        known = schema.get("properties", {})
        for key, one in value.items():
            if key not in known and "additionalProperties" not in schema:
                raise NotGoogles(f"{at} has no `{key}`")
            held(name, known.get(key) or schema["additionalProperties"], one, f"{at}.{key}")


@dataclass
class Market:
    """`machines` and `accelerators` by zone, `quotas` by region, `skus`; and how asking goes wrong.

    page     at most so many rows
    endless  every list has a next page, the same one
    loose    answers that are not held: a server that is broken on purpose
    """

    project: str = "acme-ml"
    machines: dict[str, list[Any]] = field(default_factory=dict)
    accelerators: dict[str, list[Any]] = field(default_factory=dict)
    quotas: dict[str, list[Any]] = field(default_factory=dict)
    skus: list[Any] = field(default_factory=list)
    page: int = 5000
    endless: bool = False
    turned: bool = False
    throttle: int = 0
    after: float | None = None
    down: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    unbilled: bool = False
    loose: bool = False
    calls: int = 0
    methods: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    base: str = ""


Answer = tuple[int, dict[str, Any], dict[str, str]]


def refusal(status: int, reason: str, message: str = "its words") -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}}


def rows(market: Market, key: str, found: list[Any], query: dict[str, str], size: str) -> dict[str, Any]:
    found = found[::-1] if market.turned else found
    start = int(query.get("pageToken") or 0)
    end = start + min(market.page, int(query.get(size) or market.page))
    token = "0" if market.endless else str(end) if end < len(found) else ""
    answer = {key: found[start:end]} if found[start:end] else {}
    return {**answer, **({"nextPageToken": token} if token else {})}


def answered(market: Market, path: str, query: dict[str, str]) -> Answer:
    market.calls += 1
    if market.throttle > 0:
        market.throttle -= 1
        headers = {} if market.after is None else {"Retry-After": f"{market.after:g}"}
        return 429, refusal(429, "rateLimitExceeded"), headers
    name = "cloudbilling.v1" if path.startswith("/v1/") else "compute.v1"
    method, parts = found(name, path, query)
    market.methods.add(method["id"])
    if name == "cloudbilling.v1":
        if market.unbilled:
            return 403, refusal(403, "forbidden", "Cloud Billing API has not been used in this project"), {}
        assert parts == ("6F81-5844-456A",), "another service's prices"
        body = {"nextPageToken": "", **rows(market, "skus", market.skus, query, "pageSize")}
    else:
        body = compute(market, method["id"], parts, query)
    if isinstance(body, int):
        return body, refusal(body, {403: "forbidden", 404: "notFound"}.get(body, "backendError")), {}
    if not market.loose:
        held(name, method["response"], body)
    return 200, body, {}


def found(name: str, path: str, query: dict[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    for pattern, method in paths(name):
        if match := pattern.fullmatch(path):
            unknown = set(query) - set(method["parameters"]) - set(document(name)["parameters"])
            if unknown:
                raise NotGoogles(f"{method['id']} has no parameter {unknown}")
            return method, match.groups()
    raise NotGoogles(f"no method has the path {path}")


def compute(market: Market, method: str, parts: tuple[str, ...], query: dict[str, str]) -> Any:
    project, place = parts[0], parts[1]
    assert project == market.project
    region = place if method == "compute.regions.get" else place.rpartition("-")[0]
    if {region, place} & market.down:
        return 503
    if region in market.denied:
        return 403
    root = f"{market.base}/compute/v1/projects/{project}"
    if method == "compute.regions.get":
        zones = [f"{root}/zones/{z}" for z in market.machines if z.rpartition("-")[0] == place]
        if not zones:
            return 404
        quotas = market.quotas.get(place, [])
        return {
            "kind": "compute#region",
            "id": "1000",
            "name": place,
            "status": "UP",
            "zones": zones[::-1] if market.turned else zones,
            "quotas": quotas[::-1] if market.turned else quotas,
        }
    kinds = {"compute.machineTypes.list": market.machines, "compute.acceleratorTypes.list": market.accelerators}
    if method not in kinds:
        raise NotGoogles(f"{method} is not made here")
    if place not in market.machines:
        return 404
    return {
        "id": f"projects/{project}/zones/{place}",
        **rows(market, "items", kinds[method].get(place, []), query, "maxResults"),
    }


@contextmanager
def serving(market: Market) -> Iterator[str]:
    """The address.  Raises, when it ends, what was asked or answered against Google's description."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
            try:
                status, body, headers = answered(market, parts.path, query)
            except AssertionError as error:
                market.wrong.append(f"{self.path}: {error}")
                status, body, headers = 400, refusal(400, "invalid", str(error)), {}
            content = json.dumps(body).encode()
            self.send_response(status)
            for key, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                **headers,
            }.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing: the calls are counted."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    market.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield market.base
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert not market.wrong, market.wrong
