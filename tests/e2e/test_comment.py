"""R25: `skyplan comment` as a pipeline calls it, from the installed program against forges on loopback (peers 9, 10, 11, 13)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.render.comment import read_hidden
from tests.emulators import forges
from tests.unit.forges.desk import NUMBER, REPO, TOKEN, body

ROOT = Path(__file__).parents[2]
RUN = [sys.executable, "-c", "from planner.cli.entry import run; run()"]


@pytest.fixture
def github() -> Iterator[forges.Forge]:
    forge = forges.GitHub(prefix="/api/v3")
    forge.user(TOKEN, "github-actions[bot]", kind="Bot")
    forge.place(REPO, NUMBER)
    with forges.served(forge):
        yield forge


@pytest.fixture
def gitlab() -> Iterator[forges.Forge]:
    forge = forges.GitLab()
    forge.user(TOKEN, "project_42_bot")
    forge.place("42", NUMBER)
    with forges.served(forge):
        yield forge


def skyplan(folder: Path, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_", "GH_", "GITLAB_"))}
    env = {**kept, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [*RUN, "comment", *arguments],
        cwd=folder,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return done


def actions(forge: forges.Forge, folder: Path, *, at: str = "2026-11-29T10:00:00Z") -> dict[str, str]:
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": NUMBER, "updated_at": at}}))
    return {
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_API_URL": forge.url,
        "GITHUB_TOKEN": TOKEN,
    }


def test_in_github_actions_a_file_becomes_one_comment(tmp_path: Path, github: forges.Forge) -> None:
    (tmp_path / "diff.md").write_text(body("one"))
    env = actions(github, tmp_path)
    first = skyplan(tmp_path, "diff.md", **env)
    assert (first.returncode, first.stdout) == (0, "https://github.example/acme/jobs/pull/7#issuecomment-1001\n")
    again = skyplan(tmp_path, "diff.md", "--json", **env)
    told = json.loads(again.stdout)
    assert (told["action"], told["number"], told["tag"], told["format_version"]) == ("unchanged", 7, "prod", "1.0")
    (tmp_path / "diff.md").write_text(body("two"))
    assert json.loads(skyplan(tmp_path, "diff.md", "--json", **env).stdout)["action"] == "updated"
    assert len(github.bodies(REPO, NUMBER)) == 1


def test_a_pipeline_that_was_asked_for_earlier_leaves_the_comment_of_a_later_one(
    tmp_path: Path, github: forges.Forge
) -> None:
    (tmp_path / "new.md").write_text(body("new"))
    (tmp_path / "old.md").write_text(body("old"))
    assert skyplan(tmp_path, "new.md", **actions(github, tmp_path, at="2026-11-29T11:00:00Z")).returncode == 0
    late = skyplan(tmp_path, "old.md", **actions(github, tmp_path, at="2026-11-29T10:00:00Z"))
    assert late.returncode == 0
    assert "superseded" in late.stderr
    assert "new" in github.bodies(REPO, NUMBER)[0]


def test_in_gitlab_ci_stdin_becomes_one_note(tmp_path: Path, gitlab: forges.Forge) -> None:
    env = {
        "CI_API_V4_URL": gitlab.url,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": str(NUMBER),
        "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example/acme/jobs",
        "CI_PIPELINE_CREATED_AT": "2026-11-29T10:00:00Z",
        "GITLAB_TOKEN": TOKEN,
    }
    done = skyplan(
        tmp_path,
        "-",
        "--tag",
        "prod",
        given="## skyplan audit\n\n**1 to settle before this may go in**: 1 high.\n",
        **env,
    )
    assert (done.returncode, done.stdout) == (0, "https://gitlab.example/acme/jobs/-/merge_requests/7#note_1001\n")
    found = read_hidden(gitlab.bodies("42", NUMBER)[0])
    assert found is not None
    assert (found.kind, found.tag, found.valid_at) == ("audit", "prod", "2026-11-29T10:00:00Z")


def test_a_dry_run_needs_no_token_and_prints_the_body(tmp_path: Path, github: forges.Forge) -> None:
    (tmp_path / "diff.md").write_text(body("one"))
    env = {k: v for k, v in actions(github, tmp_path).items() if k != "GITHUB_TOKEN"}
    done = skyplan(tmp_path, "diff.md", "--dry-run", **env)
    assert done.returncode == 0
    assert done.stdout == body("one", at="2026-11-29T10:00:00Z")
    assert "nobody looked" in done.stderr
    assert github.asked == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["diff.md", "--number", "seven"], "", "--number"),
        (["diff.md", "--number", "0"], "", "--number"),
        (["diff.md", "--forge", "bitbucket"], "", "--forge"),
        (["diff.md", "--valid-at", "soon"], "", "ISO"),
        (["diff.md", "--tag", "other"], "SKY-APPLY-337", "other"),
        (["gone.md"], "SKY-SPEC-101", "gone.md"),
        (["."], "SKY-SPEC-101", "directory"),
        (["diff.md", "--repo", "../../admin"], "SKY-APPLY-330", "OWNER/NAME"),
        (["diff.md", "--api", "http://example.com"], "SKY-APPLY-336", "http"),
        (["diff.md", "--token-variable", "NOT_SET"], "SKY-APPLY-331", "NOT_SET"),
        (["secret.md"], "SKY-IAM-504", "posted nowhere"),
    ],
)
def test_what_is_wrong_is_said_and_exits_1(
    tmp_path: Path, github: forges.Forge, arguments: list[str], code: str, words: str
) -> None:
    (tmp_path / "diff.md").write_text(body("one"))
    (tmp_path / "secret.md").write_text(body("token ghp_" + "a1B2" * 10))
    done = skyplan(tmp_path, *arguments, **actions(github, tmp_path))
    assert done.returncode == 1
    assert code in done.stderr
    assert words in done.stderr
    assert github.asked == []


def test_a_broken_event_is_a_diagnostic_in_json_too(tmp_path: Path, github: forges.Forge) -> None:
    env = actions(github, tmp_path)
    (tmp_path / "event.json").write_text("{")
    (tmp_path / "diff.md").write_text(body("one"))
    done = skyplan(tmp_path, "diff.md", "--json", **env)
    assert done.returncode == 1
    assert {d["code"] for d in json.loads(done.stdout)["diagnostics"]} == {"SKY-APPLY-330"}


def test_a_token_that_only_reads_is_told_what_helps(tmp_path: Path, github: forges.Forge) -> None:
    github.users[TOKEN]["role"] = "read"
    (tmp_path / "diff.md").write_text(body("one"))
    done = skyplan(tmp_path, "diff.md", **actions(github, tmp_path))
    assert done.returncode == 1
    assert "SKY-APPLY-332" in done.stderr
    assert "fork" in done.stderr


def test_without_its_extra_the_command_names_it(tmp_path: Path, github: forges.Forge) -> None:
    (tmp_path / "diff.md").write_text(body("one"))
    hide = "import sys; sys.modules['httpx'] = None; from planner.cli.entry import call; sys.exit(call(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(ROOT), **actions(github, tmp_path)}
    command = [sys.executable, "-c", hide, "comment", "diff.md"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "SKY-APPLY-316" in done.stderr
    assert "'.[comment]'" in done.stderr


def test_a_dry_run_without_a_token_needs_no_extra(tmp_path: Path, github: forges.Forge) -> None:
    (tmp_path / "diff.md").write_text(body("one"))
    hide = "import sys; sys.modules['httpx'] = None; from planner.cli.entry import call; sys.exit(call(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(ROOT), **actions(github, tmp_path), "GITHUB_TOKEN": "", "GH_TOKEN": ""}
    command = [sys.executable, "-c", hide, "comment", "diff.md", "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
