"""What the clouds say now of prices, capacity and quotas, asked and kept.

Clouds are asked at once, each by a thread of its own, targets and regions of a cloud in turn; what a region says is kept when it has been said, so that an end in
between loses nothing.  One cloud without credentials or SDK, one region that is down, one row that makes no sense is a warning, and everything else goes on.
Asked as the caller, who is the planner of each account: the orchestrator's role may not read prices (`planner.iam.control`).  Prices and capacity are a place's, so the
first target of a cloud that a region answers speaks for it; quotas are each target's own.  Decides nothing about prices.  Never run against a live cloud.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

from planner.clouds.feeds.port import Fed, Feed, Feeds, Wanted
from planner.clouds.port import Where
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import SkyplanError
from planner.model.readings import CapacityReading, PriceReading, QuotaReading

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.offer import Region
    from planner.model.project import Project, Target

KINDS: Final = ("prices", "capacity", "quotas")
FAILED: Final = "SKY-CAT-115"
Advance = Callable[[str], None]


class Recorded(Protocol):
    """What became of readings (`planner.state.history_values.Recorded`)."""

    @property
    def new(self) -> int:
        """Kept."""
        ...

    @property
    def unchanged(self) -> int:
        """Known already."""
        ...

    @property
    def refused(self) -> tuple[Diagnostic, ...]:
        """Why others were not taken."""
        ...


class Keeper(Protocol):
    """Where readings are kept (`planner.state.history.History`)."""

    def record(
        self, readings: Iterable[PriceReading | CapacityReading], *, now: datetime, live: bool = True
    ) -> Recorded:
        """Prices and capacity."""
        ...

    def record_quotas(self, target: str, quotas: Iterable[QuotaReading]) -> Recorded:
        """A target's quotas."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is refreshed: of these clouds and regions (globs), () = all that the project uses; `since`: a price history from then on instead of what holds now."""

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS
    since: datetime | None = None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """One answer: what of which target's region, and what became of it.  `read` counts readings, kept or not."""

    cloud: str
    target: str
    region: str
    kind: str
    complete: bool
    read: int = 0
    new: int = 0
    unchanged: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """All of it, in the order of cloud, target, region and kind; `warnings` say what failed and what was left out."""

    answers: tuple[Refreshed, ...]
    warnings: tuple[Diagnostic, ...]

    @property
    def anything(self) -> bool:
        """Whether any region was answered."""
        return any(answer.complete or answer.read for answer in self.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """One target, and what is wanted of it."""

    target: Target
    wanted: Wanted

    @property
    def where(self) -> Where:
        target = self.target
        return Where(
            cloud=target.cloud.value,
            target=target.name,
            region=self.wanted.regions[0],
            account=target.account,
            resource_group=target.resource_group or "",
        )


def refresh(
    asked: Asked,
    project: Project,
    market: Market,
    feeds: Feeds,
    keeper: Keeper | None,
    *,
    advance: Advance = lambda _: None,
    elapsed: Callable[[], float] = time.monotonic,
) -> Refresh:
    """Ask and keep; without a keeper nothing is kept.  Raises what the keeper raises, and nothing that a cloud is to blame for.

    What was said counts as known when it is kept, not when asking began: a plan that somebody makes in between must stay what it is (`plan --as-of`).
    """
    begun = elapsed()
    clouds = accounts(asked, project, market)
    answers: SimpleQueue[_Answer | _End] = SimpleQueue()
    for cloud in clouds.values():
        # daemons: nobody who interrupts waits for a cloud that does not answer
        threading.Thread(target=_ask, args=(cloud, asked, feeds, answers), daemon=True).start()
    done: list[Refreshed] = []
    warnings: list[Diagnostic] = []
    left = len(clouds)
    while left:
        given = answers.get()
        if isinstance(given, _End):
            left -= 1
            if given.error is not None:
                raise given.error
            continue
        warnings += given.warnings
        if given.fed is not None:
            now = asked.now + timedelta(seconds=elapsed() - begun)
            done.append(_kept(given, given.fed, now, asked, keeper, warnings))
            advance(f"{given.target.cloud.value} {given.fed.region} {given.kind}")
    return Refresh(
        answers=tuple(sorted(done, key=lambda a: (a.cloud, a.target, a.region, KINDS.index(a.kind)))),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def pieces(asked: Asked, project: Project, market: Market) -> int:
    """How many answers there will be at most."""
    found = accounts(asked, project, market)
    return sum(len(a.wanted.regions) for cloud in found.values() for a in cloud) * len(asked.kinds)


def accounts(asked: Asked, project: Project, market: Market) -> Mapping[str, tuple[_Account, ...]]:
    """By cloud, the targets with something to ask for."""
    sold = _sold(market)
    found: dict[str, list[_Account]] = {}
    for target in project.targets:
        cloud = target.cloud.value
        if asked.clouds and cloud not in asked.clouds:
            continue
        regions = tuple(r.name for r in market.regions if r.cloud is target.cloud and _usable(r, target, asked))
        wanted = Wanted(
            regions=tuple(r for r in regions if (cloud, r) in sold),
            instance_types={r: tuple(sorted(sold[cloud, r][0])) for r in regions if (cloud, r) in sold},
            zones={r: zones for r in regions if (zones := tuple(sorted(sold.get((cloud, r), _NONE)[1])))},
            since=asked.since,
            now=asked.now,
        )
        if wanted.regions:
            found.setdefault(cloud, []).append(_Account(target=target, wanted=wanted))
    return {cloud: tuple(of_cloud) for cloud, of_cloud in found.items()}


_NONE: Final[tuple[frozenset[str], frozenset[str]]] = (frozenset(), frozenset())


def _sold(market: Market) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """(cloud, region) -> types that the catalog has there, and zones; a zone "" is none."""
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    columns = {
        (int(r), int(t), int(z)) for r, t, z in zip(market.region_ix, market.type_ix, market.zone_ix, strict=True)
    }
    for region_ix, type_ix, zone_ix in columns:
        region = market.regions[region_ix]
        types, zones = found.setdefault((region.cloud.value, region.name), (set(), set()))
        types.add(market.types[type_ix].name)
        if market.zones[zone_ix]:
            zones.add(market.zones[zone_ix])
    return found


def _usable(region: Region, target: Target, asked: Asked) -> bool:
    """A region that an account must opt in to answers only where it has."""
    opted = not region.opt_in or _matches(region.name, target.opt_in_zones)
    return (
        (not target.regions or _matches(region.name, target.regions))
        and (not asked.regions or _matches(region.name, asked.regions))
        and (opted or region.name in asked.regions)
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Of one region and kind; `fed` None where nothing could be asked."""

    target: Target
    kind: str = ""
    fed: Fed | None = None
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """A cloud's thread is done; `error` where by a fault of ours."""

    error: Exception | None = None


@dataclass
class _Told:
    """Which regions a cloud has answered whole, by kind."""

    regions: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def left(self, kind: str, wanted: Wanted) -> Wanted:
        """What another target of the cloud is asked for."""
        known = self.regions.get(kind, set()) if kind != "quotas" else set[str]()
        return replace(wanted, regions=tuple(r for r in wanted.regions if r not in known))

    def note(self, kind: str, fed: Fed) -> None:
        """Whole is whole: a second account would say the same."""
        if fed.complete:
            self.regions.setdefault(kind, set()).add(fed.region)


def _ask(of_cloud: Sequence[_Account], asked: Asked, feeds: Feeds, answers: SimpleQueue[_Answer | _End]) -> None:
    """A thread's work: every target of one cloud."""
    told = _Told()
    try:
        for account in of_cloud:
            for answer in _of_account(account, asked, feeds, told):
                answers.put(answer)
    except Exception as error:  # noqa: BLE001 - raised again where it is waited for
        answers.put(_End(error=error))
    else:
        answers.put(_End())


def _of_account(account: _Account, asked: Asked, feeds: Feeds, told: _Told) -> Iterator[_Answer]:
    try:
        feed = feeds.feed(account.where)
    except SkyplanError as error:
        yield _Answer(target=account.target, warnings=_failed(account.target, "", error))
        return
    for kind in (k for k in KINDS if k in asked.kinds):
        try:
            for fed in _source(feed, kind)(told.left(kind, account.wanted)):
                told.note(kind, fed)
                yield _Answer(target=account.target, kind=kind, fed=fed, warnings=fed.warnings)
        except SkyplanError as error:
            # what a feed raises means that nothing at all can be asked: said once
            yield _Answer(target=account.target, kind=kind, warnings=_failed(account.target, kind, error))
            return


def _source(feed: Feed, kind: str) -> Callable[[Wanted], Iterator[Fed]]:
    sources: dict[str, Callable[[Wanted], Iterator[Fed]]] = {
        "prices": feed.prices,
        "capacity": feed.capacity,
        "quotas": feed.quotas,
    }
    return sources[kind]


def _failed(target: Target, kind: str, error: SkyplanError) -> tuple[Diagnostic, ...]:
    """Nothing could be asked: the error's own words, as a warning."""
    what = f"{target.cloud.value}:{target.name}" + (f" {kind}" if kind else "")
    given = error.diagnostics or (Diagnostic(code=FAILED, summary=str(error)),)
    return tuple(
        Diagnostic(code=d.code, summary=f"{what}: {d.summary}", hint=d.hint, severity=Severity.WARNING) for d in given
    )


def _kept(  # noqa: PLR0917 - one call
    given: _Answer, fed: Fed, now: datetime, asked: Asked, keeper: Keeper | None, warnings: list[Diagnostic]
) -> Refreshed:
    readings: list[PriceReading | CapacityReading] = [*fed.prices, *fed.capacity]
    recorded: list[Recorded] = []
    if keeper is not None and readings:
        recorded.append(keeper.record(readings, now=now, live=asked.since is None))
    if keeper is not None and fed.quotas:
        recorded.append(keeper.record_quotas(given.target.name, fed.quotas))
    refused = [d for one in recorded for d in one.refused]
    warnings += [replace(d, severity=Severity.WARNING) for d in refused]
    return Refreshed(
        cloud=given.target.cloud.value,
        target=given.target.name,
        region=fed.region,
        kind=given.kind,
        complete=fed.complete,
        read=len(readings) + len(fed.quotas),
        new=sum(one.new for one in recorded),
        unchanged=sum(one.unchanged for one in recorded),
        refused=len(refused),
    )


def document(done: Refresh) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "answers": [
            {
                "cloud": a.cloud,
                "target": a.target,
                "region": a.region,
                "what": a.kind,
                "complete": a.complete,
                "read": a.read,
                "new": a.new,
                "unchanged": a.unchanged,
                "refused": a.refused,
            }
            for a in done.answers
        ],
        "totals": totals(done),
    }


def totals(done: Refresh) -> dict[str, dict[str, int]]:
    """By cloud."""
    found: dict[str, Counter[str]] = {}
    for a in done.answers:
        of_cloud = found.setdefault(a.cloud, Counter())
        of_cloud.update(
            read=a.read, new=a.new, unchanged=a.unchanged, refused=a.refused, incomplete=int(not a.complete)
        )
    return {cloud: dict(counts) for cloud, counts in found.items()}
