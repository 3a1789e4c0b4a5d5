"""The WireGuard interface of this node: peers, routes, segment size; and all of it away again.

A kernel without WireGuard gets `wireguard-go`, in the foreground and with its process id kept, so that `down` ends that process and no other.
Never touches an interface that is not WireGuard's.  Decides neither who the peers are nor whether the tunnel works.
Run here with wireguard-go between namespaces; neither the kernel's WireGuard nor a live cloud was there to try.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import files
from .commands import attempt, run
from .errors import SYSTEM, AgentError
from .key import key_file

if TYPE_CHECKING:
    from .config import Peer, TunnelConfig

START_SECONDS = 10.0
END_SECONDS = 5.0
_LISTENS, _PATH_AT = "00010000", 7
"""Of a row of /proc/net/unix: the flag `__SO_ACCEPTCON` (<linux/net.h>) and the column of the path."""
KEEPALIVE_SECONDS = 25
"""Below the 30 s after which the shortest-lived of common NAT mappings for UDP is forgotten."""


def exists(interface: str) -> bool:
    """There is an interface of that name here."""
    try:
        return bool(socket.if_nametoindex(interface))
    except OSError:
        return False


def is_wireguard(interface: str) -> bool:
    """`wg` knows it."""
    return exists(interface) and attempt("wg", "show", interface, "listen-port").returncode == 0


def make(config: TunnelConfig) -> None:
    """The interface, listening.  Packets from anybody are dropped until peers are set.  Where this fails, the caller removes what there is."""
    name = config.interface
    if not exists(name):
        _add(name, config.run_folder)
    elif not is_wireguard(name):
        raise AgentError(SYSTEM, f"{name} exists and is not WireGuard's: choose another `interface`")
    private = key_file(config.run_folder, name)
    run("wg", "set", name, "private-key", str(private), "listen-port", str(config.listen_port))
    run("ip", "address", "replace", f"{config.tunnel_address}/32", "dev", name)
    run("ip", "link", "set", "dev", name, "mtu", str(config.mtu), "up")


def _add(name: str, run_folder: str) -> None:
    kernel = attempt("ip", "link", "add", "dev", name, "type", "wireguard")
    if kernel.returncode == 0:
        _remember(name, run_folder, made=True)
        return
    program = shutil.which("wireguard-go")
    if not program:
        why = kernel.stderr.strip()
        raise AgentError(SYSTEM, f"the kernel has no WireGuard ({why}) and `wireguard-go` is not installed")
    log = Path(run_folder) / f"{name}.log"
    target = files.create(log)
    try:
        process = subprocess.Popen(  # noqa: SIM115, RUF100 - it outlives us
            [program, "-f", name],
            env={**os.environ, "LOG_LEVEL": "error", "WG_PROCESS_FOREGROUND": "1"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
            start_new_session=True,
        )
    finally:
        os.close(target)
    _remember(name, run_folder, made=True, pid=process.pid, started=_started(process.pid))
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        if _answers(name) and is_wireguard(name):
            return
        time.sleep(0.02)
    words = log.read_text("utf-8", "replace")[-500:].strip()
    raise AgentError(SYSTEM, f"wireguard-go did not start: {words or 'it said nothing'}")


def _answers(name: str) -> bool:
    """wireguard-go listens on its control socket.

    `wg` may not be asked before: a socket that is bound and does not listen yet refuses, which `wg` takes for one left behind, and it removes it (so
    wireguard-go ended with `Failed to listen on uapi socket`, about once in forty starts).
    """
    sockets = (line.split() for line in Path("/proc/self/net/unix").read_text("utf-8", "replace").splitlines())
    return any(row[-1].endswith(f"/{name}.sock") and row[3] == _LISTENS for row in sockets if len(row) > _PATH_AT)


def set_peers(config: TunnelConfig, peers: tuple[Peer, ...]) -> None:
    """Exactly these peers, each heard from and sent to at its own tunnel address only, and a route to each.  Nobody is spoken to yet."""
    name = config.interface
    keys = {p.public_key for p in peers}
    for stale in set(run("wg", "show", name, "peers").split()) - keys:
        run("wg", "set", name, "peer", stale, "remove")
    for peer in peers:
        add(config, peer)
        run("ip", "route", "replace", f"{peer.tunnel_address}/32", "dev", name, "src", config.tunnel_address)


def add(config: TunnelConfig, peer: Peer) -> None:
    """A peer, or the same peer again."""
    options = ("endpoint", peer.endpoint, "allowed-ips", f"{peer.tunnel_address}/32")
    run("wg", "set", config.interface, "peer", peer.public_key, *options)


def start_over(config: TunnelConfig, peer: Peer) -> None:
    """Forget a handshake that was begun, so that the next packet begins another: WireGuard by itself waits 5 s."""
    run("wg", "set", config.interface, "peer", peer.public_key, "remove")
    add(config, peer)


def keep_alive(config: TunnelConfig, peers: tuple[Peer, ...]) -> None:
    """Hold the ways open from here on.  It begins a handshake where there was none."""
    for peer in peers:
        run("wg", "set", config.interface, "peer", peer.public_key, "persistent-keepalive", str(KEEPALIVE_SECONDS))


def handshakes(interface: str) -> dict[str, int]:
    """Public key -> when the last handshake was (seconds since 1970); 0 is never."""
    rows = (line.split("\t") for line in run("wg", "show", interface, "latest-handshakes").splitlines())
    return {row[0]: int(row[1]) for row in rows}


def clamp(interface: str, mss: int, run_folder: str) -> str:
    """Bound the segments of whoever sends through here (a container's own MTU is 1,500): `nft`, `iptables` or, where neither works, `none`."""
    unclamp(interface, run_folder)
    table = f"skyplan_{interface}".replace("-", "_")
    rules = (
        f"add table ip {table}; "
        f"add chain ip {table} post {{ type filter hook postrouting priority mangle; }}; "
        f'add rule ip {table} post oifname "{interface}" tcp flags & (syn|rst) == syn tcp option maxseg size set {mss}'
    )
    if shutil.which("nft") and attempt("nft", rules).returncode == 0:
        _remember(interface, run_folder, clamp=["nft", "delete", "table", "ip", table])
        return "nft"
    rule = ["-o", interface, "-p", "tcp", "--tcp-flags", "SYN,RST", "SYN", "-j", "TCPMSS", "--set-mss", str(mss)]
    tables = ["iptables", "-w", "5", "-t", "mangle"]
    if shutil.which("iptables") and attempt(*tables, "-A", "POSTROUTING", *rule).returncode == 0:
        _remember(interface, run_folder, clamp=[*tables, "-D", "POSTROUTING", *rule])
        return "iptables"
    return "none"


def unclamp(interface: str, run_folder: str) -> None:
    """Take the bound away again."""
    undo = files.recall(_state(interface, run_folder)).get("clamp")
    if isinstance(undo, list):
        attempt(*(str(word) for word in cast("list[Any]", undo)))
        _remember(interface, run_folder, clamp=None)


def remove(interface: str, run_folder: str) -> bool:
    """The interface, its process and its rules away; False where there was nothing.  The key stays: the service knows this node by it."""
    state = files.recall(_state(interface, run_folder))
    found = exists(interface)
    if found and not state.get("made") and not is_wireguard(interface):
        raise AgentError(SYSTEM, f"{interface} is not WireGuard's: left as it is")
    unclamp(interface, run_folder)
    if found:
        attempt("ip", "link", "delete", "dev", interface)
    _end(state)
    files.forget(_state(interface, run_folder))
    return found or bool(state)


def _end(state: dict[str, Any]) -> None:
    """wireguard-go ends with its interface; one that does not is asked to, by the id that we started."""
    pid, started = state.get("pid"), state.get("started")
    if not isinstance(pid, int) or not started:
        return
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + END_SECONDS
        with contextlib.suppress(OSError):
            if number and _started(pid) == started:
                os.kill(pid, number)
        while time.monotonic() < until:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # ours where `up` failed; systemd's otherwise
            if _started(pid) != started:
                return
            time.sleep(0.02)


def _started(pid: int) -> str:
    """When a process began, in ticks since boot: an id that is used again has another.  "" where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _state(interface: str, run_folder: str) -> Path:
    return Path(run_folder) / f"{interface}.state"


def _remember(interface: str, run_folder: str, **more: Any) -> None:
    path = _state(interface, run_folder)
    files.write(path, json.dumps({**files.recall(path), **more}))
