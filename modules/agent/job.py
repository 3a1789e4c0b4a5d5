"""The job's process: started once, watched, ended with all that it began; it outlives this agent, and the next agent takes it over.

A small shell stands between: it writes the job's exit code to a file, so that the code is known whoever asks for it.  It, and what it starts, hold a lock on
the attempt's folder (an inherited descriptor): where the lock is free the process is gone, whatever has its number now.  Whoever makes the file `pid` first, the
shell or an agent that finds a start half done, decides whether that start counts: the job never runs twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHELL = """
folder=$1
shift
set -C
echo $$ > "$folder/pid" || exit 125
trap : HUP INT QUIT TERM USR1 USR2
(exec "$@")
code=$?
echo $code >| "$folder/exit.new" && mv -f "$folder/exit.new" "$folder/exit"
exit $code
"""
_BY_SIGNAL = 128
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PID_SECONDS = 5.0


class Exit(NamedTuple):
    """How the job ended.  `lost`: its code is not known, everything of it was gone."""

    code: int
    signal: int | None
    lost: bool = False


class Job:
    """One attempt at running the job, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "output.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def number(self) -> int:
        """Of the attempt, from 1."""
        return int(self.folder.name)

    def start(self, command: Sequence[str], environment: Mapping[str, str], workdir: str | None = None) -> None:
        """Raises OSError where there is no shell or no room."""
        files.folder(str(self.folder))
        files.write(self.folder / "boot", boot())
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        output = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", _SHELL, "skyplan-job", str(self.folder), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment),
                cwd=workdir,
                pass_fds=(lock,),
                start_new_session=True,
            )
            self._pid = self._child.pid
        finally:
            os.close(lock)
            os.close(output)

    def take_over(self, *, tell_lost: bool = True) -> bool:
        """Whether this attempt counts: it runs, or ended and its end is known, or (`tell_lost`) was lost while the machine was on.  False: begin another one."""
        try:
            os.close(os.open(self.folder / "pid", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        else:
            return False  # it had not begun, and now never will
        ends = time.monotonic() + _PID_SECONDS
        while not self._pid and time.monotonic() < ends:
            with contextlib.suppress(ValueError):
                self._pid = int((self.folder / "pid").read_text("ascii"))
            if not self._pid and not self._locked():
                return False
            if not self._pid:
                time.sleep(0.01)
        if self._code() is not None or self._locked():
            return True
        with contextlib.suppress(OSError):
            return tell_lost and (self.folder / "boot").read_text("ascii") == boot() != ""
        return False

    def poll(self) -> Exit | None:
        """How it ended; None while it runs."""
        code = self._code()
        if code is None and not self._alive():
            code = self._code()  # it may have been written between the two looks
            if code is None:
                ended = self._child.returncode if self._child else None
                if ended is not None and ended >= 0:  # there was no room to write it down
                    return _exit(ended)
                number = -ended if ended is not None and ended < 0 else signal.SIGKILL
                return Exit(_BY_SIGNAL + number, number, lost=self._child is None)
        return None if code is None else _exit(code)

    def signal(self, number: int) -> None:
        """To the job and all that it started."""
        if self._pid > 1 and (self._alive() or number == signal.SIGKILL):
            with contextlib.suppress(OSError):
                os.killpg(self._pid, number)

    def sweep(self) -> None:
        """End what the job left running, once it has ended."""
        if self._child is not None or self._locked():  # else the number may be somebody else's by now
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)
        if self._child is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=5)

    def owns(self, pid: int) -> bool:
        """Whether a process is one of the job's."""
        try:
            return pid > 1 and os.getsid(pid) == self._pid
        except OSError:
            return False

    def _code(self) -> int | None:
        try:
            return int((self.folder / "exit").read_text("ascii"))
        except (OSError, ValueError):
            return None

    def _alive(self) -> bool:
        return self._child.poll() is None if self._child is not None else self._locked()

    def _locked(self) -> bool:
        try:
            lock = os.open(self.folder / "lock", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False


def _exit(code: int) -> Exit:
    by = code - _BY_SIGNAL
    return Exit(code, by if 0 < by < signal.NSIG else None)


def newest(folder: Path) -> Job | None:
    """The last attempt that was made."""
    numbers = [int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()]
    return Job(folder / str(max(numbers))) if numbers else None


def following(folder: Path, last: Job | None) -> Job:
    """The next attempt."""
    return Job(folder / str(last.number + 1 if last else 1))


def boot() -> str:
    """Of which start of the machine this is; "" where it does not say so."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return _BOOT.read_text("ascii").strip()
    return ""
