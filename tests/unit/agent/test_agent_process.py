"""The agent as a process, against a control plane that is away, loses replies, refuses and asks; killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.agent.errors import FENCED
from tests.unit.agent.plane import Plane, refusal, until

ROOT = Path(__file__).parents[3]
COUNT = """
import os, sys, time
for step in range(int(sys.argv[1])):
    with open(os.environ["SKYPLAN_PROGRESS"], "a") as f:
        f.write(f"step={step} loss={1 / (step + 1)}\\n")
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def plane(socket_enabled: None) -> Iterator[Plane]:
    made = Plane()
    yield made
    made.close()


class Node:
    """A machine: its disk, its agent, and what is to be ended with it."""

    def __init__(self, folder: Path, plane: Plane | None) -> None:
        self.folder = folder
        self.token = folder / "token"
        self.token.write_text("one-time-secret\n")
        self.token.chmod(0o600)
        self.started: list[subprocess.Popen[str]] = []
        self.document: dict[str, Any] = {
            "project": "acme",
            "job": "train",
            "generation": 3,
            "state_folder": str(folder / "state"),
            "run_folder": str(folder / "run"),
            "token_file": str(self.token),
            "heartbeat_seconds": 1,
            "report_seconds": 0.5,
            "wait_seconds": 20,
            "interruption": {"grace_seconds": 2},
            "end": ["touch", str(folder / "ended")],
        }
        if plane is not None:
            self.document["control_plane"] = {"url": plane.url}

    def start(self, *command: str, **more: Any) -> subprocess.Popen[str]:
        config = self.folder / "agent.json"
        config.write_text(json.dumps({**self.document, **more}))
        agent = subprocess.Popen(
            [sys.executable, "-m", "modules.agent", "run", "--config", str(config), "--", *command],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(agent)
        return agent

    @property
    def base(self) -> Path:
        return self.folder / "state" / "train-g3-r00"

    def job_pid(self, attempt: int = 1) -> int:
        return int(
            until(lambda: self.exists(f"jobs/{attempt}/pid") and (self.base / f"jobs/{attempt}/pid").read_text())
        )

    def exists(self, name: str) -> bool:
        return (self.base / name).exists()

    def control(self) -> dict[str, Any]:
        found = until(lambda: list((self.folder / "run" / "job").glob("*.control.json")))
        return json.loads(found[0].read_text())

    @property
    def ended(self) -> bool:
        return (self.folder / "ended").exists()


@pytest.fixture
def node(tmp_path: Path, plane: Plane) -> Iterator[Node]:
    made = Node(tmp_path, plane)
    yield made
    for agent in made.started:
        agent.kill()
        agent.communicate()
    for path in made.base.glob("jobs/*/pid"):
        if path.read_text().strip():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(path.read_text()), signal.SIGKILL)


def done(agent: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str]:
    _, told = agent.communicate(timeout=seconds)
    return agent.returncode, told


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def count(steps: int, pause: float = 0.02) -> list[str]:
    return [sys.executable, "-c", COUNT, str(steps), str(pause)]


def test_a_job_is_run_reported_and_its_node_ended(node: Node, plane: Plane) -> None:
    code, told = done(node.start("sh", "-c", "echo hello; echo 'step=7 loss=0.5 lr=1e-3' >> $SKYPLAN_PROGRESS; exit 3"))
    assert code == 3, told
    (progress,) = plane.kinds("progress")
    assert {k: progress[k] for k in ("step", "loss", "metrics")} == {"step": 7, "loss": 0.5, "metrics": {"lr": 0.001}}
    assert [i["text"] for i in plane.kinds("log")] == ["hello\n"]
    assert [i["code"] for i in plane.kinds("exit")] == [3]
    assert plane.order[-1]["kind"] == "exit"
    assert plane.kinds("heartbeat")
    assert node.ended
    (join,) = plane.paths("/v1/join")
    assert {k: join[k] for k in ("job", "generation", "rank")} == {"job": "train", "generation": 3, "rank": 0}
    assert join["proof"] == {"scheme": "one-time", "value": "one-time-secret"}
    assert len(join["key"]) == 64


def test_a_signal_ends_as_its_number_says(node: Node, plane: Plane) -> None:
    code, _ = done(node.start("sh", "-c", "kill -USR1 $$; sleep 20"))
    assert code == 128 + signal.SIGUSR1
    assert [(i["code"], i["signal"]) for i in plane.kinds("exit")] == [(138, 10)]


def test_the_job_waits_for_the_seat(node: Node, plane: Plane) -> None:
    """An older generation must not run beside a newer one while nobody can tell it so."""
    plane.fault = lambda path, _: refusal(425, "early") if path == "/v1/join" else None
    agent = node.start("true")
    until(lambda: len(plane.paths("/v1/join")) >= 2)
    assert not node.exists("jobs/1")
    plane.fault = lambda *_: None
    assert done(agent)[0] == 0


def test_a_node_of_another_project_does_not_begin(node: Node, plane: Plane) -> None:
    """Its checkpoints would be signed under a name that the record does not know, and count for nobody."""
    plane.project = "other"
    code, told = done(node.start("true"))
    assert code == FENCED
    assert "serves the project `other`, this node is set up for `acme`" in told
    assert not node.exists("jobs/1")


def test_a_control_plane_that_goes_away_harms_nothing(node: Node, plane: Plane) -> None:
    agent = node.start(*count(150))
    until(lambda: len(plane.steps()) > 10)
    plane.fault = lambda *_: "away"
    until(lambda: node.exists("jobs/1/exit"))
    assert agent.poll() is None
    plane.fault = lambda *_: None
    code, told = done(agent)
    assert code == 0
    assert plane.steps() == list(range(150))
    assert told.count("SKY-RUN-510") == 1, told


def test_lost_replies_double_nothing(node: Node, plane: Plane) -> None:
    seen = 0

    def every_other(path: str, _body: dict[str, Any]) -> str | None:
        nonlocal seen
        seen += path == "/v1/report"
        return "lost" if path == "/v1/report" and seen % 2 else None

    plane.fault = every_other
    assert done(node.start(*count(100)))[0] == 0
    assert plane.steps() == list(range(100))
    assert len(plane.kinds("exit")) == 1


def test_a_session_that_is_forgotten_is_taken_anew(node: Node, plane: Plane) -> None:
    agent = node.start(*count(100))
    until(lambda: len(plane.steps()) > 5)
    with plane.lock:
        plane.good.clear()
    assert done(agent)[0] == 0
    assert len(plane.paths("/v1/join")) == 2
    assert plane.steps() == list(range(100))


@pytest.mark.parametrize("word", ["fenced", "ended"])
def test_a_fenced_run_is_stopped_and_its_node_ended(node: Node, plane: Plane, word: str) -> None:
    agent = node.start("sh", "-c", "trap '' TERM; sleep 60 & echo step=1 >> $SKYPLAN_PROGRESS; wait; sleep 60")
    until(plane.steps)
    pid = node.job_pid()
    plane.fault = lambda path, _: refusal(409 if word == "fenced" else 410, word)
    code, told = done(agent)
    assert code == 137, told
    assert word in told
    assert not alive(pid)
    assert node.ended
    assert plane.kinds("exit") == []


def test_a_fenced_seat_never_starts_its_job(node: Node, plane: Plane) -> None:
    plane.fault = lambda *_: refusal(409, "fenced")
    code, told = done(node.start("touch", str(node.folder / "ran")))
    assert code == 79, told
    assert not (node.folder / "ran").exists()
    assert node.ended
    again, _ = done(node.start("touch", str(node.folder / "ran")))
    assert again == 79
    assert not (node.folder / "ran").exists()


def test_retry_after_is_honoured(node: Node, plane: Plane) -> None:
    at: list[float] = []

    def busy(path: str, _body: dict[str, Any]) -> Any:
        if path == "/v1/join":
            at.append(time.monotonic())
            return refusal(503, "", **{"Retry-After": "3"}) if len(at) == 1 else None
        return None

    plane.fault = busy
    assert done(node.start("true"))[0] == 0
    assert at[1] - at[0] >= 3


def test_requests_reach_the_job_once(node: Node, plane: Plane) -> None:
    script = """
import json, os, signal, sys, time
got = []
signal.signal(signal.SIGUSR2, lambda *_: got.append(1))
with open(os.environ["SKYPLAN_PROGRESS"], "a") as f:
    f.write(json.dumps({"skyplan": "signals", "pid": os.getpid(), "signal": int(signal.SIGUSR2)}) + "\\n")
    f.write("step=1\\n")
while not got:
    time.sleep(0.01)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # a Python that ends has no handlers any more
print(open(os.environ["SKYPLAN_CONTROL"]).read(), flush=True)
while not json.load(open(os.environ["SKYPLAN_CONTROL"]))["stop"]:
    time.sleep(0.01)
"""
    agent = node.start(sys.executable, "-c", script)
    until(plane.steps)
    plane.requests = [{"id": 4, "word": "checkpoint", "reason": "please", "deadline": ""}]
    asked = json.loads(until(lambda: plane.kinds("log"))[0]["text"])
    assert asked == {"checkpoint": 1, "reason": "please", "deadline": None, "stop": False}
    until(lambda: len(plane.kinds("heartbeat")) > 3)
    assert node.control()["checkpoint"] == 1, "the same request came with every reply"
    plane.requests.append({"id": 5, "word": "stop", "reason": "enough", "deadline": "2099-01-01T00:00:00Z"})
    assert done(agent)[0] == 0
    assert [i["text"] for i in plane.kinds("event") if i["word"] == "asked"] == ["checkpoint: please", "stop: enough"]


def test_a_request_to_stop_ends_a_job_that_does_not_listen(node: Node, plane: Plane) -> None:
    agent = node.start("sleep", "60")
    until(lambda: plane.kinds("event"))
    plane.requests = [{"id": 1, "word": "stop", "reason": "enough", "deadline": "2020-01-01T00:00:00Z"}]
    assert done(agent)[0] == 143
    assert [i["code"] for i in plane.kinds("exit")] == [143]


def test_the_hard_end_of_the_control_plane_holds(node: Node, plane: Plane) -> None:
    plane.stop_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
    began = time.monotonic()
    code, told = done(node.start("sh", "-c", "trap '' TERM; while :; do sleep 1; done"))
    assert code == 137
    assert 3 < time.monotonic() - began < 30
    assert "the hard end" in told
    assert node.ended


def test_the_hard_end_of_the_configuration_holds_without_a_seat(node: Node, plane: Plane) -> None:
    """Nobody answers for as long as the node may live: it ends all the same."""
    plane.fault = lambda *_: "away"
    code, _ = done(node.start("touch", str(node.folder / "ran"), stop_after_hours=3 / 3600, wait_seconds=1))
    assert code == 75
    assert not (node.folder / "ran").exists()
    assert node.ended


@pytest.mark.parametrize("seed", range(3))
def test_agents_are_killed_and_the_next_one_takes_over(node: Node, plane: Plane, seed: int) -> None:
    """SIGKILL again and again, with lost replies: one job, every step once, one exit."""
    lost: set[int] = set()

    def now_and_then(path: str, body: dict[str, Any]) -> str | None:
        first = body["items"][0]["seq"] if path == "/v1/report" else 0
        if not first or (first + seed) % 3 or first in lost:
            return None
        lost.add(first)
        return "lost"

    plane.fault = now_and_then
    agent = node.start(*count(200))
    pid = node.job_pid()
    for n in range(4):
        until(lambda n=n: len(plane.steps()) > 20 * n)
        agent.send_signal(signal.SIGKILL)
        agent.communicate()
        assert alive(pid)
        agent = node.start(*count(200))
    code, told = done(agent)
    assert code == 0, told
    assert "taken over" in told
    assert plane.steps() == list(range(200))
    assert len(plane.kinds("exit")) == 1
    assert [i["text"] for i in plane.kinds("event") if i["word"] == "started"] == ["attempt 1"]
    assert node.ended


def test_a_job_that_ended_while_no_agent_was_there(node: Node, plane: Plane) -> None:
    agent = node.start(
        "sh", "-c", "echo step=1 >> $SKYPLAN_PROGRESS; sleep 1; echo step=2 >> $SKYPLAN_PROGRESS; exit 5"
    )
    until(plane.steps)
    agent.kill()
    agent.communicate()
    until(lambda: node.exists("jobs/1/exit"))
    plane.fault = lambda path, _: "away" if path != "/v1/report" else None
    again = node.start("false")
    time.sleep(0.5)
    plane.fault = lambda *_: None
    assert done(again)[0] == 5
    assert plane.steps() == [1, 2]
    assert [i["code"] for i in plane.kinds("exit")] == [5]


def test_alone_a_job_that_was_killed_with_its_agent_is_gone_on_with_at_once(node: Node) -> None:
    """There is nobody to be told of it, and the same command is what a person tries."""
    del node.document["control_plane"], node.document["token_file"]
    agent = node.start("sleep", "60")
    pid = node.job_pid()
    agent.kill()
    agent.communicate()
    os.killpg(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    assert done(node.start("true"))[0] == 0
    assert node.exists("jobs/2/exit")


def test_a_job_that_was_lost_is_said_to_be(node: Node, plane: Plane) -> None:
    agent = node.start("sleep", "60")
    pid = node.job_pid()
    until(lambda: plane.kinds("event"))
    agent.kill()
    agent.communicate()
    os.killpg(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    code, _ = done(node.start("sleep", "60"))
    assert code == 137
    assert [i["word"] for i in plane.kinds("event")] == ["started", "lost"]


def test_after_a_reboot_the_job_begins_again(node: Node, plane: Plane) -> None:
    agent = node.start("sleep", "60")
    pid = node.job_pid()
    until(lambda: plane.kinds("event"))
    agent.kill()
    agent.communicate()
    os.killpg(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    (node.base / "jobs/1/boot").write_text("another boot")
    code, _ = done(node.start("true"))
    assert code == 0
    assert node.exists("jobs/2/exit")
    assert [i["text"] for i in plane.kinds("event")] == ["attempt 1", "attempt 2"]


def test_a_start_that_was_half_done_does_not_count(node: Node) -> None:
    """The agent was killed between making the attempt and the shell's first word; the shell comes too late."""
    folder = node.base / "jobs" / "1"
    folder.mkdir(parents=True, mode=0o700)
    node.base.parent.chmod(0o700)
    assert done(node.start("true"))[0] == 0
    assert node.exists("jobs/2/exit")
    assert (folder / "pid").read_text() == "", "whoever is first decides"


def test_two_agents_do_not_share_a_seat(node: Node, plane: Plane) -> None:
    agent = node.start("sleep", "60")
    until(lambda: plane.kinds("event"))
    code, told = done(node.start("sleep", "60"))
    assert code == 71
    assert "another agent" in told
    agent.terminate()
    assert done(agent)[0] == 143


def test_sigterm_ends_the_job_and_reports_it(node: Node, plane: Plane) -> None:
    agent = node.start("sleep", "60")
    until(lambda: plane.kinds("event"))
    agent.terminate()
    assert done(agent)[0] == 143
    assert [i["code"] for i in plane.kinds("exit")] == [143]


def test_what_the_job_left_running_ends_with_it(node: Node) -> None:
    pidfile = node.folder / "left"
    assert done(node.start("sh", "-c", f"sleep 60 & echo $! > {pidfile}; exit 0"))[0] == 0
    until(lambda: not alive(int(pidfile.read_text())))


def test_a_report_that_cannot_be_taken_holds_nothing_up(node: Node, plane: Plane) -> None:
    def picky(path: str, body: dict[str, Any]) -> Any:
        bad = path == "/v1/report" and any(i.get("step") == 13 for i in body["items"])
        return refusal(400, "malformed") if bad else None

    plane.fault = picky
    code, told = done(node.start(*count(30, 0.001)))
    assert code == 0
    assert plane.steps() == [n for n in range(30) if n != 13]
    assert "left out" in told


def test_a_line_of_nonsense_is_told_once(node: Node, plane: Plane) -> None:
    lines = "\\n".join(["hello", "step", "step=x", "{", "[1]", '{"step": -1}', "step=1 loss=nan", "x" * 5000, "step=2"])
    code, _ = done(node.start("sh", "-c", f"printf '{lines}\\n' >> $SKYPLAN_PROGRESS"))
    assert code == 0
    assert [{k: v for k, v in i.items() if k in {"step", "loss"}} for i in plane.kinds("progress")] == [
        {"step": 1},
        {"step": 2},
    ]
    assert len([i for i in plane.kinds("event") if i["word"] == "progress"]) == 1


def test_much_output_is_cut_to_its_newest(node: Node, plane: Plane) -> None:
    code, _ = done(node.start("sh", "-c", "seq 1 200000; printf 'no end'"))
    assert code == 0
    text = "".join(i["text"] for i in plane.kinds("log"))
    assert text.endswith("200000\nno end")
    assert "left out" in text
    assert len(text) < 200_000
    assert all(len(i["text"].encode()) <= 8192 for i in plane.kinds("log"))


def test_a_one_time_seat_outlives_its_agent(node: Node, plane: Plane) -> None:
    """The token is used up: the next agent goes on with the session."""
    agent = node.start(*count(100))
    until(lambda: len(plane.steps()) > 5)
    agent.kill()
    agent.communicate()
    plane.fault = lambda path, _: refusal(403, "replayed") if path == "/v1/join" else None
    assert done(node.start(*count(100)))[0] == 0
    assert plane.steps() == list(range(100))


def test_a_session_that_ran_out_meanwhile_is_followed_by_the_same_token(node: Node, plane: Plane) -> None:
    """The control plane was away for longer than it lasts, and so was the agent."""
    agent = node.start(*count(100))
    until(lambda: len(plane.steps()) > 5)
    agent.kill()
    agent.communicate()
    plane.good.clear()
    code, told = done(node.start(*count(100)))
    assert code == 0, told
    assert plane.steps() == list(range(100))
    first, again = plane.paths("/v1/join")
    assert (first["proof"], first["key"]) == (again["proof"], again["key"])


def test_the_environment_is_the_protocols(node: Node, plane: Plane) -> None:
    (node.folder / "env").write_text("# of the job\nCOLOUR=blue green\nSKYPLAN_RANK=9\n")
    code, _ = done(
        node.start(
            sys.executable,
            "-c",
            "import json, os, skyplan_job; print(json.dumps(dict(os.environ)))",
            environment_file=str(node.folder / "env"),
        )
    )
    assert code == 0
    found = json.loads("".join(i["text"] for i in plane.kinds("log")))
    assert found["COLOUR"] == "blue green"
    assert [found["SKYPLAN_" + n] for n in ("JOB", "RUN", "GENERATION", "RANK", "NODES")] == [
        "train",
        "train-g3",
        "3",
        "0",
        "1",
    ]
    assert "SKYPLAN_CHECKPOINTS" not in found


def test_a_command_that_is_not_there(node: Node, plane: Plane) -> None:
    assert done(node.start("/nowhere/at/all"))[0] == 127
    assert [i["code"] for i in plane.kinds("exit")] == [127]


def test_a_token_that_comes_late_is_waited_for(node: Node, plane: Plane) -> None:
    """Whatever goes wrong while it reports, the agent tries again."""
    node.token.unlink()
    agent = node.start("true")
    until(lambda: node.exists("spool"))
    time.sleep(0.5)
    late = node.folder / "late"
    late.write_text("late")
    late.chmod(0o600)
    late.rename(node.token)
    code, told = done(agent)
    assert code == 0
    assert "token cannot be read" in told
    assert [body["proof"]["value"] for body in plane.paths("/v1/join")] == ["late"]


def test_a_token_that_others_may_read_is_not_used(node: Node, plane: Plane) -> None:
    node.token.chmod(0o640)
    agent = node.start("true")
    until(lambda: node.exists("spool"))
    time.sleep(0.5)
    assert not plane.paths("/v1/join")
    node.token.chmod(0o600)
    code, told = done(agent)
    assert code == 0
    assert f"others may read the one-time token: chmod 600 {node.token}" in told
    assert [body["proof"]["value"] for body in plane.paths("/v1/join")] == ["one-time-secret"]
