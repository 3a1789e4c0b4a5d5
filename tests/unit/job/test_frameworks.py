"""skyplan_job with the real libraries: interruption, checkpoint, store, resume; the curve is that of a run that was never interrupted.

The programs run under a Python that has torch, transformers and lightning: this one, SKYPLAN_TEST_TORCH, or the one that `make test-torch` makes; else they skip.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modules.agent.ckpt.manifest import MANIFEST, parse
from modules.agent.ckpt.resume import Resumed, resume
from modules.agent.ckpt.upload import Uploader
from tests.unit.agent.ckpt.jobs import store_of
from tests.unit.job.conftest import KEY, SOURCE

FRAMEWORKS = Path(__file__).with_name("frameworks")
MADE = Path(sys.prefix) / "torch" / "bin" / "python"
NAMED = os.environ.get("SKYPLAN_TEST_TORCH", "")  # read here: tests see no SKYPLAN_ variable
STEPS = 24
HOLD = 13
pytestmark = [pytest.mark.usefixtures("socket_enabled"), pytest.mark.xdist_group("torch")]


def python_with(*names: str) -> str:
    """A Python that has these libraries; skips where there is none.  Looks and does not import: torch takes seconds."""
    look = "import importlib.util as u, sys; sys.exit(not all(u.find_spec(n) for n in sys.argv[1:]))"
    for python in (NAMED, str(MADE), sys.executable):
        if (
            python
            and Path(python).exists()
            and subprocess.run([python, "-c", look, *names], check=False).returncode == 0
        ):
            return python
    pytest.skip(f"{' and '.join(names)} not installed: `make test-torch`")


class Seat:
    project, job = "acme", "train"

    def __init__(self, generation: int, rank: int = 0, nodes: int = 1):
        self.generation, self.rank, self.nodes = generation, rank, nodes


class Node:
    """The agent's part, in a few lines: environment, control file, store, resume."""

    def __init__(self, folder: Path, program: str, *libraries: str):
        self.folder, self.program, self.python = folder, program, python_with(*libraries)
        folder.mkdir()
        self.store = store_of(folder / "store")
        (folder / "key").write_text(KEY.hex())
        self.generation = 0

    @property
    def curve(self) -> dict[int, float]:
        """The last loss that was told of each step."""
        path = self.folder / "curve"
        return dict(map(json.loads, path.read_text().splitlines())) if path.exists() else {}

    def ranked(self, rank: int, *, apart: bool) -> dict[str, str]:
        """Ranks of one node, or (`apart`) each of a node of its own."""
        if not apart:
            return {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        own = {
            "SKYPLAN_RANK": str(rank),
            "SKYPLAN_NODES": "2",
            "SKYPLAN_CHECKPOINTS": str(self.at / f"checkpoints-{rank}"),
        }
        return {"RANK": str(rank), "LOCAL_RANK": "0", **own}

    def start(
        self, *, world: int = 1, apart: bool = False, resumed: Resumed | None = None, **other: str
    ) -> list[subprocess.Popen[bytes]]:
        self.generation += 1
        self.at = self.folder / f"g{self.generation}"
        self.at.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        given = {k: v for k, v in os.environ.items() if not k.startswith(("COV_", "PYTHON"))}
        given |= {
            "SKYPLAN_PROJECT_NAME": "acme",
            "SKYPLAN_JOB": "train",
            "SKYPLAN_RUN": f"train-g{self.generation}",
            "SKYPLAN_GENERATION": str(self.generation),
            "SKYPLAN_RANK": "0",
            "SKYPLAN_NODES": "1",
            "SKYPLAN_PROGRESS": str(self.at / "progress"),
            "SKYPLAN_CONTROL": str(self.at / "control.json"),
            "SKYPLAN_CHECKPOINTS": str(self.at / "checkpoints"),
            "SKYPLAN_CHECKPOINT_URI": f"{self.store.uri}g{self.generation}/",
            "SKYPLAN_CHECKPOINT_KEY_FILE": str(self.folder / "key"),
            "PYTHONPATH": str(SOURCE.parent),  # as the agent does
            "TEST_CURVE": str(self.folder / "curve"),
            "TEST_OUTPUT": str(self.at / "output"),
            "TEST_STEPS": str(STEPS),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            **other,
        }
        if resumed:
            given |= {"SKYPLAN_RESUME_FROM": str(resumed.folder), "SKYPLAN_RESUME_STEP": str(resumed.step)}
        if world > 1 or self.program == "dcp.py":
            given |= {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
        output = (self.at / "output.log").open("wb")
        try:
            return [
                subprocess.Popen(
                    [self.python, str(FRAMEWORKS / self.program)],
                    env={**given, **(self.ranked(rank, apart=apart) if "WORLD_SIZE" in given else {})},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                )
                for rank in range(world)
            ]
        finally:
            output.close()

    def ask(self, **words: Any) -> None:
        (self.at / "new").write_text(
            json.dumps({"checkpoint": 1, "reason": "test", "deadline": None, "stop": True, **words})
        )
        (self.at / "new").rename(self.at / "control.json")

    def until(self, processes: list[subprocess.Popen[bytes]], there: Callable[[], bool], seconds: float = 180) -> None:
        end = time.monotonic() + seconds
        while not there():
            assert time.monotonic() < end, self.words()
            assert any(process.poll() is None for process in processes), self.words()
            time.sleep(0.02)

    def ended(self, processes: list[subprocess.Popen[bytes]], code: int = 0) -> None:
        try:
            for process in processes:
                assert process.wait(180) == code, self.words()
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def words(self) -> str:
        return (self.at / "output.log").read_text(errors="replace")[-4000:]

    def put_away(self) -> Resumed | None:
        """What the next generation goes on from."""
        seat = Seat(self.generation)
        assert Uploader(self.store, seat, lambda *_: None, folder=self.at / "checkpoints", key=KEY).once()
        skipped: list[tuple[str, str]] = []
        found = resume(
            self.store,
            None,
            Seat(self.generation + 1),
            self.folder / "resumed",
            key=KEY,
            told=lambda *one: skipped.append(one),
        )
        assert not skipped
        return found


def whole_curve(tmp_path: Path, program: str, *libraries: str) -> dict[int, float]:
    node = Node(tmp_path / "uninterrupted", program, *libraries)
    node.ended(node.start())
    curve = node.curve
    assert sorted(curve) == list(range(1, STEPS + 1)), node.words()
    assert curve[1] != curve[STEPS]
    return curve


@pytest.mark.parametrize(
    ("program", "libraries"),
    [
        ("plain.py", ("torch",)),
        ("dcp.py", ("torch",)),
        ("huggingface.py", ("torch", "transformers", "accelerate")),
        ("lightning_fit.py", ("torch", "lightning")),
    ],
)
def test_interrupted_and_resumed_is_the_curve_of_an_uninterrupted_run(
    tmp_path: Path, program: str, libraries: tuple[str, ...]
) -> None:
    expected = whole_curve(tmp_path, program, *libraries)
    node = Node(tmp_path / "interrupted", program, *libraries)
    first = node.start(TEST_HOLD=str(HOLD))
    node.until(first, lambda: HOLD in node.curve)
    node.ask()
    node.ended(first)
    stopped = max(node.curve)
    assert HOLD <= stopped <= HOLD + 1
    resumed = node.put_away()
    assert resumed
    assert resumed.step == stopped
    node.ended(node.start(resumed=resumed))
    assert node.curve == expected
    steps = [json.loads(line) for line in (node.at / "progress").read_text().splitlines()]
    assert [line["step"] for line in steps if "loss" in line][-1] == STEPS


def test_killed_anywhere_it_goes_on_from_its_last_whole_checkpoint(tmp_path: Path) -> None:
    expected = whole_curve(tmp_path, "plain.py", "torch")
    node = Node(tmp_path / "killed", "plain.py", "torch")
    resumed: Resumed | None = None
    for kill_at in (7, 10, 16):
        processes = node.start(resumed=resumed, TEST_HOLD=str(kill_at))
        node.until(processes, lambda at=kill_at: at in node.curve)
        processes[0].send_signal(signal.SIGKILL)
        node.ended(processes, -signal.SIGKILL)
        before = resumed.step if resumed else 0
        resumed = node.put_away()
        assert resumed
        assert resumed.step == {7: 5, 10: 5, 16: 15}[kill_at]
        assert before <= resumed.step
    node.ended(node.start(resumed=resumed))
    assert node.curve == expected


class TestRanks:
    def test_two_ranks_make_one_checkpoint_that_one_rank_goes_on_from(self, tmp_path: Path) -> None:
        expected = whole_curve(tmp_path, "dcp.py", "torch")
        node = Node(tmp_path / "two", "dcp.py", "torch")
        first = node.start(world=2, TEST_HOLD=str(HOLD))
        node.until(first, lambda: HOLD in node.curve)
        node.ask()
        node.ended(first)
        resumed = node.put_away()
        assert resumed
        found = parse((resumed.folder / MANIFEST).read_bytes())
        assert (found.framework, found.world_size) == ("torch.distributed.checkpoint", 2)
        assert sorted(file.path for file in found.files) == [".metadata", "__0_0.distcp", "__1_0.distcp"]
        node.ended(node.start(resumed=resumed))
        assert {step: pytest.approx(loss, rel=1e-5) for step, loss in expected.items()} == node.curve

    def test_two_nodes_make_one_checkpoint_of_their_parts(self, tmp_path: Path) -> None:
        expected = whole_curve(tmp_path, "dcp.py", "torch")
        node = Node(tmp_path / "two", "dcp.py", "torch")
        first = node.start(world=2, apart=True, TEST_HOLD=str(HOLD))
        node.until(first, lambda: HOLD in node.curve)
        node.ask()
        node.ended(first)
        ups = [
            Uploader(node.store, Seat(1, rank, 2), lambda *_: None, folder=node.at / f"checkpoints-{rank}", key=KEY)
            for rank in range(2)
        ]
        assert [up.once() for up in ups] == [False, True]
        assert ups[0].once()
        resumed = resume(node.store, None, Seat(2, 0, 2), node.folder / "resumed", key=KEY)
        assert resumed
        found = parse((resumed.folder / MANIFEST).read_bytes())
        assert (found.nodes, found.world_size) == (2, 2)
        assert sorted(file.path for file in found.files) == [".metadata", "__0_0.distcp", "__1_0.distcp"]
        node.ended(node.start(resumed=resumed))
        assert {step: pytest.approx(loss, rel=1e-5) for step, loss in expected.items()} == node.curve

    def test_one_ranks_failure_is_all_ranks_failure_and_leaves_nothing(self, tmp_path: Path) -> None:
        node = Node(tmp_path / "two", "dcp.py", "torch")
        first = node.start(world=2, TEST_FAIL="1", TEST_HOLD=str(HOLD))
        node.until(first, lambda: HOLD in node.curve)
        node.ask()
        node.ended(first)
        assert (node.folder / "curve.1").read_text().startswith("FileNotFoundError")
        assert (node.folder / "curve.0").read_text() == "CheckpointError: another rank could not write its part"
        made = [path.name for path in (node.at / "checkpoints").glob("*step-*")]
        assert made == [f"step-{max(node.curve):012d}"], "only the one after it"


EVIL = """
import pickle, sys, os
sys.path.insert(0, {job!r})
import warnings; warnings.simplefilter("ignore")
import torch, torch.distributed.checkpoint as dcp, skyplan_job
class Evil:
    def __reduce__(self):
        return (os.mkdir, ({mark!r},))
folder = {folder!r}
dcp.save({{"w": torch.ones(2), "n": {value}}}, checkpoint_id=folder, no_dist=True)
if {metadata}:
    read = pickle.load(open(folder + "/.metadata", "rb"))
    read.planner_data = Evil()
    pickle.dump(read, open(folder + "/.metadata", "wb"))
torch.save(Evil(), folder + "/evil.pt")
try:
    {load}
except BaseException as error:
    print(type(error).__name__)
else:
    print("loaded")
"""


@pytest.mark.parametrize(
    ("value", "metadata", "load", "said"),
    [
        ("3", False, "skyplan_job.load_distributed({'w': torch.zeros(2), 'n': 0}, folder)", "loaded"),
        ("3", True, "skyplan_job.load_distributed({'w': torch.zeros(2), 'n': 0}, folder)", "CheckpointException"),
        ("Evil()", False, "skyplan_job.load_distributed({'w': torch.zeros(2), 'n': 0}, folder)", "CheckpointException"),
        ("3", False, "skyplan_job.load(folder + '/evil.pt')", "UnpicklingError"),
    ],
)
def test_a_checkpoint_runs_no_code(tmp_path: Path, value: str, metadata: bool, load: str, said: str) -> None:
    """The library's own loading would: the last line of defence behind mac and hashes."""
    mark = tmp_path / "ran"
    text = EVIL.format(
        job=str(SOURCE.parent), mark=str(mark), folder=str(tmp_path / "c"), value=value, metadata=metadata, load=load
    )
    done = subprocess.run([python_with("torch"), "-c", text], capture_output=True, text=True, check=False, timeout=180)
    assert done.stdout.split()[-1:] == [said], done.stderr[-2000:]
    assert not mark.exists()
