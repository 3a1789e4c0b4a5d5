"""The tunnel from nothing to proven, in order: key, interface, peers learnt, peers set, verified, environment written.

Where the peers cannot be learnt, what this call made is taken down again.  Where verifying fails, the interface stays, so that the other nodes can finish
their own diagnosis and an operator can look; no environment file is written, so no job starts, and `down` removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import environment, files, meeting, probe, proof, wireguard
from .errors import CONFIG, SYSTEM, AgentError
from .key import key_file, public_key
from .rendezvous import Client

if TYPE_CHECKING:
    from collections.abc import Generator

    from .config import Peer, TunnelConfig


def up(config: TunnelConfig) -> dict[str, Any]:
    """Bring it up and prove it; what it came to.  Raises AgentError."""
    began = time.monotonic()
    secret = proof.read_key(config.meeting.secret_file) if config.meeting else b""
    files.folder(config.run_folder)
    with _alone(config):
        files.forget(Path(config.env_file))
        mine = public_key(config.run_folder, config.interface)
        fresh = not wireguard.exists(config.interface)
        try:
            wireguard.make(config)
            say(f"{config.interface} listens on UDP {config.listen_port}; MTU {config.mtu}")
            peers = learn(config, secret, mine)
            values = environment.variables(config, peers)
        except BaseException:
            if fresh:  # whatever came to be of it
                wireguard.remove(config.interface, config.run_folder)
            raise
        met = time.monotonic()
        wireguard.set_peers(config, peers)
        clamped = wireguard.clamp(config.interface, config.mss, config.run_folder)
        if clamped == "none":
            say("neither nft nor iptables works here: segments of containers are not clamped")
        probe.verify(config, peers)
        files.write(Path(config.env_file), environment.text(values))
    done = time.monotonic()
    say(f"tunnel to {', '.join(p.name for p in peers)} stands after {done - began:.1f} s")
    return {
        "interface": config.interface,
        "tunnel_address": config.tunnel_address,
        "public_key": mine,
        "mtu": config.mtu,
        "mss_clamp": clamped,
        "peers": [p.name for p in peers],
        "env_file": config.env_file,
        "environment": values,
        "seconds": {"until_met": round(met - began, 3), "until_proven": round(done - began, 3)},
    }


def learn(config: TunnelConfig, secret: bytes, mine: str) -> tuple[Peer, ...]:
    """The other nodes, from the rendezvous or from the operator's list."""
    if config.meeting:
        everybody = Client(config, config.meeting, secret, mine).meet()
    elif config.session:
        everybody = meeting.by_session(config, config.session, mine)
    else:
        everybody = config.peers or ()
        for peer in everybody:
            if peer.name == config.name and peer.public_key != mine:
                raise AgentError(CONFIG, f"`peers` has another key for {config.name} than this node's own, {mine}")
    return tuple(p for p in everybody if p.name != config.name)


def down(config: TunnelConfig, *, forget_key: bool) -> bool:
    """Take it down; False where nothing stood."""
    files.folder(config.run_folder)
    with _alone(config):
        files.forget(Path(config.env_file))
        found = wireguard.remove(config.interface, config.run_folder)
        if forget_key:
            files.forget(key_file(config.run_folder, config.interface))
    return found


def say(text: str) -> None:
    """A line for the log."""
    sys.stderr.write(f"skyplan-agent: {text}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def _alone(config: TunnelConfig) -> Generator[None, None, None]:
    """One agent works on an interface at a time."""
    lock = os.open(f"{config.run_folder}/{config.interface}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise AgentError(SYSTEM, f"another agent works on {config.interface}") from error
        yield
    finally:
        os.close(lock)
