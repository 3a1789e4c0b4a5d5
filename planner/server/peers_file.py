"""Who is expected at a rendezvous: the members, their order, what proves each.  Reads one JSON file and reports all that is wrong with it.

    {"job": "train", "generation": 3, "members": [
      {"name": "r00", "tunnel_address": "10.251.0.1", "secret_sha256": "<64 hex>", "endpoint": "203.0.113.7:51820"}, …]}

The first member is rank 0.  `endpoint` is optional: where the address was reserved before the node, no other one is accepted.
`secret_sha256` is the SHA-256 of the node's one-time join secret and the key of its proofs: whoever reads the file can join as any
member.  `skyplan apply` writes the file without it; a secret that all nodes can read (`--secret-file`) then gives each its own.  A file that others may read is refused.  Nothing here serves or judges a request.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, Any, cast

from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

MAX_MEMBERS = 1024
MAX_BYTES = 1 << 20
SHORTEST_SECRET = 16
JOB = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FILE_FIELDS = {"job", "generation", "members"}
_MEMBER_FIELDS = {"name", "tunnel_address", "secret_sha256", "endpoint"}
_OTHERS = 0o077
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node that must come.  `key` proves it and is shown nowhere; `endpoint` is the only one it may give, None: its own choice."""

    name: str
    tunnel_address: str
    key: bytes = field(repr=False)
    endpoint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """All members of one generation of a job; the first is rank 0."""

    job: str
    generation: int
    members: tuple[Member, ...]

    def member(self, name: str) -> Member | None:
        """The member of that name."""
        return next((m for m in self.members if m.name == name), None)


def endpoint_problem(text: str) -> str | None:
    """Why the text is no IPv4:PORT that another cloud could send to; None where it is one."""
    host, _, port = text.rpartition(":")
    try:
        address = IPv4Address(host)
    except AddressValueError:
        return "it must be an IPv4 address and a port, such as 203.0.113.7:51820"
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port, re.ASCII) or int(port) > _LAST_PORT:
        return "its port must be between 1 and 65535"
    if address.is_unspecified or address.is_loopback or address.is_multicast or address.is_reserved:
        return f"no other node can send to {address}"
    return None


def derived(shared: bytes, job: str, generation: int, name: str) -> str:
    """One node's join secret out of a secret that all nodes of a job can read: another for every node and every launch.

    A node that reads the shared secret could derive its peers' too; they read the same store.  `modules/templates/tunnel.sh.j2` does the same.
    """
    return hmac.new(shared, f"{job}/{generation}/{name}".encode(), hashlib.sha256).hexdigest()


def with_secrets(document: dict[str, Any], shared: bytes) -> dict[str, Any]:
    """The document with `secret_sha256` on every member that has none."""
    rows, job, generation = (document.get(k) for k in ("members", "job", "generation"))
    if not isinstance(rows, list) or not isinstance(job, str) or type(generation) is not int:
        return document  # `expected` says what is wrong with it
    filled: list[Any] = []
    for row in cast("list[Any]", rows):
        if isinstance(row, dict) and "secret_sha256" not in row:
            fields = cast("dict[str, Any]", row)
            secret = derived(shared, job, generation, str(fields.get("name")))
            filled.append({**fields, "secret_sha256": hashlib.sha256(secret.encode()).hexdigest()})
        else:
            filled.append(row)
    return {**document, "members": filled}


def shared_secret(path: Path) -> bytes:
    """The shared join secret.  Raises InputError where it cannot be read, is short, or others may read it."""
    try:
        with path.open("rb") as opened:
            open_to_others = os.fstat(opened.fileno()).st_mode & _OTHERS
            secret = opened.read(MAX_BYTES).strip()
    except OSError as error:
        raise InputError([_problem(path, "SKY-SPEC-101", f"the join secret cannot be read: {error}")]) from error
    if open_to_others:
        raise InputError(
            [_problem(path, "SKY-SPEC-111", "others may read the file that proves the nodes", f"chmod 600 {path}")]
        )
    if len(secret) < SHORTEST_SECRET:
        text = f"the join secret is shorter than {SHORTEST_SECRET} bytes"
        raise InputError([_problem(path, "SKY-SPEC-105", text, "openssl rand -hex 32")])
    return secret


def read(path: Path, shared: bytes | None = None) -> Expected:
    """The expected set of a file; `shared` proves the members for whom it says nothing.  Raises InputError with every problem found."""
    try:
        with path.open("rb") as opened:
            open_to_others = os.fstat(opened.fileno()).st_mode & _OTHERS
            text = opened.read(MAX_BYTES + 1)
        document = json.loads(text) if len(text) <= MAX_BYTES else None
    except (OSError, ValueError) as error:
        raise InputError([_problem(path, "SKY-SPEC-101", f"the peers file cannot be read: {error}")]) from error
    if open_to_others:
        hint = f"chmod 600 {path}"
        raise InputError([_problem(path, "SKY-SPEC-111", "others may read the file that proves the nodes", hint)])
    if not isinstance(document, dict):
        raise InputError(
            [_problem(path, "SKY-SPEC-104", f"the peers file must be an object of at most {MAX_BYTES} bytes")]
        )
    found = cast("dict[str, Any]", document)
    return expected(with_secrets(found, shared) if shared else found, path)


def expected(document: dict[str, Any], path: Path) -> Expected:
    """The expected set of a parsed file.  Raises InputError."""
    wrong: list[str] = [f"`{name}` is no field of a peers file" for name in sorted(set(document) - _FILE_FIELDS)]
    job, generation, rows = document.get("job"), document.get("generation"), document.get("members")
    if not isinstance(job, str) or not JOB.fullmatch(job):
        wrong.append("`job` must be the job's name")
    if type(generation) is not int or generation < 1:
        wrong.append("`generation` must be an integer from 1")
    listed: list[Any] = cast("list[Any]", rows) if isinstance(rows, list) else []
    if not 2 <= len(listed) <= MAX_MEMBERS:  # noqa: PLR2004 - a tunnel has two ends
        wrong.append(f"`members` must be a list of 2 to {MAX_MEMBERS} nodes")
    members = [m for at, row in enumerate(listed) if (m := _member(at, row, wrong))]
    for what in ("name", "tunnel_address", "key", "endpoint"):
        values = [v for m in members if (v := getattr(m, what)) is not None]
        if len(set(values)) != len(values):
            shown = "secret_sha256" if what == "key" else what
            wrong.append(f"two members have one `{shown}`")
    if wrong:
        raise InputError([_problem(path, "SKY-SPEC-105", text) for text in wrong])
    assert isinstance(job, str)  # noqa: S101 - for the type checker
    assert isinstance(generation, int)  # noqa: S101 - for the type checker
    return Expected(job=job, generation=generation, members=tuple(members))


def _member(at: int, row: Any, wrong: list[str]) -> Member | None:
    if not isinstance(row, dict):
        wrong.append(f"members[{at}] must be an object")
        return None
    fields = cast("dict[str, Any]", row)
    found = len(wrong)
    wrong += [f"members[{at}]: `{name}` is no field" for name in sorted(set(fields) - _MEMBER_FIELDS)]
    name, address, secret = (str(fields.get(k, "")) for k in ("name", "tunnel_address", "secret_sha256"))
    endpoint = fields.get("endpoint")
    if not NAME.fullmatch(name):
        wrong.append(f"members[{at}]: `name` must be like r00")
    if not _address(address):
        wrong.append(f"members[{at}]: `tunnel_address` must be an IPv4 address, such as 10.251.0.1")
    if not _SHA256.fullmatch(secret):
        wrong.append(f"members[{at}]: `secret_sha256` must be 64 lower-case hex digits")
    if endpoint is not None and (problem := endpoint_problem(str(endpoint))):
        wrong.append(f"members[{at}]: `endpoint`: {problem}")
    if len(wrong) > found:
        return None
    return Member(name=name, tunnel_address=address, key=bytes.fromhex(secret), endpoint=endpoint)


def _address(text: str) -> bool:
    try:
        address = IPv4Address(text)
    except AddressValueError:
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_reserved)


def _problem(path: Path, code: str, summary: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code=code, summary=summary, location=Location(str(path)), hint=hint)
