"""Does the tunnel work, and at its full size?  Handshakes, then echoes with the don't-fragment bit through the tunnel to each peer's own kernel.

A packet that arrives is not enough: WireGuard's own packets may be cut in pieces on the way (its sockets allow it), which costs half the throughput or is
dropped by another path tomorrow.  So the path's MTU as the kernel knows it and the counts of fragments are looked at too.  Changes nothing
but when handshakes begin.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import struct
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import wireguard
from .config import SMALLEST_MTU
from .errors import SYSTEM, TOO_LARGE, UNAVAILABLE, AgentError

if TYPE_CHECKING:
    from .config import Peer, TunnelConfig

# <linux/in.h>; Python names them from 3.14 on, or not at all
_IP_MTU_DISCOVER, _IP_PMTUDISC_DO, _IP_MTU = 10, 2, 14
_SO_BINDTODEVICE = 25
_ECHO, _ECHO_REPLY = 8, 0
HEADER_BYTES = 28
"""IPv4 and ICMP."""
OVERHEAD_BYTES = 60
"""Outer IPv4 20, UDP 8, WireGuard 32."""
SMALL_BYTES = 84
DISCARD_PORT = 9
ECHO_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
"""WireGuard's own pause between two attempts at a handshake."""
ECHOES = 3


class Fragments(NamedTuple):
    """IPv4 fragments that this host has made and got, since boot."""

    made: int
    got: int


def verify(config: TunnelConfig, peers: tuple[Peer, ...]) -> None:
    """All peers shake hands, answer, and answer at full size.  Raises AgentError."""
    until = time.monotonic() + config.verify_seconds
    silent = _unheard(config, peers, until)
    if silent:
        names = ", ".join(f"{p.name} ({p.endpoint})" for p in silent)
        words = f"no handshake within {config.verify_seconds:g} s with {names}: is UDP {config.listen_port} open between the nodes?"
        raise AgentError(UNAVAILABLE, words)
    wireguard.keep_alive(config, peers)
    for peer in peers:
        while not echo(config, peer, SMALL_BYTES, 1):
            if time.monotonic() > until:
                raise AgentError(UNAVAILABLE, f"{peer.name} shakes hands but does not answer through the tunnel")
    for peer in peers:
        _full_size(config, peer)


def _unheard(config: TunnelConfig, peers: tuple[Peer, ...], until: float) -> list[Peer]:
    """Those that have not shaken hands when the time is over.

    Two handshakes begun at once on a long way undo each other, and WireGuard tries again after 5 s only: so of two nodes the one with the lower address begins,
    and begins anew after 1, 2, 4 s (the other may not have known it yet); the other begins only when nothing came for 5 s.
    """
    silent = list(peers)
    began = time.monotonic()
    first = {p.name: _begins(config, p) for p in peers}
    due = {p.name: began + (0 if first[p.name] else PATIENCE_SECONDS) for p in peers}
    tries = dict.fromkeys(due, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind((config.tunnel_address, 0))
        while True:
            seen = wireguard.handshakes(config.interface)
            silent = [p for p in silent if not seen.get(p.public_key)]
            now = time.monotonic()
            if not silent or now > until:
                return silent
            for peer in silent:
                if now < due[peer.name]:
                    continue
                if tries[peer.name] and first[peer.name]:
                    wireguard.start_over(config, peer)
                due[peer.name] = now + min(2.0 ** tries[peer.name], PATIENCE_SECONDS)
                tries[peer.name] += 1
                with contextlib.suppress(OSError):
                    link.sendto(b"\0", (peer.tunnel_address, DISCARD_PORT))
            time.sleep(0.05)


def _begins(config: TunnelConfig, peer: Peer) -> bool:
    """It is for this node to begin with that peer; both sides come to the same answer."""
    return IPv4Address(config.tunnel_address) < IPv4Address(peer.tunnel_address)


def _full_size(config: TunnelConfig, peer: Peer) -> None:
    if _passes(config, peer, config.mtu):
        return
    if not echo(config, peer, SMALL_BYTES, ECHOES):
        raise AgentError(UNAVAILABLE, f"{peer.name} stopped answering while the MTU was tried")
    fits = _largest(config, peer)
    what = f"at most {fits} would fit: set `mtu` to that" if fits else f"not even {SMALLEST_MTU} passes"
    words = f"MTU {config.mtu} is too large for the path to {peer.name} ({peer.endpoint})"
    raise AgentError(TOO_LARGE, f"{words}: a full packet is lost or cut in pieces; {what}")


def _largest(config: TunnelConfig, peer: Peer) -> int:
    """The largest size that passes, 0 where none does.  WireGuard pads to 16 bytes, so only such sizes are told apart."""
    low, high = SMALLEST_MTU // 16 - 1, (config.mtu - 1) // 16
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _passes(config, peer, middle * 16) else (low, middle - 1)
    return low * 16 if low * 16 >= SMALLEST_MTU else 0


def _passes(config: TunnelConfig, peer: Peer, size: int) -> bool:
    """A packet of that size arrives in one piece, and so does the answer."""
    if path_mtu(peer.endpoint) < size + OVERHEAD_BYTES:
        return False
    for _ in range(ECHOES):
        before = fragments()
        if not echo(config, peer, size, ECHOES):
            return False
        if path_mtu(peer.endpoint) < size + OVERHEAD_BYTES:
            return False
        if fragments() == before:
            return True
        time.sleep(random.uniform(0.05, 0.3))  # noqa: S311 - the pieces may have been somebody else's: look again
    return False


def echo(config: TunnelConfig, peer: Peer, size: int, attempts: int) -> bool:
    """The peer's kernel answered a packet of `size` bytes (IPv4 header included) that must not be cut."""
    try:
        link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    except PermissionError as error:
        raise AgentError(SYSTEM, "raw sockets are not allowed: run as root") from error
    with link:
        link.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
        link.setsockopt(socket.SOL_SOCKET, _SO_BINDTODEVICE, config.interface.encode() + b"\0")
        link.bind((config.tunnel_address, 0))
        token = os.urandom(16)
        for sequence in range(attempts):
            packet = echo_request(token, sequence, size)
            try:
                link.sendto(packet, (peer.tunnel_address, 0))
            except OSError:  # too large for the interface, or it went down
                return False
            if _answered(link, peer, packet[8:]):
                return True
    return False


def _answered(link: socket.socket, peer: Peer, payload: bytes) -> bool:
    until = time.monotonic() + ECHO_SECONDS
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([link], [], [], left)
        if not ready:
            return False
        packet, (source, _) = link.recvfrom(65535)
        inner = packet[(packet[0] & 15) * 4 :]
        if source == peer.tunnel_address and inner[:1] == bytes([_ECHO_REPLY]) and inner[8:] == payload:
            return True
    return False


def echo_request(token: bytes, sequence: int, size: int) -> bytes:
    """An ICMP echo request that makes an IPv4 packet of `size` bytes; the token tells its answer from others'."""
    payload = (token + struct.pack("!H", sequence)).ljust(size - HEADER_BYTES, b"\xa5")
    identity = int.from_bytes(token[:2], "big")
    head = struct.pack("!BBHHH", _ECHO, 0, 0, identity, sequence)
    return struct.pack("!BBHHH", _ECHO, 0, checksum(head + payload), identity, sequence) + payload


def checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def path_mtu(endpoint: str) -> int:
    """The MTU of the way to an endpoint as this kernel knows it: the interface's, or what a router complained of.  Sends nothing."""
    host, _, port = endpoint.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.connect((host, int(port)))
            return link.getsockopt(socket.IPPROTO_IP, _IP_MTU)
        except OSError as error:
            raise AgentError(UNAVAILABLE, f"there is no way to {endpoint}: {error}") from error


def fragments() -> Fragments:
    """From the kernel's counters of this network namespace."""
    text = Path("/proc/self/net/snmp").read_text("ascii")
    rows = [line.split() for line in text.splitlines() if line.startswith("Ip:")]
    counts = dict(zip(rows[0], rows[1]))  # noqa: B905 - Python 3.8
    return Fragments(made=int(counts["FragCreates"]), got=int(counts["ReasmReqds"]))
