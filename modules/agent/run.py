"""One seat's work from its first start to the end of the node: join, resume, the job, its reports, its end.

One loop, once a second or when a signal comes: it reads what the job wrote, hands on what is asked of the job, and keeps the times.  Everything that may wait for
somebody else (control plane, store, broker, metadata service) is a thread of its own that leaves its finds in `_inbox`.

Order that matters: a new attempt begins only once the control plane took this seat and the cut is known, so that an older generation never runs beside a newer
one; a job that already runs is taken over without asking anybody; what the job wrote is read to its end before its exit is told, and told once.
"""

from __future__ import annotations

import collections
import contextlib
import math
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from . import commands, parts, surroundings
from . import job as jobs
from .attempt import Attempt, Stop
from .client import epoch, stamp
from .errors import FENCED, PAST_END, SYSTEM, AgentError
from .gpu import Gpus
from .parting import parting
from .place import Place
from .reporter import Reporter
from .spool import Spool
from .start import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from .settings import Settings

TICK_SECONDS = 1.0
SETTLING_SECONDS = 0.2
LEAD_SECONDS = 300.0
"""So long before the hard end, at most a tenth of the run, the job is asked for its last checkpoint."""
STOP_SECONDS = 120.0
"""What a job that is asked to stop gets, where the asker names no time."""


class Run:
    """`clock` is wall time: hard ends and deadlines are moments of the world, not of this process."""

    def __init__(
        self,
        settings: Settings,
        command: Sequence[str],
        *,
        told: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._command, self._told, self._clock = settings, tuple(command), told, clock
        self._place = Place(settings.state_folder, settings.run_folder, settings.seat)
        self._spool = Spool(self._place.base / "spool", settings.spool_bytes, told)
        self._inbox: collections.deque[tuple[str, Any]] = collections.deque()
        self._wake_read, self._wake_write = os.pipe()
        for one in (self._wake_read, self._wake_write):
            os.set_blocking(one, False)
        self._signals: list[int] = []
        self._plane = parts.plane(settings, self._place)
        self._reporter = self._make_reporter()
        self._leases = parts.leases(settings, self._place, self._spool, ask=self._asked, final=self._final)
        self._notices = parts.notices(settings, lambda notice: self._leave("notice", notice), told)
        self._checkpoints = parts.checkpoints(
            settings, self._place, self._spool, plane=self._plane, leases=self._leases, told=told
        )
        self._start = Start(self._reporter, self._leases, self._checkpoints, leave=self._leave, told=told)
        self._gpus = Gpus()
        self._attempt: Attempt | None = None
        self._exit: jobs.Exit | None = None
        self._stop: Stop | None = None
        self._kill_at = self._gone_at = math.inf
        self._leaves_at: float | None = None
        self._fenced = self._hurry = False
        self._ready: dict[str, str | None] | None = None
        self._early: tuple[str, float | None] | None = None  # asked before there was a job to ask
        self._next_heartbeat = self._next_report = 0.0
        self._began = self._place.began()

    def go(self) -> int:
        """Work until the end; the exit code: the job's, or why there was none."""
        ended = self._place.ended()
        if ended:
            self._told(f"this seat's work has ended: {ended.get('reason', '')}")
            self._end_node()
            self._release()
            code = ended.get("code")
            return code if isinstance(code, int) else 0
        handlers = self._catch()
        try:
            self._begin()
            while True:
                self._tick()
                if self._exit is not None and self._settled():
                    return self._finish(self._exit)
                self._sleep(TICK_SECONDS if self._exit is None else SETTLING_SECONDS)
        finally:
            self._release()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    # beginning

    def _make_reporter(self) -> Reporter | None:
        if self._plane is None:
            return None
        return Reporter(
            self._plane,
            self._spool,
            requests=lambda asked: self._leave("requests", asked),
            final=self._final,
            told=self._told,
        )

    def _begin(self) -> None:
        for part in (self._reporter, self._leases, self._notices):
            if part is not None:
                part.start()
        last = jobs.newest(self._place.jobs)
        # where nobody is told of it, a job that was killed with its agent is gone on with at once
        if last is not None and last.take_over(tell_lost=self._plane is not None):
            self._told(f"the job runs already: attempt {last.number} is taken over")
            self._follow(last)
            if self._checkpoints is not None:
                self._checkpoints.start()
        else:
            self._start.start()
        if "stop" in self._spool.marks:
            self._end_by("it was asked to stop", self._spool.marks["stop"])

    def _start_job(self, more: dict[str, str | None]) -> None:
        job = jobs.following(self._place.jobs, jobs.newest(self._place.jobs))
        key = self._checkpoints.key if self._checkpoints is not None else None
        laid_out = self._place.lay_out(job.number, key)
        environment = surroundings.variables(self._settings, os.environ, laid_out, self._place.python, more)
        stop_at = self._stop_at()
        marks = {"stop_at": int(stop_at)} if stop_at < math.inf else {}
        self._spool.add("event", {"word": "started", "text": f"attempt {job.number}"}, marks=marks)
        job.start(self._command, environment)
        self._follow(job)

    def _follow(self, job: jobs.Job) -> None:
        self._attempt = Attempt(
            job,
            self._place,
            self._spool,
            made=self._checkpoints.made if self._checkpoints is not None else lambda _folder: None,
            told=self._told,
            report=self._settings.log and self._plane is not None,
            show=self._settings.terminal,
        )
        if self._early is not None:
            self._ask(*self._early)

    # once a second

    def _tick(self) -> None:
        now, steady = self._clock(), time.monotonic()  # a clock that is set back silences nobody
        self._heard()
        if self._reporter is not None and steady >= self._next_heartbeat:
            self._next_heartbeat = steady + self._settings.heartbeat_seconds
            self._spool.add("heartbeat", self._gpus.poll())
        self._times(now)
        if self._exit is not None:
            pass  # its checkpoints are still on their way
        elif self._attempt is not None:
            self._exit = self._attempt.job.poll()
            self._attempt.read(last=self._exit is not None)
        elif self._stop is not None:
            self._exit = jobs.Exit(self._stop.code, None)
        elif self._ready is not None:
            try:
                self._start_job(self._ready)
            except (AgentError, OSError, ValueError) as error:  # no room, no shell: to start again would not help
                self._ready = None
                self._leave("failed", f"{type(error).__name__}: {error}")
        self._spool.flush()
        if self._reporter is None:
            self._spool.taken(sys.maxsize)  # nobody asks for it
        elif not self._spool.empty and (self._spool.urgent or steady >= self._next_report):
            self._spool.urgent = False
            self._next_report = steady + self._settings.report_seconds
            self._reporter.wake()

    # what is asked of the job

    def _heard(self) -> None:
        while self._signals:
            self._caught(self._signals.pop(0))
        while self._inbox:
            word, what = self._inbox.popleft()
            if word == "ready":
                self._ready = what
            elif word == "failed":
                self._told(f"the job cannot begin: {what}")
                self._end_by(f"the job cannot begin: {what}", 0, code=SYSTEM)
            elif word == "final":
                self._fenced = True
                self._told(f"this run is over: {what}")
                self._end_by(f"this run is over: {what}", 0, code=FENCED)
            elif word == "notice":
                self._noticed(what)
            elif word == "ask":
                self._ask(*what)
            elif word == "requests":
                for one in what:
                    self._requested(one)

    def _requested(self, one: Any) -> None:
        try:
            number, word, reason = int(one["id"]), str(one["word"]), str(one.get("reason", ""))
            deadline = epoch(one["deadline"]) if one.get("deadline") else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return
        if number <= self._spool.marks.get("request", 0):
            return
        end = self._clock() + STOP_SECONDS if deadline is None else deadline
        marks = {"request": number, **({"stop": int(end)} if word == "stop" else {})}
        self._spool.add("event", {"word": "asked", "text": f"{word}: {reason}"[:500]}, marks=marks)
        if word == "checkpoint":
            self._ask(reason, deadline)
        elif word == "stop":
            self._end_by(reason, end)

    def _noticed(self, notice: dict[str, Any], *, ask: bool = True) -> None:
        if self._gone_at < math.inf:
            return  # the agent's own SIGTERM said it, and the job was asked
        what, text = str(notice.get("what", "spot")), notice.get("deadline")
        self._spool.add("notice", {"what": what, **({"deadline": text} if text else {})})
        deadline = None
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            deadline = epoch(text) if text else None
        if what == "spot" and deadline is not None:
            self._leaves_at = deadline
        when = "soon" if deadline is None else f"in {max(int(deadline - self._clock()), 0)} s"
        self._told(f"SKY-RUN-518: the cloud takes this node {when} ({what})")
        if ask:
            self._ask(f"the cloud takes this node {when}", deadline)

    def _ask(self, reason: str, deadline: float | None, *, stop: bool = False) -> None:
        if self._attempt is None:
            self._early = (reason, deadline)
        else:
            self._attempt.ask(reason, deadline, stop=stop)

    def _end_by(
        self, reason: str, at: float, number: int = signal.SIGTERM, code: int = PAST_END, grace: float | None = None
    ) -> None:
        """The job ends by then, at the latest.  An earlier end that was decided before stays."""
        if self._stop is not None and self._stop.at <= at:
            return
        self._stop = Stop(reason, at, number, code, self._settings.grace_seconds if grace is None else grace)
        self._spool.add("event", {"word": "stopping", "text": reason[:500]})
        if at > self._clock():
            self._ask(reason, at, stop=True)

    def _stop_at(self) -> float:
        ends = [math.inf]
        if self._settings.stop_after_hours is not None:
            ends.append(self._began + self._settings.stop_after_hours * 3600)
        joined = self._plane.joined if self._plane is not None else None
        if joined is not None and joined.stop_at is not None:
            ends.append(joined.stop_at)
        if "stop_at" in self._spool.marks:
            ends.append(self._spool.marks["stop_at"])
        return min(ends)

    def _times(self, now: float) -> None:
        ends = self._stop_at()
        if self._stop is None and ends < math.inf:
            lead = min(LEAD_SECONDS, (ends - self._began) / 10)
            if now >= ends - lead and self._attempt is not None:
                self._end_by(f"the hard end is at {stamp(ends)}", ends)
            elif now >= ends:
                self._end_by("the hard end came before the job could begin", ends)
        if self._attempt is None or self._stop is None or self._exit is not None:
            return
        if time.monotonic() >= self._kill_at:
            self._attempt.job.signal(signal.SIGKILL)
        elif now >= self._stop.at and self._kill_at == math.inf:
            self._told(f"the job is stopped: {self._stop.reason}")
            self._kill_at = time.monotonic() + self._stop.grace_seconds
            self._attempt.job.signal(self._stop.number)

    # the end

    def _finish(self, ended: jobs.Exit) -> int:
        code = ended.code
        if self._attempt is not None:
            self._attempt.job.sweep()
            attempt = self._attempt.job.number
            if self._spool.marks.get("exit", 0) < attempt:
                if ended.lost:
                    self._spool.add(
                        "event", {"word": "lost", "text": "the job was gone, and nothing says how it ended"}
                    )
                body = {"code": code, **({} if ended.signal is None else {"signal": ended.signal})}
                self._spool.add("exit", body, marks={"exit": attempt})
        elif not self._fenced and not self._spool.marks.get("exit"):
            self._spool.add("exit", {"code": code}, marks={"exit": 1})
        if not self._fenced and self._reporter is not None:
            self._spool.flush()
            if not self._reporter.drain(self._settings.wait_seconds, self._must_go):
                self._told("SKY-RUN-510: not everything could be reported")
        reason = self._stop.reason if self._stop else f"the job ended with code {code}"
        self._told(reason)
        with contextlib.suppress(AgentError):  # a full disk keeps no node from being ended
            self._place.end(code, reason)
        self._end_node()
        return code

    def _settled(self) -> bool:
        """Whether the job's checkpoints are put away, or no longer waited for.  The job's end is told after them: whoever hears of it may end this node."""
        return self._checkpoints is None or self._fenced or self._must_go() or self._checkpoints.settled()

    def _must_go(self) -> bool:
        """A second signal, a fence, the machine's or the hard end cuts the last waits short."""
        while self._signals:
            self._caught(self._signals.pop(0))
        over = self._reporter is not None and bool(self._reporter.over)
        ends = min(self._gone_at, self._stop_at() + self._settings.wait_seconds)
        return self._hurry or over or self._clock() > ends

    def _end_node(self) -> None:
        if self._settings.end:
            commands.end(self._settings.end, self._told)

    def _release(self) -> None:
        for part in (self._start, self._notices, self._checkpoints, self._leases, self._reporter):
            if part is not None:
                part.stop()
        self._spool.close()
        self._place.close()
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)

    # from outside

    def _leave(self, word: str, what: Any) -> None:
        """From any thread."""
        self._inbox.append((word, what))
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"\0")

    def _asked(self, reason: str, deadline: float) -> None:
        self._leave("ask", (reason, deadline))

    def _final(self, word: str, text: str) -> None:
        self._leave("final", f"{word}: {text}")

    def _sleep(self, seconds: float) -> None:
        ready, _, _ = select.select([self._wake_read], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):
                os.read(self._wake_read, 4096)

    def _catch(self) -> dict[int, Any]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        kept: dict[int, Any] = {signal.SIGCHLD: signal.signal(signal.SIGCHLD, _nothing)}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            kept[number] = signal.signal(number, self._note)
        return kept

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _caught(self, number: int) -> None:
        first, now = self._gone_at == math.inf, self._clock()
        cloud = self._settings.cloud if number == signal.SIGTERM and first else ""
        if not cloud and (self._kill_at < math.inf or self._exit is not None):  # again, or while the end is waited for
            self._kill_at, self._hurry = 0, True
            return
        plan = parting(cloud, now, self._settings.grace_seconds, self._leaves_at)
        if plan.notice_at is not None:
            self._noticed({"what": "spot", "deadline": stamp(plan.notice_at)}, ask=False)
        self._gone_at = min(self._gone_at, plan.gone_at)
        if self._exit is None:
            reason = f"the agent got {signal.Signals(number).name}"
            self._end_by(reason, plan.job_at, number, 128 + number, plan.grace_seconds)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """So that a child's end wakes the loop."""


def to_stderr(words: str) -> None:
    """How the agent tells what it does."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"skyplan-agent: {words}\n")
        sys.stderr.flush()
