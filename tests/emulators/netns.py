"""Clouds as network namespaces, with an internet between them that takes its time.

    cloud 0 ── veth 1500 ──┐                       ┌── veth 1500 ── cloud 1
    192.0.2.2/30           │       internet        │           192.0.2.6/30
                           └─ routes, and sends what goes from cloud to cloud through a TUN whose reader holds each packet back (no netem here)

The internet has 198.51.100.1 for a rendezvous service.  `Clouds` makes all of it under names that no other test has and takes it down again, with every process in
it, by process id.  Run as a program, this file is the delay line (`delay`) or the listener on a veth (`listen`), which must live in their namespace.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import json
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SERVICE = "198.51.100.1"
_IFF_TUN, _IFF_NO_PI, _TUNSETIFF = 0x0001, 0x1000, 0x400454CA


def missing() -> str | None:
    """Why there can be no clouds here; None where there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "wg"):
        if not shutil.which(program):
            return f"`{program}` is not installed"
    if not shutil.which("wireguard-go") and not Path("/sys/module/wireguard").exists():
        return "neither the kernel's WireGuard nor wireguard-go is here"
    if not Path("/dev/net/tun").exists() or not os.access("/etc", os.W_OK):
        return "there is no /dev/net/tun, or /etc/netns cannot be written"
    name = f"sk{secrets.token_hex(3)}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not allowed: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], check=False)
    return None


class Clouds:
    """`count` clouds and the internet, `delay_ms` each way between clouds."""

    def __init__(self, count: int, *, delay_ms: float = 0, mtu_into_last: int = 1500) -> None:
        self.tag = f"sk{secrets.token_hex(3)}"
        self.internet = f"{self.tag}net"
        self.names = [f"{self.tag}c{at}" for at in range(count)]
        self._processes: list[subprocess.Popen[Any]] = []
        try:
            self._make(delay_ms, mtu_into_last)
        except BaseException:
            self.close()
            raise

    def _make(self, delay_ms: float, mtu_into_last: int) -> None:
        for name in (self.internet, *self.names):
            ip("netns", "add", name)
            # `ip netns exec` lays this over /etc: nobody asks this machine's name server for the names of test addresses
            here = Path("/etc/netns") / name
            here.mkdir(parents=True)
            (here / "resolv.conf").write_text("nameserver 127.0.0.1\n")
            self.run(name, "ip", "link", "set", "lo", "up")
            self.set(
                name,
                "ipv4/ip_forward=1",
                "ipv4/conf/all/rp_filter=0",
                "ipv4/conf/default/rp_filter=0",
                "ipv6/conf/all/disable_ipv6=1",
                "ipv6/conf/default/disable_ipv6=1",
            )
        self.run(self.internet, "ip", "address", "add", f"{SERVICE}/32", "dev", "lo")
        for at, name in enumerate(self.names):
            outer, inner = f"{self.tag}o{at}", self.veth(at)
            ip("link", "add", outer, "netns", self.internet, "type", "veth", "peer", "name", inner, "netns", name)
            self.run(self.internet, "ip", "address", "add", f"192.0.2.{4 * at + 1}/30", "dev", outer)
            self.run(name, "ip", "address", "add", f"{self.address(at)}/30", "dev", inner)
            self.run(self.internet, "ip", "link", "set", outer, "mtu", "1500", "up")
            self.run(name, "ip", "link", "set", inner, "mtu", "1500", "up")
            self.run(name, "ip", "route", "add", "default", "via", f"192.0.2.{4 * at + 1}")
        if mtu_into_last != 1500:
            # of the route, not of the link: a veth drops what is larger than its own MTU, in silence, when it comes in
            last = f"192.0.2.{4 * len(self.names) - 4}/30"
            way = ("dev", f"{self.tag}o{len(self.names) - 1}", "mtu", "lock", str(mtu_into_last))
            self.run(self.internet, "ip", "route", "replace", last, *way)
        if delay_ms:
            self._delay(delay_ms)

    def _delay(self, delay_ms: float) -> None:
        tun = f"{self.tag}d"
        line = self.start(self.internet, sys.executable, __file__, "delay", tun, str(delay_ms), stdout=subprocess.PIPE)
        assert line.stdout
        assert line.stdout.readline()
        self.set(self.internet, f"ipv4/conf/{tun}/rp_filter=0")
        self.run(self.internet, "ip", "link", "set", tun, "up")
        self.run(self.internet, "ip", "route", "add", "default", "dev", tun, "table", "100")
        for at in range(len(self.names)):
            self.run(self.internet, "ip", "rule", "add", "iif", f"{self.tag}o{at}", "table", "100", "pref", "100")

    def veth(self, at: int) -> str:
        """The cloud's own interface to the internet."""
        return f"{self.tag}i{at}"

    def address(self, at: int) -> str:
        """The cloud's public address."""
        return f"192.0.2.{4 * at + 2}"

    def set(self, name: str, *settings: str) -> None:
        """Kernel settings, as paths below /proc/sys/net; one that this kernel lacks is left out."""
        rows = [setting.split("=") for setting in settings]
        script = "; ".join(f"[ ! -e /proc/sys/net/{key} ] || echo {value} > /proc/sys/net/{key}" for key, value in rows)
        self.run(name, "sh", "-c", script)

    def run(self, name: str, *command: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        """A command in a namespace."""
        told: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, **more}
        done = subprocess.run(["ip", "netns", "exec", name, *command], check=False, **told)
        assert not check or done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, name: str, *command: str, **more: Any) -> subprocess.Popen[Any]:
        """A process in a namespace; it ends with the clouds."""
        told: dict[str, Any] = {"stdin": subprocess.DEVNULL, "text": True, "start_new_session": True, **more}
        process = subprocess.Popen(["ip", "netns", "exec", name, *command], **told)
        self._processes.append(process)
        return process

    def listen(self, at: int, report: Path) -> Listener:
        """Note every packet on the cloud's veth."""
        return Listener(self, at, report)

    def close(self) -> None:
        """End what runs in the namespaces, by process id, then the namespaces."""
        for name in (*self.names, self.internet):
            found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
            for pid in found.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait(10)
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        for name in (*self.names, self.internet):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
            shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)
        for socket_of_killed in Path("/var/run/wireguard").glob(f"{self.tag}*.sock"):
            socket_of_killed.unlink(missing_ok=True)


class Listener:
    """The packets of one veth, from when it is made until `stop`."""

    def __init__(self, clouds: Clouds, at: int, report: Path) -> None:
        self._report = report
        command = (sys.executable, __file__, "listen", clouds.veth(at), str(report))
        self._process = clouds.start(clouds.names[at], *command, stdout=subprocess.PIPE)
        assert self._process.stdout
        assert self._process.stdout.readline()

    def stop(self) -> dict[str, Any]:
        """`kinds`: how many of each kind; `datagrams`: first bytes of the UDP payloads; `wire`: all bytes seen, as hex."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0
        found: dict[str, Any] = json.loads(self._report.read_text())
        found["wire"] = self._report.with_suffix(".wire").read_bytes()
        return found


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


def delay(name: str, milliseconds: float) -> None:
    """Give every packet that is routed into a TUN back after a while."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    waiting: list[tuple[float, int, bytes]] = []
    order = itertools.count()
    while True:
        until = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([tun], [], [], until)[0]:
            with contextlib.suppress(BlockingIOError, OSError):
                for _ in range(64):
                    packet = os.read(tun, 65535)
                    heapq.heappush(waiting, (time.monotonic() + milliseconds / 1000, next(order), packet))
        while waiting and waiting[0][0] <= time.monotonic():
            with contextlib.suppress(OSError):  # as the internet does: dropped
                os.write(tun, heapq.heappop(waiting)[2])


def listen(interface: str, report: Path) -> None:
    """Count the kinds of packets on an interface, both ways, until SIGTERM."""
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    link.bind((interface, 0))
    link.settimeout(0.1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    kinds: Counter[str] = Counter()
    datagrams: Counter[str] = Counter()
    with report.with_suffix(".wire").open("wb") as wire:
        while not ended:
            try:
                frame = link.recv(65535)
            except (TimeoutError, InterruptedError):
                continue
            wire.write(frame)
            kind, payload = kind_of(frame)
            kinds[kind] += 1
            if kind.startswith("udp"):
                datagrams[payload[:4].hex()] += 1
    report.write_text(json.dumps({"kinds": kinds, "datagrams": datagrams}))


def kind_of(frame: bytes) -> tuple[str, bytes]:
    """`arp`, `udp SOURCE>TARGET` (ports), `tcp …`, or what else it is; and what a datagram carries."""
    ethertype = int.from_bytes(frame[12:14], "big")
    if ethertype == 0x0806:
        return "arp", b""
    if ethertype != 0x0800:
        return f"ethertype {ethertype:04x}", b""
    head = (frame[14] & 15) * 4
    protocol, rest = frame[23], frame[14 + head :]
    if int.from_bytes(frame[20:22], "big") & 0x1FFF:
        return f"fragment of {protocol}", b""
    if protocol not in {6, 17}:
        return f"protocol {protocol}", b""
    source, target = struct.unpack("!HH", rest[:4])
    return f"{'tcp' if protocol == 6 else 'udp'} {source}>{target}", rest[8:]


if __name__ == "__main__":
    if sys.argv[1] == "delay":
        delay(sys.argv[2], float(sys.argv[3]))
    else:
        listen(sys.argv[2], Path(sys.argv[3]))
