"""The control plane under load: reports a second with their latency, and 10,000 agents that report every 10 s.

    .venv/bin/python benchmarks/serve.py rate|agents|bare [--database URL] [--agents N] [--seconds S] [--rounds N] [--beside]

The server is one process of its own; the load is another, on plain sockets so that it costs little.  Both share this machine's cores.  Ends by checking
that each item that was answered is in the record, once.  PostgreSQL is the caller's: a new database each run, with `fsync` and `synchronous_commit` on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROJECT = "bench"
NODES = 1000
TOGETHER = 64
"""Connections that send as soon as they are answered: with as many, rate and p99 are to be reached at once."""
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
    """One connection, kept; what it sends is made beforehand but for number and time, and of an answer it looks at no more than it must."""

    __slots__ = ("began", "body", "due", "got", "head", "port", "seq", "socket", "through")

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.body = (
            b'{"stream": "%s", "items": [{"seq": %%d, "kind": "progress", "at": "%%s", "step": %%d, "loss": 0.5, "rate": 2.0}]}'
            % (str(uuid.uuid4()).encode())
        )
        self.head = HEAD.replace(b"%s", token.encode())
        self.seq = self.through = 0
        self.began = self.due = 0.0
        self.got = b""
        self.socket: socket.socket | None = None

    def send(self, poll: select.epoll, by_file: dict[int, Agent]) -> None:
        """The next report."""
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.setblocking(False)
            by_file[self.socket.fileno()] = self
            poll.register(self.socket, select.EPOLLIN)
        self.seq += 1
        body = self.body % (self.seq, stamped(), self.seq)
        self.began = time.perf_counter()
        self.socket.send(self.head % len(body) + body)

    def answered(self) -> bool:
        """Whether the answer is whole."""
        assert self.socket
        self.got += self.socket.recv(4096)
        if not self.got.endswith(b'{"through":%d,"requests":[]}' % self.seq):
            if len(self.got) > 2048 or not self.got or not self.got.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(self.got.decode())
            return False
        self.got = b""
        self.through = self.seq
        return True


def stamped() -> bytes:
    """The time as agents write it."""
    return now().isoformat(timespec="microseconds").replace("+00:00", "Z").encode()


def load(agents: list[Agent], seconds: float, every: float) -> list[float]:
    """Each agent reports every `every` seconds, spread evenly; 0: as soon as it is answered.  One thread, no pipelining; each report's seconds."""
    times: list[float] = []
    by_file: dict[int, Agent] = {}
    began = time.perf_counter()
    until = began + seconds
    for k, agent in enumerate(agents):
        agent.due = began + every * k / len(agents)
    waiting = deque(agents)  # by `due`: all have the same pace
    open_ = 0
    with select.epoll() as poll:
        while waiting or open_:
            at = time.perf_counter()
            while waiting and waiting[0].due <= at:
                agent = waiting.popleft()
                agent.send(poll, by_file)
                open_ += 1
            timeout = max(0.0, waiting[0].due - at) if waiting else 30.0
            for file, _ in poll.poll(timeout, 1024):
                agent = by_file[file]
                if not agent.answered():
                    continue
                at = time.perf_counter()
                times.append(at - agent.began)
                open_ -= 1
                if every:
                    agent.due += every
                    if agent.due < until:
                        waiting.append(agent)
                elif at < until:
                    agent.send(poll, by_file)
                    open_ += 1
    return times


def bare() -> None:
    """What there is to compare with: the same body by one route of FastAPI with its models, which keeps nothing."""
    import uvicorn
    from fastapi import FastAPI, Request
    from pydantic import AwareDatetime, BaseModel

    class Item(BaseModel):
        seq: int
        kind: str
        at: AwareDatetime
        step: int
        loss: float | None = None
        rate: float | None = None

    class Report(BaseModel):
        stream: uuid.UUID
        items: list[Item]

    class Taken(BaseModel):
        through: int
        requests: list[str]

    app = FastAPI()

    def report(report: Report, request: Request) -> Taken:
        assert request.headers["authorization"]
        return Taken(through=report.items[-1].seq, requests=[])

    async def quick(report_: Report, request: Request) -> Taken:
        return report(report_, request)

    quick.__annotations__ = {"report_": Report, "request": Request, "return": Taken}
    app.post("/v1/report")(quick)
    at = socket.create_server(("127.0.0.1", 0), backlog=4096)
    at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(at.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([at])


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


def measured(command: list[str], tokens: list[str], seconds: float, every: float) -> tuple[list[Agent], dict[str, Any]]:
    """Start a server, load it, end it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as server:
        assert server.stdout
        try:
            port = int(server.stdout.readline())
            agents = [Agent(port, token) for token in tokens]
            used, own, began = cpu(server.pid), time.process_time(), time.perf_counter()
            times = sorted(load(agents, seconds, every))
            took = time.perf_counter() - began
            used, own = cpu(server.pid) - used, time.process_time() - own
            held = memory(server.pid)
        finally:
            server.terminate()
            server.wait(30)
    sent = sum(a.seq for a in agents)
    return agents, {
        "agents": len(agents),
        "reports": sent,
        "per_second": round(sent / took),
        "p50_ms": round(times[len(times) // 2] * 1000, 1),
        "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 1),
        "max_ms": round(times[-1] * 1000, 1),
        "server_cpu": round(used / took, 2),
        "cpu_us_per_report": round(used / sent * 1e6),
        "load_us_per_report": round(own / sent * 1e6),
        "rss_mib": round(held["VmRSS"]),
        "peak_mib": round(held["VmHWM"]),
        "exit": server.returncode,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["rate", "agents", "bare", "serve", "serve-bare"])
    parser.add_argument("--database")
    parser.add_argument("--agents", type=int)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--every", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--beside", action="store_true", help="load the bare route before each round")
    given = parser.parse_args()
    if given.what == "serve":
        serve(given.database)
        return
    if given.what == "serve-bare":
        bare()
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 40_000), hard))
    count, every = (10_000, given.every) if given.what == "agents" else (TOGETHER, 0.0)
    count = given.agents or count
    plain = [sys.executable, __file__, "serve-bare"]
    if given.what == "bare":
        print(json.dumps(measured(plain, ["x" * 43] * count, given.seconds, every)[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{folder}/record.sqlite"
        tokens = prepare(url, count)
        command = [sys.executable, __file__, "serve", "--database", url]
        for _ in range(given.rounds):
            beside = measured(plain, tokens, given.seconds, every)[1] if given.beside else None
            before = counted(url)
            agents, figures = measured(command, tokens, given.seconds, every)
            figures["lost"] = sum(a.through for a in agents) - (counted(url) - before)
            if beside:
                for name in ("per_second", "cpu_us_per_report"):
                    figures["bare_" + name] = beside[name]
                    figures["ratio_" + name] = round(figures[name] / beside[name], 2)
            print(json.dumps({**figures, "load": round(os.getloadavg()[0], 1)}), flush=True)


if __name__ == "__main__":
    main()
