"""R22: the texts that `skyplan init` writes: nothing is lost of what was there, and what is written is read as it was meant."""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.app import init_ci, init_files
from planner.app.init import forge_of, project_name
from planner.app.init_find import FoundBackend, Git, usual

LINES = st.sampled_from(
    [".skyplan/", ".skyplan", "/.skyplan/", "**/.skyplan", "cdktf.out/", "*.log", "", "# x", "!keep"]
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_gitignore_only_grows_and_only_once(lines: list[str], end: str, closed: bool) -> None:
    before = end.join(lines) + (end if closed and lines else "")
    after = init_files.with_ignores(before)
    assert after.startswith(before)
    assert init_files.with_ignores(after) == after
    assert not init_files.missing_ignores(after)
    if before.count(end) > 1:
        assert end == "\n" or "\n" not in after.replace("\r\n", "")


@given(st.text(min_size=1, max_size=30))
def test_a_text_is_read_back_as_that_text(text: str) -> None:
    written = init_files.scalar(text)
    if any(ord(c) > 0xFFFF for c in text):
        return  # JSON writes these as two halves, which YAML reads as two
    assert yaml.safe_load(f"[{written}, 1]")[0] == text


@pytest.mark.parametrize(
    "text", ["yes", "on", "012345678901", "123456789012", "null", "1e3", "a: b", "#x", "2026-11-30", "-"]
)
def test_what_yaml_takes_for_something_else_is_quoted(text: str) -> None:
    assert init_files.scalar(text) == json.dumps(text)


@pytest.mark.parametrize(
    ("remote", "host", "path"),
    [
        ("git@github.com:acme/infra.git", "github.com", "acme/infra"),
        ("https://github.com/acme/infra", "github.com", "acme/infra"),
        ("https://user:hush@gitlab.example.com/a/b/c.git", "gitlab.example.com", "a/b/c"),
        ("ssh://git@git.example.com:2222/acme/infra.git", "git.example.com", "acme/infra"),
        ("/srv/git/infra.git", "", ""),
        ("../infra", "", ""),
        ("", "", ""),
    ],
)
def test_remotes(remote: str, host: str, path: str) -> None:
    git = Git(remote=remote)
    assert (git.host, git.path) == (host, path)


def test_names(tmp_path) -> None:
    folder = tmp_path / "99 Problems!"
    assert project_name(folder, "acme/Infra_Live") == "infra-live"
    assert project_name(folder, "") == "problems"
    assert project_name(tmp_path / "7", "") == "skyplan-jobs"
    assert len(project_name(folder, "a/" + "x" * 80)) == 40


@pytest.mark.parametrize(
    ("files", "host", "forge"),
    [
        ([], "github.com", "github"),
        ([], "gitlab.example.com", "gitlab"),
        ([".github"], "gitlab.com", "github"),
        ([".gitlab-ci.yml"], "github.com", "gitlab"),
        ([".github", ".gitlab-ci.yml"], "gitlab.com", "gitlab"),
        ([], "git.example.com", ""),
    ],
)
def test_which_forge(tmp_path, files: list[str], host: str, forge: str) -> None:
    for name in files:
        (tmp_path / name).mkdir()
    assert forge_of(tmp_path, host) == forge


def test_the_usual_backend_is_the_first_where_two_are_equal() -> None:
    one, two, three = (FoundBackend(kind="s3", settings=(("bucket", b),), at=f"{n}.tf:1") for n, b in enumerate("aba"))
    assert usual([one, two, three]) == (one, (two,))
    assert usual([two, one]) == (two, (one,))
    assert usual([]) == (None, ())


class Installed:
    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


def told(url: str, **more: object) -> str:
    return json.dumps({"url": url, **more})


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (
            told("https://github.com/acme/skyplan.git", vcs_info={"vcs": "git", "commit_id": COMMIT}),
            f"git+https://github.com/acme/skyplan.git@{COMMIT}",
        ),
        (told("https://me:hush@github.com/acme/skyplan.git", vcs_info={"vcs": "git", "commit_id": COMMIT}), ""),
        (told("ssh://git@github.com/acme/skyplan.git", vcs_info={"vcs": "git", "commit_id": COMMIT}), ""),
        (told("https://localhost:8080/skyplan", vcs_info={"vcs": "git", "commit_id": COMMIT}), ""),
        (told("https://github.com/acme/skyplan.git", vcs_info={"vcs": "git", "commit_id": "main"}), ""),
        (told("file:///home/me/skyplan", dir_info={"editable": True}), ""),
        ("[]", ""),
        ("{", ""),
        (None, ""),
    ],
)
def test_where_this_skyplan_came_from(monkeypatch: pytest.MonkeyPatch, text: str | None, source: str) -> None:
    monkeypatch.setattr(init_ci, "distribution", lambda _: Installed(text))
    assert init_ci.source() == source


def test_a_skyplan_that_is_not_installed_came_from_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(init_ci, "distribution", absent)
    assert init_ci.source() == ""


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        (f"git+https://github.com/acme/skyplan.git@{COMMIT}", f"acme/skyplan@{COMMIT}"),
        ("git+https://github.com/acme/skyplan@v1.2", "acme/skyplan@v1.2"),
        (f"skyplan @ git+https://github.com/acme/sky.plan@{COMMIT}", f"acme/sky.plan@{COMMIT}"),
        ("git+https://git.example.com/acme/skyplan@v1", ""),
        ("git+https://github.com/acme/skyplan", ""),
        ("skyplan==1.0", ""),
        ("", ""),
    ],
)
def test_the_action_of_a_source(source: str, uses: str) -> None:
    assert init_ci.uses_of(source) == uses


@pytest.mark.parametrize(
    ("before", "others"),
    [
        ("include: x.yml\nstages: [a]\n", ["x.yml"]),
        ("stages: [a]\ninclude: 'x.yml' # ours\n", ["x.yml"]),
        ("include: {local: x.yml}\n", [{"local": "x.yml"}]),
        ("include: [x.yml, {local: y.yml}]\n", ["x.yml", {"local": "y.yml"}]),
        ("include:\n  project: a/b\n\n  file:\n    - x.yml\nstages: [a]\n", [{"project": "a/b", "file": ["x.yml"]}]),
        ("include:\n\n  # ours\n  - x.yml\n", ["x.yml"]),
        ("include: # ours\n- x.yml\n", ["x.yml"]),
        ("include:\n    local: x.yml", [{"local": "x.yml"}]),
        ("stages: [include]\n", []),
    ],
)
def test_what_was_included_stays_in_whatever_form_it_stands(before: str, others: list[object]) -> None:
    """A second key `include` would be refused, or undo the first."""
    after = init_ci.include(before)
    assert re.findall("^include:", after, re.MULTILINE) == ["include:"]
    found = yaml.safe_load(after)
    assert [one for one in found.pop("include") if one != {"local": init_ci.GITLAB_PART}] == others
    assert {"local": init_ci.GITLAB_PART} in yaml.safe_load(after)["include"]
    assert found == {k: v for k, v in yaml.safe_load(before).items() if k != "include"}


@pytest.mark.parametrize(
    ("before", "includes"),
    [
        ("", [".gitlab/skyplan.yml"]),
        ("stages: [test]\n", [".gitlab/skyplan.yml"]),
        ("include:\n  - local: a.yml\n  - local: b.yml\njob: {script: x}\n", [".gitlab/skyplan.yml", "a.yml", "b.yml"]),
        ("include:   # ours\n- local: a.yml\n", [".gitlab/skyplan.yml", "a.yml"]),
    ],
)
def test_an_include_is_added_to_what_is_included(before: str, includes: list[str]) -> None:
    after = yaml.safe_load(init_ci.include(before))
    assert [one["local"] for one in after["include"]] == includes
    assert {k: v for k, v in after.items() if k != "include"} == {
        k: v for k, v in (yaml.safe_load(before) or {}).items() if k != "include"
    }
