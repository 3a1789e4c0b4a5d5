"""Pages of documentation, one per rule, made of the rule's own words and its fixtures.

`python -m tests.unit.iam.audit.rule_pages` writes them to docs/rules; a test holds what is there equal to what this makes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from planner.iam.audit.registry import RULES
from planner.model.codes import CODES
from tests.unit.iam.audit.fixture_files import files, judged, load

FOLDER = Path(__file__).parents[4] / "docs" / "rules"
FAMILIES = {
    "1": "Launch scope",
    "2": "Privilege escalation",
    "3": "Data access",
    "4": "Trust and federation",
    "5": "Lifetime and secrets",
    "6": "Meaning and change",
}
AWS_ONLY = "AWS only."
#: parts of a fixture's name without a variant
PLAIN = 3


def page(rule):
    fails, passes = files(rule.id, "fail"), files(rule.id, "pass")
    first = judged(rule.id, load(fails[0]))[0]
    more = [part for variant in _variants(fails, passes) for part in _case(rule.id, variant)]
    parts = [
        f"# {rule.id}: {rule.title}",
        f"**{rule.level.value.capitalize()}** · {FAMILIES[rule.id[8]]} · `skyplan explain {rule.id}`: {CODES[rule.id].hint}.",
        "## Why",
        rule.why,
        "## Fails",
        _block(fails[0]),
        _told(rule.id, fails[0]),
        "## Passes",
        _block(passes[0]),
        "## Fix",
        rule.fix,
        "For the example above:",
        f"```\n{first.fix}\n```",
        "## Clouds",
        rule.clouds or AWS_ONLY,
        "## Closest checks of other tools",
        ", ".join(f"`{one}`" for one in rule.maps) if rule.maps else "None that we know of.",
        *(["## More cases", *more] if more else []),
    ]
    return "\n\n".join(parts) + "\n"


def _variants(fails, passes):
    names = dict.fromkeys(_variant(path) for path in (*fails, *passes))
    return [name for name in names if name]


def _case(rule, variant):
    """A variant: what fails, what is said to it, what passes."""
    parts = [f"### {variant.replace('-', ' ')}"]
    for outcome in ("fail", "pass"):
        for path in files(rule, outcome):
            if _variant(path) == variant:
                parts += ["Fails:" if outcome == "fail" else "Passes:", _block(path)]
                parts += [_told(rule, path)] if outcome == "fail" else []
    return parts


def index():
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.level.value} | {rule.title} | {', '.join(rule.maps) or '—'} |"
        for rule in RULES.values()
    ]
    parts = [
        "# Rules of `skyplan audit`",
        f"{len(RULES)} rules. Each has a failing and a passing example, which are tests too, and each finding says the exact lines to write instead. The last column has the closest checks of other tools: CKV checkov, TRV trivy, PRW prowler, and others by name.",
        "| rule | level | finds | closest |\n|---|---|---|---|\n" + "\n".join(rows),
        "These pages are generated from the rules and their fixtures: `python -m tests.unit.iam.audit.rule_pages`.",
    ]
    return "\n\n".join(parts) + "\n"


@cache
def pages():
    """Every file of docs/rules, by name."""
    ready = [rule for rule in RULES.values() if files(rule.id, "fail") and files(rule.id, "pass")]
    return {"README.md": index(), **{f"{rule.id}.md": page(rule) for rule in ready}}


def _told(rule, path):
    return "\n".join(f"> {one.message}" for one in judged(rule, load(path))[:1])


def _variant(path):
    """`gcp` of `SKY-IAM-102.gcp.fail.json`, "" of the fixture without one."""
    parts = path.name.split(".")
    return parts[1] if len(parts) > PLAIN else ""


def _block(path):
    return f"```json\n{_short(_essence(load(path)))}\n```"


def _essence(document):
    """What a fixture is about: of one holder of one right, that right alone."""
    subjects = document.get("subjects", [])
    if set(document) != {"subjects"} or len(subjects) != 1:
        return document
    rights = [one for kind in ("policies", "bindings", "assignments", "permits") for one in subjects[0].get(kind, [])]
    if len(rights) != 1 or subjects[0].get("identity") or subjects[0].get("keys"):
        return document
    return rights[0].get("document", rights[0])


def _short(value, indent=0):
    """JSON in which what fits on a line stays on it."""
    line = json.dumps(value, ensure_ascii=False)
    room = 110 - indent
    if len(line) <= room or not isinstance(value, dict | list) or not value:
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(key)}: {_short(one, indent + 2)}" for key, one in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(f"{pad}{_short(one, indent + 2)}" for one in value) + "\n" + " " * indent + "]"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
