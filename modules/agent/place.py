"""Where this seat keeps what must outlive the agent, and what the job sees.  One agent at a time: a lock says so.

    STATE/node.key                     this machine's key for joining, made at its first start
    STATE/train-g3-r00/spool/          reports
    STATE/train-g3-r00/jobs/1/         the first attempt: its shell's number, lock, output, exit code
    STATE/train-g3-r00/{began,ended,manifest.key}
    RUN/job/                           for the job: train-g3-1.progress, train-g3-1.control.json, checkpoint.key, python/skyplan_job.py

RUN/job is what a container mounts.  It is open to every user, and the folder above to this one only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import files
from .errors import SYSTEM, AgentError

if TYPE_CHECKING:
    from .settings import Seat

_FOR_JOBS = "skyplan_job.py"


class Place:
    """The folders of one seat."""

    def __init__(self, state_folder: str, run_folder: str, seat: Seat) -> None:
        self.state = Path(state_folder)
        self.base = self.state / f"{seat.run}-r{seat.rank:02d}"
        self.run = Path(run_folder)
        self._name = seat.run
        self.job = self.run / "job"
        self.jobs = self.base / "jobs"
        files.folder(str(self.state))
        files.folder(str(self.base))
        files.folder(str(self.jobs))
        files.folder(str(self.run))
        self._lock = os.open(self.base / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise AgentError(SYSTEM, f"another agent runs {seat.run}, rank {seat.rank}, in {self.base}") from error

    def close(self) -> None:
        """Let another agent in."""
        os.close(self._lock)

    def key(self) -> str:
        """The machine's own, kept for as long as its disk lives."""
        path = self.state / "node.key"
        if not path.exists():
            files.write(path, secrets.token_hex(32))
        files.private(path)
        return path.read_text("ascii").strip()

    def began(self) -> float:
        """When this seat's agent was first started; the hard end counts from there."""
        path = self.base / "began"
        said = files.recall(path).get("at")
        if isinstance(said, (int, float)):
            return float(said)
        at = time.time()
        files.write(path, json.dumps({"at": at}) + "\n")
        return at

    def ended(self) -> dict[str, Any]:
        """How this seat's work ended; empty while it has not."""
        return files.recall(self.base / "ended")

    def end(self, code: int, reason: str) -> None:
        """Nothing of this seat is to be run any more."""
        files.write(self.base / "ended", json.dumps({"code": code, "reason": reason}) + "\n")

    def keep_manifest_key(self, key: bytes) -> None:
        """For an agent that starts again while the control plane is away."""
        if self.manifest_key() != key:
            files.write(self.base / "manifest.key", key.hex())

    def manifest_key(self) -> bytes | None:
        """As it was last told."""
        with contextlib.suppress(OSError, ValueError):
            return bytes.fromhex((self.base / "manifest.key").read_text("ascii"))
        return None

    def lay_out(self, attempt: int, manifest_key: bytes | None) -> dict[str, str]:
        """What the job finds in RUN/job, and the variables that say so.  Does nothing to what a running job uses already."""
        self.job.mkdir(mode=0o755, exist_ok=True)
        python = self.job / "python"
        python.mkdir(mode=0o755, exist_ok=True)
        _open_to_all(self.job, 0o755)
        _open_to_all(python, 0o755)
        source = _for_jobs()
        if source is not None:
            files.write(python / _FOR_JOBS, source)
            _open_to_all(python / _FOR_JOBS, 0o644)
        for old in (*self.job.glob("*.progress"), *self.job.glob("*.control.json")):
            files.forget(old)
        progress = self.progress(attempt)
        os.close(os.open(progress, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        _open_to_all(progress, 0o666)
        found = {"SKYPLAN_PROGRESS": str(progress), "SKYPLAN_CONTROL": str(self.control(attempt))}
        if manifest_key is not None:
            path = self.job / "checkpoint.key"
            files.write(path, manifest_key.hex())
            _open_to_all(path, 0o644)
            found["SKYPLAN_CHECKPOINT_KEY_FILE"] = str(path)
        return found

    def progress(self, attempt: int) -> Path:
        """What the job appends to."""
        return self.job / f"{self._name}-{attempt}.progress"

    def control(self, attempt: int) -> Path:
        """What the job reads."""
        return self.job / f"{self._name}-{attempt}.control.json"

    @property
    def python(self) -> str:
        """For PYTHONPATH."""
        return str(self.job / "python")


def _open_to_all(path: Path, mode: int) -> None:
    path.chmod(mode)  # whatever the umask says


def _for_jobs() -> str | None:
    """The job's helper, as it is packed beside this program (or lies beside it in the tree); None where it is missing."""
    loader: Any = globals().get("__loader__")
    try:
        raw: bytes = loader.get_data(str(Path(__file__).parents[1] / "job" / _FOR_JOBS))
    except (OSError, AttributeError):
        return None
    return raw.decode("utf-8")
