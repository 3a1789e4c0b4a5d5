"""What jobs say of each other, and budgets say of all: `team`, `anti_affinity` and `gang` of a job file, `budgets` of skyplan.yaml.

Decides the form only.  What jobs of one call say against each other is `together`'s business; who gets what, placement's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.project import Budget
from planner.model.workload import AntiAffinity, Apart, Gang
from planner.spec import units
from planner.spec.constraints import money
from planner.spec.near import did_you_mean
from planner.spec.patterns import is_glob, is_pattern, matches
from planner.spec.secret import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.workload import Workload
    from planner.spec.fields import Fields, Report
    from planner.spec.yaml_lines import Node

#: teams and groups
WORD: Final = "[a-z0-9-]{1,40}"
TEAMS: Final = r"[a-z0-9*?-]{1,40}"
APART: Final = tuple(apart.value for apart in Apart)
MAX_GANG: Final = 100_000
_GROUP_HINT: Final = "name the group; jobs that write the same name belong together"
_LEAST_HINT: Final = "say how many jobs of the group are of use at least, such as 8"
_BUDGET_HINT: Final = "give max_usd_per_hour or max_usd_total"


def team(job: Fields) -> str:
    """`team`: whose share of scarce capacity and whose budget the job counts to.  A tag of that name is another matter."""
    return job.read("team", _word) or ""


def anti_affinity(job: Fields) -> tuple[AntiAffinity, ...]:
    """`anti_affinity`: one group or several, each once, sorted."""
    found: dict[str, AntiAffinity] = {}
    for f in job.records("anti_affinity"):
        group = f.read("group", _word, required=_GROUP_HINT)
        by = f.choice("by", APART)
        f.finish()
        if group is None:
            continue
        if group in found:
            at = f.node.at
            job.report.error(at, "SKY-SPEC-113", f"`anti_affinity` names the group `{group}` twice", "keep one of them")
            continue
        found[group] = AntiAffinity(group=group, by=Apart(by) if by else AntiAffinity(group=group).by)
    return tuple(sorted(found.values()))


def gang(job: Fields) -> Gang | None:
    """`gang: {group, least}`."""
    f = job.fields("gang")
    if f is None:
        return None
    group = f.read("group", _word, required=_GROUP_HINT)
    least = f.read("least", lambda text: units.integer(text, 1, MAX_GANG), required=_LEAST_HINT)
    f.finish()
    return Gang(group=group, least=least) if group and least else None


def _word(text: str) -> str:
    if re.fullmatch(WORD, text, re.ASCII):
        return text
    proposal = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].rstrip("-")
    hint = "1 to 40 lower-case letters, digits and `-`"
    raise units.Malformed("is no name", f"{hint}, such as {proposal or 'vision'}")


def budgets(project: Fields) -> tuple[Budget, ...]:
    """`budgets`: in the order written, each with a limit."""
    out: list[Budget] = []
    for f in project.records("budgets"):
        teams = f.words("teams", lambda path, node: _teams(project.report, path, node))
        per_hour, total = f.read("max_usd_per_hour", money), f.read("max_usd_total", money)
        if not {"max_usd_per_hour", "max_usd_total"} & set(f.node.entries):
            f.missing("a limit", _BUDGET_HINT)
        f.finish()
        if "teams" in f.node.entries and not teams:
            continue  # told already; read as everybody's it would say what nobody wrote
        if per_hour is not None or total is not None:
            out.append(Budget(teams=teams or Budget().teams, usd_per_hour=per_hour, usd_total=total))
    return tuple(out)


def _teams(report: Report, path: str, node: Node) -> str | None:
    text = report.text(path, node)
    if text is None:
        return None
    if re.fullmatch(TEAMS, text, re.ASCII) and is_pattern(text):
        return text
    hint = "write a team's name or a glob such as nlp-*"
    report.error(node.at, "SKY-SPEC-105", f"`{path}`: {shown(text)} is no pattern of teams", hint)
    return None


def in_a_budget(job: Workload, stated: Sequence[Budget], report: Report) -> None:
    """Warn of a team that no budget names although one is named nearly so: by a slip its jobs would spend from nobody's."""
    names = [name for budget in stated for name in budget.teams if name != "*"]
    if not job.team or matches(names, job.team):
        return
    hint = did_you_mean(job.team, [name for name in names if not is_glob(name)])
    if hint:
        summary = f"`team`: no budget in skyplan.yaml names {job.team}"
        report.warning(report.places["team"], "SKY-SPEC-105", summary, hint)
