"""One attempt at the job while it runs: what it writes goes into the spool, what is asked of it into its control file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import progress
from .control import Control
from .errors import AgentError
from .output import Output
from .tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from .job import Job
    from .place import Place
    from .spool import Spool


class Stop(NamedTuple):
    """The job is to end: SIGTERM (or `number`) at `at`.  `code` is this program's where there was no job to end."""

    reason: str
    at: float
    number: int
    code: int
    grace_seconds: float


class Attempt:
    """`made` gets the folders of checkpoints that the job says are whole.  `report` and `show`: where the job's output goes."""

    def __init__(
        self,
        job: Job,
        place: Place,
        spool: Spool,
        *,
        made: Callable[[str], None],
        told: Callable[[str], None],
        report: bool,
        show: bool,
    ) -> None:
        self.job = job
        self._spool, self._made, self._told = spool, made, told
        self._mark = f"progress-{job.number}"
        self._tail = Tail(place.progress(job.number), spool.marks.get(self._mark, 0))
        self._control = Control(place.control(job.number), job.owns, memory=job.folder / "signals")
        self._output = Output(job.log, spool, f"log-{job.number}", report=report, show=show)

    def ask(self, reason: str, deadline: float | None, *, stop: bool = False) -> None:
        """For a checkpoint, and with `stop` for the end after it."""
        try:
            self._control.ask(reason, deadline, stop=stop)
        except AgentError as error:
            self._told(str(error))

    def read(self, *, last: bool) -> None:
        """Pass on what the job wrote; with `last`, to where it ends now: something that the job left running may write faster than this reads."""
        end = self._tail.size()
        while True:
            lines = self._tail.lines(progress.LONGEST_LINE)
            for raw, offset in lines:
                self._line(raw, {self._mark: offset})
            if not lines or not last or self._tail.offset >= end:
                break
        self._control.keep()
        self._tail.forget(1 << 20)  # what the spool has not flushed yet can be read again
        self._output.poll(last=last)

    def _line(self, raw: bytes, marks: dict[str, int]) -> None:
        said = progress.parse(raw) if len(raw) <= progress.LONGEST_LINE else None
        if isinstance(said, progress.Step):
            self._spool.add("progress", said.body, marks=marks)
        elif isinstance(said, progress.Made):
            self._made(said.folder)
        elif isinstance(said, progress.Wants):
            self._control.wants(said.pid, said.signal)
        elif raw.strip() and not self._spool.marks.get("told-" + self._mark):
            shown = raw[:80].decode("utf-8", "replace")
            self._told(f"a progress line says nothing (others like it are skipped silently): {shown!r}")
            told = {**marks, "told-" + self._mark: 1}
            self._spool.add("event", {"word": "progress", "text": f"a line says nothing: {shown!r}"}, marks=told)
