"""`skyplan agent run --local`, as its user has it: no control plane, no root, a real training loop that is killed and goes on from its newest checkpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.agent.plane import until

SKYPLAN = Path(sys.executable).with_name("skyplan")
#: a loop whose every value depends on all before it: a step that is left out or done twice shows in the last
TRAIN = """
import json, os, signal, sys, time
import skyplan_job
steps, die_at, every = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
state = {"step": 0, "weight": 1.0}
found = os.environ.get("SKYPLAN_RESUME_FROM")
if found:
    state = json.load(open(os.path.join(found, "state.json")))
    print("resumed at", state["step"], os.environ["SKYPLAN_RESUME_STEP"], flush=True)
while state["step"] < steps:
    state = {"step": state["step"] + 1, "weight": (state["weight"] * 7 + state["step"]) % 1009}
    skyplan_job.report(state["step"], loss=state["weight"])
    if state["step"] % every == 0 or skyplan_job.should_checkpoint():
        with skyplan_job.checkpoint(state["step"], framework="json") as folder:
            (folder / "state.json").write_text(json.dumps(state))
    if state["step"] == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(sys.argv) > 4:
        time.sleep(float(sys.argv[4]))
print("weight", state["weight"], flush=True)
"""

STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "my job"
    folder.mkdir()
    yield folder
    while STARTED:
        agent = STARTED.pop()
        agent.kill()
        agent.communicate()
    for path in folder.rglob("jobs/*/pid"):
        try:
            os.killpg(int(path.read_text()), signal.SIGKILL)
        except (ProcessLookupError, ValueError):
            continue


def begin(home: Path, *command: str) -> subprocess.Popen[str]:
    agent = subprocess.Popen(
        [str(SKYPLAN), "agent", "run", "--local", "--", *command],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    STARTED.append(agent)
    return agent


def run(home: Path, *command: str) -> tuple[int, str, str]:
    agent = begin(home, *command)
    out, told = agent.communicate(timeout=120)
    return agent.returncode, out, told


def train(steps: int, die_at: int = 0, every: int = 10, pause: float = 0.0) -> list[str]:
    return [sys.executable, "-c", TRAIN, str(steps), str(die_at), str(every), *([str(pause)] if pause else [])]


def store(home: Path) -> list[str]:
    root = home / ".skyplan/agent/my-job/store"
    return sorted(str(p.parent.relative_to(root)) for p in root.rglob("skyplan-checkpoint.json"))


def test_output_and_exit_code_are_the_jobs(home: Path) -> None:
    code, out, told = run(home, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (code, out) == (7, "out\nerr\n")
    assert told == "skyplan-agent: the job ended with code 7\n"


def test_a_loop_that_is_killed_goes_on_and_ends_as_if_it_had_not_been(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _, whole, _ = run(other, *train(100))
    code, _, _ = run(home, *train(100, die_at=37))
    assert code == 137
    assert store(home) == [f"g1/step-{n:012d}" for n in (10, 20, 30)]
    code, _, told = run(home, *train(100, die_at=55))
    assert code == 137
    assert "going on from step 30" in told
    code, out, told = run(home, *train(100))
    assert code == 0, told
    assert out.splitlines()[0] == "resumed at 50 50"
    assert out.splitlines()[-1] == whole.splitlines()[-1]
    assert store(home)[-1] == "g3/step-000000000100"


def test_a_torn_checkpoint_is_passed_over_with_its_reason(home: Path) -> None:
    run(home, *train(30))
    newest = home / ".skyplan/agent/my-job/store/g1/step-000000000030/state.json"
    newest.write_bytes(newest.read_bytes()[:-3])
    code, out, told = run(home, *train(40))
    assert code == 0
    assert out.startswith("resumed at 20 20\n")
    assert "SKY-RUN-511" in told
    assert "step-000000000030" in told


def test_the_agent_is_killed_and_the_next_run_takes_over(home: Path) -> None:
    agent = begin(home, *train(60, pause=0.05))
    until(lambda: store(home))
    agent.kill()
    agent.communicate()
    code, out, told = run(home, *train(60))
    assert code == 0, told
    assert "taken over" in told
    assert "weight" in out
    assert store(home) == [f"g1/step-{n:012d}" for n in (10, 20, 30, 40, 50, 60)]


def test_ctrl_c_reaches_the_job(home: Path) -> None:
    agent = begin(home, "sh", "-c", "trap 'echo bye; exit 9' INT; echo ready; while :; do sleep 0.1; done")
    assert agent.stdout is not None
    assert agent.stdout.readline() == "ready\n"
    agent.send_signal(signal.SIGINT)
    out, _ = agent.communicate(timeout=60)
    assert (agent.returncode, out) == (9, "bye\n")


LAST = """
import signal, sys, time
import skyplan_job
step, ends = skyplan_job.resume_step(), []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: ends.append(number))
print("from", step, flush=True)
while not ends:
    time.sleep(0.05)
with skyplan_job.checkpoint(step + 1) as folder:
    (folder / "state").write_text("last")
print("asked" if skyplan_job.request().checkpoint else "not asked", flush=True)
sys.exit(128 + ends[0])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_catches_the_signal_makes_its_last_checkpoint(home: Path, number: signal.Signals) -> None:
    """It is asked for none: here the signal is all (docs/runtime.md)."""
    for run_number in (1, 2):
        agent = begin(home, sys.executable, "-c", LAST)
        assert agent.stdout is not None
        assert agent.stdout.readline() == f"from {run_number - 1}\n"
        agent.send_signal(number)
        out, _ = agent.communicate(timeout=60)
        assert (agent.returncode, out) == (128 + number, "not asked\n")
        assert store(home)[-1] == f"g{run_number}/step-{run_number:012d}"


def test_what_is_wrong_on_the_command_line_is_said(home: Path) -> None:
    def words(*given: str) -> str:
        done = subprocess.run([str(SKYPLAN), "agent", *given], cwd=home, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        return done.stderr

    assert "one of `--local`" in words("run", "--", "true")
    assert "for `--local`" in words("run", "--config", __file__, "--job", "x", "--", "true")


def test_the_packed_agent_runs_a_job_too(home: Path) -> None:
    packed = home / "agent.pyz"
    done = subprocess.run([str(SKYPLAN), "agent", "pack", str(packed)], capture_output=True, text=True, check=True)
    assert len(done.stdout.strip()) == 64
    command = [sys.executable, "-I", str(packed), "run", "--local", "--", *train(20)]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads((home / ".skyplan/agent/my-job/state/my-job-g1-r00/ended").read_text())["code"] == 0
    assert store(home) == [f"g1/step-{n:012d}" for n in (10, 20)]
