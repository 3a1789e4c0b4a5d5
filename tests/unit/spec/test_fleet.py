"""Fleets: `team`, `anti_affinity` and `gang` of job files, `budgets` of skyplan.yaml, and what jobs of one call say against each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from planner.model.diagnostic import Severity
from planner.model.project import Budget, Project
from planner.model.workload import AntiAffinity, Apart, Gang
from planner.spec.normal import workload_document
from planner.spec.schema import job_schema, project_schema
from planner.spec.together import disagreements, unfillable
from tests.unit.spec.spec_words import JOB, documents_of, job_of, jobs_of, project_of, with_

_JOBS, _PROJECTS = Draft202012Validator(job_schema()), Draft202012Validator(project_schema())


EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet"


@pytest.mark.parametrize("file", sorted(EXAMPLE.glob("jobs/*.yaml")), ids=lambda file: file.stem)
def test_the_example_fleet_is_without_a_problem(file: Path) -> None:
    project, problems = project_of((EXAMPLE / "skyplan.yaml").read_text(encoding="utf-8"))
    assert problems == ()
    text = file.read_text(encoding="utf-8")
    jobs, diagnostics = jobs_of(text, project)
    assert (diagnostics, len(jobs)) == ((), len(documents_of(text)))
    assert [error.message for document in documents_of(text) for error in _JOBS.iter_errors(document)] == []


def member(name: str, *lines: str) -> str:
    return with_(JOB.replace("llama3-8b-sft", name), *lines)


@pytest.mark.parametrize(
    ("line", "team", "apart", "gang"),
    [
        ("team: vision", "vision", (), None),
        ("team: 7", "7", (), None),
        ("team:", "", (), None),
        ("anti_affinity: {group: eval}", "", (AntiAffinity(group="eval", by=Apart.ZONE),), None),
        ("anti_affinity: {group: eval, by: cloud}", "", (AntiAffinity(group="eval", by=Apart.CLOUD),), None),
        (
            "anti_affinity: [{group: b, by: pool}, {group: a, by: region}]",
            "",
            (AntiAffinity(group="a", by=Apart.REGION), AntiAffinity(group="b", by=Apart.POOL)),
            None,
        ),
        ("gang: {group: sweep, least: 8}", "", (), Gang(group="sweep", least=8)),
    ],
)
def test_what_a_job_says_of_others_is_read(
    line: str, team: str, apart: tuple[AntiAffinity, ...], gang: Gang | None
) -> None:
    text = with_(JOB, line)
    job = job_of(text)
    assert (job.team, job.anti_affinity, job.gang) == (team, apart, gang)
    assert list(_JOBS.iter_errors(documents_of(text)[0])) == []


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        ("team: Vision Lab", "SKY-SPEC-105", "vision-lab"),
        ("team: [a, b]", "SKY-SPEC-104", ""),
        ("teem: vision", "SKY-SPEC-102", "`team`"),
        ("anti-affinity: {group: eval}", "SKY-SPEC-102", "`anti_affinity`"),
        ("anti_affinity: eval", "SKY-SPEC-104", ""),
        ("anti_affinity: []", "SKY-SPEC-105", ""),
        ("anti_affinity: {by: zone}", "SKY-SPEC-103", "name the group"),
        ("anti_affinity: {group: eval, by: zoen}", "SKY-SPEC-105", "`zone`"),
        ("anti_affinity: {group: eval, of: zone}", "SKY-SPEC-102", "fields here are by, group"),
        ("anti_affinity: [{group: a}, {group: a, by: cloud}]", "SKY-SPEC-113", "keep one"),
        ("gang: {group: sweep}", "SKY-SPEC-103", "such as 8"),
        ("gang: {least: 8}", "SKY-SPEC-103", "name the group"),
        ("gang: {group: sweep, least: 0}", "SKY-SPEC-105", "from 1"),
        ("gang: {group: Sweep, least: 2}", "SKY-SPEC-105", "sweep"),
        ("gang: {group: sweep, leest: 2, least: 2}", "SKY-SPEC-102", "`least`"),
    ],
)
def test_what_is_wrong_is_told_at_its_line_with_a_hint(line: str, code: str, hint: str) -> None:
    _, diagnostics = jobs_of(with_(JOB, line))
    assert [(d.code, str(d.location)) for d in diagnostics] == [(code, "job.yaml:8")]
    assert hint in diagnostics[0].hint


def test_a_tag_of_that_name_is_no_team() -> None:
    assert job_of(with_(JOB, "tags: {team: vision}")).team == ""


def test_what_is_not_said_stands_in_no_plan_so_that_old_digests_hold() -> None:
    assert set(workload_document(job_of(JOB))) == {"name", "resources", "work", "run"}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("budgets: {max_usd_per_hour: 400}", (Budget(usd_per_hour=400.0),)),
        ("budgets: [{teams: vision, max_usd_total: 2e4}]", (Budget(teams=("vision",), usd_total=20000.0),)),
        (
            'budgets: [{teams: ["nlp-*", vision], max_usd_per_hour: $9}, {max_usd_total: 1}]',
            (Budget(teams=("nlp-*", "vision"), usd_per_hour=9.0), Budget(usd_total=1.0)),
        ),
    ],
)
def test_budgets_are_read_in_the_order_written(lines: str, found: tuple[Budget, ...]) -> None:
    project, diagnostics = project_of(f"project: acme\n{lines}\n")
    assert diagnostics == ()
    assert project.budgets == found


@pytest.mark.parametrize(
    ("entry", "code", "hint"),
    [
        ("{teams: vision}", "SKY-SPEC-103", "max_usd_per_hour"),
        ("{max_usd_per_hour: 0}", "SKY-SPEC-105", ""),
        ("{max_usd_per_hours: 4, max_usd_total: 1}", "SKY-SPEC-102", "max_usd_per_hour"),
        ("{teams: [Vision], max_usd_total: 1}", "SKY-SPEC-105", "nlp-*"),
        ("{teams: [], max_usd_total: 1}", "SKY-SPEC-105", "leave it out"),
        ("400", "SKY-SPEC-104", ""),
    ],
)
def test_what_is_wrong_with_a_budget_is_told_at_its_line(entry: str, code: str, hint: str) -> None:
    text = f"project: acme\nbudgets:\n  - {entry}\n"
    project, diagnostics = project_of(text)
    assert [(d.code, str(d.location)) for d in diagnostics] == [(code, "skyplan.yaml:3")]
    assert hint in diagnostics[0].hint
    assert list(_PROJECTS.iter_errors(documents_of(text)[0])) != []
    assert all(budget.teams == ("*",) for budget in project.budgets)


@pytest.mark.parametrize(
    ("team", "warned"), [("visoin", True), ("vision", False), ("nlp-7", False), ("robots", False), ("", False)]
)
def test_a_team_that_is_nearly_a_budgets_is_warned_of(team: str, warned: bool) -> None:
    project = Project(budgets=(Budget(usd_total=9.0), Budget(teams=("vision", "nlp-*"), usd_total=1.0)))
    _, diagnostics = jobs_of(with_(JOB, f"team: {team}"), project)
    assert [(d.severity, d.hint) for d in diagnostics] == (
        [(Severity.WARNING, "did you mean `vision`?")] if warned else []
    )


FILES = {
    "a.yaml": member("aa", "gang: {group: sweep, least: 2}", "anti_affinity:", "  - {group: x}", "  - {group: eval}"),
    "b.yaml": member("bb", "gang: {group: sweep, least: 2}", "anti_affinity: {group: eval, by: zone}"),
    "c.yaml": member("cc", "gang:", "  group: sweep", "  least: 3", "anti_affinity:", "- group: eval", "  by: cloud"),
}


def said(*files: str):
    return [(job_of(FILES[file]), file) for file in files]


def test_a_gang_and_a_group_say_one_thing_and_who_says_another_is_told_where() -> None:
    for order in ("abc", "cba", "bca"):
        found = disagreements(said(*(f"{one}.yaml" for one in order)), FILES.__getitem__)
        assert [(d.code, str(d.location)) for d in found] == [
            ("SKY-SPEC-113", "c.yaml:10"),
            ("SKY-SPEC-113", "c.yaml:12"),
        ]
        assert "says least 3, aa in a.yaml says least 2" in found[0].summary
        assert "apart by cloud, aa in a.yaml by zone" in found[1].summary
    assert disagreements(said("a.yaml", "b.yaml"), FILES.__getitem__) == []


def test_a_gang_that_its_jobs_cannot_fill_is_told_and_jobs_that_have_places_count() -> None:
    (only,) = unfillable(said("a.yaml"), [], FILES.__getitem__)
    assert (only.code, str(only.location)) == ("SKY-SPEC-113", "a.yaml:8")
    assert "from 2 jobs on; known are 1 of this call" in only.summary
    assert unfillable(said("a.yaml"), [job_of(FILES["b.yaml"])], FILES.__getitem__) == []
    assert unfillable(said("a.yaml", "b.yaml"), [], FILES.__getitem__) == []
    assert unfillable([(job_of(JOB), "job.yaml")], [], FILES.__getitem__) == []


def test_the_line_is_told_in_a_file_of_several_jobs_too() -> None:
    text = f"{JOB}---\n{FILES['a.yaml']}"
    jobs, diagnostics = jobs_of(text)
    assert diagnostics == ()
    (only,) = unfillable([(jobs[1], "two.yaml")], [], lambda _: text)
    assert str(only.location) == "two.yaml:16"
