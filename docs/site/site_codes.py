"""Every code that skyplan can print, out of the table of codes and what `skyplan explain` says of each."""

from __future__ import annotations

from site_markdown import cell, page

from planner.iam.audit.registry import RULES
from planner.model.codes import CODES
from planner.model.notes import note

FAMILIES = {
    "SPEC": "Job files and skyplan.yaml",
    "CAT": "Prices and the catalog",
    "REJ": "Why an offer was rejected",
    "APPLY": "Applying",
    "MOVE": "Moving",
    "RUN": "Nodes, the control plane, the broker",
    "IAM": "Rights",
}


def pages() -> dict[str, str]:
    """Path under the docs folder -> text."""
    found: dict[str, list[str]] = {}
    for code in sorted(CODES):
        found.setdefault(code.split("-")[1], []).append(code)
    lines = ["`skyplan explain CODE` says the same on the terminal. A code is never used again for something else.", ""]
    for family in [*FAMILIES, *sorted(found.keys() - FAMILIES.keys())]:
        lines += [f"## {FAMILIES.get(family, family)}", ""]
        for code in found.get(family, ()):
            lines += _entry(code)
    return {"reference/codes.md": page("Codes", *lines)}


def _entry(code: str) -> list[str]:
    row, told = CODES[code], note(code)
    lines = [f"### {code}", "", f"**{cell(_sentence(row.meaning))}**", ""]
    if told:
        lines += [cell(told.means), "", f"*What to do*: {cell(told.do)} Hint: {cell(row.hint)}.", ""]
        lines += [f"*Where*: {cell(told.where)}.", "", "```text", f"{told.example} [{code}]", "```", ""]
    else:
        lines += [f"*What to do*: {cell(row.hint)}.", ""]
    if code in RULES:
        lines += [f"Why it matters, with a failing and a passing example: [the rule](../rules/{code}.md).", ""]
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
