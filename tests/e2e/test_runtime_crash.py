"""A job outlives every crash: its loss goes on as if nothing had happened, no checkpoint is lost, nobody owns it twice (R13-R16).

Real processes live through the beginnings of the same schedules as the model of `tests/property/test_runtime_model.py`, and the same faults are planted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from planner.model.record import moment
from planner.model.runtime import MANIFEST
from tests.contract.crash_world import schedule
from tests.e2e.runtime_bed import JOB, ROOT, TORCH, Bed, Found, expected

TOTAL = 120
LENGTH = 30
"""Words of a schedule that are used: half of them are the nodes' own work, which here goes on by itself."""
QUICK = 3
"""Seeds of every run of the tests; the rest with `make test-full`."""
SEEDS = 32


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("agent") / "agent.pyz"
    subprocess.run([sys.executable, "-m", "modules.agent.pack", str(target)], cwd=ROOT, check=True, capture_output=True)
    return target


@pytest.fixture
def bed(tmp_path: Path, archive: Path) -> Iterator[Bed]:
    made = Bed(tmp_path, archive, total=TOTAL)
    yield made
    made.close()


# --- what goes wrong


def next_node(bed: Bed) -> None:
    bed.before[bed.generation + 1] = best(bed)
    bed.start_agent(bed.new_generation())


def agent(bed: Bed, _size: int) -> None:
    bed.kill_agent(bed.generation)
    bed.start_agent(bed.generation)


def server(bed: Bed, size: int) -> None:
    bed.kill_server()
    time.sleep(0.2 * size)
    bed.start_server()


def node(bed: Bed, _size: int) -> None:
    bed.kill_node(bed.generation)
    next_node(bed)


def both(bed: Bed, _size: int) -> None:
    bed.kill_server()
    bed.kill_node(bed.generation)
    bed.start_server()
    next_node(bed)


def lost(bed: Bed, size: int) -> None:
    bed.fronts[bed.generation].lose += size


def torn(bed: Bed, size: int) -> None:
    if found := bed.valid():
        last = max(found, key=lambda it: it.step)
        source = Path(last.uri.removeprefix("file://"))
        step = max(bed.step(), last.step) + 1
        target = source.parent / f"step-{step:012d}"
        if not target.exists():
            shutil.copytree(source, target)
            text = (target / MANIFEST).read_text()
            match size:
                case 1:
                    (target / MANIFEST).unlink()
                case 2:
                    (target / "state").write_bytes(b"short")
                    (target / MANIFEST).write_text(text.replace(source.name, target.name))
                case _:
                    (target / MANIFEST).write_text(text[: len(text) // 2])


def forged(bed: Bed, size: int) -> None:
    generation = bed.generation if size < 3 else bed.generation + 100
    target = bed.store / f"g{generation}" / "step-001000000000"
    target.mkdir(parents=True, exist_ok=True)
    document = {
        "bytes": 0,
        "created_at": "2026-11-30T12:00:00.000000Z",
        "files": [],
        "format": 1,
        "framework": "",
        "generation": generation,
        "job": JOB,
        "mac": "ab" * 32,
        "nodes": 1,
        "project": "acme",
        "run": f"{JOB}-g{generation}",
        "step": 10**9,
        "uri": target.as_uri() + "/",
        "world_size": 1,
    }
    (target / MANIFEST).write_text(json.dumps(document, sort_keys=True, separators=(",", ":")))


def zombie(bed: Bed, _size: int) -> None:
    bed.fronts[bed.generation].cut()
    next_node(bed)


def returns(bed: Bed, _size: int) -> None:
    for generation in range(1, bed.generation):
        if not bed.processes(generation):
            bed.start_agent(generation)


def rot(bed: Bed, _size: int) -> None:
    """A byte of the newest that is sound turns over."""
    if found := bed.valid():
        last = max(found, key=lambda it: it.step)
        path = Path(last.uri.removeprefix("file://")) / "state"
        bed.rotten[last] = time.time()
        path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


Act = Callable[[Bed, int], None]
OF_WORD: dict[str, Act] = {
    "kill": agent,
    "lose": node,
    "suspect": zombie,
    "tear": torn,
    "rot": rot,
    "forge": forged,
    "zombie": returns,
}
OF_FATE: dict[str, Act] = {"before": server, "reply": lost}


def faults(seed: int) -> list[tuple[int, Act, int]]:
    """(after which step of the training, what goes wrong, how much of it): what the model's words are for real processes."""
    out: list[tuple[int, Act, int]] = []
    for at, step in enumerate(schedule(seed, LENGTH), 1):
        act = OF_FATE.get(step.fate) if step.word == "checkpoint" else OF_WORD.get(step.word)
        if act and not (act is returns and step.number % 4):
            out.append((at * TOTAL * 9 // (LENGTH * 10), act, step.number % 3 + 1))
    return out


def live(bed: Bed, planned: list[tuple[int, Act, int]]) -> None:
    """The job from its first start to its end, with all that goes wrong in between."""
    bed.start_server()
    next_node(bed)
    for at, act, size in planned:
        bed.wait(lambda at=at: bed.step() >= at or bed.agents[bed.generation].poll() is not None)
        if bed.agents[bed.generation].poll() is not None:
            break
        act(bed, size)
    for front in bed.fronts.values():  # whoever was cut off is back: what he has to say comes now
        front.joined, front.upstream = True, bed.port
    bed.wait(lambda: all(a.poll() is not None for g, a in bed.agents.items() if bed.processes(g)), 90)


# --- what must hold


def best(bed: Bed) -> int:
    """The newest step that counts now: of checkpoints that no later generation's cut came before."""
    counted = [0]
    for it in bed.valid():
        later = [cut for g in range(it.generation + 1, bed.generation + 1) if (cut := bed.cut(g))]
        if all(it.written <= moment(cut.at).timestamp() for cut in later):
            counted.append(it.step)
    return max(counted)


def there(bed: Bed, at: float) -> list[Found]:
    """What was sound then."""
    return [*bed.valid(), *(it for it, rotted in bed.rotten.items() if rotted > at)]


def wrong(bed: Bed, truth: dict[int, float] | None = None) -> list[str]:
    """Everything that does not hold; `truth`: the loss at every step."""
    return [*_curves(bed, truth or expected(TOTAL)), *_cuts(bed), *_reports(bed), *_owners(bed), *_checkpoints(bed)]


def _curves(bed: Bed, truth: dict[int, float]) -> Iterator[str]:
    for generation in range(1, bed.generation + 1):
        for step, loss in bed.curve(generation):
            if truth[step] != loss:
                yield f"generation {generation}: the loss at step {step} is {loss}, not {truth[step]}"
    if TOTAL not in {bed.step(), *bed.resumed(bed.generation)}:
        yield f"the job ended at step {bed.step()}"


def _cuts(bed: Bed) -> Iterator[str]:
    for generation in range(1, bed.generation + 1):
        started = bed.resumed(generation)
        if not started:
            continue
        cut = bed.cut(generation)
        if cut is None:
            yield f"generation {generation} began without a cut"
            continue
        chosen = cut.chosen.step if cut.chosen else 0
        if len(started) != 1 or started[0] != chosen:
            yield f"generation {generation} resumed at {started}, its cut says {chosen}"
        at = moment(cut.at).timestamp()
        older = [it for it in there(bed, at) if it.generation < generation and it.written <= at]
        earlier = [(g, c) for g in range(1, generation) if (c := bed.cut(g))]
        counted = [
            it.step
            for it in older
            if all(it.written <= moment(c.at).timestamp() for g, c in earlier if g > it.generation)
        ]
        # of a node that works on while we list, the last may be seen or not
        if not bed.before.get(generation, 0) <= chosen <= max(counted, default=0):
            yield f"generation {generation} began at {chosen}: in the store were {sorted(counted)}, before it {bed.before.get(generation)}"


def _reports(bed: Bed) -> Iterator[str]:
    for generation in range(1, bed.generation + 1):
        told = [row[0] for row in bed.rows(f"SELECT step FROM progress WHERE generation = {generation} ORDER BY id")]
        first = (bed.resumed(generation) or [0])[0] + 1
        if told != list(range(first, first + len(told))):
            yield f"generation {generation}: progress was taken as {told}"
    told = bed.rows(f"SELECT max(step) FROM progress WHERE generation = {bed.generation}")
    if told[0][0] != TOTAL and bed.resumed(bed.generation) != [TOTAL]:
        yield f"the last step told is {told[0][0]}"


def _owners(bed: Bed) -> Iterator[str]:
    for table, extra in (("progress", ""), ("checkpoint", "AND source = 'report'")):
        rows = bed.rows(f"SELECT generation FROM {table} WHERE 1 = 1 {extra} ORDER BY id")
        newest = 0
        for (generation,) in rows:
            if generation < newest:
                yield f"{table}: generation {generation} was heard after {newest} had begun"
                break
            newest = max(newest, generation)


def _checkpoints(bed: Bed) -> Iterator[str]:
    sound = {it.uri: it for it in there(bed, 0)}
    known = {uri for (uri,) in bed.rows("SELECT uri FROM checkpoint")}
    for uri in known - set(sound):
        yield f"the record knows {uri}, and it is not in the store"
    # what a node that is cut off writes while its successor lists the store may be seen or not
    fenced = dict(bed.rows("SELECT generation, fenced_at FROM run"))
    for uri, it in sound.items():
        over = fenced[it.generation]
        if uri not in known and (over is None or it.written <= moment(over).timestamp()):
            yield f"{uri} is in the store, and the record does not know it"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < QUICK else pytest.mark.full) for seed in range(SEEDS)]
)
def test_a_job_outlives_its_crashes(bed: Bed, seed: int) -> None:
    planned = faults(seed)
    live(bed, planned)
    assert wrong(bed) == [], f"{[(at, act.__name__, size) for at, act, size in planned]}\n{bed.story()}"


def test_node_and_control_plane_die_at_once(bed: Bed) -> None:
    """And what was put away in between, while nobody could be told, is known afterwards: the file wins over the record."""
    bed.start_server()
    next_node(bed)
    bed.wait(lambda: bed.rows("SELECT 1 FROM checkpoint"))
    bed.kill_server()
    told = max(row[0] for row in bed.rows("SELECT step FROM checkpoint"))
    bed.wait(lambda: max(it.step for it in bed.valid()) > told)
    bed.kill_node(1)
    bed.start_server()
    live_on(bed)
    assert bed.cut(2).chosen.step > told == bed.cut(2).recorded_step
    assert wrong(bed) == [], bed.story()


def live_on(bed: Bed) -> None:
    next_node(bed)
    bed.wait(lambda: bed.agents[bed.generation].poll() is not None, 90)


def torch_python() -> str | None:
    """An interpreter with PyTorch: `make test-torch` makes one."""
    found = os.environ.get("SKYPLAN_TEST_TORCH_PYTHON") or str(ROOT / ".venv" / "torch" / "bin" / "python")
    return found if Path(found).exists() else sys.executable if find_spec("torch") else None


TORCH_PYTHON = torch_python()  # before the tests' own environment is cleared


@pytest.mark.skipif(TORCH_PYTHON is None, reason="torch not installed: `make test-torch`")
def test_a_real_training_goes_on_as_if_nothing_had_happened(bed: Bed) -> None:
    """PyTorch with momentum, and everything killed that there is: the losses are those of a run that nobody disturbed, to the last digit."""
    (bed.folder / "train.py").write_text(TORCH)
    bed.python = str(TORCH_PYTHON)
    alone = bed.folder / "alone"
    alone.mkdir()
    command = [bed.python, str(bed.folder / "train.py"), str(alone), str(TOTAL), "1000", "0"]
    library = {**os.environ, "PYTHONPATH": str(ROOT / "modules" / "job")}
    subprocess.run(command, check=True, env=library, capture_output=True, timeout=120)
    lines = [line.split() for line in (alone / "curve").read_text().splitlines() if not line.startswith("#")]
    truth = {int(step): float(loss) for step, loss in lines}
    assert truth[TOTAL] < truth[1] / 2, "it learns"
    live(bed, [(15, agent, 1), (25, server, 1), (40, node, 1), (60, both, 1), (75, zombie, 1), (90, lost, 2)])
    assert wrong(bed, truth) == [], bed.story()
    assert bed.generation >= 3


# --- faults that are planted, and must be found

SERVER = "from planner.cli.entry import run; run()"
AGENT = "from agent.__main__ import main; sys.exit(main())"
RECORD_FIRST = f"""
import sys, time
sys.path.insert(0, sys.argv.pop(1))
from agent.ckpt import upload
files = upload.Uploader._files
def early(self, name, mine):
    told = {{"step": mine.step, "uri": mine.uri, "digest": mine.digest, "mac": mine.mac, "bytes": mine.bytes, "files": 1}}
    self._add("checkpoint", told)
    time.sleep(3)
    files(self, name, mine)
upload.Uploader._files = early
{AGENT}
"""
NO_FENCE = f"""
from planner.state import cuts, deliver, guards
refusal = guards.refusal
def forgetful(row, seat):
    return refusal(row and {{**row, "fenced_at": None}}, seat)
cuts.refusal = deliver.refusal = guards.refusal = forgetful
{SERVER}
"""
NO_CUT = f"""
from planner.state import cuts
valid = cuts._valid
def forgetful(connection, project, seat, runs, candidates):
    return valid(connection, project, seat, {{g: {{**run, "cut": None}} for g, run in runs.items()}}, candidates)
cuts._valid = forgetful
{SERVER}
"""


def test_a_record_that_is_told_before_the_manifest_is_written_is_found(bed: Bed) -> None:
    bed.agent_code = RECORD_FIRST
    bed.start_server()
    next_node(bed)
    bed.wait(lambda: bed.rows("SELECT 1 FROM checkpoint"))
    bed.kill_node(1)
    assert any("it is not in the store" in it for it in _checkpoints(bed)), bed.story()


def test_a_fence_that_is_forgotten_is_found(bed: Bed) -> None:
    bed.server_code = NO_FENCE
    bed.start_server()
    next_node(bed)
    bed.wait(lambda: bed.step() >= 10)
    bed.fronts[1].cut()
    next_node(bed)
    bed.wait(lambda: bed.rows("SELECT 1 FROM progress WHERE generation = 2"))
    bed.fronts[1].joined, bed.fronts[1].upstream = True, bed.port
    bed.wait(lambda: list(_owners(bed)), 90)


def test_a_cut_that_does_not_hold_is_found(bed: Bed) -> None:
    bed.server_code = NO_CUT
    bed.start_server()
    next_node(bed)
    bed.wait(lambda: bed.step() >= 20)
    bed.fronts[1].cut()  # it trains on, ahead of its successor
    next_node(bed)
    at = moment(bed.wait(lambda: bed.cut(2)).at).timestamp()
    bed.wait(lambda: any(it.step > bed.step() for it in bed.valid() if it.generation == 1 and it.written > at))
    bed.kill_node(1)
    bed.kill_node(2)
    live_on(bed)
    assert any(it.startswith("generation 3 began at") for it in _cuts(bed)), bed.story()
