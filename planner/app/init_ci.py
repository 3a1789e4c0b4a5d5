"""What CI runs on a change, for GitHub and GitLab: the action and the template of skyplan's own repository, with this repository's names in them.

Decides no step of its own; docs/ci.md has what they do, with forks too, the other pipelines, and what comes after the merge.  Needs no cloud credentials.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

GITHUB: Final = Path(".github") / "workflows" / "skyplan.yml"
GITLAB: Final = Path(".gitlab-ci.yml")
GITLAB_PART: Final = ".gitlab/skyplan.yml"
VARIABLE: Final = "SKYPLAN_SOURCE"
REPOSITORY: Final = "SKYPLAN_REPOSITORY"
REVISION: Final = "SKYPLAN_COMMIT"
WHERE_FROM: Final = {
    "github": f"CI takes skyplan's action from the repository variables {REPOSITORY} (OWNER/NAME on GitHub) and {REVISION}: set them, or --source git+https://github.com/OWNER/NAME@COMMIT",
    "gitlab": f"CI installs skyplan from the CI/CD variable {VARIABLE}, such as `git+https://HOST/skyplan.git@COMMIT`: set it, or --source",
}
_GITHUB: Final = """\
# What a pull request does to placements, money and rights.  No cloud credentials: prices are the packaged ones.
name: skyplan
on:
  pull_request:
permissions: {}
concurrency:
  group: skyplan-${{ github.event.pull_request.number }}
  cancel-in-progress: true
jobs:
  review:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    permissions:
      contents: read
      pull-requests: write # the comment; a fork's token only reads, and the comment is left out
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          fetch-depth: 0 # the base is read from history
          persist-credentials: false
@ACTION@        with:
          jobs: jobs
          tag: @TAG@
@WORKING@"""
_THERE: Final = """\
      - uses: @USES@
"""
_FETCHED: Final = """\
      - if: vars.SKYPLAN_REPOSITORY == '' || vars.SKYPLAN_COMMIT == '' # else this repository would be fetched, or what is newest
        run: |
          echo "::error title=skyplan::set the repository variables SKYPLAN_REPOSITORY (OWNER/NAME) and SKYPLAN_COMMIT"
          exit 1
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          repository: ${{ vars.SKYPLAN_REPOSITORY }} # where skyplan is hosted for you, OWNER/NAME
          ref: ${{ vars.SKYPLAN_COMMIT }}
          path: .skyplan-action
          persist-credentials: false
      - uses: ./.skyplan-action
"""
# as ci/gitlab/skyplan.gitlab-ci.yml, to which a test holds it
_GITLAB: Final = """\
# What a merge request does to placements, money and rights: a job to run as it is, and the hidden one that it extends.
# Set the variable SKYPLAN_SOURCE (what pip installs), and GITLAB_TOKEN (masked; a project access token with the scope `api`) for the note.
# docs/ci.md tells what it needs and what it does with forks.
.skyplan:
  image: python:3.12
  timeout: 15 minutes
  variables:
    GIT_DEPTH: "0" # the base is read from history
    SKYPLAN_FAIL_ON: high
    SKYPLAN_TAG: skyplan
    SKYPLAN_BEHAVIOR: update
    JOBS: jobs
    PLANS: plans
  before_script:
    - |
      if ! command -v skyplan >/dev/null; then
        python -I -m venv "$CI_BUILDS_DIR/.skyplan-venv"
        "$CI_BUILDS_DIR/.skyplan-venv/bin/python" -I -m pip install --quiet --disable-pip-version-check "skyplan[comment] @ $SKYPLAN_SOURCE"
        export PATH="$CI_BUILDS_DIR/.skyplan-venv/bin:$PATH"
      fi
      skyplan --version
  script:
    - |
      base=${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$CI_MERGE_REQUEST_DIFF_BASE_SHA}
      mkdir -p skyplan-review
      diff=0
      skyplan diff --base "$base" --jobs "$JOBS" --plans "$PLANS" --tag "$SKYPLAN_TAG" --detailed-exitcode \\
        --format markdown --output skyplan-review/diff.md --format json --output skyplan-review/diff.json \\
        --format table --output - || diff=$?
      if [ "$diff" -ne 0 ] && [ "$diff" -ne 2 ]; then exit 1; fi
      audit=0
      if [ -d "$PLANS" ]; then
        skyplan audit --plans "$PLANS" --base "$base" --fail-on "$SKYPLAN_FAIL_ON" \\
          --format markdown --output skyplan-review/audit.md --format junit --output skyplan-review/audit.xml \\
          --format table --output - || audit=$?
        if [ "$audit" -ne 0 ] && [ "$audit" -ne 2 ]; then exit 1; fi
      fi
      if [ -n "${GITLAB_TOKEN:-}" ]; then
        skyplan comment skyplan-review/diff.md --behavior "$SKYPLAN_BEHAVIOR"
        if [ -f skyplan-review/audit.md ]; then
          skyplan comment skyplan-review/audit.md --behavior "$SKYPLAN_BEHAVIOR" --tag "$SKYPLAN_TAG" --only-on-change
        fi
      else
        echo "GITLAB_TOKEN is not set (pipelines of a fork have none): see skyplan-review/ among the artifacts"
      fi
      exit "$audit"
  artifacts:
    when: always
    expire_in: 30 days
    paths: [skyplan-review/]
    reports:
      junit: skyplan-review/audit.xml

skyplan-review:
  extends: .skyplan
  stage: test
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
"""
_INCLUDE: Final = f"""\
include:
  - local: {GITLAB_PART}
"""


def github(*, inner: str, name: str, source: str) -> str:
    """`.github/workflows/skyplan.yml`.  `inner`: skyplan.yaml's folder in the repository; `source`: as pip takes it, of a repository on GitHub, "" = by variables."""
    working = "" if inner == "." else f"          working-directory: {json.dumps(inner)}\n"
    uses = uses_of(source)
    action = _THERE.replace("@USES@", uses) if uses else _FETCHED
    return _GITHUB.replace("@ACTION@", action).replace("@TAG@", name).replace("@WORKING@", working)


def gitlab(*, inner: str, name: str, source: str) -> str:
    """`.gitlab/skyplan.yml`, which `.gitlab-ci.yml` includes."""
    text = _GITLAB.replace("SKYPLAN_TAG: skyplan", f"SKYPLAN_TAG: {name}")
    if source:
        text = text.replace("    JOBS: jobs\n", f"    {VARIABLE}: {json.dumps(source)}\n    JOBS: jobs\n")
    if inner != ".":
        text = text.replace(
            "  script:\n    - |\n      base=",
            f"  script:\n    - {json.dumps(f'cd -- {shlex.quote(inner)}')}\n    - |\n      base=",
        )
        text = text.replace("paths: [skyplan-review/]", f"paths: [{json.dumps(f'{inner}/skyplan-review/')}]")
        text = text.replace(
            "junit: skyplan-review/audit.xml", f"junit: {json.dumps(f'{inner}/skyplan-review/audit.xml')}"
        )
    return text


def uses_of(source: str) -> str:
    """`OWNER/NAME@REVISION` of what pip would install, where that is a revision on GitHub; "" else."""
    found = re.search(r"git\+https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?@([\w./-]+)$", source)
    return f"{found[1]}@{found[2]}" if found else ""


def include(before: str) -> str:
    """`.gitlab-ci.yml` with the include: in what is included already, else before everything.  A second `include` would undo the first."""
    found = re.search(
        r"^include:[ \t]*(?P<here>[^\s#][^\n]*)?(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*", before, re.MULTILINE
    )
    if found is None:
        return f"{_INCLUDE}{before}"
    one, rest = f"- local: {GITLAB_PART}\n", before[found.end() :]
    if (here := found["here"]) is not None:  # a text, an object or a list of them in one line
        several = f" [{{local: {GITLAB_PART}}}, {here[1:]}" if here[0] == "[" else f"\n  {one}  - {here}"
        return f"{before[: found.start()]}include:{several}{before[found.end('here') :]}"
    if listed := re.match(r"[ \t]*(?=- )", rest):
        return f"{before[: found.end()]}{listed[0]}{one}{rest}"
    # one object, in lines of its own: it becomes the list's second item
    inner = re.match(r"(?:[ \t]+[^\n]*(?:\n|$)|[ \t]*\n)*", rest)
    body = inner[0] if inner else ""
    indent = len(body) - len(body.lstrip(" \t"))
    lines = [line[indent:] for line in body.splitlines(keepends=True)]
    item = "".join(f"{'  - ' if k == 0 else '    '}{line}" if line.strip() else line for k, line in enumerate(lines))
    return f"{before[: found.end()]}  {one}{item}{rest[len(body) :]}"


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
    return f"git+{url}@{commit}" if plain and re.fullmatch(r"[0-9a-f]{40}", commit) else ""
