"""Which pull request a pipeline is of, and when it was asked for, by what GitHub Actions and GitLab CI say in their environment.  Flags win over it.

Reads values, neither files nor the environment itself.  The place comes from the pipeline's own surroundings and from flags alone: never from the text that is posted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from planner.forges.address import refuse_address
from planner.forges.port import Name, Place
from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.errors import ForgeError

EVENT: Final = "GITHUB_EVENT_PATH"
TOKENS: Final = {Name.GITHUB: ("GITHUB_TOKEN", "GH_TOKEN"), Name.GITLAB: ("GITLAB_TOKEN",)}
"""Variables that hold the token, the first that is set counts."""
_APIS = {Name.GITHUB: "https://api.github.com", Name.GITLAB: "https://gitlab.com/api/v4"}
_GITHUB_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_GITLAB_REPO = re.compile(r"\d{1,18}|[A-Za-z0-9_.][A-Za-z0-9_. -]*(?:/[A-Za-z0-9_.][A-Za-z0-9_. -]*)+")
_PULL = re.compile(r"refs/pull/(\d{1,18})/(?:merge|head)")
_NUMBER = re.compile(r"[1-9]\d{0,17}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What flags say; "" and 0 are not given."""

    forge: str = ""
    repo: str = ""
    number: int = 0
    api: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """`asked_at`: when the pipeline was asked for by the forge's own clock, ISO, "" where it does not say."""

    place: Place
    asked_at: str = ""


def look_around(given: Given, env: Mapping[str, str], event: bytes | None) -> Surroundings:
    """`event` is what GITHUB_EVENT_PATH holds.  Raises ForgeError (SKY-APPLY-330, 336) with all that is missing."""
    forge = _forge(given, env)
    if forge is None:
        raise ForgeError([Diagnostic(code="SKY-APPLY-330", summary="this is neither GitHub Actions nor GitLab CI")])
    problems: list[Diagnostic] = []
    # a number that is given needs no event: one that is broken then only says no time
    told = _event(event, [] if given.number else problems) if forge is Name.GITHUB else {}
    repo = given.repo or _repo(forge, env)
    number = given.number or _number(forge, env, told)
    shape = _GITHUB_REPO if forge is Name.GITHUB else _GITLAB_REPO
    if not repo:
        problems.append(_missing("no repository is known", "give --repo, such as --repo acme/jobs"))
    elif not shape.fullmatch(repo) or ".." in repo.split("/"):
        problems.append(_missing("the repository's name is none", "GitHub: OWNER/NAME; GitLab: its number or path"))
    if not number:
        problems.append(_missing("no pull request's or merge request's number is known", _why(forge, env)))
    if problems:
        raise ForgeError(ordered(problems))
    api = (given.api or _api(forge, env)).rstrip("/")
    refuse_address(api)
    place = Place(forge=forge, api=api, repo=repo, number=number, web=_web(env, number))
    return Surroundings(place=place, asked_at=_asked_at(forge, env, told))


def token_of(forge: Name, variable: str, env: Mapping[str, str]) -> str:
    """The token, "" where there is none.  `variable` names the environment variable that holds it."""
    names = (variable,) if variable else TOKENS[forge]
    return next((env[n].strip() for n in names if env.get(n, "").strip()), "")


def _forge(given: Given, env: Mapping[str, str]) -> Name | None:
    if given.forge:
        return Name(given.forge)
    if env.get("GITHUB_REPOSITORY"):
        return Name.GITHUB
    return Name.GITLAB if env.get("CI_API_V4_URL") else None


def _event(event: bytes | None, problems: list[Diagnostic]) -> dict[str, Any]:
    if event is None:
        return {}
    try:
        found = json.loads(event)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return cast("dict[str, Any]", found)
    at = Location(EVENT)
    problems.append(
        Diagnostic(
            code="SKY-APPLY-330",
            summary="the event's file is no JSON object",
            location=at,
            hint="GitHub writes it; give --number where it is not there",
        )
    )
    return {}


def _repo(forge: Name, env: Mapping[str, str]) -> str:
    if forge is Name.GITHUB:
        return env.get("GITHUB_REPOSITORY", "")
    # of a merge request from a fork that runs in the parent, both are the parent's
    return env.get("CI_MERGE_REQUEST_PROJECT_ID", "") or env.get("CI_PROJECT_ID", "")


def _number(forge: Name, env: Mapping[str, str], event: Mapping[str, Any]) -> int:
    if forge is Name.GITLAB:
        found = env.get("CI_MERGE_REQUEST_IID", "").strip()
        return int(found) if _NUMBER.fullmatch(found) else 0
    pull = _part(event, "pull_request")
    issue = _part(event, "issue")
    if _part(issue, "pull_request"):
        pull = pull or issue
    listed = _part(event, "workflow_run").get("pull_requests")
    # one alone: of several nobody says which is meant
    if not pull and isinstance(listed, list) and len(cast("list[object]", listed)) == 1:
        pull = _part({"one": cast("list[object]", listed)[0]}, "one")
    number = pull.get("number")
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        return number
    ref = _PULL.fullmatch(env.get("GITHUB_REF", ""))
    return int(ref[1]) if ref else 0


def _why(forge: Name, env: Mapping[str, str]) -> str:
    if forge is Name.GITLAB:
        return "CI_MERGE_REQUEST_IID is set in merge request pipelines alone (rules: if $CI_PIPELINE_SOURCE == 'merge_request_event'); or give --number"
    name = env.get("GITHUB_EVENT_NAME", "")
    kind = f"`{name[:40]}`" if re.fullmatch(r"[a-z_]+", name) else "this"
    return f"{kind} is no event of one pull request: use `on: pull_request`, or give --number"


def _api(forge: Name, env: Mapping[str, str]) -> str:
    name = "GITHUB_API_URL" if forge is Name.GITHUB else "CI_API_V4_URL"
    return env.get(name, "").strip() or _APIS[forge]


def _web(env: Mapping[str, str], number: int) -> str:
    """GitLab's page of the merge request, where it is the pipeline's own."""
    url = env.get("CI_MERGE_REQUEST_PROJECT_URL", "")
    own = url.startswith("https://") and env.get("CI_MERGE_REQUEST_IID", "") == str(number)
    return f"{url}/-/merge_requests/{number}" if own else ""


def _asked_at(forge: Name, env: Mapping[str, str], event: Mapping[str, Any]) -> str:
    if forge is Name.GITLAB:
        found: object = env.get("CI_PIPELINE_CREATED_AT", "")
    else:
        found = (
            _part(event, "comment").get("created_at")
            or _part(event, "workflow_run").get("created_at")
            or _part(event, "pull_request").get("updated_at")
        )
    text = found if isinstance(found, str) else ""
    return text if _MOMENT.match(text) else ""


def _part(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _missing(summary: str, hint: str) -> Diagnostic:
    return Diagnostic(code="SKY-APPLY-330", summary=summary, hint=hint)
