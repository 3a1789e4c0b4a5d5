"""The limits that jobs and projects share: deadline, hard end, budgets, clouds, regions, instance types.

Decides whether each is well formed and names something that exists.  Intersecting a job's with the project's is `limits`' business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.offer import Cloud
from planner.model.workload import Constraints
from planner.spec import units
from planner.spec.near import did_you_mean
from planner.spec.patterns import is_pattern, matches
from planner.spec.secret import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.model.words import Words
    from planner.spec.fields import Fields
    from planner.spec.yaml_lines import Node

CLOUDS = tuple(cloud.value for cloud in Cloud)


def money(text: str) -> float:
    """US dollars, above 0; a leading `$` is admitted."""
    return units.real(text.strip().removeprefix("$"), example="write US dollars as a number, such as 60")


def clouds(fields: Fields, key: str = "clouds") -> tuple[str, ...]:
    """A list of clouds."""
    return fields.words(key, lambda path, node: fields.report.choice(path, node, CLOUDS))


def all_regions(words: Words) -> tuple[str, ...]:
    """The regions of all clouds."""
    return tuple(sorted({name for names in words.regions.values() for name in names}))


def patterns(fields: Fields, key: str, known: Iterable[str], what: str, *, strict: bool = True) -> tuple[str, ...]:
    """A list of names or globs.  One that matches nothing known is an error (`strict`) or a warning, with near misses."""
    names = tuple(known)

    def parse(path: str, node: Node) -> str | None:
        text = fields.report.text(path, node)
        if text is None:
            return None
        if not is_pattern(text):
            hint = "write a name or a glob such as us-east-*, with at most 3 `*`"
            fields.report.error(node.at, "SKY-SPEC-105", f"`{path}`: {shown(text)} is no pattern", hint)
            return None
        if names and not any(matches((text,), name) for name in names):
            say = fields.report.error if strict else fields.report.warning
            hint = did_you_mean(text, names) or f"names are such as {', '.join(names[:4])}"
            say(node.at, "SKY-SPEC-105", f"`{path}`: {shown(text)} matches no {what} that is known", hint)
            return None if strict else text
        return text

    return fields.words(key, parse)


def constraints(fields: Fields, words: Words, *, strict: bool = True) -> Constraints:
    """The limits, each absent where it is wrong."""
    return Constraints(
        deadline_hours=fields.read("deadline", units.hours),
        max_usd_per_hour=fields.read("max_usd_per_hour", money),
        max_usd_total=fields.read("max_usd_total", money),
        clouds=clouds(fields),
        regions=patterns(fields, "regions", all_regions(words), "region", strict=strict),
        instance_types=patterns(fields, "instance_types", words.instance_types, "instance type", strict=strict),
        stop_after_hours=fields.read("stop_after", units.hours),
    )
