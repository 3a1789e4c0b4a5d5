"""Every figure the decision is made with, once.  Nothing else of `planner.migration` has figures of its own.

The figures are of 2026-11-30 and serve every job and market alike; `migration` in skyplan.yaml changes those that a user may.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the decision goes by.

    threshold_hours     a voluntary move must gain this much compute, net (issue 6; measured in notes of 2026-11: without it prices are chased)
    horizon_hours       a gain is counted over at most this long, whatever the lifetime and the remaining runtime
    lifetime_hours      expected lifetime of a pool nothing is known of
    return_hours        the same of an outage
    cool_down_hours     no second voluntary move sooner
    net_changeovers     on-demand as soon as the slack is less than this many changeovers (Can't Be Late, NSDI'24)
    slack_changeovers   no voluntary move to spot that leaves less slack than this many changeovers more
    prior_events        an observed mean counts as if this many events of the pool of all had been seen besides
    """

    threshold_hours: float = 0.5
    horizon_hours: float = 8.0
    lifetime_hours: float = 8.0
    return_hours: float = 2.0
    cool_down_hours: float = 1.0
    net_changeovers: float = 2.0
    slack_changeovers: float = 2.0
    prior_events: float = 3.0


DEFAULT = Rule()
