"""Our own policy: `planner.migration.decide.decide`, the very function that `skyplan replan` calls, asked at every tick of a recorded market.

Only makes its columns and carries its word back; no rule of its own is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.constants import DEFAULT, Rule
from planner.migration.decide import Word, decide
from planner.migration.options import Options, Situation
from planner.replay.observed import Observed, observed_of
from planner.replay.policies import EveryZone
from planner.replay.simulate import NOWHERE

if TYPE_CHECKING:
    from planner.replay.market import Market
    from planner.replay.simulate import Choose, Seen


@dataclass(frozen=True, slots=True)
class Ours(EveryZone):
    """With the rule's constants, which serve every market alike."""

    name: str = "skyplan"
    rule: Rule = DEFAULT

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Asks `decide` with what was seen so far, of the whole trace."""
        columns = _Columns(market, observed_of(market, self.rule))

        def choose(seen: Seen) -> int:
            options, situation = columns.at(seen)
            decision = decide(situation, options, self.rule)
            if decision.word is Word.STAY:
                return seen.place
            return NOWHERE if decision.word is Word.WAIT or decision.to is None else decision.to

        return choose


class _Columns:
    """The columns of a market; what does not change from tick to tick is made once."""

    def __init__(self, market: Market, observed: Observed) -> None:
        self.market, self.observed = market, observed
        count = len(market.names)
        self.pool = np.arange(count, dtype=np.int32)
        self.work_rate = np.ones(count)
        self.spot = np.arange(count) < market.zones
        self.allowed = np.ones(count, dtype=np.bool_)
        self.apart_usd = market.egress_usd[:-1, market.zones :]
        self.stop_hours = market.start_ticks * market.tick_hours

    def at(self, seen: Seen) -> tuple[Options, Situation]:
        """Options and situation of a tick."""
        market, view = self.market, self.observed.at(seen.tick)
        stop = self.stop_hours[seen.home]
        paid = market.egress_usd[seen.home] + stop * view.price_usd_h
        if seen.place != NOWHERE:
            stop, paid = stop.copy(), paid.copy()
            stop[seen.place] = paid[seen.place] = 0.0
        options = Options(
            names=market.names,
            pool=self.pool,
            region=market.region,
            usd_per_hour=view.price_usd_h,
            work_rate=self.work_rate,
            spot=self.spot,
            available=market.up[seen.tick],
            stop_hours=stop,
            start_usd=paid,
            lifetime_hours=view.lifetime_hours,
            return_hours=view.return_hours,
            usual_usd_per_hour=view.usual_usd_h,
            allowed=self.allowed,
            fresh_hours=view.fresh_hours,
            outage_hours=view.outage_hours,
            up_share=view.up_share,
            steady_hours=view.steady_hours,
            apart_usd=self.apart_usd,
        )
        situation = Situation(
            running=None if seen.place == NOWHERE else seen.place,
            work_hours=seen.work * market.tick_hours,
            deadline_hours=(seen.left - seen.starting) * market.tick_hours,
            since_move_hours=np.inf if seen.since_move < 0 else seen.since_move * market.tick_hours,
            home=seen.home,
            starting_hours=seen.starting * market.tick_hours,
        )
        return options, situation
