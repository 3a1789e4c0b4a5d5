"""Migration diffs as a pull request's comment: what moves, why, what it costs, how long it stops, which permission changes.

Every name in it may be a stranger's: nothing may open a tag, a link, a mention or a table cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.comment import cell, joined
from planner.render.migration_text import bound_words, left_words, minutes, signed, standing_words, summary
from planner.render.plan_text import what, where
from planner.render.text import usd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.migration import Kept, MigrationDiff

_CUT = "_Cut here, as a comment may be no longer: the JSON has the rest._"


def document(diffs: Sequence[MigrationDiff], kept: Sequence[Kept]) -> str:
    """The comment's text; cut between two jobs where it would be too long."""
    blocks = ["## skyplan replan", f"**{summary(diffs, kept)}.**", *map(_diff, diffs)]
    if kept:
        rows = "\n".join(f"| {cell(k.job)} | {cell(k.text)} | {k.code} |" for k in kept)
        blocks.append(
            f"<details><summary>{len(kept)} stay</summary>\n\n| job | why | |\n|---|---|---|\n{rows}\n\n</details>"
        )
    return joined(blocks, _CUT)


def _diff(diff: MigrationDiff) -> str:
    first = diff.to[0]
    permissions = [f"- `+` {cell(g.permission.value)} {cell(g.resource)}: {cell(g.reason)}" for g in diff.grants_added]
    permissions += [f"- `-` {cell(g.permission.value)} {cell(g.resource)}" for g in diff.grants_removed]
    terms = "\n".join(f"| {cell(t.name)} | {signed(t.usd)} | {cell(t.detail)} |" for t in diff.terms)
    steps = "\n".join(
        f"{k}. {cell(s.title)} ({minutes(s.minutes)}{', **the job stops**' if s.stops else ''})"
        for k, s in enumerate(diff.steps, 1)
    )
    resources = [f"- `+` {cell(r)}" for r in diff.resources_added] + [
        f"- `-` {cell(r)}" for r in diff.resources_removed
    ]
    rows = [
        ("from", standing_words(diff)),
        ("to", f"{where(first)}, {what(first)}, {usd(first.usd_per_hour)}/h"),
        *(("then", f"{where(p)}, {what(p)}, {usd(p.usd_per_hour)}/h") for p in diff.to[1:]),
        ("beside", diff.runner_up or "nothing"),
        ("work left", left_words(diff)),
        ("stops for", minutes(diff.stop_minutes)),
    ]
    table = "\n".join(f"| {name} | {cell(text)} |" for name, text in rows)
    parts = [
        f"### {cell(diff.job)}: {diff.reason.value} ({diff.code})",
        f"{cell(diff.text)}. It is {cell(bound_words(diff))}.",
        f"| | |\n|---|---|\n{table}",
        f"| term | USD | |\n|---|---:|---|\n{terms}",
        "**Permissions of the nodes**:" + ("\n\n" + "\n".join(permissions) if permissions else " unchanged."),
        f"<details><summary>steps</summary>\n\n{steps}\n\n</details>",
    ]
    if resources:
        parts.append("<details><summary>Terraform resources</summary>\n\n" + "\n".join(resources) + "\n\n</details>")
    return "\n\n".join(parts)
