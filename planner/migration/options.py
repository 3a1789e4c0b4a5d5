"""Where a job could run next, as columns, and what is known of the job: all that the decision sees.  Values only; nothing is judged.

Replaying a recorded market and replanning a real job both make these and call the very same `planner.migration.decide.decide`.
Hours of work are hours on the job's reference hardware; `work_rate` turns them into hours of a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Options:
    """Places, one entry each, all arrays of one length.  What runs now is one of them, with `stop_hours` and `start_usd` 0.

    names           offer ids (zone names in a replay), in a total order
    pool            number of the pool: what runs out together
    region          number of the region: what has its data near
    usd_per_hour    all nodes, at the current rate
    work_rate       reference hours done per hour
    spot            may be taken back
    available       can be had now, as far as was seen last
    stop_hours      hours without progress that going there costs: acquire, write and transfer the checkpoint, set up, pull, load
    start_usd       all that is paid before it makes progress: egress, those hours at its own rate, both places at once where they overlap
    lifetime_hours  expected hours until it is taken back, from what was observed; inf where it cannot be
    return_hours    expected hours until it can be had again, where it cannot now; 0 where it can
    usual_usd_per_hour  what it usually costs, over the window of the history
    allowed         may be gone to at all now: same topology where the job needs it, no recent failure, quota, reviewed

    What helps it to look beyond the first place; None: made up from the above.
    fresh_hours     expected hours that it lasts once it has just come back (`lifetime_hours` is of now: what has lasted long will last longer)
    outage_hours    how long it usually is away
    up_share        share of the time that it could be had
    steady_hours    how long its present price is expected to last, from how often it changed; inf where that is not known
    apart_usd       by region and region: what carrying the checkpoint from the one to the other costs
    """

    names: tuple[str, ...]
    pool: Indices
    region: Indices
    usd_per_hour: Floats
    work_rate: Floats
    spot: Flags
    available: Flags
    stop_hours: Floats
    start_usd: Floats
    lifetime_hours: Floats
    return_hours: Floats
    usual_usd_per_hour: Floats
    allowed: Flags
    fresh_hours: Floats | None = None
    outage_hours: Floats | None = None
    up_share: Floats | None = None
    apart_usd: Floats | None = None
    steady_hours: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The job now.

    running          which option runs; None where nothing does (it was taken back, or waits)
    work_hours       reference hours left
    deadline_hours   hours until its deadline; inf where it has none
    since_move_hours hours since its last voluntary move; inf where there was none
    home             the region where its newest checkpoint lies; -1 where there is none
    starting_hours   of a start under way that are still to come; `deadline_hours` is without them
    """

    running: int | None
    work_hours: float
    deadline_hours: float
    since_move_hours: float
    home: int = -1
    starting_hours: float = 0.0
