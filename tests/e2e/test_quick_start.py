"""R25, R26: what the quick start and the tasks tell the reader to type does what they say, in their order, against the installed program.

Every `console` and `sh` block is run but those that say why not (`<!-- not run: … -->`); output is compared where the page shows it.  Nothing is asked of a cloud.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tests import pages
from tests.emulators import terraform

QUICK_START = pages.DOCS / "quick-start.md"
TASKS = [pages.DOCS / "index.md", *sorted((pages.DOCS / "tasks").glob("*.md"))]


def _missing() -> dict[str, str]:
    """What blocks may need that is not here, and why."""
    found = {}
    if not importlib.util.find_spec("cdktf") and not importlib.util.find_spec("cdktn"):
        found["cdk"] = "the extra `cdk` is not installed"
    if not importlib.util.find_spec("resvg_py"):
        found["charts"] = "the extra `charts` is not installed"
    if reason := terraform.missing(aws=True):
        found["terraform"] = reason
    return found


def _run(page: Path, folder: Path, *, with_terraform: bool) -> int:
    missing = _missing()
    more: dict[str, str] = {}
    if not with_terraform:
        missing |= {"terraform": "another test's"}
    elif "terraform" not in missing:
        ready = terraform.prepare(folder.parent / "terraform")
        more = {n: v for n, v in ready.environment.items() if n.startswith("TF_")}
    return pages.run_page(page, folder, missing, more)


def test_the_quick_start_does_what_it_says(tmp_path: Path) -> None:
    """All of it but Terraform: planning, explaining, diffing, auditing."""
    assert _run(QUICK_START, tmp_path / "repo", with_terraform=False) >= 8


@pytest.mark.terraform
def test_a_real_terraform_finds_the_quick_start_s_stack_valid(tmp_path: Path) -> None:
    if why := [reason for what, reason in _missing().items() if what in {"cdk", "terraform"}]:
        pytest.skip(why[0])
    ran = _run(QUICK_START, tmp_path / "repo", with_terraform=True)
    assert ran > sum(1 for b in pages.blocks(QUICK_START) if b.language in {"console", "sh"})
    assert (tmp_path / "repo/cdktf.out/stacks/net-aws-default-us-east-1/.terraform").is_dir()


@pytest.mark.parametrize("page", TASKS, ids=lambda p: p.stem)
def test_a_task_does_what_it_says(page: Path, tmp_path: Path) -> None:
    ran = _run(page, tmp_path / "repo", with_terraform=False)
    whole = [
        b for b in pages.blocks(page) if b.language in {"console", "sh"} and not {"not run", "needs"} & b.marks.keys()
    ]
    assert ran >= len(whole)


def test_the_page_of_fleets_tells_of_the_example_what_the_program_tells(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(pages.ROOT / "examples/fleet", folder)
    page = pages.DOCS / "fleets.md"
    assert pages.run_page(page, folder) >= 1
    if not importlib.util.find_spec("highspy"):
        pytest.skip("the extra `fleet` is not installed: another total")
    shutil.rmtree(folder / "plans")  # of the page's own commands
    shown = next(b.text for b in pages.blocks(page) if b.language == "text" and b.text.startswith("fleet "))
    told = pages.printed("skyplan plan jobs/*.yaml", folder)
    missing = [line for line in _without_versions(shown) if line not in _without_versions(told)]
    assert missing == []


def _without_versions(text: str) -> list[str]:
    return [re.sub(r"HiGHS [0-9.]+", "HiGHS", line.rstrip()) for line in text.splitlines()]


def test_whatever_is_not_run_says_why() -> None:
    for page in (QUICK_START, *TASKS):
        for block in pages.blocks(page):
            assert len(block.marks.get("not run", "a reason in words").split()) > 2, block.where


def test_the_quick_start_installs_extras_that_exist() -> None:
    extras = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"\.\[([a-z,]+)\]", QUICK_START.read_text(encoding="utf-8"))
    assert named
    assert {one for some in named for one in some.split(",")} <= extras.keys()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nd\n", True),
        ("a … c", "a b c\n", True),
        ("a … c", "a b d\n", False),
        ("a\nc", "a\nb\nc\n", False),
        ("…\nlast", "first\nlast\nmore\n", False),
        ("$1.00 (+1)", "$1.00 (+1)\n", True),
        ("", "something\n", False),
        ("", "", True),
    ],
)
def test_what_is_shown_is_told_from_what_is_not(shown: str, printed: str, same: bool) -> None:
    assert pages.matches(shown, printed) is same
