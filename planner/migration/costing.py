"""From what the ranker knows of a market to the decision's columns, and to the terms that people read: one set of figures for both.

Decides what a move costs and nothing else: whether it pays is `decide`'s.  Candidates, prices, speeds, start-up and egress are `planner.placement`'s own columns;
there is no second scorer.  Jobs of one shape share everything that does not hang on where they stand (`Shape`).

A move while the old nodes compute on (`beside`) stops the job from the asked checkpoint's step to the first new one: writing it, loading it there, the gap.
Until then both places are paid.  Without old nodes the job stands still from the first request for new ones on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.options import Options
from planner.model.offer import CAPACITY_ORDER, CapacityType
from planner.model.plan import ScoreTerm
from planner.placement.cost import cells_of, figure, lost_hours
from planner.placement.egress import GB
from planner.placement.rank import judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from planner.migration.constants import Rule
    from planner.migration.decide import Gains
    from planner.migration.options import Flags, Floats
    from planner.model.workload import Workload
    from planner.placement.offers import Offers

GAP_HOURS = 1.0 / 60.0
"""From the fence to the first step besides loading: cut, process start, meeting of the ranks.  A guess; the runtime's own tests take seconds (docs/runtime.md)."""
RETIRE_HOURS = 3.0 / 60.0
"""The old nodes after the new ones made progress: a destroy takes 28-34 s with the AWS provider against moto (design notes), a real cloud minutes.  A guess."""
SHORTEST_HOURS = 1.0 / 60.0
_SPOT = CAPACITY_ORDER.index(CapacityType.SPOT)
COSTS = (
    "acquisition",
    "setup",
    "image_pull",
    "data_copy",
    "checkpoint_write",
    "checkpoint_load",
    "gap",
    "lost_work",
    "double_running",
    "checkpoint_egress",
    "data_egress",
    "risk",
)


@dataclass(frozen=True, eq=False)
class Shape:
    """All candidates of one kind of job, in the market's order, one entry each.

    at                  positions among the offers; -1 of what runs and is not for sale any more
    bits                why the ranker would refuse them by the job's limits: 0 = not
    price_usd_per_hour  all nodes
    usd_per_hour        with disk, outbound path and the traffic of every hour
    work_rate           reference hours done per hour
    *_hours, *_usd      what each part of a move there takes; `write` from there, all others to there
    egress_known        False where the checkpoints' place is not given
    """

    offers: Offers
    workload: Workload
    at: NDArray[np.int64]
    bits: NDArray[np.int32]
    names: tuple[str, ...]
    pool: NDArray[np.int32]
    region: NDArray[np.int32]
    topology: tuple[str, ...]
    spot: Flags
    price_usd_per_hour: Floats
    usd_per_hour: Floats
    work_rate: Floats
    acquire_hours: Floats
    setup_hours: Floats
    pull_hours: Floats
    copy_hours: Floats
    load_hours: Floats
    write_hours: Floats
    restore_usd: Floats
    write_usd: Floats
    copy_usd: Floats
    egress_known: bool
    home: int

    def __len__(self) -> int:
        return len(self.names)

    def find(self, offer_id: str) -> int | None:
        """Where a candidate stands; None where it is none."""
        return self.names.index(offer_id) if offer_id in self.names else None


@dataclass(frozen=True, eq=False)
class Outlook:
    """What the history leads to expect, one entry per candidate of a shape; as `Options` has it, None where there is no history."""

    lifetime_hours: Floats
    return_hours: Floats
    usual_usd_per_hour: Floats
    fresh_hours: Floats | None = None
    outage_hours: Floats | None = None
    up_share: Floats | None = None
    steady_hours: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one job would leave.

    running      which candidate it stands on; None where nothing runs
    beside       the old nodes compute on while the new ones come up
    work_hours   reference hours left
    redo_hours   reference hours of them that are done already and are lost by going: since the newest checkpoint, where none can be asked for
    anew         new nodes on the offer that it stands on are a move like any other
    """

    running: int | None
    beside: bool
    work_hours: float
    redo_hours: float = 0.0
    anew: bool = False


def shape_of(offers: Offers, workload: Workload, acquire_hours: Mapping[str, float] | None = None) -> Shape:
    """Judge once for all jobs of this shape.  `acquire_hours` by cloud, as launches were observed to take; else the catalog's."""
    open_ended = replace(workload.constraints, deadline_hours=None, max_usd_total=None, stop_after_hours=None)
    judged = judge(offers, replace(workload, constraints=open_ended))
    m, cells, scores = offers.market, judged.cells, judged.scores
    at = scores.index
    pair = offers.pair[at]
    nodes = workload.resources.nodes
    price = offers.price_micros[at].astype(np.float64) * (nodes / 1e6)
    hours = cells.hours[pair]
    copies = tuple(d for d in workload.data if d.copy_to)
    copied = cells_of(offers, replace(workload, data=copies, checkpoint=None, output=None)) if copies else None
    copy_usd = copied.data_usd[pair] if copied else np.zeros(len(at))
    steady = (cells.data_usd[pair] - copy_usd + cells.checkpoint_usd[pair] + cells.nat_usd[pair]) / hours
    setup = figure(m, "setup_minutes") / 60.0
    policy = workload.checkpoint
    write = np.zeros(len(at))
    restore_usd, write_usd = np.zeros(len(at)), np.zeros(len(at))
    home = -1
    if policy is not None:
        write = cells.write_hours[pair] * policy.every_hours / cells.speed_hours[pair]
        home = m.region_index.get((policy.at.store.cloud, policy.at.region or ""), -1)
    if policy is not None and home >= 0:
        region, gigabytes = offers.region_ix[at], policy.size_bytes / GB
        restore_usd = offers.tariffs.cost_usd(m.links.tariff_ix[home, region], gigabytes)
        write_usd = offers.tariffs.cost_usd(m.links.tariff_ix[region, home], gigabytes)
    acquire = cells.acquire_hours[pair].copy()
    if acquire_hours:
        clouds = np.array([t.cloud.value for t in m.types])[offers.type_ix[at]]
        for cloud, observed in acquire_hours.items():
            acquire[clouds == cloud] = observed
    return Shape(
        offers=offers,
        workload=workload,
        at=at,
        bits=judged.bits[at],
        names=tuple(offers.offer_id(int(i)) for i in at),
        pool=offers.pool[at],
        region=offers.region_ix[at],
        topology=tuple(offers.kind(int(i)).topology for i in at),
        spot=offers.capacity[at] == _SPOT,
        price_usd_per_hour=price,
        usd_per_hour=price + cells.disk_usd_per_hour[pair] + cells.nat_usd_per_hour[pair] + steady,
        work_rate=workload.work.hours / hours,
        acquire_hours=acquire,
        setup_hours=np.full(len(at), setup),
        pull_hours=np.maximum(cells.start_hours[pair] - setup, 0.0),
        copy_hours=copied.read_hours[pair] if copied else np.zeros(len(at)),
        load_hours=cells.load_hours[pair],
        write_hours=write,
        restore_usd=restore_usd,
        write_usd=write_usd,
        copy_usd=copy_usd,
        egress_known=cells.checkpoint_known,
        home=home,
    )


def default_outlook(shape: Shape, rule: Rule) -> Outlook:
    """Where there is no history: the rule's own lifetimes, and today's prices are the usual ones."""
    return Outlook(
        lifetime_hours=np.where(shape.spot, rule.lifetime_hours, np.inf),
        return_hours=np.full(len(shape), rule.return_hours),
        usual_usd_per_hour=shape.usd_per_hour,
    )


@dataclass(frozen=True, eq=False)
class Costs:
    """Of going to each candidate; 0 for what runs.

    stop_hours        without progress
    changeover_hours  from the decision to the first step there: what a deadline must leave room for, since the old nodes may be gone any moment
    usd               by term, `COSTS`
    """

    stop_hours: Floats
    changeover_hours: Floats
    usd: dict[str, Floats]


def costs_of(shape: Shape, course: Course, outlook: Outlook, rule: Rule) -> Costs:
    """What a move takes."""
    size, r = len(shape), course.running
    price, rate = shape.price_usd_per_hour, shape.work_rate
    prepare = shape.setup_hours + shape.pull_hours + shape.copy_hours
    zero = np.zeros(size)
    if r is not None and course.beside:
        old, save = float(price[r]), float(shape.write_hours[r]) if course.redo_hours <= 0 else 0.0
        stop = save + shape.load_hours + GAP_HOURS + course.redo_hours / rate
        # what is saved per hour there is not saved yet while it is being prepared
        later = np.maximum(shape.usd_per_hour[r] / rate[r] * rate - shape.usd_per_hour, 0.0)
        written = float(shape.write_usd[r]) if save > 0 else 0.0
        retire = old * RETIRE_HOURS
    else:
        old, save, later, written, retire = 0.0, 0.0, zero, 0.0, 0.0
        stop = shape.acquire_hours + prepare + shape.load_hours + GAP_HOURS
    changeover = shape.acquire_hours + prepare + save + shape.load_hours + GAP_HOURS
    costs = {
        "acquisition": later * shape.acquire_hours,
        "setup": (price + later) * shape.setup_hours,
        "image_pull": (price + later) * shape.pull_hours,
        "data_copy": (price + later) * shape.copy_hours,
        "checkpoint_write": (price + old) * save,
        "checkpoint_load": (price + old) * shape.load_hours,
        "gap": (price + old) * GAP_HOURS,
        "lost_work": price * course.redo_hours / rate if course.beside else zero,
        "double_running": zero + retire,
        "checkpoint_egress": shape.restore_usd + written,
        "data_egress": shape.copy_usd,
        "risk": _risk(shape, course, outlook, rule, changeover),
    }
    if r is not None and not course.anew:
        others = np.arange(size) != r
        stop, changeover = stop * others, changeover * others
        costs = {name: usd * others for name, usd in costs.items()}
    return Costs(stop_hours=stop, changeover_hours=changeover, usd=costs)


def _risk(shape: Shape, course: Course, outlook: Outlook, rule: Rule, stop: Floats) -> Floats:
    """What interruptions there are expected to cost over the horizon, less what they would cost where it runs."""
    restart = shape.acquire_hours + shape.setup_hours + shape.pull_hours + shape.copy_hours + shape.load_hours
    lasting = np.minimum(
        np.minimum(course.work_hours / shape.work_rate, outlook.lifetime_hours - stop), rule.horizon_hours
    )
    lasting = np.maximum(lasting, SHORTEST_HOURS)
    rate = np.where(shape.spot, 1.0 / outlook.lifetime_hours, 0.0)
    lost = shape.price_usd_per_hour * lost_hours(shape.workload, rate, lasting, restart)
    if course.running is None or not course.beside:
        return lost
    r = course.running
    mine = lost_hours(shape.workload, np.full(len(shape), rate[r]), lasting, np.full(len(shape), restart[r]))
    return np.maximum(lost - shape.price_usd_per_hour[r] * mine, 0.0)


def options_of(shape: Shape, outlook: Outlook, costs: Costs, *, available: Flags, allowed: Flags) -> Options:
    """What `decide` sees."""
    start = np.zeros(len(shape))
    for name in COSTS:
        start += costs.usd[name]
    return Options(
        names=shape.names,
        pool=shape.pool,
        region=shape.region,
        usd_per_hour=shape.usd_per_hour,
        work_rate=shape.work_rate,
        spot=shape.spot,
        available=available,
        stop_hours=costs.changeover_hours,
        start_usd=start,
        lifetime_hours=outlook.lifetime_hours,
        return_hours=np.where(available, 0.0, outlook.return_hours),
        usual_usd_per_hour=outlook.usual_usd_per_hour,
        allowed=allowed,
        fresh_hours=outlook.fresh_hours,
        outage_hours=outlook.outage_hours,
        up_share=outlook.up_share,
        steady_hours=outlook.steady_hours,
    )


def with_current(shape: Shape, *, offer_id: str, usd_per_hour: float, work_rate: float) -> tuple[Shape, int]:
    """What runs, and its position: at its own price, and as one more candidate where the market has lost it or its nodes lie in several clouds."""
    found = shape.find(offer_id)
    if found is not None:
        return shape, found
    size = len(shape)

    def more(column: NDArray[np.generic], value: float) -> NDArray[np.generic]:
        return np.append(column, np.array([value], dtype=column.dtype))

    columns = {
        "at": -1,
        "bits": 0,
        "pool": -1,
        "region": -1,
        "spot": "/spot" in offer_id,
        "price_usd_per_hour": usd_per_hour,
        "usd_per_hour": usd_per_hour,
        "work_rate": work_rate,
        **dict.fromkeys(("acquire_hours", "setup_hours", "pull_hours", "copy_hours", "load_hours", "write_hours"), 0.0),
        **dict.fromkeys(("restore_usd", "write_usd", "copy_usd"), 0.0),
    }
    grown = {name: more(getattr(shape, name), value) for name, value in columns.items()}
    return replace(shape, **grown, names=(*shape.names, offer_id), topology=(*shape.topology, "")), size


def usd(value: float) -> Decimal:
    """USD with four places, half-even."""
    return Decimal(round(value * 10_000)).scaleb(-4)


def terms_of(
    shape: Shape,
    course: Course,
    costs: Costs,
    index: int,
    *,
    gains: Gains | None,
    rule: Rule,
) -> tuple[ScoreTerm, ...]:
    """What a move to `index` brings and costs, in words: the saving, each cost negative, and `net`, their sum.  Terms that are 0 are left out."""
    out: list[ScoreTerm] = []
    hourly = float(shape.usd_per_hour[index])
    if gains is not None and course.running is not None:
        r = course.running
        now = float(shape.usd_per_hour[r] / shape.work_rate[r] * shape.work_rate[index])
        detail = f"{gains.horizon_hours[index]:.2f} h x (${now:.4f}/h for the same work - ${hourly:.4f}/h)"
        out.append(ScoreTerm(name="saving", usd=usd(float(gains.saving_usd[index])), detail=detail))
    else:
        hours = course.work_hours / float(shape.work_rate[index])
        detail = f"{hours:.2f} h left x ${hourly:.4f}/h"
        out.append(ScoreTerm(name="remaining", usd=-usd(hours * hourly), detail=detail))
    details = _details(shape, course, index)
    for name in COSTS:
        amount = usd(float(costs.usd[name][index]))
        unknown = name == "checkpoint_egress" and not shape.egress_known
        if amount or unknown:
            out.append(ScoreTerm(name=name, usd=None if unknown else -amount, detail=details[name]))
    net = sum((t.usd for t in out if t.usd is not None), Decimal(0))
    detail = f"stops for {costs.stop_hours[index] * 60:.1f} min"
    if gains is not None and course.running is not None:
        each = float(shape.usd_per_hour[course.running])
        detail += (
            f"; worth {float(net) / each:.2f} h of what runs, {rule.threshold_hours:g} h are asked" if each else ""
        )
    return (*out, ScoreTerm(name="net", usd=net, detail=detail))


def _details(shape: Shape, course: Course, i: int) -> dict[str, str]:
    policy = shape.workload.checkpoint
    gigabytes = policy.size_bytes / GB if policy else 0.0
    save = float(shape.write_hours[course.running]) if course.running is not None else 0.0
    price = f"${shape.price_usd_per_hour[i]:.4f}/h"
    both = f"{price} and the old nodes" if course.beside else price
    return {
        "acquisition": f"{shape.acquire_hours[i] * 60:.1f} min until the nodes are there; nothing is saved meanwhile",
        "setup": f"{shape.setup_hours[i] * 60:.1f} min x {price}",
        "image_pull": f"{shape.pull_hours[i] * 60:.1f} min x {price}",
        "data_copy": f"{shape.copy_hours[i] * 60:.1f} min x {price}",
        "checkpoint_write": f"{gigabytes:.1f} GB in {save * 60:.1f} min, {both}",
        "checkpoint_load": f"{gigabytes:.1f} GB in {shape.load_hours[i] * 60:.1f} min, {both}",
        "gap": f"{GAP_HOURS * 60:.1f} min from the fence to the first step, {both}",
        "lost_work": f"{course.redo_hours:.2f} h of work since the newest checkpoint, done again",
        "double_running": f"{RETIRE_HOURS * 60:.1f} min of the old nodes after the new ones made progress",
        "checkpoint_egress": f"{gigabytes:.1f} GB per checkpoint: one more written, one read"
        if shape.egress_known
        else "unknown: the bucket's region is not given",
        "data_egress": "input copied there",
        "risk": "interruptions there, beyond those expected where it runs"
        if course.beside
        else "interruptions to be expected there",
    }
