"""A placement diff as a pull request's comment: rights that widen, what Terraform destroys, one row per job, the rest folded.

Every name in it may be a stranger's: nothing may open a tag, a link, a mention, a fence or a table cell.  There is no fence in it at all, every block is
whole in itself, and what is cut where it would be too long are blocks and rows: totals, rights and deletions stay.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.change import GLYPHS, Action
from planner.render.audit_words import what as granted
from planner.render.audit_words import where, who
from planner.render.comment import Hidden, cell, hidden_line, read_hidden
from planner.render.diff_words import (
    amount,
    counted,
    delta,
    facts,
    finish,
    headline,
    inputs_words,
    mask,
    money,
    notes,
    said,
    summed,
    ways,
    word,
)
from planner.render.migration_text import minutes, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.change import Change, PlacementDiff

LONGEST = 60_000
"""Bytes: GitHub refuses a comment of more than 65,536 characters (its API's own message, 2026-09); bytes are never fewer."""
LONGEST_SUMMARY = 1_000_000
"""Bytes: GitHub drops a step summary of 1 MiB or more whole, without a word where it would be read."""
_CUT = (
    "_Cut here, as a comment may be no longer: `skyplan diff --json` has the rest. The totals above are of all jobs._"
)
_BREAK = "&#8203;"
_NAME, _FEW = 80, 5
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": f"@{_BREAK}", "#": f"#{_BREAK}"}
_HTML = str.maketrans({c: f"&#{ord(c)};" for c in '"[]`|*_~\\'} | _ENTITIES)
#: shares of the room that a table may take: rights, deletions, jobs, other figures
_RIGHTS, _DELETIONS, _JOBS, _FIGURES = 0.2, 0.15, 0.3, 0.1


def tag_line(tag: str, valid_at: str) -> str:
    """The hidden first line by which a comment is found again.  Raises ValueError on a tag that could not be read back."""
    return hidden_line(Hidden(kind="diff", tag=tag, valid_at=valid_at))


def read_tag(body: str) -> tuple[str, str] | None:
    """Tag and valid-at of a comment that begins with a diff's line, exactly; None of any other: `prod` is not found in `non-prod`."""
    found = read_hidden(body)
    return (found.tag, found.valid_at) if found and found.kind == "diff" and not found.outdated else None


def document(diff: PlacementDiff, *, tag: str = "", longest: int = LONGEST) -> str:
    """The comment's text.  `tag` "" = no hidden line."""
    first = [tag_line(tag, diff.valid_at)] if tag else []
    if not diff.changed and not any(c.other_figures for c in diff.changes) and not diff.warnings:
        return "\n".join([*first, _nothing(diff)]) + "\n"
    always = [
        f"{first[0]}\n## skyplan diff" if first else "## skyplan diff",
        _headline(diff),
        *_widenings(diff, longest),
        *_destroying(diff, longest),
        _totals(diff),
        *_said(diff, longest),
        *_jobs(diff, longest),
    ]
    folded = [*map(_job, diff.open), *_terraform(diff), *_figures(diff, longest)]
    return _joined(always, folded, longest)


def _joined(always: list[str], folded: list[str], longest: int) -> str:
    out = list(always)
    room = longest - sum(_size(b) + 2 for b in out) - _size(_CUT) - 4
    for block in folded:
        room -= _size(block) + 2
        if room < 0:
            out.append(_CUT)
            break
        out.append(block)
    return "\n\n".join(out) + "\n"


def _size(text: str) -> int:
    return len(text.encode())


def _nothing(diff: PlacementDiff) -> str:
    count = len(diff.changes)
    jobs = f"{count} {'job stays' if count == 1 else 'jobs stay'} as {'it is' if count == 1 else 'they are'}"
    total = diff.total.after
    return f"**skyplan: no change.** {jobs}; {summed(total)} to finish."


def _headline(diff: PlacementDiff) -> str:
    rights = f", **{len(diff.widenings)} {'grant widens' if len(diff.widenings) == 1 else 'grants widen'}**"
    words = f"{headline(diff)}{rights if diff.widenings else ''}"
    resources = f" Terraform: {counted(diff.terraform)}." if diff.terraform else ""
    cost = f"Cost per hour {delta(diff.hourly.difference)}, to finish {delta(diff.total.difference)}."
    return f"**{cell(mask(diff.base))} to {cell(mask(diff.head))}**: {words}. {cost}{resources}"


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], room: float, *, right: frozenset[int] = frozenset()
) -> str:
    """Rows until the room is full, then how many more there are."""
    out = [_row(head), "|" + "|".join("---:" if k in right else "---" for k in range(len(head))) + "|"]
    left = room - sum(map(_size, out))
    found = list(rows)
    for done, row in enumerate(found):
        line = _row(row)
        left -= _size(line) + 1
        if left < 0:
            out.append(_row([f"and {len(found) - done} more", *[""] * (len(head) - 1)]))
            break
        out.append(line)
    return "\n".join(out)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _safe(*texts: str) -> tuple[str, ...]:
    return tuple(cell(mask(t)) for t in texts)


def _widenings(diff: PlacementDiff, longest: int) -> list[str]:
    if not diff.widenings:
        return []
    rows = [_safe(f.level.value, who(f), where(f), granted(f), f.message) for f in diff.widenings]
    table = _table(("", "identity", "in", "grant", "what is wider"), rows, longest * _RIGHTS)
    return [f"### :warning: Grants widen ({len(rows)})", table]


def _destroying(diff: PlacementDiff, longest: int) -> list[str]:
    out: list[str] = []
    rows = [
        (r.action, *_safe(r.address, ", ".join(filter(None, (r.because, *r.paths)))))
        for t in diff.terraform
        for r in t.destroying
    ]
    if rows:
        table = _table(("", "resource", "because"), rows, longest * _DELETIONS)
        out += [f"### :warning: Terraform deletes or replaces ({len(rows)})", table]
    failed = [t.file for t in diff.terraform if t.errored]
    if failed:
        files = ", ".join(_safe(*(f[-_NAME:] for f in failed[:_FEW])))
        files += f" and {len(failed) - _FEW} more" if len(failed) > _FEW else ""
        out.append(f"**Terraform's plan ended with an error**: {files}. What it would do is not known whole.")
    return out


def _totals(diff: PlacementDiff) -> str:
    rows = [
        (name, *map(summed, (s.before, s.after)), delta(s.difference))
        for name, s in (("per hour", diff.hourly), ("to finish", diff.total), ("of it egress", diff.egress))
    ]
    table = _table((f"all jobs ({len(diff.changes)})", "base", "head", ""), rows, LONGEST, right=frozenset({1, 2, 3}))
    return "\n\n".join([table, *(f"_{note[0].upper()}{note[1:]}._" for note in notes(diff))])


def _said(diff: PlacementDiff, longest: int) -> list[str]:
    if not diff.warnings:
        return []
    return [_table(("to know",), [_safe(said(d)) for d in diff.warnings], longest * _FIGURES)]


def _jobs(diff: PlacementDiff, longest: int) -> list[str]:
    if not diff.open:
        return []
    rows = [
        (
            f"`{GLYPHS[c.action]}` {word(c)}",
            *_safe(c.job, *ways(c)),
            delta(c.hourly.difference),
            delta(c.total.difference),
            finish(c),
        )
        for c in diff.open
    ]
    head = ("", "job", "from", "to", "per hour", "to finish", "finish")
    return [_table(head, rows, longest * _JOBS, right=frozenset({4, 5}))]


def _job(c: Change) -> str:
    rows = [("reason", c.reason), *facts(c)]
    parts = [
        f"<details><summary>{_html(c.job)}: {word(c)}</summary>",
        _table(("", ""), (_safe(*r) for r in rows), LONGEST / 4),
    ]
    terms = [
        (*_safe(t.name), amount(t.before), amount(t.after), delta(t.difference), *_safe(t.detail)) for t in c.terms
    ]
    if terms:
        parts.append(_table(("term", "base", "head", "", ""), terms, LONGEST / 4, right=frozenset({1, 2, 3})))
    rights = [("added", g) for g in c.grants_added] + [("removed", g) for g in c.grants_removed]
    if rights:
        shown = [(word, *_safe(g.permission.value, g.resource, g.reason)) for word, g in rights]
        parts.append(_table(("grants of the nodes", "", "", ""), shown, LONGEST / 8))
    if c.migration is not None:
        m = c.migration
        parts.append(
            f"Migration ({m.reason.value}, {cell(mask(m.code))}): {cell(mask(m.text))}. **The job stops for {minutes(m.stop_minutes)}.**"
        )
        steps = [
            (str(k), *_safe(s.title), minutes(s.minutes), "stops" if s.stops else "") for k, s in enumerate(m.steps, 1)
        ]
        if moved := [(*_safe(t.name), signed(t.usd), *_safe(t.detail)) for t in m.terms]:
            parts.append(_table(("term of the move", "", ""), moved, LONGEST / 8, right=frozenset({1})))
        parts.append(_table(("step", "", "", ""), steps, LONGEST / 8, right=frozenset({2})))
    return "\n\n".join([*parts, "</details>"])


def _terraform(diff: PlacementDiff) -> list[str]:
    out: list[str] = []
    for t in diff.terraform:
        rows = [
            (r.action, *_safe(r.address, f"from {r.previous}" if r.previous else ", ".join(r.paths)))
            for r in t.resources
        ]
        rows += [(action, *_safe(f"output {name}", "")) for name, action in t.outputs]
        rows += [("drift", *_safe(address, "changed outside of Terraform")) for address in t.drifted]
        if rows:
            table = _table(("", "resource", ""), rows, LONGEST / 4)
            summary = f"Terraform {_html(t.file)}: {counted([t])}"
            out.append(f"<details><summary>{summary}</summary>\n\n{table}\n\n</details>")
    return out


def _figures(diff: PlacementDiff, longest: int) -> list[str]:
    others = [c for c in diff.changes if c.action is Action.KEEP and c.other_figures]
    if not others:
        return []
    rows = [(*_safe(c.job), money(c.total), finish(c), *_safe(inputs_words(c))) for c in others]
    table = _table(("job", "to finish", "finish", "inputs changed"), rows, longest * _FIGURES)
    return [f"<details><summary>{len(others)} kept, with other figures</summary>\n\n{table}\n\n</details>"]


def _html(text: str) -> str:
    """For a summary, in which Markdown should not hold: its signs are entities all the same."""
    return re.sub(r"(?<=:)(?=//)|(?<=www)(?=\.)", _BREAK, mask(text).translate(_HTML), flags=re.IGNORECASE)
