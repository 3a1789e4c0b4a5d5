"""`runtime_bed` for a job whose machines Terraform makes: whoever appears in the cloud and in the record boots an agent here, and dies with its machine.

Real are control plane, agents, training, store (a folder) and record; the machines are whatever `alive` says there is.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from planner.migration.document import to_document
from planner.migration.steps import steps_of
from planner.model.migration import REASON_CODES, MigrationDiff, MigrationReason, Standing
from planner.model.plan import PlacementPlan
from planner.model.record import RunStatus
from planner.model.runtime import Seat
from tests.e2e.runtime_bed import JOB, PROJECT, Bed, Front, expected

Alive = Callable[[], set[str]]
"""Ids of the job's machines, by the cloud's own word."""


class MovingBed(Bed):
    """One job over several machines.  `cloud`: whose notices its agents look for."""

    def __init__(self, folder: Path, archive: Path, alive: Alive, *, cloud: str = "", pace: float = 0.1) -> None:
        super().__init__(folder, archive, total=100_000, every=100_000, pace=pace)
        self.record.release(self._lease, datetime.now(UTC))
        self._alive, self._cloud = alive, cloud
        self._over = threading.Event()
        self._booted: dict[int, str] = {}
        self._thread = threading.Thread(target=self._machines, daemon=True)

    def start(self) -> None:
        """The control plane, and the machines."""
        self.start_server()
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        if self._thread.ident:
            self._thread.join()
        super().close()

    def boot(self, generation: int, machine: str) -> None:
        """A node as cloud-init would have set it up, with a token by hand."""
        front = self.fronts[generation] = Front()
        front.upstream = self.port
        node = self.node(generation)
        node.mkdir()
        token = hashlib.sha256(f"{self.folder} {generation}".encode()).hexdigest()
        (node / "token").write_text(token)
        (node / "token").chmod(0o600)
        now = datetime.now(UTC)
        seat = Seat(job=JOB, generation=generation, rank=0)
        hashed = hashlib.sha256(token.encode()).hexdigest()
        self.runtime.put_one_time(seat, token_sha256=hashed, expires_at=now + timedelta(hours=1), at=now)
        config = {
            "project": PROJECT,
            "job": JOB,
            "generation": generation,
            "rank": 0,
            "nodes": 1,
            "instance_id": machine,
            **({"cloud": self._cloud} if self._cloud else {}),
            "control_plane": {"url": f"http://127.0.0.1:{front.port}"},
            "token_file": str(node / "token"),
            "checkpoint": {"uri": f"{self.store.as_uri()}/", "folder": str(node / "checkpoints")},
            "state_folder": str(node / "state"),
            "run_folder": str(node / "run"),
            "heartbeat_seconds": 1,
            "wait_seconds": 60,
            "log": False,
            "interruption": {"grace_seconds": 2},
        }
        (node / "agent.json").write_text(json.dumps(config))
        self.start_agent(generation)

    def _machines(self) -> None:
        while not self._over.is_set():
            there = self._alive()
            for run in self.record.runs(JOB):
                nodes = self.record.nodes(JOB, run.generation)
                if run.status is RunStatus.RUNNING and run.generation not in self._booted and nodes:
                    machine = nodes[0].instance_id
                    if machine in there:
                        self._booted[run.generation] = machine
                        self.generation = run.generation
                        self.boot(run.generation, machine)
            for generation, machine in list(self._booted.items()):
                if machine and machine not in there:
                    self._booted[generation] = ""
                    self.kill_node(generation)
            time.sleep(0.5)

    # what is true

    def told(self, generation: int) -> int:
        """The newest step that the record has of a generation; 0 where it has none."""
        found = self.runtime.recent(JOB, generation=generation, limit=1)
        return found[-1].step if found else 0

    def wrong(self) -> list[str]:
        """What is not as it must be in how steps follow one another."""
        curves = {generation: self.curve(generation) for generation in sorted(self._booted)}
        truth = expected(max(step for curve in curves.values() for step, _ in curve))
        found = list[str]()
        for generation, curve in curves.items():
            found += [f"generation {generation}, step {s}: {loss}" for s, loss in curve if truth[s] != loss]
            cut = self.cut(generation)
            start = cut.chosen.step if cut and cut.chosen else 0
            if self.resumed(generation) != [start]:
                found.append(f"generation {generation} resumed at {self.resumed(generation)}, its cut is {start}")
            before = [it.step for it in self.valid() if it.generation < generation]
            if start != max(before, default=0):
                found.append(f"generation {generation} began at {start}, and {max(before, default=0)} was saved")
        return found


def diff_of(bed: Bed, plan: PlacementPlan, reason: MigrationReason, region: str, *, most: int = 2) -> MigrationDiff:
    """What `skyplan replan` would write: from what runs to the plan's places in a region."""
    run = next(r for r in reversed(bed.record.runs(JOB)) if r.status is not RunStatus.FAILED)
    here = next(p for p in plan.ranked if p.placement_id == run.placement_id)
    to = tuple(p for p in plan.ranked if p.region == region and p.placement_id != run.placement_id)[:most]
    told = bed.runtime.recent(JOB, generation=run.generation, limit=1)
    return MigrationDiff(
        job=JOB,
        project=PROJECT,
        reason=reason,
        code=REASON_CODES[reason],
        text="the price dropped there" if reason is MigrationReason.SAVING else "the cloud takes the node back",
        standing=Standing(
            generation=run.generation,
            offer_id=run.offer_id,
            pool=run.pool,
            placement_id=run.placement_id,
            region=run.region,
            topology=here.topology,
            status=run.status.value,
            usd_per_hour=run.usd_per_hour,
            remaining_usd=None,
            remaining_hours=None,
            step=told[-1].step if told else None,
            checkpoint_step=None,
            checkpoint_uri="",
        ),
        to=to,
        terms=(),
        numbers={},
        runner_up="",
        stop_minutes=to[0].finish_hours,
        steps=steps_of(reason, old=run.id, new=region),
        plan_digest=plan.digest,
        reviewed=True,
        prepared=True,
    )


def write_diff(path: Path, diff: MigrationDiff) -> str:
    """The file's name."""
    path.write_text(json.dumps(to_document(diff)), encoding="utf-8")
    return str(path)
