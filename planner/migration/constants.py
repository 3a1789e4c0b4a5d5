"""Every figure the decision is made with, once.  Nothing else of `planner.migration` has figures of its own that decide.

Of 2026-11-30.  One set serves every job and market; `migration` in skyplan.yaml changes those that a user may.  Those marked (first half) were looked at on the
first half of the recorded AWS V100 market of 2023-02 alone (docs/decisions/0019 has the table, the second half beside it); the others were set beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the decision goes by.

    threshold_hours     a voluntary move must gain this much compute, net (issue 6; measured in notes of 2026-11: without it prices are chased)
    horizon_hours       a gain is counted over at most this long, whatever the lifetime and the remaining runtime (issue 6; a sweep in the notes)
    lifetime_hours      expected lifetime of a pool nothing is known of (issue 6)
    return_hours        the same of an outage: Can't Be Late's and SkyNomad's traces have outages of 1 to 3 h
    cool_down_hours     no second voluntary move sooner
    net_changeovers     on-demand as soon as the slack is less than this many changeovers (Can't Be Late, NSDI'24)
    slack_changeovers   no voluntary move that leaves less slack than this many changeovers more
    prior_events        what was observed of a pool is drawn to all pools' as by this many endings (a usual weak prior; 1 to 10 differ little)
    prior_of_all        and what was observed of all pools to the default, by this many
    notable             relative change of a price below which it is the same price (recorded spot prices drift by 0.1 to 1 % several times a day)
    longest_hours       a lifetime is counted up to this; longest_return_hours: an outage
    together            how far pools of one region go away together, 0 not at all, 1 always (first half: 0.46 to 0.75 in its three regions)
    together_apart      the same of regions (first half: 0.1)
    patience            without a deadline a job may take this much of its work longer, so that waiting is not for nothing
    looked_at           places that are looked ahead from: the best few and those where the data is
    steps               of time that looking ahead reckons in, at most
    """

    threshold_hours: float = 0.5
    horizon_hours: float = 8.0
    lifetime_hours: float = 8.0
    return_hours: float = 2.0
    cool_down_hours: float = 1.0
    net_changeovers: float = 2.0
    slack_changeovers: float = 2.0
    prior_events: float = 3.0
    prior_of_all: float = 3.0
    notable: float = 0.02
    longest_hours: float = 24.0
    longest_return_hours: float = 8.0
    together: float = 0.65
    together_apart: float = 0.1
    patience: float = 0.5
    looked_at: int = 16
    steps: int = 384


AGES_HOURS = (0.0, 1.0 / 3.0, 1.0, 3.0, 9.0)
"""From which ages on pools are expected to end at another rate.  What has lasted lasts: of 1,377 spells in the recorded market half ended within 0.8 h, of those that
had lasted 4 h within 5.6 h more.  Round, a factor three apart; not fitted."""

DEFAULT = Rule()
