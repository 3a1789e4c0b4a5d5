"""One Terraform process at a time in a folder, which outlives us unharmed and is found again.

Its output goes to a file that we follow, never to a pipe: a Terraform whose reader was killed would die on its next line, before it has written
its state.  It runs in a session of its own, so that an interrupt on the terminal reaches it once, through us.  Its pid stands in a file from
before its first instruction until we have seen its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PID_FILE = "terraform.pid"
_POLL_SECONDS = 0.05
#: clocks of processes and of files are rounded to the second or worse
_CLOCK_SLACK_SECONDS = 2.0
#: writes the pid, then becomes the command: there is no moment at which it runs unrecorded
_RECORDED = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    on_line: Callable[[str], None] | None = None,
) -> Finished:
    """Run to the end.  `on_line` gets each line of standard output as it comes.

    On KeyboardInterrupt the process is interrupted too and waited for; then the interrupt goes on.
    """
    out_path, err_path = folder / "terraform.out", folder / "terraform.err"
    pid_file = folder / PID_FILE
    with out_path.open("wb") as out, err_path.open("wb") as err:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _RECORDED, str(pid_file.resolve()), *command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    interrupted = False
    with out_path.open(encoding="utf-8", errors="replace", newline="\n") as reading:
        lines = _follow(reading.readline, lambda: process.poll() is None)
        while True:
            try:
                for line in lines:
                    if on_line:
                        on_line(line)
                break
            except KeyboardInterrupt:
                interrupted = True
                signal_group(process.pid, signal.SIGINT)
                lines = _follow(reading.readline, lambda: process.poll() is None)
    code = process.wait()
    pid_file.unlink(missing_ok=True)
    if interrupted:
        raise KeyboardInterrupt
    return Finished(code, _text(out_path), _text(err_path))


def survivor(folder: Path) -> int | None:
    """Pid of a process that an earlier run started in the folder and that is still there."""
    pid, recorded = _recorded(folder)
    if pid is None:
        return None
    started = _started(pid)
    return pid if started is not None and started <= recorded + _CLOCK_SLACK_SECONDS else None


def died_unseen(folder: Path) -> bool:
    """Whether an earlier run started a process there and never saw its end."""
    return _recorded(folder)[0] is not None


def settle(folder: Path, *, patience: float, grace: float = 60.0, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Wait up to `patience` seconds for a survivor, interrupt it, and after `grace` more seconds kill it; leave no record of it.

    True if there was one.
    """
    pid, _ = _recorded(folder)
    alive = survivor(folder)
    found = alive is not None
    for signals, seconds in (((), patience), ((signal.SIGINT,), grace), ((signal.SIGKILL,), grace)):
        if alive is None:
            break
        for number in signals:
            signal_group(alive, number)
        waited = 0.0
        while survivor(folder) is not None and waited < seconds:
            sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS
        alive = survivor(folder)
    if pid is not None and _started(pid) is None:
        # plugins of a Terraform that was killed may be left in its group; the number cannot be another's while they live
        signal_group(pid, signal.SIGKILL)
    (folder / PID_FILE).unlink(missing_ok=True)
    return found


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group that `pid` leads; nothing if it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _follow(readline: Callable[[], str], alive: Callable[[], bool]) -> Iterator[str]:
    """Whole lines as they are written, until the writer is gone and nothing is left."""
    held = ""
    while True:
        running = alive()
        while piece := readline():
            held += piece
            if held.endswith("\n"):
                yield held.rstrip("\n")
                held = ""
        if not running:
            break
        time.sleep(_POLL_SECONDS)
    if held:
        yield held


def _recorded(folder: Path) -> tuple[int | None, float]:
    """Pid in the folder's file, and when it was written."""
    path = folder / PID_FILE
    try:
        return int(path.read_text(encoding="ascii").strip()), path.stat().st_mtime
    except (OSError, ValueError):
        return None, 0.0


def _started(pid: int) -> float | None:
    """When a living process began, seconds since 1970; None if there is none (or only its zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        boot = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
            if line.startswith("btime")
        )
    except OSError:
        return _started_by_ps(pid) if not Path("/proc/stat").exists() else None
    return None if fields[0] == "Z" else boot + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _started_by_ps(pid: int) -> float | None:
    """The same where there is no /proc."""
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    state, _, began = done.stdout.strip().partition(" ")
    if not began or state.startswith("Z"):
        return None
    return time.mktime(time.strptime(" ".join(began.split()), "%a %b %d %H:%M:%S %Y"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
