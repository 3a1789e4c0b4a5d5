"""A tunnel between clouds for real: namespaces, the rendezvous service, the packed agent, WireGuard, and a collective through it (R11).

`SKYPLAN_TEST_TORCHRUN` names a torchrun for the test with PyTorch; without it, the test interpreter's own is used where it has one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.emulators import netns
from tests.emulators.netns import SERVICE, Clouds

ROOT = Path(__file__).parents[2]
TORCHRUN = os.environ.get("SKYPLAN_TEST_TORCHRUN", "")
MARKER = b"plain-words-that-nobody-on-the-way-may-read"
RING = """
import socket, sys, time
rank, world, addresses = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
marker = sys.argv[4].encode()
mine = [float(rank + 1) * i for i in range(20000)]
listener = socket.create_server((addresses[rank], 29555))
until = time.monotonic() + 30
while True:
    try:
        right = socket.create_connection((addresses[(rank + 1) % world], 29555), 5, (addresses[rank], 0))
        break
    except OSError:
        if time.monotonic() > until:
            raise
        time.sleep(0.05)
left, _ = listener.accept()
incoming = left.makefile("rb")
moving = mine
for _ in range(world - 1):
    right.sendall(marker + b" " + " ".join(map(repr, moving)).encode() + b"\\n")
    words = incoming.readline().split()
    assert words[0] == marker
    moving = [float(word) for word in words[1:]]
    mine = [a + b for a, b in zip(mine, moving)]
want = [sum(r + 1 for r in range(world)) * float(i) for i in range(20000)]
assert mine == want
print("all-reduce right")
"""
TORCH = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mine = torch.arange(100_000, dtype=torch.float32) * (rank + 1)
dist.all_reduce(mine)
want = torch.arange(100_000, dtype=torch.float32) * sum(range(1, world + 1))
assert torch.equal(mine, want), (mine, want)
dist.barrier()
dist.destroy_process_group()
print("all-reduce right")
"""


@pytest.fixture(scope="session", autouse=True)
def _possible() -> None:
    if reason := netns.missing():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("agent") / "agent.pyz"
    subprocess.run([sys.executable, "-m", "modules.agent.pack", str(target)], cwd=ROOT, check=True, capture_output=True)
    return target


class Job:
    """A job over clouds: their namespaces, a rendezvous service on the internet, an agent's configuration in each."""

    def __init__(self, folder: Path, archive: Path, count: int = 2, **internet: Any) -> None:
        self.folder, self.archive, self.count = folder, archive, count
        self.net = secrets.randbelow(200) + 1
        self.secrets = [secrets.token_hex(16) for _ in range(count)]
        self.clouds = Clouds(count, **internet)
        self.url = ""

    def names(self) -> list[str]:
        return [f"r{at:02d}" for at in range(self.count)]

    def tunnel_address(self, at: int) -> str:
        return f"10.251.{self.net}.{at + 1}"

    def interface(self, at: int) -> str:
        return f"{self.clouds.tag}w{at}"

    def serve(self, timeout: float = 60) -> None:
        members = [
            {
                "name": name,
                "tunnel_address": self.tunnel_address(at),
                "secret_sha256": hashlib.sha256(self.secrets[at].encode()).hexdigest(),
                "endpoint": f"{self.clouds.address(at)}:51820",
            }
            for at, name in enumerate(self.names())
        ]
        peers = self.folder / "peers.json"
        peers.write_text(json.dumps({"job": "train", "generation": 1, "members": members}))
        peers.chmod(0o600)
        program = "from planner.cli.entry import run; run()"
        with (self.folder / "service.log").open("w") as log:
            self.service = self.clouds.start(
                self.clouds.internet,
                *(sys.executable, "-c", program, "rendezvous", "--peers", str(peers)),
                *("--listen", f"{SERVICE}:0", "--timeout", str(timeout)),
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        assert self.service.stdout
        self.url = json.loads(self.service.stdout.readline())["url"]

    def config(self, at: int, **change: Any) -> Path:
        home = self.folder / f"node{at}"
        home.mkdir(exist_ok=True)
        secret = home / "join.secret"
        secret.write_text(change.pop("secret", self.secrets[at]))
        secret.chmod(0o600)
        document = {
            "job": "train",
            "generation": 1,
            "name": f"r{at:02d}",
            "tunnel_address": self.tunnel_address(at),
            "endpoint": f"{self.clouds.address(at)}:51820",
            "interface": self.interface(at),
            "run_folder": str(home / "run"),
            "rendezvous": {"url": self.url, "secret_file": str(secret), "timeout_seconds": 60},
            **change,
        }
        path = home / "tunnel.json"
        path.write_text(json.dumps({k: v for k, v in document.items() if v is not None}))
        return path

    def agent(self, at: int, *arguments: str) -> subprocess.Popen[str]:
        command = (sys.executable, str(self.archive), "tunnel", *arguments)
        return self.clouds.start(
            self.clouds.names[at], *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
        )

    def up(self, nodes: list[int] | None = None, **change: Any) -> list[tuple[int, str, str]]:
        """Exit code, output and log of each node's `tunnel up`, all at once."""
        chosen = range(self.count) if nodes is None else nodes
        agents = [self.agent(at, "up", "--config", str(self.config(at, **change))) for at in chosen]
        done = [agent.communicate(timeout=120) for agent in agents]
        return [(agent.returncode, out, err) for agent, (out, err) in zip(agents, done, strict=True)]

    def stand(self, **change: Any) -> list[dict[str, Any]]:
        """What each node says of a tunnel that stands."""
        results = self.up(**change)
        assert [code for code, _, _ in results] == [0] * self.count, results
        return [json.loads(out) for _, out, _ in results]

    def environment(self, at: int) -> dict[str, str]:
        lines = (self.folder / f"node{at}" / "run" / f"{self.interface(at)}.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def ring(self) -> None:
        """An all-reduce by nothing but sockets."""
        addresses = ",".join(self.tunnel_address(at) for at in range(self.count))
        command = (sys.executable, "-c", RING)
        ranks = [
            self.clouds.start(
                *(self.clouds.names[at], *command, str(at), str(self.count), addresses, MARKER.decode()),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for at in range(self.count)
        ]
        for rank in ranks:
            out, err = rank.communicate(timeout=90)
            assert (rank.returncode, out) == (0, "all-reduce right\n"), err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


class Jobs:
    """Makes jobs, and takes them down."""

    def __init__(self, folder: Path, archive: Path) -> None:
        self._folder, self._archive = folder, archive
        self._made: list[Job] = []

    def __call__(self, count: int = 2, **internet: Any) -> Job:
        job = Job(self._folder, self._archive, count, **internet)
        self._made.append(job)
        return job

    def close(self) -> None:
        for job in self._made:
            job.clouds.close()


@pytest.fixture
def jobs(tmp_path: Path, archive: Path) -> Iterator[Jobs]:
    made = Jobs(tmp_path, archive)
    yield made
    made.close()


def only_wireguard(seen: dict[str, Any], url: str) -> None:
    """Nothing on the veth but WireGuard, the rendezvous and ARP; and nothing that can be read."""
    port = url.rpartition(":")[2]
    allowed = re.compile(rf"arp|udp 51820>51820|tcp {port}>\d+|tcp \d+>{port}")
    assert [kind for kind in seen["kinds"] if not allowed.fullmatch(kind)] == []
    assert seen["kinds"].get("udp 51820>51820", 0) > 10
    # message types of WireGuard: initiation, response, cookie, data
    assert set(seen["datagrams"]) <= {"01000000", "02000000", "03000000", "04000000"}
    assert MARKER not in seen["wire"]


def peers_of(job: Job, at: int) -> set[tuple[str, str]]:
    """Allowed addresses and keepalive of each peer, as WireGuard has them."""
    dump = job.clouds.run(job.clouds.names[at], "wg", "show", job.interface(at), "dump").stdout
    return {(row[3], row[7]) for row in (line.split("\t") for line in dump.splitlines()[1:])}


@pytest.mark.parametrize(("count", "underlay", "mtu"), [(2, 1500, 1420), (3, 1460, 1380)])
def test_clouds_meet_and_reduce_through_the_tunnel(
    jobs: Jobs, tmp_path: Path, count: int, underlay: int, mtu: int
) -> None:
    job = jobs(count, delay_ms=15)
    job.serve()
    listeners = [job.clouds.listen(at, tmp_path / f"seen{at}.json") for at in range(count)]
    stands = job.stand(underlay_mtu=underlay)
    for at, stand in enumerate(stands):
        assert stand["mtu"] == mtu
        assert stand["peers"] == [n for n in job.names() if n != f"r{at:02d}"]
        assert job.environment(at) == stand["environment"]
        assert stand["environment"]["MASTER_ADDR"] == job.tunnel_address(0)
        assert stand["environment"]["GLOO_SOCKET_IFNAME"] == job.interface(at)
        assert stand["environment"]["NCCL_SOCKET_IFNAME"] == "=" + job.interface(at)
        assert peers_of(job, at) == {(f"{job.tunnel_address(o)}/32", "25") for o in range(count) if o != at}
        assert f" mtu {mtu} " in job.clouds.run(job.clouds.names[at], "ip", "link", "show", job.interface(at)).stdout
        if stand["mss_clamp"] == "nft":
            assert (
                f"maxseg size set {mtu - 40}" in job.clouds.run(job.clouds.names[at], "nft", "list", "ruleset").stdout
            )
    job.ring()
    for listener in listeners:
        only_wireguard(listener.stop(), job.url)
    began = time.monotonic()
    job.clouds.run(job.clouds.names[0], "ping", "-c", "1", "-W", "5", job.tunnel_address(1))
    assert time.monotonic() - began > 0.03, "the internet takes 15 ms each way"


def test_the_private_key_never_leaves_and_up_and_down_can_be_repeated(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs()
    job.serve()
    first = job.stand()
    private = tmp_path / "node0" / "run" / f"{job.interface(0)}.key"
    assert private.stat().st_mode & 0o777 == 0o600
    again = job.stand()
    assert [s["public_key"] for s in again] == [s["public_key"] for s in first], "the same node, to the service too"
    job.ring()
    for _ in range(2):
        for at in range(2):
            done = job.agent(at, "down", "--config", str(job.config(at)))
            out, err = done.communicate(timeout=60)
            assert (done.returncode, err) == (0, "")
        assert json.loads(out)["removed"] is (_ == 0)
        assert job.interface(0) not in job.clouds.run(job.clouds.names[0], "ip", "link").stdout
        assert not list((tmp_path / "node0" / "run").glob("*.env"))
    assert job.clouds.run(job.clouds.names[0], "nft", "list", "ruleset", check=False).stdout == ""
    left = subprocess.run(["ip", "netns", "pids", job.clouds.names[0]], capture_output=True, text=True, check=True)
    assert left.stdout == "", "wireguard-go has ended"
    secret = private.read_text().strip()
    log = (tmp_path / "service.log").read_text() + json.dumps(first) + json.dumps(again)
    assert secret not in log
    assert not any(s in log for s in job.secrets)


def test_a_killed_wireguard_is_brought_up_again(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs()
    job.serve()
    job.stand()
    state = tmp_path / "node0" / "run" / f"{job.interface(0)}.state"
    pid = json.loads(state.read_text()).get("pid")
    if pid is None:
        pytest.skip("the kernel's WireGuard is no process")
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while job.interface(0) in job.clouds.run(job.clouds.names[0], "ip", "link").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    [(code, _, err)] = job.up([0])
    assert code == 0, err
    job.ring()


def test_an_interface_of_somebody_elses_is_left_alone(jobs: Jobs) -> None:
    job = jobs()
    job.serve()
    veth = job.clouds.veth(0)
    [(code, _, err)] = job.up([0], interface=veth)
    assert code == 71
    assert f"{veth} exists and is not WireGuard's" in err
    done = job.agent(0, "down", "--config", str(job.config(0, interface=veth)))
    assert "left as it is" in done.communicate(timeout=60)[1]
    assert veth in job.clouds.run(job.clouds.names[0], "ip", "link").stdout


def test_without_a_program_to_make_the_interface_it_says_so(jobs: Jobs) -> None:
    job = jobs()
    job.serve()
    command = ("env", "PATH=/nowhere", sys.executable, str(job.archive), "tunnel", "up", "--config", str(job.config(0)))
    done = job.clouds.run(job.clouds.names[0], *command, check=False)
    assert done.returncode == 71
    assert "`wg` is not installed" in done.stderr


def test_keys_exchanged_by_an_operator_need_no_service(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs()
    keys = []
    for at in range(2):
        run_folder = str(tmp_path / f"node{at}" / "run")
        (tmp_path / f"node{at}").mkdir()
        made = job.agent(at, "key", "--interface", job.interface(at), "--run-folder", run_folder)
        keys.append(made.communicate(timeout=60)[0].strip())
    peers = [
        {
            "name": f"r{at:02d}",
            "public_key": keys[at],
            "endpoint": f"{job.clouds.address(at)}:51820",
            "tunnel_address": job.tunnel_address(at),
        }
        for at in range(2)
    ]
    job.stand(rendezvous=None, peers=peers)
    job.ring()


def test_a_node_that_never_comes_is_named(jobs: Jobs) -> None:
    job = jobs(3)
    job.serve(timeout=3)
    for code, out, err in job.up([0, 1]):
        assert (code, out) == (70, "")
        assert "missing: r02" in err
    assert job.interface(0) not in job.clouds.run(job.clouds.names[0], "ip", "link").stdout


def test_a_nodes_own_deadline_names_the_missing_too(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs()
    job.serve(timeout=600)
    meeting = {"url": job.url, "secret_file": str(tmp_path / "node0" / "join.secret"), "timeout_seconds": 1.5}
    [(code, _, err)] = job.up([0], rendezvous=meeting)
    assert code == 70
    assert "not all nodes came within 1.5 s; missing: r01" in err


def test_a_service_that_is_not_there_is_said(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs()
    meeting = {
        "url": f"http://{SERVICE}:9",
        "secret_file": str(tmp_path / "node0" / "join.secret"),
        "timeout_seconds": 1,
    }
    [(code, _, err)] = job.up([0], rendezvous=meeting)
    assert code == 69
    assert "did not answer" in err


def test_a_wrong_proof_is_refused(jobs: Jobs) -> None:
    job = jobs()
    job.serve()
    [(code, _, err)] = job.up([1], secret="not-the-secret-of-this-node")
    assert code == 77
    assert "HTTP 403: the proof does not match r01's join secret" in err
    assert "not-the-secret" not in err
    assert all(code == 0 for code, _, _ in job.up()), "and the right one is let in after it"


def test_a_replayed_join_wins_nothing(jobs: Jobs, tmp_path: Path) -> None:
    """Somebody on the way records r00's join and sends it again: as it is, and with an endpoint of his own."""
    job = jobs()
    job.serve()
    with_listener = job.clouds.listen(0, tmp_path / "seen.json")
    job.stand()
    wire = with_listener.stop()["wire"]
    body = json.loads(re.search(rb'\{"public_key[^}]*\}', wire)[0])
    send = (
        "import http.client, sys\n"
        f"link = http.client.HTTPConnection({SERVICE!r}, {int(job.url.rpartition(':')[2])})\n"
        "link.request('POST', '/v1/rendezvous/train/1/join', sys.argv[1])\n"
        "answer = link.getresponse()\nprint(answer.status, answer.read().decode())"
    )

    def sent(document: dict[str, Any]) -> str:
        return job.clouds.run(job.clouds.names[1], sys.executable, "-c", send, json.dumps(document)).stdout

    assert sent(body).startswith("200 "), "the same request is the same join"
    assert "public_key" not in sent(body), "and tells nothing"
    assert sent({**body, "endpoint": "192.0.2.6:51820"}).startswith("403 ")
    assert sent({**body, "public_key": "A" * 42 + "E="}).startswith("403 ")
    job.ring()


def test_another_key_for_a_node_that_joined_is_refused(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs()
    job.serve()
    job.stand()
    for path in (tmp_path / "node0" / "run").glob("*.key"):
        path.unlink()
    [(code, _, err)] = job.up([0])
    assert code == 77
    assert "HTTP 409: r00 has joined with another key" in err


def test_an_mtu_above_the_interface_is_refused_and_what_fits_is_said(jobs: Jobs) -> None:
    job = jobs()
    job.serve()
    for at, (code, out, err) in enumerate(job.up(mtu=1480)):
        assert (code, out) == (76, "")
        peer = f"r{1 - at:02d} ({job.clouds.address(1 - at)}:51820)"
        assert f"MTU 1480 is too large for the path to {peer}" in err
        assert "at most 1440 would fit" in err


def test_a_path_that_swallows_large_packets_is_found(jobs: Jobs) -> None:
    """A black hole: a router on the way drops what is over 1,460 bytes and says nothing."""
    job = jobs()
    rules = "add table ip hole; add chain ip hole f { type filter hook forward priority 0; }; add rule ip hole f meta length > 1460 drop"
    job.clouds.run(job.clouds.internet, "nft", rules)
    job.serve()
    for code, _, err in job.up():
        assert code == 76
        assert "MTU 1420 is too large" in err
        assert "at most 1392 would fit" in err
    assert all(code == 0 for code, _, _ in job.up(underlay_mtu=1460))


def test_a_narrow_path_that_cuts_packets_is_found(jobs: Jobs) -> None:
    """A router with a 1,460-byte link ahead asks for smaller packets: the kernel would cut WireGuard's in two, and everything would seem to work."""
    job = jobs(mtu_into_last=1460)
    job.serve()
    results = job.up()
    assert {code for code, _, _ in results} <= {76}
    assert "at most 1392 would fit" in results[0][2]
    assert all(code == 0 for code, _, _ in job.up(underlay_mtu=1460))


def test_pieces_that_a_router_makes_are_found(jobs: Jobs) -> None:
    """The kernel's WireGuard lets routers cut its packets (here: path discovery off, so that wireguard-go does too): all arrives, in pieces.

    They are made on the way to the last node only, so it alone can see them; one node that ends is enough to stop the job.
    """
    job = jobs(mtu_into_last=1460)
    for name in job.clouds.names:
        job.clouds.set(name, "ipv4/ip_no_pmtu_disc=1")
    job.serve()
    code, _, err = job.up()[1]
    assert code == 76
    assert "MTU 1420 is too large for the path to r00" in err
    assert "cut in pieces; at most 1392 would fit" in err


def test_an_agent_that_is_stopped_takes_its_interface_along(jobs: Jobs) -> None:
    job = jobs()
    job.serve()
    agent = job.agent(0, "up", "--config", str(job.config(0)))
    assert agent.stderr
    assert "listens" in agent.stderr.readline()
    for pid in subprocess.run(
        ["ip", "netns", "pids", job.clouds.names[0]], capture_output=True, text=True, check=True
    ).stdout.split():
        if b"agent.pyz" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGTERM)
    agent.communicate(timeout=30)
    assert agent.returncode == 130
    assert job.interface(0) not in job.clouds.run(job.clouds.names[0], "ip", "link").stdout


def torchrun() -> list[str]:
    if TORCHRUN:
        return [TORCHRUN]
    return [sys.executable, "-m", "torch.distributed.run"] if find_spec("torch") else []


@pytest.mark.skipif(not torchrun(), reason="no torch here: set SKYPLAN_TEST_TORCHRUN to a torchrun")
@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.full)])
def test_torchrun_with_gloo_reduces_through_the_tunnel(jobs: Jobs, tmp_path: Path, count: int) -> None:
    job = jobs(count, delay_ms=5)
    job.serve()
    job.stand()
    listener = job.clouds.listen(1, tmp_path / "seen.json")
    script = tmp_path / "reduce.py"
    script.write_text(TORCH)
    ranks = []
    for at in range(count):
        environment = {**os.environ, **job.environment(at), "OMP_NUM_THREADS": "1"}
        host = environment["MASTER_ADDR"] == environment["SKYPLAN_TUNNEL_ADDRESS"]
        ranks.append(
            job.clouds.start(
                *(job.clouds.names[at], *torchrun(), f"--nnodes={count}", "--nproc-per-node=1", "--rdzv-backend=c10d"),
                *(f"--rdzv-endpoint={environment['MASTER_ADDR']}:29400", "--rdzv-id=train-g1"),
                f"--rdzv-conf=read_timeout=120,join_timeout=120,is_host={int(host)}",
                *(f"--local-addr={environment['SKYPLAN_TUNNEL_ADDRESS']}", str(script)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=tmp_path,
            )
        )
    for rank in ranks:
        out, err = rank.communicate(timeout=240)
        assert rank.returncode == 0, err
        assert "all-reduce right" in out
    only_wireguard(listener.stop(), job.url)
