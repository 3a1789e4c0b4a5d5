"""The job's side of docs/job-protocol.md, in one file that needs nothing but Python 3.8: progress, requests, checkpoints that describe themselves.

Decides how a checkpoint folder becomes whole; moves nothing to a store, which is the agent's.  Outside of skyplan every call works and does nothing lasting.
A training job must not end because of its telling: `report` and the control file never raise, `checkpoint` does where the checkpoint would not be whole.

    with skyplan_job.checkpoint(step, framework="torch") as folder:
        torch.save(model.state_dict(), folder / "model.pt")

For a job in another language: `python3 -m skyplan_job checkpoint --step N -- COMMAND…`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import hashlib
import hmac
import importlib
import inspect
import json
import math
import os
import pickle
import platform
import re
import shutil
import signal as signals
import subprocess
import sys
import tempfile
import time
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__version__ = "0.1.0"
MANIFEST = "skyplan-checkpoint.json"
DOMAIN = "skyplan-checkpoint-v1"
MAX_LINE_BYTES = 4096
MAX_METRICS = 32
_FOLDER = re.compile(r"\.?step-([0-9]{12})(?:-([1-9][0-9]*))?")
_LOCK = ".skyplan-lock"
_HASHERS = min(8, os.cpu_count() or 1)
_STORED = ".stored"  # the agent keeps the names of what it has put away there


class CheckpointError(Exception):
    """The checkpoint would not have been whole; nothing of it is left."""


class Request(NamedTuple):
    """What is asked of the job.  `deadline` in seconds since 1970."""

    checkpoint: int = 0
    reason: str = ""
    deadline: float | None = None
    stop: bool = False


_told: set[str] = set()
_last: list[tuple[int, float]] = []
_answered = 0


# --- progress


def report(step: int, *, loss: Any = None, rate: Any = None, **metrics: Any) -> None:
    """Tell a step.  `rate` in steps per second is worked out between calls where it is not given.  Only the first process of a node tells."""
    try:
        if _local_rank():
            return
        now, at = time.monotonic(), int(step)
        if rate is None and _last and now > _last[0][1] and at > _last[0][0]:
            rate = round((at - _last[0][0]) / (now - _last[0][1]), 6)
        _last[:] = [(at, now)]
    except Exception as error:  # noqa: BLE001  a tensor's own errors among them
        _once(f"progress is not told: {error!r}")
        return
    line: dict[str, Any] = {"step": at}
    for name, value in [("loss", loss), ("rate", rate), *list(metrics.items())[:MAX_METRICS]]:
        with contextlib.suppress(Exception):  # whatever a library's number raises when it is asked for its value
            number = float(cast("Any", value))
            if math.isfinite(number):
                line[name] = number
    _say(line)


def ask_for_signal(
    number: int = getattr(signals, "SIGUSR1", signals.SIGTERM), then: Callable[[Request], None] | None = None
) -> None:
    """Have this process signalled when something is asked of it.  `then` is called in the main thread, between two instructions: it should be short."""

    def asked(*_: object) -> None:
        if then:
            then(request())

    signals.signal(number, asked)
    _say({"skyplan": "signals", "pid": os.getpid(), "signal": int(number)})


def _say(line: dict[str, Any]) -> None:
    """One line in one write, so that lines of several processes never mix."""
    path = os.environ.get("SKYPLAN_PROGRESS")
    if not path:
        return
    text = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    if len(text) > MAX_LINE_BYTES:
        _once(f"a progress line of {len(text)} bytes was not written: at most {MAX_LINE_BYTES}")
        return
    try:
        opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(opened, text)
        finally:
            os.close(opened)
    except OSError as error:
        _once(f"progress is not told: {error}")


def _once(words: str) -> None:
    if words not in _told:
        _told.add(words)
        sys.stderr.write(f"skyplan_job: {words}\n")


# --- requests


def request() -> Request:
    """What is asked of the job now; nothing where nobody asks."""
    path = os.environ.get("SKYPLAN_CONTROL")
    if not path:
        return Request()
    try:
        read = json.loads(Path(path).read_bytes())
        deadline = read.get("deadline")
        return Request(
            int(read["checkpoint"]),
            str(read.get("reason", "")),
            None if deadline is None else float(deadline),
            read.get("stop") is True,
        )
    except FileNotFoundError:
        return Request()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        _once(f"the control file is not read: {error}")
        return Request()


def should_checkpoint(*, everywhere: bool = False) -> bool:
    """Whether a checkpoint is asked for that this process has not made yet.  `everywhere`: all ranks of torch.distributed call it and get one answer."""
    return _agreed(request().checkpoint > _answered, everywhere=everywhere)


def should_stop(*, everywhere: bool = False) -> bool:
    """Whether the job should end, once it has checkpointed."""
    return _agreed(request().stop, everywhere=everywhere)


def remaining_seconds() -> float | None:
    """Until the deadline of what is asked; None where there is none."""
    deadline = request().deadline
    return None if deadline is None else max(0.0, deadline - time.time())


# --- where to go on from


def resume_from() -> Path | None:
    """Folder of the checkpoint to go on from; None at a first start."""
    found = os.environ.get("SKYPLAN_RESUME_FROM")
    return Path(found) if found else None


def resume_step() -> int:
    """The step of `resume_from`; 0 at a first start."""
    return int(os.environ.get("SKYPLAN_RESUME_STEP") or 0)


# --- checkpoints


def enabled() -> bool:
    """Whether checkpoints are kept here."""
    return bool(os.environ.get("SKYPLAN_CHECKPOINTS"))


@contextlib.contextmanager
def checkpoint(
    step: int, *, framework: str = "", world_size: int | None = None, everywhere: bool = False
) -> Generator[Path, None, None]:
    """A folder to write one step's files into; whole and visible when the block ends well, gone when it does not.

    Called by one process of a node; with `everywhere` by all ranks of torch.distributed together, who then share one folder per node and one fate.
    Where no checkpoints are kept it is a scratch folder that is removed again.  Raises CheckpointError.
    """
    global _answered  # noqa: PLW0603  one process, one count of what it has answered
    ranks = _world() if everywhere else None
    first = ranks is None or _local_rank() == 0
    asked = request().checkpoint
    if enabled():
        making = _Making(int(step), framework, world_size or (ranks.get_world_size() if ranks else 1))
        with _made(making, ranks, first=first):
            yield making.new
        if first:
            _say({"skyplan": "checkpoint", "folder": making.whole.name})
    else:
        with _scratch(ranks, first=first) as scratch:
            yield scratch
    _answered = max(_answered, asked)


@contextlib.contextmanager
def _made(making: _Making, ranks: Any, *, first: bool) -> Generator[None, None, None]:
    """From nothing to a whole folder, or back to nothing."""
    try:
        _together(ranks, making.lock if first else None)
        making.name(max(_gathered(ranks, making.suffix() if first else 0)))
        _together(ranks, making.begin if first else None)
        try:
            yield
        except Exception:
            _gathered(ranks, False)  # the others wait for this rank's word
            raise
        _all_or_none(_gathered(ranks, True))
        _together(ranks, making.finish if first else None)
    except BaseException:
        making.drop()
        raise
    finally:
        making.unlock()


def _all_or_none(wrote: list[bool]) -> None:
    if not all(wrote):
        raise CheckpointError("another rank could not write its part")


class _Making:
    """One checkpoint folder on its way: `.step-…` until everything in it is on disk, then `step-…`."""

    def __init__(self, step: int, framework: str, world_size: int) -> None:
        if not 0 <= int(step) < 10**12:
            raise CheckpointError(f"{step} is no step")
        self._root = Path(os.environ["SKYPLAN_CHECKPOINTS"])
        self._step, self._framework, self._world_size = int(step), framework, world_size
        self._lock: Any = None
        self._begun = False
        self.name(0)

    def name(self, suffix: int) -> None:
        self.whole = self._root / (f"step-{self._step:012d}" + (f"-{suffix}" if suffix else ""))
        self.new = self._root / f".{self.whole.name}"

    def lock(self) -> None:
        """One writer at a time; what a writer left behind that is no more is removed."""
        self._root.mkdir(parents=True, exist_ok=True)
        self._lock = (self._root / _LOCK).open("ab")
        with contextlib.suppress(ImportError):
            import fcntl  # noqa: PLC0415  not on Windows

            fcntl.flock(self._lock, fcntl.LOCK_EX)
        for left in self._root.glob(".step-*"):
            shutil.rmtree(str(left), ignore_errors=True)

    def unlock(self) -> None:
        if self._lock is None:
            return
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # noqa: PLC0415  not on Windows

            fcntl.flock(
                self._lock, fcntl.LOCK_UN
            )  # closing is not enough: a process that was forked meanwhile has it too
        self._lock.close()

    def suffix(self) -> int:
        """The first that no checkpoint of this step had, on disk or put away."""
        found = [*self._root.glob("step-*"), *(self._root / _STORED).glob("step-*")]
        taken = [
            match for match in (_FOLDER.fullmatch(path.name) for path in found) if match and int(match[1]) == self._step
        ]
        return max((int(match[2] or 0) + 1 for match in taken), default=0)

    def begin(self) -> None:
        self.new.mkdir()
        self._begun = True

    def finish(self) -> None:
        part = int(os.environ.get("SKYPLAN_NODES") or 1) > 1
        rank = int(os.environ.get("SKYPLAN_RANK") or 0)
        paths = sorted(_files(self.new), key=lambda path: path.relative_to(self.new).as_posix())
        with futures.ThreadPoolExecutor(
            _HASHERS
        ) as pool:  # hashing lets other threads run, and the job waits for all of it
            files = list(pool.map(_flushed, [self.new] * len(paths), paths))
        document = self._document(files)
        if part:
            document["rank"] = rank
        text = _canonical({**document, "mac": _mac(document)})
        with (self.new / (f"skyplan-part-r{rank:02d}.json" if part else MANIFEST)).open("xb") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        for folder in [*(path for path in self.new.rglob("*") if path.is_dir()), self.new]:
            _flush_folder(folder)
        os.rename(str(self.new), str(self.whole))  # noqa: PTH104  the same word as in the crash test's list of boundaries
        _flush_folder(self._root)

    def drop(self) -> None:
        if self._begun:
            shutil.rmtree(str(self.new), ignore_errors=True)

    def _document(self, files: list[dict[str, Any]]) -> dict[str, Any]:
        job, generation = os.environ.get("SKYPLAN_JOB", "job"), int(os.environ.get("SKYPLAN_GENERATION") or 1)
        prefix = os.environ.get("SKYPLAN_CHECKPOINT_URI") or self._root.resolve().as_uri() + "/"
        return {
            "bytes": sum(file["bytes"] for file in files),
            "created_at": dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),  # noqa: UP017
            "files": files,
            "format": 1,
            "framework": self._framework,
            "generation": generation,
            "job": job,
            "nodes": int(os.environ.get("SKYPLAN_NODES") or 1),
            "project": os.environ.get("SKYPLAN_PROJECT_NAME", ""),
            "run": os.environ.get("SKYPLAN_RUN") or f"{job}-g{generation}",
            "step": self._step,
            "uri": f"{prefix.rstrip('/')}/{self.whole.name}/",
            "world_size": self._world_size,
        }


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise CheckpointError(f"{path.name} is neither a file nor a folder: a checkpoint holds its own content")
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST or name.startswith("skyplan-part-") or re.search(r"[\x00-\x1f\x7f\\\ud800-\udfff]", name):
            raise CheckpointError(f"{name!r} is no name for a file of a checkpoint")
        if path.is_file():
            yield path


def _flushed(folder: Path, path: Path) -> dict[str, Any]:
    """A file's entry, once it is on disk."""
    sha256, size = hashlib.sha256(), 0
    with path.open("rb") as opened:
        os.fsync(opened.fileno())
        for piece in iter(lambda: opened.read(1 << 20), b""):
            sha256.update(piece)
            size += len(piece)
    return {"bytes": size, "path": path.relative_to(folder).as_posix(), "sha256": sha256.hexdigest()}


def _flush_folder(folder: Path) -> None:
    opened = os.open(str(folder), os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _mac(document: dict[str, Any]) -> str:
    """Nothing where the job has no key: the agent, which has it, then signs."""
    path = os.environ.get("SKYPLAN_CHECKPOINT_KEY_FILE")
    if not path:
        return ""
    key = bytes.fromhex(Path(path).read_text("ascii").strip())
    digest = hashlib.sha256(_canonical(document)).hexdigest()
    lines = (DOMAIN, *(str(document[name]) for name in ("project", "job", "generation", "step", "uri")), digest)
    return hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).hexdigest()


@contextlib.contextmanager
def _scratch(ranks: Any, *, first: bool) -> Generator[Path, None, None]:
    _once("SKYPLAN_CHECKPOINTS is not set: checkpoints are written and thrown away")
    mine = tempfile.mkdtemp(prefix="skyplan-job-") if first else ""
    try:
        yield Path(next(name for node, name in _gathered(ranks, (_node(), mine)) if name and node == _node()))
        _gathered(ranks, True)  # nobody writes there any more
    finally:
        if mine:
            shutil.rmtree(mine, ignore_errors=True)


# --- several processes (torch.distributed, where the job has brought it up)


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK") or 0)


def _node() -> str:
    return f"{os.environ.get('SKYPLAN_RANK', '')} {platform.node()}"


def _world() -> Any:
    """torch.distributed where it is up and has more than one rank, else None."""
    found: Any = sys.modules.get("torch.distributed")
    return found if found and found.is_available() and found.is_initialized() and found.get_world_size() > 1 else None


def _gathered(ranks: Any, value: Any) -> list[Any]:
    """Every rank's value, on every rank."""
    if ranks is None:
        return [value]
    found: list[Any] = [None] * ranks.get_world_size()
    ranks.all_gather_object(found, value)
    return found


def _agreed(asked: bool, *, everywhere: bool) -> bool:
    return any(_gathered(_world() if everywhere else None, asked))


def _together(ranks: Any, act: Callable[[], None] | None) -> None:
    """Every rank's part of one step.  Raises CheckpointError on all where it failed on one."""
    failed: Exception | None = None
    try:
        if act:
            act()
    except Exception as error:  # noqa: BLE001  whatever it is, the other ranks must hear of it
        failed = error
    words = [word for word in _gathered(ranks, str(failed) if failed else "") if word]
    if words:
        raise CheckpointError("; ".join(words)) from failed


# --- PyTorch


def _library(name: str) -> Any:
    """Only jobs that use it have it."""
    return importlib.import_module(name)


def load(path: str | os.PathLike[str], **options: Any) -> Any:
    """`torch.load` of tensors and plain values only: no file runs code here unless `weights_only=False` is said."""
    return _library("torch").load(path, **{"weights_only": True, "map_location": "cpu", **options})


def _alone() -> bool:
    ranks = _library("torch.distributed")
    return not (ranks.is_available() and ranks.is_initialized())


def save_distributed(state: dict[str, Any], step: int, **options: Any) -> None:
    """A checkpoint by torch.distributed.checkpoint; called by all ranks.  `options` are those of its `save`."""
    dcp, alone = _library("torch.distributed.checkpoint"), _alone()
    with checkpoint(step, framework="torch.distributed.checkpoint", everywhere=True) as folder:
        dcp.save(state, storage_writer=dcp.FileSystemWriter(str(folder)), no_dist=alone, **options)


def load_distributed(state: dict[str, Any], folder: str | os.PathLike[str] | None = None) -> bool:
    """Load in place from `folder`, or from where the agent says; False at a first start.  Called by all ranks, of which there may be more or fewer than before.

    Weights only, as `load`: the library itself would unpickle anything that `.metadata` and its non-tensor values hold (torch 2.13.0).
    """
    found = folder or resume_from()
    if found is None:
        return False
    dcp, alone = _library("torch.distributed.checkpoint"), _alone()

    class Reader(dcp.FileSystemReader):
        def read_metadata(self, *given: Any, **named: Any) -> Any:
            with (Path(found) / ".metadata").open("rb") as opened:
                _Plain(opened).load()  # raises where there is more in it
            inherited: Any = super()
            return inherited.read_metadata(*given, **named)

    class Planner(dcp.DefaultLoadPlanner):
        def load_bytes(self, read_item: Any, value: Any) -> None:
            load(value)
            value.seek(0)
            inherited: Any = super()
            inherited.load_bytes(read_item, value)

    dcp.load(state, storage_reader=Reader(str(found)), planner=Planner(), no_dist=alone)
    return True


class _Plain(pickle.Unpickler):
    """Builds what DCP's `.metadata` is made of, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        kind: Any = super().find_class(module, name) if module in _PLAIN and "." not in name else None
        if isinstance(kind, type) and kind.__module__ == module and module != "torch":
            return kind
        if name in {"PosixPath", "Size", "_get_layout"} or type(kind).__name__ == "dtype":
            return kind
        raise pickle.UnpicklingError(f"{module}.{name} is nothing that a checkpoint's metadata holds")


_PLAIN = {
    "torch",
    "torch.serialization",
    "pathlib",
    "torch.distributed.checkpoint.metadata",
    "torch.distributed.checkpoint.filesystem",
}


# --- Hugging Face, Lightning


class _Watch:
    """What is asked, agreed on by all ranks about once a second: at steps that all know from the last time, since asking each other costs time."""

    def __init__(self) -> None:
        self._next, self._step, self._at = 0, 0, 0.0

    def asked(self, step: int) -> tuple[bool, bool]:
        """(checkpoint, stop)."""
        ranks = _world()
        if ranks is not None and step < self._next:
            return False, False
        now = time.monotonic()
        rate = (step - self._step) / (now - self._at) if 0 < self._at < now else 1.0
        self._step, self._at = step, now
        seen = _gathered(ranks, (should_checkpoint(), should_stop(), rate))
        self._next = step + max(1, int(min(rate for _, _, rate in seen)))
        stop = any(one for _, one, _ in seen)
        return stop or any(one for one, _, _ in seen), stop


def transformers_callback(**options: Any) -> Any:
    """For `Trainer(callbacks=[…])`: tells steps, has the Trainer save when asked to, and makes each of its checkpoints one of skyplan's.

    Go on by `trainer.train(resume_from_checkpoint=skyplan_job.resume_from())`.
    """
    watch = _Watch()

    class Callback(_library("transformers").TrainerCallback):
        def on_log(self, *given: Any, logs: dict[str, Any], **_: Any) -> None:
            state = given[1]
            numbers = {
                k: v for k, v in logs.items() if k not in {"step", "loss", "rate"} and isinstance(v, (int, float))
            }
            if state.is_world_process_zero:
                report(state.global_step, loss=logs.get("loss"), **numbers)

        def on_step_end(self, *given: Any, **_: Any) -> None:
            state, control = given[1:3]
            save, stop = watch.asked(state.global_step)
            if save:
                control.should_save = True
            if stop:
                control.should_training_stop = True

        def on_save(self, *given: Any, **_: Any) -> None:
            args, state = given[:2]
            saved = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            with checkpoint(state.global_step, framework="transformers", everywhere=True, **options) as folder:
                _gathered(_world(), None)  # every rank has saved its part
                if _local_rank() == 0:
                    shutil.copytree(str(saved), str(folder), copy_function=_linked, dirs_exist_ok=True)

    return Callback()


def _linked(source: str, target: str) -> None:
    """A second name where that can be, as nobody writes into a saved file again; a copy elsewhere."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def lightning_callback(*, every_steps: int | None = None, loss: str = "loss") -> Any:
    """For `Trainer(callbacks=[…])`: tells steps, checkpoints when asked to and after each `every_steps`, ends the fit when asked to.

    Go on by `trainer.fit(model, data, **skyplan_job.lightning_resume())`.  `loss` names the logged metric that is the loss.
    """
    watch = _Watch()

    class Callback(_lightning().Callback):
        saved = -1

        def on_train_batch_end(self, trainer: Any, _: Any, outputs: Any, *__: Any) -> None:
            step = trainer.global_step
            given = cast("Any", outputs).get("loss") if isinstance(outputs, dict) else outputs
            if trainer.is_global_zero:
                report(step, loss=trainer.callback_metrics.get(loss, given))
            asked, stop = watch.asked(step)
            due = bool(every_steps) and step % (every_steps or 1) == 0 and step != self.saved
            if due or asked:
                self.saved = step
                with checkpoint(step, framework="lightning", everywhere=True) as folder:
                    trainer.save_checkpoint(str(folder / "lightning.ckpt"))
            if stop:
                trainer.should_stop = True

    return Callback()


def lightning_resume() -> dict[str, Any]:
    """`ckpt_path` (and `weights_only` where Lightning has it: 2.6 on) for `fit`; empty at a first start."""
    found = resume_from()
    if found is None:
        return {}
    only = {"weights_only": True} if "weights_only" in inspect.signature(_lightning().Trainer.fit).parameters else {}
    return {"ckpt_path": str(found / "lightning.ckpt"), **only}


def _lightning() -> Any:
    try:
        return _library("lightning.pytorch")
    except ImportError:
        return _library("pytorch_lightning")  # its older name


# --- jobs in other languages


def main(words: list[str] | None = None) -> int:
    """`checkpoint --step N -- COMMAND…`: COMMAND writes into $SKYPLAN_CHECKPOINT_FOLDER, which becomes whole if it ends with 0; the exit code."""
    parser = argparse.ArgumentParser(prog="skyplan_job", description="Make a checkpoint of what a command writes.")
    made = parser.add_subparsers(required=True, metavar="WORD").add_parser("checkpoint", description=main.__doc__)
    made.add_argument("--step", type=int, required=True)
    made.add_argument("--framework", default="")
    made.add_argument("command", nargs="+", metavar="-- COMMAND")
    chosen = parser.parse_args(words)
    try:
        with checkpoint(chosen.step, framework=chosen.framework) as folder:
            subprocess.run(chosen.command, env={**os.environ, "SKYPLAN_CHECKPOINT_FOLDER": str(folder)}, check=True)
    except (CheckpointError, OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"skyplan_job: no checkpoint of step {chosen.step}: {error}\n")
        return max(getattr(error, "returncode", 1), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
