"""Who can do what, and why, for people at a terminal."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from planner.render.audit_words import printable

if TYPE_CHECKING:
    from planner.model.audit_report import Explanation, Right
    from planner.render.text import Paint

_USED = {True: "used", False: "unused here", None: ""}


def explanation_lines(explanation: Explanation, paint: Paint) -> list[str]:
    """By subject and statement: its resources and bounds once, then each action with what needs it."""
    out: list[str] = []
    for one in explanation.who:
        rows = explanation.of(one)
        place = f", in {printable(one.place)}" if one.place else ""
        out.append(paint(f"{one.cloud} {printable(one.subject)}", "bold") + place)
        out += [f"  may be assumed by {printable(by)}" for by in one.trusted]
        out += [f"  {printable(words)}" for words in one.limits]
        for (grant, resources, bounds), rights in groupby(rows, key=lambda r: (r.grant, r.resources, r.bounds)):
            out += ["", *_head(grant, resources, bounds, paint)]
            out += [line for right in rights for line in _action(right, paint)]
        out.append("")
    out.append(f"{len(explanation.rights)} permissions of {printable(explanation.identity)}")
    return out


def _head(grant: str, resources: tuple[str, ...], bounds: tuple[str, ...], paint: Paint) -> list[str]:
    out = [f"  {paint(printable(grant), 'cyan')}"]
    out += [f"    on {printable(one)}" for one in resources]
    return out + [f"    if {printable(bound)}" for bound in bounds]


def _action(right: Right, paint: Paint) -> list[str]:
    mark = f"  [{_USED[right.used]}]" if right.used is not None else ""
    out = [f"    {paint(printable(right.action), 'bold')}{mark}"]
    if right.reason:
        out.append(f"      {printable(right.reason)}")
    if right.needed_by:
        out.append(f"      for: {printable(', '.join(right.needed_by))}")
    return out
