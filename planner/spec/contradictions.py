"""What one part of a job says against another.

Decides what is worth a word although each part is well formed: an error where nothing could ever be planned, a warning where the user
probably did not mean it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.offer import CapacityType
from planner.spec.patterns import matches

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.model.words import Words
    from planner.model.workload import Workload
    from planner.spec.fields import Report


def contradictions(job: Workload, words: Words, report: Report) -> None:
    """Report them all (SKY-SPEC-113)."""
    _spot(job, report)
    _regions(job, words, report)


def _spot(job: Workload, report: Report) -> None:
    if CapacityType.SPOT not in job.resources.capacity:
        return
    at = _at(report, "resources.capacity", "resources")
    if job.checkpoint is None and "checkpoint" not in report.places:
        hint = "add `checkpoint: {uri: …, size: …, every: 30m}`, or keep to on_demand"
        report.warning(at, "SKY-SPEC-113", "spot without a checkpoint: an interruption starts the job over", hint)
    elif job.checkpoint and job.checkpoint.every_hours >= job.work.hours:
        summary = "the first checkpoint comes when the work is done: an interruption starts the job over"
        report.warning(_at(report, "checkpoint.every"), "SKY-SPEC-113", summary, "write one more often")


def _regions(job: Workload, words: Words, report: Report) -> None:
    """Clouds named outright that the region patterns leave without a region."""
    limits = job.constraints
    named = [cloud for cloud in limits.clouds if words.regions.get(cloud)]
    if not limits.regions or not named:
        return
    empty = [cloud for cloud in named if not any(matches(limits.regions, name) for name in words.regions[cloud])]
    at = _at(report, "constraints.regions")
    hint = f"regions there are such as {', '.join(words.regions[empty[0]][:3])}" if empty else ""
    if len(empty) == len(limits.clouds):
        report.error(at, "SKY-SPEC-113", f"`constraints.regions` leaves no region of {', '.join(empty)}", hint)
    elif empty:
        report.warning(at, "SKY-SPEC-113", f"`constraints.regions` leaves no region of {', '.join(empty)}", hint)


def _at(report: Report, *paths: str) -> Location:
    return next(report.places[path] for path in paths if path in report.places)
