"""Jobs that are alike, judged once: where they may lie, at what cost, and what they use there of what is scarce.

Two jobs of one shape ask for the same of every offer; two jobs of one kind also count to the same budgets and keep apart from the same groups, so a solver
need not tell them apart.  A candidate is an offer on which the job would lie if nobody held anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.placement.assign.rows import covers
from planner.placement.crowd import failure_bits
from planner.placement.rank import judge, unusable_bits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.model.plan import Caveat, Placement
    from planner.model.workload import ObjectPrefix, Workload
    from planner.placement.assign.rows import Column, Scarce
    from planner.placement.crowd import CoolDown
    from planner.placement.offers import Offers
    from planner.placement.rank import Judged, Unusable

    Ints = NDArray[np.int64]

_NOWHERE: Final = "\0"
"""How the bucket of a shape's store begins: no bucket's name has it."""


@dataclass(frozen=True, eq=False)
class Shape:
    """What jobs of one shape have in common: the offers that may serve them, best first, with ticks in total and per hour, and GPUs."""

    number: int
    workload: Workload
    unusable: Unusable | None
    index: Ints
    total: Ints
    hourly: Ints
    gpus: Ints
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Kind:
    """Jobs of one shape, budgets and groups.  Positions below are into its candidates, which are its shape's.

    first   the candidates that have room where nobody holds anything
    """

    number: int
    shape: Shape
    columns: tuple[Column, ...]
    first: Ints

    def __len__(self) -> int:
        return len(self.shape.index)


def alike(job: Workload) -> Workload:
    """The job less what says nothing about where it may lie and what it costs there: of its stores the region counts, not the prefix, which jobs have for themselves.

    What is told of stores names them: see `with_stores`.
    """
    checkpoint, output, image = job.checkpoint, job.output, job.image
    return replace(
        job,
        name="",
        run="",
        setup=None,
        workdir=None,
        image=replace(image, ref="", digest=None) if image else None,
        registry_auth=None,
        secrets=(),
        data=tuple(replace(d, at=_somewhere(d.at, f"data{k}")) for k, d in enumerate(job.data)),
        checkpoint=replace(checkpoint, at=_somewhere(checkpoint.at, "checkpoint")) if checkpoint else None,
        output=replace(output, at=_somewhere(output.at, "output")) if output else None,
        tags=(),
        env=(),
        priority=0,
        session=False,
        team="",
        anti_affinity=(),
        gang=None,
    )


def _somewhere(at: ObjectPrefix, word: str) -> ObjectPrefix:
    """Somewhere in that store and region, under a name that no bucket has."""
    return replace(at, bucket=f"{_NOWHERE}{word}", prefix="")


Stored = dict[tuple[int, tuple[tuple[str, str], ...]], "tuple[Placement, Placement]"]
"""By a shape's placement and the names of stores: that placement, so that no other is taken for it, and the same with those stores."""


def with_stores(found: tuple[Placement, ...], job: Workload, known: Stored) -> tuple[Placement, ...]:
    """What was told of a shape, with the job's own stores.  `known` is what was made so for other jobs of the call."""
    parts = [(f"data{k}", d.at) for k, d in enumerate(job.data)]
    parts += [("checkpoint", job.checkpoint.at)] if job.checkpoint else []
    parts += [("output", job.output.at)] if job.output else []
    names = tuple((_somewhere(at, word).uri, at.uri) for word, at in parts)
    return tuple(_with_stores(p, names, known) for p in found)


def _with_stores(p: Placement, names: tuple[tuple[str, str], ...], known: Stored) -> Placement:
    key = (id(p), names)
    if key not in known:
        own: set[Caveat] = set()
        for caveat in p.caveats:
            text = caveat.text
            for name, uri in names:
                text = text.replace(name, uri)
            own.add(caveat if text == caveat.text else replace(caveat, text=text))
        # sorted anew, and each once: two datasets may lie in one place
        caveats = tuple(sorted(own))
        known[key] = (p, p if caveats == p.caveats else replace(p, caveats=caveats))
    return known[key][1]


class Catalogue:
    """Shapes and kinds of one call, made as jobs ask for them.

    Judgements are large; `judged` keeps the newest few, as jobs are described shape by shape.
    """

    def __init__(
        self, offers: Offers, scarce: Scarce, cool: dict[str, CoolDown], unusable: Mapping[str, Unusable]
    ) -> None:
        self.offers, self.scarce, self._unusable = offers, scarce, unusable
        self._out = failure_bits(offers, cool)
        self._shapes: dict[tuple[Workload, int], Shape] = {}
        self._kinds: dict[tuple[int, tuple[bool, ...], tuple[str, ...]], Kind] = {}
        self._same: dict[frozenset[tuple[tuple[str, str, str, str], str]], int] = {}
        self._judged: dict[int, Judged] = {}

    def kinds(self, jobs: Sequence[Workload]) -> list[Kind]:
        """Each job's."""
        return [self.kind(job) for job in jobs]

    def shape(self, job: Workload) -> Shape:
        """The job's, judged where it is the first of its shape."""
        unusable = self._unusable.get(job.name)
        at = self._same.setdefault(frozenset((unusable or {}).items()), len(self._same))
        key = (alike(job), at)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = self._judge(key[0], unusable)
        return found

    def kind(self, job: Workload) -> Kind:
        """The job's."""
        shape = self.shape(job)
        covered = tuple(covers(budget, job.team) for budget in self.scarce.budgets)
        key = (shape.number, covered, tuple(sorted({a.group for a in job.anti_affinity})))
        found = self._kinds.get(key)
        if found is None:
            columns = (*shape.columns, *self.scarce.own_columns(job, shape.index, shape.hourly, shape.total))
            first = np.flatnonzero(fitting(columns, self.scarce.caps))
            found = self._kinds[key] = Kind(len(self._kinds), shape, columns, first)
        return found

    def judged(self, shape: Shape) -> Judged:
        """The whole judgement of a shape, with its terms."""
        if shape.number not in self._judged:
            if len(self._judged) >= KEPT:
                self._judged.pop(next(iter(self._judged)))
            self._judged[shape.number] = judge(self.offers, shape.workload)
        return self._judged[shape.number]

    def _judge(self, workload: Workload, unusable: Unusable | None) -> Shape:
        judged = judge(self.offers, workload)
        number = len(self._shapes)
        if len(self._judged) < KEPT:
            self._judged[number] = judged
        bits = judged.bits | self._out
        if unusable:
            bits |= unusable_bits(self.offers, unusable)
        s = judged.scores
        at = judged.order[bits[s.index[judged.order]] == 0]
        index = s.index[at]
        counts = np.array([t.gpu_count for t in self.offers.market.types], dtype=np.int64)
        return Shape(
            number=number,
            workload=workload,
            unusable=unusable,
            index=index,
            total=s.total[at],
            hourly=s.usd_per_hour[at],
            gpus=counts[self.offers.type_ix[index]] * workload.resources.nodes,
            columns=self.scarce.columns(workload, index),
        )


KEPT = 16
"""Judgements kept: each is some megabytes over a large market."""


def fitting(columns: tuple[Column, ...], free: Ints, at: slice | Ints = slice(None)) -> NDArray[np.bool_]:
    """Which of the candidates have room in every row they use."""
    ok: NDArray[np.bool_] | None = None
    for column in columns:
        # who uses nothing of a row that others overfill is not barred by it
        fits = column.amounts[at] <= np.maximum(free[column.rows[at]], 0)
        ok = fits if ok is None else ok & fits
    assert ok is not None  # noqa: S101 - a kind has its pools at least
    return ok
