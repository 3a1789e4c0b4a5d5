"""What CI runs on a change: the diff of placements, money and rights as a summary, and the audit of what is newly granted.  Text only; needs no cloud credentials.

Decides no step of its own: each is a command that a person can run.  docs/ci.md has the comment, the other pipelines and what comes after the merge.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

GITHUB: Final = Path(".github") / "workflows" / "skyplan.yml"
GITLAB: Final = Path(".gitlab-ci.yml")
GITLAB_PART: Final = ".gitlab/skyplan.yml"
VARIABLE: Final = "SKYPLAN_SOURCE"
WHERE_FROM: Final = {
    "github": f"CI installs skyplan from the repository variable {VARIABLE}, such as `git+https://HOST/skyplan.git@COMMIT`: set it, or --source",
    "gitlab": f"CI installs skyplan from the CI/CD variable {VARIABLE}, such as `git+https://HOST/skyplan.git@COMMIT`: set it, or --source",
}
_GITHUB: Final = """\
# What a pull request does to placements, money and rights.  No cloud credentials: prices are the packaged ones.
name: skyplan
on:
  pull_request:
    branches: [@BRANCH@]
permissions:
  contents: read
concurrency:
  group: skyplan-${{ github.ref }}
  cancel-in-progress: true
jobs:
  review:
    runs-on: ubuntu-latest
    timeout-minutes: 15
@WORKING@    env:
      SKYPLAN_SOURCE: @SOURCE@
      BASE: origin/${{ github.base_ref }}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0   # the base is read from history
          persist-credentials: false
      - uses: actions/setup-python@v5
        with:
          python-version: "@PYTHON@"
      - run: python -m pip install "$SKYPLAN_SOURCE"
      - run: skyplan doctor --offline
      - run: skyplan diff --base "$BASE" --step-summary
      - run: skyplan audit --base "$BASE"
"""
_GITLAB: Final = """\
# What a merge request does to placements, money and rights.  No cloud credentials: prices are the packaged ones.
skyplan:
  image: python:@PYTHON@
  timeout: 15 minutes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"   # the base is read from history
@SOURCE@  script:
@WORKING@    - python -m pip install "$SKYPLAN_SOURCE"
    - git fetch origin "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"
    - skyplan doctor --offline
    - skyplan diff --base FETCH_HEAD --format markdown --output skyplan-diff.md --format table --output -
    - skyplan audit --base FETCH_HEAD
  artifacts:
    when: always
    paths: [@INNER@skyplan-diff.md]
"""
_INCLUDE: Final = f"""\
include:
  - local: {GITLAB_PART}
"""


def github(*, inner: str, branch: str, source: str, python: str) -> str:
    """`.github/workflows/skyplan.yml`.  `inner`: skyplan.yaml's folder in the repository; `source`: what pip installs, "" = the repository's variable."""
    working = "" if inner == "." else f"    defaults:\n      run:\n        working-directory: {json.dumps(inner)}\n"
    named = json.dumps(source) if source else f"${{{{ vars.{VARIABLE} }}}}"
    return _filled(_GITHUB, BRANCH=json.dumps(branch), WORKING=working, SOURCE=named, PYTHON=python)


def gitlab(*, inner: str, branch: str, source: str, python: str) -> str:
    """`.gitlab/skyplan.yml`, which `.gitlab-ci.yml` includes."""
    del branch  # a merge request names its own
    working = "" if inner == "." else f"    - cd {json.dumps(inner)}\n"
    named = f"    {VARIABLE}: {json.dumps(source)}\n" if source else ""
    folder = "" if inner == "." else f"{inner}/"
    return _filled(_GITLAB, WORKING=working, SOURCE=named, PYTHON=python, INNER=folder)


def include(before: str) -> str:
    """`.gitlab-ci.yml` with the include: in the list that is there, else before everything."""
    listed = re.search(r"^include:[ \t]*(?:#[^\n]*)?\n(?=[ \t]*- )", before, re.MULTILINE)
    if listed is None:
        return _INCLUDE if not before else f"{_INCLUDE}{before}"
    indent = re.match(r"[ \t]*", before[listed.end() :])
    return f"{before[: listed.end()]}{indent[0] if indent else '  '}- local: {GITLAB_PART}\n{before[listed.end() :]}"


def source() -> str:
    """What pip was given to install this skyplan, where that was a commit of a public-looking address; "" for a checkout or a wheel."""
    try:
        text = distribution("skyplan").read_text("direct_url.json") or "{}"
        told: Any = json.loads(text)
        url, commit = str(told["url"]), str(told["vcs_info"]["commit_id"])
    except (PackageNotFoundError, ValueError, KeyError, TypeError, OSError):
        return ""
    plain = re.fullmatch(
        r"https://[A-Za-z0-9.-]+/[A-Za-z0-9._/-]+", url
    )  # no credentials, no port, no host of this machine alone
    return f"skyplan @ git+{url}@{commit}" if plain and re.fullmatch(r"[0-9a-f]{40}", commit) else ""


def python_version() -> str:
    """The one that is running, `3.12`: what was tried here runs there."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
