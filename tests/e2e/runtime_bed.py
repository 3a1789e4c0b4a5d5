"""A job's life in real processes: control plane, agent, a training loop, a folder as the store; each may be killed at any moment, and started again.

The bed decides what is true: how the loss goes from step to step, which checkpoints in the store are whole and authentic, what the record holds of them.  It shares
no code with what it judges but the two functions that the protocol names (the mac and its message).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from planner.model.project import Backend
from planner.model.record import Action, Node, Run, Stack
from planner.model.runtime import MANIFEST, Cut, Refused, Seat, checkpoint_mac, checkpoint_message
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.beds import RUN

ROOT = Path(__file__).parents[2]
PROJECT, JOB = "acme", "train"
TRAIN = """
import hashlib, os, sys, time
import skyplan_job

node, total, every, pace = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
state, step = b"0", 0
found = skyplan_job.resume_from()
if found:
    state, step = (found / "state").read_bytes(), skyplan_job.resume_step()
with open(node + "/curve", "a") as curve:
    curve.write(f"# resumed at {step}\\n")
    while step < total:
        step += 1
        state = hashlib.sha256(state + str(step).encode()).digest()
        loss = int.from_bytes(state[:4], "big") / 2**32
        curve.write(f"{step} {loss!r}\\n")
        curve.flush()
        skyplan_job.report(step, loss=loss)
        if step % every == 0 or step == total or skyplan_job.should_checkpoint():
            with skyplan_job.checkpoint(step, framework="bed") as folder:
                (folder / "state").write_bytes(state)
        time.sleep(pace)
"""

TORCH = """
import sys, time
import torch
import skyplan_job

node, total, every, pace = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
torch.manual_seed(7)
torch.set_num_threads(1)
inputs = torch.randn(256, 8)
wanted = inputs @ torch.randn(8, 1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
step, found = 0, skyplan_job.resume_from()
if found:
    saved = skyplan_job.load(found / "state.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = skyplan_job.resume_step()
with open(node + "/curve", "a") as curve:
    curve.write(f"# resumed at {step}\\n")
    while step < total:
        step += 1
        batch = slice(step * 16 % 256, step * 16 % 256 + 16)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[batch]), wanted[batch])
        loss.backward()
        optimizer.step()
        curve.write(f"{step} {loss.item()!r}\\n")
        curve.flush()
        skyplan_job.report(step, loss=loss.item())
        if step % every == 0 or step == total or skyplan_job.should_checkpoint():
            with skyplan_job.checkpoint(step, framework="torch") as folder:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")
        time.sleep(pace)
"""


def expected(total: int) -> dict[int, float]:
    """The loss at every step, whoever computes it."""
    state, out = b"0", {}
    for step in range(1, total + 1):
        state = hashlib.sha256(state + str(step).encode()).digest()
        out[step] = int.from_bytes(state[:4], "big") / 2**32
    return out


class Front:
    """A port that stays while servers behind it come and go; it can lose replies that the server has given."""

    def __init__(self) -> None:
        self.upstream: int | None = None
        self.joined = True
        self._open: set[socket.socket] = set()
        self.lose = 0
        self.lost = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """Nobody behind it is reached from here on."""
        self.joined, self.upstream = False, None
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream or 1), 5)
            except OSError:
                client.close()
                continue
            self._open |= {client, server}
            for a, b, back in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._copy, args=(a, b, back), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, back: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if back and self.lose > 0:
                    self.lose -= 1
                    self.lost += 1
                    break
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)
        source.close()


class Found(NamedTuple):
    """A checkpoint in the store that is whole and authentic."""

    generation: int
    step: int
    uri: str
    written: float


class Bed:
    """One job.  `server_code`, `agent_code`: what starts them; a test may plant a bug there."""

    def __init__(self, folder: Path, archive: Path, *, total: int = 120, every: int = 5, pace: float = 0.1) -> None:
        self.folder, self.archive = folder, archive
        self.total, self.every, self.pace = total, every, pace
        self.python = sys.executable
        self.store = folder / "store"
        self.store.mkdir(parents=True)
        (folder / "train.py").write_text(TRAIN)
        self.url = f"sqlite:///{folder / 'record.sqlite'}"
        self.record = Record.open(self.url, PROJECT)
        self.runtime = Runtime.open(self.url, PROJECT)
        self.fronts: dict[int, Front] = {}
        self.port: int | None = None
        self.before: dict[int, int] = {}
        self.rotten: dict[Found, float] = {}
        settings = "url: http://127.0.0.1:8443\nlisten: 127.0.0.1:0\nidentity: {one_time: true}\n"
        (folder / "server.yaml").write_text(settings)
        (folder / "skyplan.yaml").write_text(f"project: {PROJECT}\n")
        self.server: subprocess.Popen[bytes] | None = None
        self.agents: dict[int, subprocess.Popen[bytes]] = {}
        self.server_code = "from planner.cli.entry import run; run()"
        self.agent_code = (
            "import sys; sys.path.insert(0, sys.argv.pop(1)); from agent.__main__ import main; sys.exit(main())"
        )
        self.generation = 0
        self._lease = self.record.take_lease(JOB, "bed", datetime.now(UTC), timedelta(hours=1))
        self._writer = self.record.writer(self._lease)

    def close(self) -> None:
        for generation in list(self.agents):
            self.kill_node(generation)
        self.kill_server()
        for front in self.fronts.values():
            front.close()
        self.runtime.close()
        self.record.close()

    # the control plane

    def start_server(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.server = subprocess.Popen(
                [sys.executable, "-c", self.server_code, "serve", "--settings", "server.yaml"],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "SKYPLAN_DATABASE_URL": self.url},
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.server.stdout
        said = self.server.stdout.readline()
        assert said, (self.folder / "server.log").read_text()[-2000:]
        self.port = int(json.loads(said)["url"].rpartition(":")[2])
        for front in self.fronts.values():
            front.upstream = self.port if front.joined else None

    def kill_server(self) -> None:
        if self.server is not None:
            self.server.kill()
            self.server.communicate()
        self.server = self.port = None
        for front in self.fronts.values():
            front.upstream = None

    # nodes

    def node(self, generation: int) -> Path:
        return self.folder / f"node{generation}"

    def new_generation(self) -> int:
        """As `apply` does it: issued, launched, its machine known; and a machine set up by hand, which gets a one-time token."""
        now = datetime.now(UTC)
        run = self._writer.issue(a_run(), now)
        stack = a_stack(run.generation)
        intent = self._writer.intend(stack, Action.APPLY, now)
        self._writer.launched(intent, run.generation, [Node(rank=0, instance_id="", address="10.0.0.4")], now)
        self.generation = run.generation
        front = self.fronts[run.generation] = Front()
        front.upstream = self.port
        node = self.node(run.generation)
        node.mkdir()
        token = hashlib.sha256(f"{self.folder} {run.generation}".encode()).hexdigest()
        (node / "token").write_text(token)
        (node / "token").chmod(0o600)
        seat = Seat(job=JOB, generation=run.generation, rank=0)
        hashed = hashlib.sha256(token.encode()).hexdigest()
        self.runtime.put_one_time(seat, token_sha256=hashed, expires_at=now + timedelta(hours=1), at=now)
        config = {
            "project": PROJECT,
            "job": JOB,
            "generation": run.generation,
            "rank": 0,
            "nodes": 1,
            "instance_id": f"machine-{run.generation}",
            "control_plane": {"url": f"http://127.0.0.1:{front.port}"},
            "token_file": str(node / "token"),
            "checkpoint": {"uri": f"{self.store.as_uri()}/", "folder": str(node / "checkpoints")},
            "state_folder": str(node / "state"),
            "run_folder": str(node / "run"),
            "heartbeat_seconds": 1,
            "wait_seconds": 60,
            "log": False,
            "interruption": {"grace_seconds": 2},
        }
        (node / "agent.json").write_text(json.dumps(config))
        return run.generation

    def start_agent(self, generation: int) -> None:
        """The node boots, or its agent is started again by systemd."""
        node = self.node(generation)
        if before := self.agents.get(generation):
            before.wait()
        job = [
            self.python,
            str(self.folder / "train.py"),
            str(node),
            str(self.total),
            str(self.every),
            str(self.pace),
        ]
        with (node / "agent.log").open("ab") as log:
            self.agents[generation] = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    self.agent_code,
                    str(self.archive),
                    "run",
                    "--config",
                    str(node / "agent.json"),
                    "--",
                    *job,
                ],
                cwd=node,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_agent(self, generation: int) -> None:
        """SIGKILL to the agent alone: its job goes on."""
        agent = self.agents[generation]
        agent.kill()
        agent.wait()

    def kill_node(self, generation: int) -> None:
        """The power goes: every process of that node at once; its disk stays, for a node that comes back."""
        for _ in range(3):  # what was started while we looked
            for pid in self.processes(generation):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if agent := self.agents.get(generation):
            agent.kill()
            agent.wait()

    def processes(self, generation: int) -> list[int]:
        mark = os.fsencode(str(self.node(generation))) + b"/"
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if any(word.startswith(mark) or word + b"/" == mark for word in words):
                        found.append(int(entry.name))
        return found

    # what is true

    def wait(self, what: Callable[[], Any], seconds: float = 60) -> Any:
        until = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < until, self.story()
            time.sleep(0.02)
        return found

    def step(self) -> int:
        """The last step that any node of the newest generation has computed."""
        return max((step for step, _ in self.curve(self.generation)), default=0)

    def curve(self, generation: int) -> list[tuple[int, float]]:
        path = self.node(generation) / "curve"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [(int(a), float(b)) for a, b in (line.split() for line in lines if not line.startswith("#"))]

    def resumed(self, generation: int) -> list[int]:
        path = self.node(generation) / "curve"
        return (
            [int(line.split()[-1]) for line in path.read_text().splitlines() if line.startswith("#")]
            if path.exists()
            else []
        )

    def valid(self) -> list[Found]:
        """Checkpoints in the store that are whole and authentic, by this file's own judgement."""
        found: list[Found] = []
        for path in self.store.glob(f"g*/step-*/{MANIFEST}"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, Refused):
                document = json.loads(path.read_bytes())
                mac = document.pop("mac")
                text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
                named = {name: document[name] for name in ("project", "job", "generation", "step", "uri")}
                message = checkpoint_message(**named, digest=hashlib.sha256(text).hexdigest())
                key = self.runtime.manifest_key(JOB, document["generation"])
                sound = mac == checkpoint_mac(key, message) and document["uri"] == path.parent.as_uri() + "/"
                for file in document["files"]:
                    content = (path.parent / file["path"]).read_bytes()
                    sound &= hashlib.sha256(content).hexdigest() == file["sha256"]
                if sound:
                    found.append(Found(document["generation"], document["step"], document["uri"], path.stat().st_mtime))
        return found

    def cut(self, generation: int) -> Cut | None:
        return self.runtime.cut(JOB, generation)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.folder / "record.sqlite", timeout=30)) as database:
            return database.execute(query).fetchall()

    def story(self) -> str:
        """What happened, for whoever reads a failure."""
        logs = [self.folder / "server.log", *sorted(self.folder.glob("node*/agent.log"))]
        return "\n".join(
            f"== {log.name} of {log.parent.name}\n{log.read_text()[-3000:]}" for log in logs if log.exists()
        )


def a_run() -> Run:
    return replace(RUN, job=JOB, nodes=1, gpus=8, vcpus=192, usd_per_hour=Decimal("30.6172"))


def a_stack(generation: int) -> Stack:
    return Stack(
        name=f"cmp-{JOB}-g{generation}",
        kind="compute",
        job=JOB,
        cloud="aws",
        target="prod",
        region="us-east-1",
        generation=generation,
        backend=Backend(),
        document={},
        variables={},
    )
