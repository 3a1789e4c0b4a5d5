"""A job that is trained, killed, lost, suspected and taken over, over the real record: the store, the nodes and what befalls them are modelled here.

`schedule(seed)` draws what happens, as words that real processes can be put through too; `World.apply` does one of them and `World.settle` lets the newest
generation come to rest.  A broken promise raises Broken at once:

- what the record was told of is whole in the store, and what was whole in the store at a cut is in the record: no checkpoint is lost
- nobody writes or joins once a newer generation has begun: no job is owned twice
- a generation starts from the newest file that was valid when it listed the store, and from what no fenced one wrote afterwards
- what a node reports is in the record in order, once

`bug` plants a fault in the fakes, which the promises must find: `record-first` (told before the manifest is written), `no-fence` (a server that forgets
its fence), `no-cut` (a node that lists the store again instead of asking for the cut).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import update

from planner.model.record import Node, NodeStatus, RunStatus, stamp
from planner.model.runtime import (
    Candidate,
    Item,
    Kind,
    NodeIdentity,
    Refused,
    Report,
    Seat,
    checkpoint_mac,
    checkpoint_message,
)
from planner.state import tables
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.beds import NOW, PROJECT, RUN

BUGS = ("record-first", "no-fence", "no-cut")
FATES = ("ok", "ok", "ok", "before", "reply")
WORDS = (
    *("agent",) * 16,
    *("train",) * 5,
    *("checkpoint",) * 5,
    *("zombie",) * 8,
    "kill",
    "kill",
    "lose",
    "suspect",
    "tear",
    "rot",
    "forge",
)
IDENTITY = NodeIdentity(scheme="aws-iid", cloud="aws")
T = TypeVar("T")


class Broken(AssertionError):
    """A promise did not hold."""


class Killed(Exception):
    """The server died: the caller has no answer."""


@dataclass(frozen=True)
class Step:
    """Something that happens: `word`, what becomes of the server's answer, and a number to choose by."""

    word: str
    fate: str = "ok"
    number: int = 0


def schedule(seed: int, length: int = 90) -> tuple[Step, ...]:
    """What happens, by the seed alone."""
    draw = random.Random(seed)
    return tuple(Step(draw.choice(WORDS), draw.choice(FATES), draw.randrange(1000)) for _ in range(length))


class Crashing(Runtime):
    """A server's runtime that can die between doing and committing, or between committing and answering."""

    fate = "ok"

    @contextmanager
    def _writing(self):
        with super()._writing() as connection:
            yield connection
            if self.fate == "before":
                raise Killed

    def forget_fences(self, job: str) -> None:
        """The planted fault of a server that does not keep its fence."""
        with super()._writing() as connection:
            connection.execute(update(tables.run).filter_by(project=PROJECT, job=job).values(fenced_at=None))


@dataclass
class Lying:
    """What lies at a uri in the store.  `manifest` None: not written yet."""

    generation: int
    step: int
    manifest: Candidate | None = None
    written_at: int = 0
    torn: bool = False  # a file is missing or has another size: a listing sees it
    rotten: bool = False  # a file has other contents: only fetching it tells
    forged: bool = False

    @property
    def whole(self) -> bool:
        return self.manifest is not None and not self.torn and not self.rotten and not self.forged


@dataclass
class Machine:
    """A node: what is on its disk, and in its agent's memory."""

    generation: int
    name: str
    gone: bool = False  # for good
    # disk
    spool: list[Item] = field(default_factory=list)
    made: list[Item] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)  # uris of checkpoints to upload
    spooled: set[str] = field(default_factory=set)
    step: int | None = None  # of the job; None before it started
    key: bytes = b""
    # memory
    phase: str = "join"
    turn: int = 0
    token: str = ""
    listing: tuple[int, list[Candidate], list[tuple[str, str]], set[str]] | None = None
    target: Candidate | None = None

    def tell(self, kind: Kind, **body: Any) -> None:
        item = Item(seq=len(self.made) + 1, kind=kind, at=stamp(NOW), body=body)
        self.made.append(item)
        self.spool.append(item)


class World:
    """One job."""

    def __init__(self, record: Record, runtime: Crashing, job: str, bug: str = "") -> None:
        self.record, self.runtime, self.job, self.bug = record, runtime, job, bug
        self.tick = 0
        self.store: dict[str, Lying] = {}
        self.machines: list[Machine] = []
        self.begun = 0
        self.listed: dict[int, tuple[int, set[str]]] = {}  # of cuts that were chosen: when, and what counted
        self.starts: dict[int, int] = {}
        self.refusals = 0
        self.launch()

    # what happens

    def apply(self, step: Step) -> None:
        self.tick += 1
        newest = self.machines[-1]
        match step.word:
            case "agent":
                for _ in range(1 + step.number % 6):
                    self.agent(newest, step.fate)
            case "train":
                self.train(newest, step.number)
            case "checkpoint":
                self.checkpoint(newest)
            case "zombie":
                self.zombie(step)
            case "kill":
                self.kill(newest)
            case "lose":
                newest.gone = True
                self.launch()
            case "suspect":
                self.launch()
            case "tear" | "rot" | "forge":
                self.damage(step)

    def settle(self) -> None:
        """The newest generation gets through, whatever was before; then everything is looked at."""
        newest = self.machines[-1]
        for _ in range(200):
            self.tick += 1
            if newest.phase == "run" and not newest.pending and not newest.spool and newest.step is not None:
                break
            self.agent(newest, "ok")
        else:
            raise Broken(f"the newest generation does not get through: {newest.phase}")
        self.check_told()
        self.check_progress()

    def launch(self) -> None:
        """The launcher gives the newest up and starts another."""
        at, number = self.now(), len(self.machines) + 1
        lease = self.record.take_lease(self.job, "me", at, timedelta(minutes=1), gone=lambda _: True)
        writer = self.record.writer(lease)
        if self.machines:
            lost = Node(rank=0, instance_id=self.machines[-1].name, address="", status=NodeStatus.LOST)
            writer.seen(number - 1, [lost], RunStatus.LOST, at, "lost")
        run = writer.issue(replace(RUN, job=self.job, nodes=1), at)
        machine = Machine(generation=run.generation, name=f"i-{number}")
        writer.seen(run.generation, [Node(rank=0, instance_id=machine.name, address="")], RunStatus.RUNNING, at, "")
        self.machines.append(machine)

    def kill(self, machine: Machine) -> None:
        """SIGKILL of the agent: its memory is gone, its disk and the job are not."""
        machine.phase, machine.token, machine.listing, machine.target = "join", "", None, None

    def train(self, machine: Machine, number: int) -> None:
        if machine.step is not None and not machine.gone:
            machine.step += 1 + number % 10
            machine.tell(Kind.PROGRESS, step=machine.step)

    def checkpoint(self, machine: Machine) -> None:
        """The job writes one to the node's disk."""
        if machine.step is None or machine.gone:
            return
        base = f"s3://ckpt/{self.job}/g{machine.generation}/step-{machine.step:012d}"
        names = [base + "/", *(f"{base}-{k}/" for k in range(1, 9))]
        uri = next((n for n in names if n not in self.store and n not in machine.pending), None)
        if uri:
            machine.pending.append(uri)

    def zombie(self, step: Step) -> None:
        """One that the launcher gave up goes on: it still trains, and its credentials still write, whatever it was told."""
        old = [m for m in self.machines[:-1] if not m.gone]
        if not old:
            return
        machine = old[step.number % len(old)]
        self.train(machine, step.number)
        if step.number % 3 == 0:
            self.checkpoint(machine)
        if machine.pending and step.number % 2:
            self.upload(machine)
        else:
            self.agent(machine, step.fate)

    def damage(self, step: Step) -> None:
        uris = [uri for uri, it in self.store.items() if it.manifest]
        if not uris:
            return
        uri = uris[step.number % len(uris)]
        lying = self.store[uri]
        if step.word == "tear":
            lying.torn = True
        elif step.word == "rot":
            lying.rotten = True
        elif lying.manifest:
            high = lying.step + 1000 + step.number
            where = f"s3://ckpt/{self.job}/g{lying.generation}/step-{high:012d}/"
            fake = replace(lying.manifest, step=high, uri=where)
            self.store.setdefault(where, Lying(lying.generation, high, fake, self.tick, forged=True))

    # the agent, one message or one write at a time

    def agent(self, machine: Machine, fate: str) -> None:
        if machine.gone or machine.phase == "stopped":
            return
        try:
            getattr(self, f"_{machine.phase}")(machine, fate)
        except Killed:
            pass  # it will ask again
        except Refused as no:
            self.refusals += 1
            if no.word in {"fenced", "ended"}:
                if machine.generation >= self.begun:
                    raise Broken(f"g{machine.generation} was refused ({no}) and nothing newer has begun") from no
                machine.phase = "stopped"
            elif no.word == "unknown":
                machine.phase = "join"
            else:
                raise Broken(f"an honest node was refused: {no}") from no

    def call(self, fate: str, act: Callable[[], T], committed: Callable[[T], None] = lambda _: None) -> T:
        """Ask the server.  `committed` hears what came of it even where the node does not."""
        self.runtime.fate = fate
        try:
            answer = act()
        finally:
            self.runtime.fate = "ok"
        committed(answer)
        if fate == "reply":
            raise Killed
        return answer

    def seat(self, machine: Machine) -> Seat:
        return Seat(job=self.job, generation=machine.generation, rank=0)

    def now(self):
        return NOW + timedelta(seconds=self.tick)

    def _join(self, machine: Machine, fate: str) -> None:
        token = f"{self.job} {machine.generation} {self.tick}"
        joined = self.call(
            fate,
            lambda: self.runtime.admit(
                self.seat(machine),
                IDENTITY,
                instance_id=machine.name,
                key_sha256=f"key {self.job} {machine.name}",
                proof_sha256=f"proof {self.job} {machine.name}",
                token_sha256=token,
                at=self.now(),
                expires_at=self.now() + timedelta(hours=1),
            ),
            lambda _: self.check_owner(machine, "joined"),
        )
        machine.token, machine.key = token, joined.manifest_key
        machine.phase = "begin" if machine.step is None else "run"

    def _begin(self, machine: Machine, fate: str) -> None:
        def committed(_: Any) -> None:
            self.begun = max(self.begun, machine.generation)

        _, cut = self.call(fate, lambda: self.runtime.begin_cut(self.seat(machine), self.now()), committed)
        if cut is None or self.bug == "no-cut":
            machine.phase = "list"
        else:
            machine.target, machine.phase = cut.chosen, "fetch"

    def _list(self, machine: Machine, _: str) -> None:
        found = [(uri, it) for uri, it in self.store.items() if it.manifest]
        whole = [it.manifest for _, it in found if it.manifest and not it.torn]
        torn = [(uri, "a file is missing") for uri, it in found if it.torn]
        machine.listing = (self.tick, whole, torn, {uri for uri, _ in found if self.counts(uri, machine.generation)})
        machine.phase = "choose"

    def _choose(self, machine: Machine, fate: str) -> None:
        assert machine.listing
        at, whole, torn, counted = machine.listing
        before = self.runtime.cut(self.job, machine.generation)

        def committed(_: Any) -> None:
            if before is None:
                self.listed[machine.generation] = (at, counted)
                self.check_learnt(counted)
                if self.bug == "no-fence":
                    self.runtime.forget_fences(self.job)

        cut = self.call(fate, lambda: self.runtime.choose_cut(self.seat(machine), self.now(), whole, torn), committed)
        machine.target, machine.phase = cut.chosen, "fetch"
        if self.bug == "no-cut":
            honest = [c for c in whole if not self.store[c.uri].forged]
            machine.target = max(honest, key=lambda c: (c.step, c.generation), default=None)

    def _fetch(self, machine: Machine, fate: str) -> None:
        target = machine.target
        if target is not None and not self.store[target.uri].whole:
            if self.store[target.uri].forged:
                raise Broken(f"a forged one was chosen: {target.uri}")
            reason = "its contents are wrong"
            cut = self.call(fate, lambda: self.runtime.reject_cut(self.seat(machine), self.now(), target.uri, reason))
            machine.target = cut.chosen
            return
        machine.step = target.step if target else 0
        self.check_start(machine)
        machine.phase = "run"

    def _run(self, machine: Machine, fate: str) -> None:
        machine.turn += 1  # what uploads and what reports go on side by side
        if machine.pending and machine.turn % 3:
            self.upload(machine)
            return
        if self.runtime.session(machine.token, self.now()) is None:
            machine.phase = "join"
            return
        report = Report(seat=self.seat(machine), stream=f"disk-of-{machine.name}", items=tuple(machine.spool[:7]))

        def committed(answers: Any) -> None:
            if answers[0].refused is None:
                self.check_owner(machine, "reported")
                self.check_told()

        (answer,) = self.call(fate, lambda: self.runtime.deliver([report], self.now()), committed)
        if answer.refused:
            raise answer.refused
        machine.spool = [item for item in machine.spool if item.seq > answer.through]

    def upload(self, machine: Machine) -> None:
        """One write of the oldest that waits: its files, its manifest, then the word of it in the spool."""
        uri = machine.pending[0]
        lying = self.store.get(uri)
        if lying is None:
            step = int(uri.rsplit("step-", 1)[1][:12])
            self.store[uri] = Lying(machine.generation, step)
        elif self.bug == "record-first" and uri not in machine.spooled:
            self._tell_of(machine, self._manifest(machine, uri, lying.step))
        elif lying.manifest is None:
            lying.manifest, lying.written_at = self._manifest(machine, uri, lying.step), self.tick
        else:
            if uri not in machine.spooled:
                self._tell_of(machine, lying.manifest)
            machine.pending.pop(0)

    def _manifest(self, machine: Machine, uri: str, step: int) -> Candidate:
        digest = hashlib.sha256(uri.encode()).hexdigest()
        about = {"generation": machine.generation, "step": step, "uri": uri, "digest": digest}
        mac = checkpoint_mac(machine.key, checkpoint_message(project=PROJECT, job=self.job, **about))
        return Candidate(**about, mac=mac, bytes=1)

    def _tell_of(self, machine: Machine, it: Candidate) -> None:
        machine.spooled.add(it.uri)
        body = {name: getattr(it, name) for name in ("step", "uri", "digest", "mac", "bytes")}
        machine.tell(Kind.CHECKPOINT, **body, files=1)

    # promises

    def counts(self, uri: str, generation: int) -> bool:
        """Whether it is a checkpoint that a generation may start from, by what was really done."""
        it = self.store[uri]
        cuts = [at for g, (at, _) in self.listed.items() if it.generation < g < generation]
        return (
            it.manifest is not None
            and not it.torn
            and not it.forged
            and it.generation <= generation
            and all(it.written_at <= at for at in cuts)
        )

    def check_owner(self, machine: Machine, what: str) -> None:
        if machine.generation < self.begun:
            raise Broken(f"g{machine.generation} {what} after g{self.begun} had begun: the job is owned twice")

    def check_told(self) -> None:
        for it in self.runtime.checkpoints(self.job, limit=10**6):
            lying = self.store.get(it.uri)
            if lying is None or lying.manifest is None or lying.forged:
                raise Broken(f"the record was told of {it.uri}, and the store has none: it is lost")

    def check_learnt(self, counted: set[str]) -> None:
        missing = counted - {it.uri for it in self.runtime.checkpoints(self.job, limit=10**6)}
        if missing:
            raise Broken(f"whole at the cut and unknown to the record: {sorted(missing)}")

    def check_start(self, machine: Machine) -> None:
        """Of what counted when it listed the store, the newest whose contents are right."""
        _, counted = self.listed[machine.generation]
        steps = [self.store[uri].step for uri in counted if self.store[uri].whole]
        if machine.step != max(steps, default=0):
            raise Broken(
                f"g{machine.generation} starts from {machine.step}, the newest valid is {max(steps, default=0)}"
            )
        self.starts[machine.generation] = machine.step

    def check_progress(self) -> None:
        for machine in self.machines:
            told = [p.step for p in self.runtime.progress(self.job, generation=machine.generation, limit=10**6)]
            made = [i.body["step"] for i in machine.made if i.kind is Kind.PROGRESS]
            if told != made[: len(told)] or (machine is self.machines[-1] and told != made):
                raise Broken(f"g{machine.generation} made {made}, the record has {told}")
