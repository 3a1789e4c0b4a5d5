"""What one part of a job says against another.

Decides what is worth a word although each part is well formed: an error where nothing could ever be planned, a warning where the user
probably did not mean it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.offer import CapacityType
from planner.spec.mounts import inside
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
    _tunnel(job, report)
    _folders(job, report)


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


def _tunnel(job: Workload, report: Report) -> None:
    """A tunnel joins nodes of several clouds, slowly."""
    if not job.tunnel:
        return
    at = _at(report, "network.across", "network")
    if job.resources.interconnect_sensitive:
        summary = "`network.across: tunnel` of an interconnect-sensitive job: no tunnel is a fast fabric"
        report.error(at, "SKY-SPEC-113", summary, "leave out `network` or `interconnect_sensitive`")
    if job.resources.nodes < 2:  # noqa: PLR2004 - a tunnel has two ends
        report.error(
            at, "SKY-SPEC-113", "`network.across: tunnel` of a single node", "leave it out, or ask for nodes: 2"
        )


def _folders(job: Workload, report: Report) -> None:
    """Two datasets at one place of the node, or one within another."""
    taken: list[str] = []
    for dataset in job.data:
        path = dataset.mount or dataset.copy_to
        if path is None:
            continue
        other = next((one for one in taken if inside(path, one) or inside(one, path)), None)
        if other is not None:
            at = _at(report, f"uri={dataset.at.uri}", "data")
            summary = f"`data`: {path} and {other} are one place on the node, or one lies in the other"
            report.error(at, "SKY-SPEC-113", summary, "give each dataset a folder of its own")
        taken.append(path)


def _at(report: Report, *paths: str) -> Location:
    return next(report.places[path] for path in paths if path in report.places)
