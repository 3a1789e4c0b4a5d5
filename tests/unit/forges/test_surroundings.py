"""R25: which pull request a pipeline is of, from what GitHub Actions and GitLab CI say, and what is said where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.app import comment_place
from planner.forges.port import Name
from planner.forges.surroundings import Given, look_around
from planner.model.errors import ForgeError

GITHUB = {
    "GITHUB_REPOSITORY": "acme/jobs",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_API_URL": "https://api.github.com",
}
GITLAB = {
    "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
    "CI_PROJECT_ID": "42",
    "CI_MERGE_REQUEST_IID": "9",
    "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example.com/acme/jobs",
    "CI_PIPELINE_CREATED_AT": "2026-11-30T10:00:00Z",
}
PULL = {"pull_request": {"number": 7, "updated_at": "2026-11-30T10:00:00Z"}}


def event(value: object) -> bytes:
    return json.dumps(value).encode()


def said(given: Given, env: dict[str, str], told: bytes | None) -> str:
    with pytest.raises(ForgeError) as error:
        look_around(given, env, told)
    return "\n".join(f"{d.code} {d.summary} {d.hint}" for d in error.value.diagnostics)


def test_a_pull_request_of_github_actions() -> None:
    found = look_around(Given(), GITHUB, event(PULL))
    assert (found.place.forge, found.place.repo, found.place.number) == (Name.GITHUB, "acme/jobs", 7)
    assert (found.place.api, found.asked_at) == ("https://api.github.com", "2026-11-30T10:00:00Z")


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ({"issue": {"number": 8, "pull_request": {}}}, 0),
        ({"issue": {"number": 8, "pull_request": {"url": "x"}}, "comment": {"created_at": "2026-11-30T10:00:00Z"}}, 8),
        ({"issue": {"number": 8}}, 0),
        ({"workflow_run": {"pull_requests": [{"number": 3}]}}, 3),
        ({"workflow_run": {"pull_requests": []}}, 0),
        ({"workflow_run": {"pull_requests": [{"number": 3}, {"number": 4}]}}, 0),
        ({"pull_request": {"number": True}}, 0),
        ({"pull_request": {"number": "7"}}, 0),
        ({"pull_request": {"number": -7}}, 0),
        ({"pull_request": [7]}, 0),
        ({}, 0),
    ],
)
def test_other_events_have_their_number_elsewhere_or_none(told: dict, number: int) -> None:
    if number:
        assert look_around(Given(), GITHUB, event(told)).place.number == number
    else:
        assert "is no event of one pull request" in said(Given(), GITHUB, event(told))


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_an_event_that_is_none_is_told_by_its_variable(told: bytes) -> None:
    text = said(Given(), GITHUB, told)
    assert "SKY-APPLY-330" in text
    assert "no JSON object" in text
    assert look_around(Given(number=7), GITHUB, told).place.number == 7


def test_the_ref_tells_the_number_where_no_event_does() -> None:
    assert look_around(Given(), {**GITHUB, "GITHUB_REF": "refs/pull/12/merge"}, None).place.number == 12
    assert "SKY-APPLY-330" in said(Given(), {**GITHUB, "GITHUB_REF": "refs/heads/refs/pull/12/merge"}, None)


def test_a_merge_request_of_gitlab_ci() -> None:
    found = look_around(Given(), GITLAB, None)
    assert (found.place.forge, found.place.repo, found.place.number) == (Name.GITLAB, "42", 9)
    assert found.place.web == "https://gitlab.example.com/acme/jobs/-/merge_requests/9"
    assert found.asked_at == "2026-11-30T10:00:00Z"
    assert look_around(Given(number=8), GITLAB, None).place.web == ""


def test_a_branch_pipeline_of_gitlab_is_told_which_one_it_needs() -> None:
    env = {k: v for k, v in GITLAB.items() if k != "CI_MERGE_REQUEST_IID"}
    assert "merge_request_event" in said(Given(), env, None)


def test_flags_win_over_the_pipeline() -> None:
    given = Given(forge="gitlab", repo="acme/team/jobs", number=3, api="https://gl.example/api/v4/")
    found = look_around(given, GITHUB, event(PULL))
    assert (found.place.forge, found.place.repo, found.place.number) == (Name.GITLAB, "acme/team/jobs", 3)
    assert found.place.api == "https://gl.example/api/v4"


@pytest.mark.parametrize(
    "repo",
    [
        "acme",
        "acme/",
        "/jobs",
        "acme/jobs/x",
        "acme/..",
        "../jobs",
        "acme/jobs?x=1",
        "acme/jobs#1",
        "a b/c",
        "acme/jobs\n",
        "-a/b",
    ],
)
def test_a_name_that_is_no_repository_of_github_is_refused(repo: str) -> None:
    assert "SKY-APPLY-330" in said(Given(forge="github", repo=repo, number=1), {}, None)


@pytest.mark.parametrize("repo", ["acme", "../x/y", "acme/../x", "acme//x", "acme/x?y", "42\n", "acme/x%2e"])
def test_a_name_that_is_no_project_of_gitlab_is_refused(repo: str) -> None:
    assert "SKY-APPLY-330" in said(Given(forge="gitlab", repo=repo, number=1), {}, None)


def test_all_that_is_missing_is_told_at_once() -> None:
    text = said(Given(forge="github"), {}, None)
    assert text.count("SKY-APPLY-330") == 2
    assert "neither GitHub Actions nor GitLab CI" in said(Given(), {}, None)


def test_an_api_over_plain_http_is_refused() -> None:
    assert "SKY-APPLY-336" in said(Given(), {**GITLAB, "CI_API_V4_URL": "http://gitlab.example.com/api/v4"}, None)


def test_the_token_comes_from_the_environment_and_its_absence_is_told() -> None:
    found = look_around(Given(), GITHUB, event(PULL))
    assert comment_place.token(found, "", {"GH_TOKEN": " b ", "GITHUB_TOKEN": ""}, needed=True) == "b"
    assert comment_place.token(found, "MINE", {"MINE": "c", "GITHUB_TOKEN": "a"}, needed=True) == "c"
    assert comment_place.token(found, "", {}, needed=False) == ""
    with pytest.raises(ForgeError, match="GITHUB_TOKEN or GH_TOKEN"):
        comment_place.token(found, "", {}, needed=True)


def test_the_event_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "event.json"
    file.write_bytes(event(PULL))
    env = {**GITHUB, "GITHUB_EVENT_PATH": str(file)}
    assert comment_place.find(Given(), env).place.number == 7
    file.unlink()
    with pytest.raises(ForgeError, match="cannot be read"):
        comment_place.find(Given(), env)
    assert comment_place.find(Given(number=3), env).place.number == 3
