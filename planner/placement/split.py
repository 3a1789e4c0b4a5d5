"""Splitting a job over clouds: which offers may be joined, how many nodes of each, and which splits come first.

Only for a job that asked for a tunnel and says what goes through it; never for one that is interconnect-sensitive.  Decides candidates, node counts and
order; `split_cost` scores.  A part must be feasible with its own number of nodes, everything but the limits on the whole job's money and time, which are
judged on the whole.

Candidates are bounded.  Of each region and instance type the offer on which the job alone would cost least stays, and a dearer one only where it holds more
nodes; of these, per cloud and kind of GPU (model and count per node, the same in all parts), the FEW_CHEAPEST and the FEW_LARGEST; then every ordered choice
of one offer in each of PARTS clouds.  Ties go by position in the offers, so the result depends on nothing else.  With four clouds that is at most some thousand rows of
columns for a kind of GPU, scored at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from planner.model.offer import split_offer_id
from planner.placement.cost import score
from planner.placement.feasible import Reject
from planner.placement.rank import limit_bits
from planner.placement.split_cost import SplitScores, score_splits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from planner.model.workload import Workload
    from planner.placement.crowd import CoolDown
    from planner.placement.offers import Offers
    from planner.placement.rank import Judged

    Ints = NDArray[np.int64]

PARTS = 2
"""Clouds that a job is split over.  Everything below counts parts in loops; what more would need is measured links, not code."""
FEW_CHEAPEST, FEW_LARGEST = 16, 8


@dataclass(frozen=True, eq=False)
class Splits:
    """Scored splits, best first: by total, then finish, then position in the offers; one per set of offers, its better head first.

    bits   reasons per split: BUDGET, DEADLINE and FAILURE; the others kept an offer out before
    """

    scores: SplitScores
    bits: NDArray[np.int32]

    @property
    def feasible(self) -> Ints:
        """Positions of those without a reason against them."""
        return np.flatnonzero(self.bits == 0)

    def parts(self, k: int) -> tuple[tuple[int, int], ...]:
        """(offer, nodes) of each part of split `k`, the head's first."""
        return tuple(zip(self.scores.index[k].tolist(), self.scores.nodes[k].tolist(), strict=True))

    def offer_id(self, offers: Offers, k: int) -> str:
        """The readable id of split `k`."""
        return split_offer_id((offers.offer_id(i), nodes) for i, nodes in self.parts(k))

    def ahead_of(self, total: int, finish_hours: float) -> int:
        """How many feasible splits come before a single placement with that total and finish; ties go to the simpler one."""
        s = self.scores
        before = (s.total < total) | ((s.total == total) & (s.finish_hours < finish_hours))
        return int((before & (self.bits == 0)).sum())


def may_split(workload: Workload) -> bool:
    """The job asked for it, has nodes to part, and says what its nodes exchange."""
    r = workload.resources
    said = workload.sync_bytes is not None and workload.sync_seconds is not None
    return workload.tunnel and said and r.nodes >= PARTS and not r.interconnect_sensitive


def splits(
    offers: Offers,
    workload: Workload,
    judged: Judged,
    room: Ints,
    *,
    cool: dict[str, CoolDown],
) -> Splits | None:
    """Every candidate, best first; None where no two clouds have room together.  `room`: the most nodes that a part may have of each offer."""
    nodes = workload.resources.nodes
    room = np.minimum(room, nodes - 1)
    usable = np.flatnonzero(room > 0)
    alone = score(offers, workload, judged.cells, usable)
    found = list(_candidates(offers, usable, alone.total, room, nodes))
    if not found:
        return None
    index = np.concatenate([i for i, _ in found])
    counts = np.concatenate([n for _, n in found])
    scores = _ordered(score_splits(offers, workload, judged.cells, index, counts))
    out = Splits(scores=scores, bits=limit_bits(scores, workload.constraints))
    for k in np.flatnonzero(out.bits == 0) if cool else ():
        if out.offer_id(offers, int(k)) in cool:
            out.bits[k] |= Reject.FAILURE
    return out


def _candidates(offers: Offers, usable: Ints, total: Ints, room: Ints, nodes: int) -> Iterator[tuple[Ints, Ints]]:
    """(offers, nodes), each [split, part], of one kind of GPU in one order of clouds at a time."""
    types = offers.market.types
    kinds = sorted({(t.gpu, t.gpu_count) for t in types})
    clouds = sorted({t.cloud.value for t in types})
    kind = np.array([kinds.index((t.gpu, t.gpu_count)) for t in types])[offers.type_ix[usable]]
    cloud = np.array([clouds.index(t.cloud.value) for t in types])[offers.type_ix[usable]]
    order = np.lexsort((usable, total))
    for one in np.unique(kind).tolist():
        kept = {
            c: _kept(offers, usable[order[(kind[order] == one) & (cloud[order] == c)]], room)
            for c in np.unique(cloud[kind == one]).tolist()
        }
        for chosen in permutations(sorted(kept), PARTS):
            grid = np.meshgrid(*(kept[c] for c in chosen), indexing="ij")
            index = np.stack([g.ravel() for g in grid], axis=1)
            counts = fill(room[index], nodes)
            fits = (counts > 0).all(axis=1)
            if fits.any():
                yield index[fits], counts[fits]


def _kept(offers: Offers, cheapest_first: Ints, room: Ints) -> Ints:
    """The few offers of a cloud that are worth joining, by position: none that is dearer than another of its place without holding more nodes."""
    most: dict[int, int] = {}
    worth: list[int] = []
    places, rooms = offers.pair[cheapest_first].tolist(), room[cheapest_first].tolist()
    for i, place, nodes in zip(cheapest_first.tolist(), places, rooms, strict=True):
        if nodes > most.get(place, 0):
            most[place] = nodes
            worth.append(i)
    largest = sorted(worth, key=lambda i: -int(room[i]))
    return np.array(sorted({*worth[:FEW_CHEAPEST], *largest[:FEW_LARGEST]}), dtype=np.int64)


def fill(room: Ints, nodes: int) -> Ints:
    """Nodes per part [split, part]: the first takes all it may, less one for each part that follows; 0 in all parts where they do not fit.

    Every order of the parts is a candidate of its own, so the cheaper side is filled first where that is cheaper in all.
    """
    parts = room.shape[1]
    out = np.zeros_like(room)
    left = np.full(len(room), nodes, dtype=np.int64)
    for p in range(parts):
        out[:, p] = np.minimum(room[:, p], left - (parts - 1 - p))
        left -= out[:, p]
    out[left != 0] = 0
    return out


def _ordered(scores: SplitScores) -> SplitScores:
    """Best first, and of the orders of one set of offers only the best."""
    columns = tuple(scores.index.T[::-1])
    order = np.lexsort((*columns, scores.finish_hours, scores.total))
    _, first = np.unique(np.sort(scores.index[order], axis=1), axis=0, return_index=True)
    return scores.at(order[np.sort(first)])


def woven(singles: Iterable[tuple[int, float]], found: Splits | None, top: int) -> tuple[tuple[bool, int], ...]:
    """The common order of single placements, (total, finish) each, and feasible splits: (is a split, position).

    Until `top` places are taken; a split takes one more for each of its parts, so that a plan stays as small as it is without splits.
    """
    keys = [(total, finish, False, k) for k, (total, finish) in enumerate(singles)]
    if found is not None:
        s = found.scores
        keys += [(int(s.total[k]), float(s.finish_hours[k]), True, int(k)) for k in found.feasible[:top]]
    out: list[tuple[bool, int]] = []
    taken = 0
    for _, _, split, k in sorted(keys):
        if taken >= top:
            break
        out.append((split, k))
        taken += 1 + PARTS * split
    return tuple(out)
