"""The tunnel's configuration: one JSON file, all problems told at once.  Holds no secret: the join secret is a file of its own.

    {"job": "train", "generation": 3, "name": "r01", "tunnel_address": "10.251.0.2", "endpoint": "203.0.113.9:51820",
     "rendezvous": {"url": "http://198.51.100.4:8443", "secret_file": "/run/skyplan/join.secret"}}

Instead of `rendezvous`, `control_plane` names this node's agent.json, and the nodes meet there by the sessions of their own identities; or `peers` gives keys that an operator exchanged: [{name, public_key, endpoint, tunnel_address}, …].
Optional: interface (wg0), listen_port (the endpoint's), mtu, or underlay_mtu (1500) from which it follows, master (r00), run_folder
(/run/skyplan), env_file (RUN_FOLDER/INTERFACE.env), verify_seconds (60), rendezvous.timeout_seconds (1800), rendezvous.ca_file.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

from .errors import CONFIG, AgentError
from .fields import JOB, Fields, is_absolute, is_url

MARGIN_BYTES = 80
"""WireGuard adds 60 bytes over IPv4 and 80 over IPv6; the larger one, as everybody's 1420 of 1500 has it."""
SMALLEST_MTU = 576
LARGEST_MTU = 8921
"""An AWS interface's 9,001 less the margin."""
KEY_BYTES = 32
MAX_BYTES = 1 << 20
LAST_PORT = 65535
_INTERFACE = re.compile(r"[a-z][a-z0-9_-]{0,14}", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
_FIELDS = frozenset(
    {
        *(
            "job",
            "generation",
            "name",
            "tunnel_address",
            "endpoint",
            "rendezvous",
            "control_plane",
            "peers",
            "interface",
            "listen_port",
        ),
        *("mtu", "underlay_mtu", "master", "run_folder", "env_file", "verify_seconds"),
    }
)
_RENDEZVOUS_FIELDS = frozenset({"url", "secret_file", "ca_file", "timeout_seconds"})
_PEER_FIELDS = frozenset({"name", "public_key", "endpoint", "tunnel_address"})


@dataclass(frozen=True)
class Peer:
    """A node at the other end."""

    name: str
    public_key: str
    endpoint: str
    tunnel_address: str


@dataclass(frozen=True)
class Meeting:
    """Where the peers are learnt."""

    url: str
    secret_file: str
    ca_file: str | None
    timeout_seconds: float


@dataclass(frozen=True)
class SessionMeeting:
    """The peers are learnt from the control plane that `agent_config` names."""

    agent_config: str
    timeout_seconds: float


@dataclass(frozen=True)
class TunnelConfig:
    """One node's side of the tunnel.  Exactly one of `meeting`, `session` and `peers` is set."""

    job: str
    generation: int
    name: str
    tunnel_address: str
    endpoint: str
    interface: str
    listen_port: int
    mtu: int
    master: str
    run_folder: str
    env_file: str
    verify_seconds: float
    meeting: Meeting | None
    session: SessionMeeting | None
    peers: tuple[Peer, ...] | None

    @property
    def mss(self) -> int:
        """Largest TCP segment: 20 bytes of IPv4 and 20 of TCP are in the MTU."""
        return self.mtu - 40


def read(path: str) -> TunnelConfig:
    """The configuration of a file.  Raises AgentError."""
    try:
        with Path(path).open("rb") as opened:
            document = json.loads(opened.read(MAX_BYTES))
    except (OSError, ValueError) as error:
        raise AgentError(CONFIG, f"the configuration cannot be read: {error}") from error
    return parse(document)


def parse(document: Any) -> TunnelConfig:
    """The configuration of a document.  Raises AgentError with every problem."""
    if not isinstance(document, dict):
        raise AgentError(CONFIG, "the configuration must be a JSON object")
    fields = Fields(document, "")
    fields.only(_FIELDS)
    endpoint = fields.text("endpoint", is_endpoint, "an IPv4 address and port, such as 203.0.113.7:51820")
    interface = fields.text("interface", is_interface, "at most 15 of a-z, 0-9, - and _", "wg0")
    underlay = fields.whole("underlay_mtu", SMALLEST_MTU + MARGIN_BYTES, LARGEST_MTU + MARGIN_BYTES, 1500)
    folder = fields.text("run_folder", is_absolute, "an absolute path", "/run/skyplan")
    meeting = _meeting(fields)
    peers = _peers(fields)
    session = _session(fields)
    if [meeting, session, peers].count(None) != 2:  # noqa: PLR2004 - exactly one is given
        fields.wrong.append("give one of `rendezvous`, `control_plane` and `peers`")
    config = TunnelConfig(
        job=fields.text("job", JOB.fullmatch, "the job's name"),
        generation=fields.whole("generation", 1, 999_999_999, None),
        name=fields.text("name", _NAME.fullmatch, "this node's name, such as r00"),
        tunnel_address=fields.text("tunnel_address", is_address, "an IPv4 address, such as 10.251.0.1"),
        endpoint=endpoint,
        interface=interface,
        listen_port=fields.whole("listen_port", 1, LAST_PORT, int(endpoint.rpartition(":")[2] or 0)),
        mtu=fields.whole("mtu", SMALLEST_MTU, LARGEST_MTU, underlay - MARGIN_BYTES),
        master=fields.text("master", _NAME.fullmatch, "the name of rank 0's node, such as r00", "r00"),
        run_folder=folder,
        env_file=fields.text("env_file", is_absolute, "an absolute path", f"{folder}/{interface}.env"),
        verify_seconds=fields.seconds("verify_seconds", 60),
        meeting=meeting,
        session=session,
        peers=peers,
    )
    if fields.wrong:
        raise AgentError(CONFIG, "the configuration is wrong: " + "; ".join(fields.wrong))
    return config


def peer(document: Any, where: str) -> tuple[Peer | None, tuple[str, ...]]:
    """A peer of a document, and what is wrong with it."""
    if not isinstance(document, dict):
        return None, (where + " must be an object",)
    fields = Fields(document, where + ".")
    fields.only(_PEER_FIELDS)
    found = Peer(
        name=fields.text("name", _NAME.fullmatch, "a node's name, such as r00"),
        public_key=fields.text("public_key", is_key, "32 bytes in base64"),
        endpoint=fields.text("endpoint", is_endpoint, "an IPv4 address and port"),
        tunnel_address=fields.text("tunnel_address", is_address, "an IPv4 address"),
    )
    return (None if fields.wrong else found), tuple(fields.wrong)


def is_key(text: str) -> bool:
    """32 bytes in canonical base64."""
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    return len(raw) == KEY_BYTES and any(raw) and base64.b64encode(raw).decode() == text


def is_address(text: str) -> bool:
    """An IPv4 address of one node."""
    try:
        address = IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_reserved)


def is_endpoint(text: str) -> bool:
    """IPv4:PORT."""
    host, _, port = text.rpartition(":")
    return is_address(host) and bool(re.fullmatch(r"[1-9][0-9]{0,4}", port, re.ASCII)) and int(port) <= LAST_PORT


def is_interface(text: str) -> bool:
    """A name that Linux and every shell take."""
    return bool(_INTERFACE.fullmatch(text))


def _meeting(fields: Fields) -> Meeting | None:
    document = fields.document.get("rendezvous")
    if document is None:
        return None
    if not isinstance(document, dict):
        fields.wrong.append("`rendezvous` must be an object")
        return None
    inner = Fields(document, "rendezvous.")
    inner.only(_RENDEZVOUS_FIELDS)
    meeting = Meeting(
        url=inner.text("url", is_url, "an address such as http://198.51.100.4:8443"),
        secret_file=inner.text("secret_file", is_absolute, "an absolute path"),
        ca_file=inner.text("ca_file", is_absolute, "an absolute path", "") or None,
        timeout_seconds=inner.seconds("timeout_seconds", 1800),
    )
    fields.wrong.extend(inner.wrong)
    return meeting


def _session(fields: Fields) -> SessionMeeting | None:
    document = fields.document.get("control_plane")
    if document is None:
        return None
    if not isinstance(document, dict):
        fields.wrong.append("`control_plane` must be an object")
        return None
    inner = Fields(document, "control_plane.")
    inner.only(frozenset({"agent_config", "timeout_seconds"}))
    found = SessionMeeting(
        agent_config=inner.text("agent_config", is_absolute, "an absolute path"),
        timeout_seconds=inner.seconds("timeout_seconds", 1800),
    )
    fields.wrong.extend(inner.wrong)
    return found


def _peers(fields: Fields) -> tuple[Peer, ...] | None:
    document = fields.document.get("peers")
    if document is None:
        return None
    if not isinstance(document, list) or not document:
        fields.wrong.append("`peers` must be a list of nodes")
        return None
    found = [peer(row, f"peers[{at}]") for at, row in enumerate(cast("list[Any]", document))]
    for _, wrong in found:
        fields.wrong.extend(wrong)
    return tuple(one for one, _ in found if one)
