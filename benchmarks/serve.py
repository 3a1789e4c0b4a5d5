"""The control plane under load: reports a second with their latency, and 10,000 agents that report every 10 s.

    .venv/bin/python benchmarks/serve.py [--database URL] [rate|agents] ...

The server is one process of its own; the load is another, on plain sockets so that it costs little.  Both share this machine's cores.  Ends by checking
that each item that was answered is in the record, once.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = "bench"
NODES = 1000
HEAD = b"POST /v1/report HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"


def now() -> datetime:
    return datetime.now(UTC)


def prepare(url: str, agents: int) -> list[str]:
    """Jobs of 1,000 nodes each, all seats taken; the sessions' tokens."""
    from sqlalchemy import insert

    from planner.model.project import Backend
    from planner.model.record import Action, Node, Run, Stack, stamp
    from planner.state import tables
    from planner.state.record import Record
    from planner.state.runtime import Runtime

    record, runtime = Record.open(url, PROJECT), Runtime.open(url, PROJECT)
    at = now()
    run = Run(
        job="job",
        generation=0,
        plan_digest="sha256:1",
        rank=1,
        placement_id="p0123456789",
        offer_id="aws:prod/us-east-1/use1-az1/p5.48xlarge/spot",
        cloud="aws",
        target="prod",
        region="us-east-1",
        zone="use1-az1",
        pool="aws:prod/use1-az1/p5/spot",
        instance_type="p5.48xlarge",
        capacity="spot",
        nodes=1,
        gpus=8,
        vcpus=192,
        addresses=(),
        usd_per_hour=Decimal(60),
    )
    tokens: list[str] = []
    for first in range(0, agents, NODES):
        job, count = f"job-{first // NODES}", min(NODES, agents - first)
        lease = record.take_lease(job, "bench", at, timedelta(hours=1))
        writer = record.writer(lease)
        made = writer.issue(replace(run, job=job, nodes=count), at)
        stack = Stack(
            name=f"cmp-{job}",
            kind="compute",
            job=job,
            cloud="aws",
            target="prod",
            region="us-east-1",
            generation=1,
            backend=Backend(kind="local", settings=()),
            document={},
            variables={},
        )
        intent = writer.intend(stack, Action.APPLY, at)
        writer.launched(
            intent, made.generation, [Node(rank=k, instance_id=f"i-{k}", address="") for k in range(count)], at
        )
        fresh = [secrets.token_urlsafe(32) for _ in range(count)]
        seats = [
            {"project": PROJECT, "job": job, "generation": 1, "rank": k, "instance_id": f"i-{k}", "key_sha256": "k"}
            for k in range(count)
        ]
        ends = stamp(at + timedelta(hours=1))
        hashes = [hashlib.sha256(token.encode()).hexdigest() for token in fresh]
        sessions = [{**s, "token_sha256": h, "expires_at": ends} for s, h in zip(seats, hashes, strict=True)]
        # as `admit` writes them, all at once: thousands of joins are not what is measured
        with runtime._engine.connect().execution_options(writes=True) as connection, connection.begin():  # noqa: SLF001
            connection.execute(insert(tables.seat), [{**s, "at": stamp(at)} for s in seats])
            connection.execute(insert(tables.session), sessions)
        tokens += fresh
    runtime.close()
    record.close()
    return tokens


def serve(url: str) -> None:
    """The server's own process."""
    from planner.model.server import IdentityTrust, ServerSettings
    from planner.server.app import make_app
    from planner.server.log import Log
    from planner.server.run import listening
    from planner.server.run import serve as run
    from planner.server.services import Services
    from planner.state.record import Record
    from planner.state.runtime import Runtime

    settings = ServerSettings(
        url="http://127.0.0.1", listen=("127.0.0.1", 0), identity=IdentityTrust(audience="x"), rates=(("node", 1e6),)
    )
    services = Services(
        record=Record.open(url, PROJECT),
        runtime=Runtime.open(url, PROJECT),
        settings=settings,
        verifiers={},
        clock=now,
        project=PROJECT,
    )
    at = listening("127.0.0.1", 0)
    log = Log()
    run(make_app(services, log=log), at, log, started=lambda: print(at.getsockname()[1], flush=True))


class Agent:
    """One connection, kept."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token.encode()
        self.stream = str(uuid.uuid4())
        self.seq = self.through = 0
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def report(self) -> float:
        """One heartbeat and one step; seconds."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=4096)
        assert self.reader
        self.seq += 1
        at = now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        item = {"seq": self.seq, "kind": "progress", "at": at, "step": self.seq, "loss": 0.5, "rate": 2.0}
        body = json.dumps({"stream": self.stream, "items": [item]}).encode()
        began = time.perf_counter()
        self.writer.write(HEAD % (self.token, len(body)) + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        taken = time.perf_counter() - began
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError((head + answer).decode())
        self.through = json.loads(answer)["through"]
        return taken


async def rate(port: int, tokens: list[str], seconds: float) -> tuple[list[Agent], list[float]]:
    """Each agent reports as soon as it is answered."""
    agents = [Agent(port, token) for token in tokens]
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def go(agent: Agent) -> None:
        while time.perf_counter() < until:
            times.append(await agent.report())

    await asyncio.gather(*(agent.report() for agent in agents))
    await asyncio.gather(*(go(agent) for agent in agents))
    return agents, times


async def paced(port: int, tokens: list[str], seconds: float, every: float) -> tuple[list[Agent], list[float]]:
    """Each agent reports every `every` seconds, spread evenly."""
    agents = [Agent(port, token) for token in tokens]
    times: list[float] = []
    began = time.perf_counter()

    async def go(k: int, agent: Agent) -> None:
        at = began + every * k / len(agents)
        while at < began + seconds:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            times.append(await agent.report())
            at += every

    await asyncio.gather(*(go(k, agent) for k, agent in enumerate(agents)))
    return agents, times


def counted(url: str) -> int:
    from sqlalchemy import create_engine, text

    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        return connection.execute(text("SELECT count(*) FROM progress")).scalar_one()


def memory(pid: int) -> dict[str, float]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {k: int(v.split()[0]) / 1024 for k, _, v in (x.partition(":") for x in lines) if k in {"VmRSS", "VmHWM"}}


def cpu(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["rate", "agents", "serve"])
    parser.add_argument("--database")
    parser.add_argument("--agents", type=int)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--every", type=float, default=10)
    given = parser.parse_args()
    if given.what == "serve":
        serve(given.database)
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 40_000), hard))
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{folder}/record.sqlite"
        tokens = prepare(url, given.agents or (64 if given.what == "rate" else 10_000))
        command = [sys.executable, __file__, "serve", "--database", url]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as server:
            assert server.stdout
            try:
                port = int(server.stdout.readline())
                used, began = cpu(server.pid), time.perf_counter()
                if given.what == "rate":
                    agents, times = asyncio.run(rate(port, tokens, given.seconds))
                else:
                    agents, times = asyncio.run(paced(port, tokens, given.seconds, given.every))
                took = time.perf_counter() - began
                used = cpu(server.pid) - used
                held = memory(server.pid)
            finally:
                server.terminate()
                server.wait(30)
        times.sort()
        sent, answered, stored = sum(a.seq for a in agents), sum(a.through for a in agents), counted(url)
        figures = {
            "agents": len(agents),
            "reports": sent,
            "per_second": round(sent / took),
            "p50_ms": round(times[len(times) // 2] * 1000, 1),
            "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 1),
            "max_ms": round(times[-1] * 1000, 1),
            "server_cpu": round(used / took, 2),
            "cpu_us_per_report": round(used / sent * 1e6),
            "rss_mib": round(held["VmRSS"]),
            "peak_mib": round(held["VmHWM"]),
            "lost": answered - stored,
            "exit": server.returncode,
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
