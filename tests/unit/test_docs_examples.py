"""What the pages show is what the program reads: every example file parses, every command line exists with its flags, every code, file and extra that is named is there (R25, R26)."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from catalog.load import load_words
from planner.app.schemas import published
from planner.cli.entry import COMMANDS, main
from planner.cli.help_text import VARIABLES
from planner.model.codes import CODES
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.project import Project
from planner.server.broker_settings import parse_broker
from planner.spec.job import parse_jobs
from planner.spec.project import parse_project
from planner.spec.server import parse_server
from tests import pages
from tests.pages import Block

PAGES = [*pages.pages(), pages.ROOT / "README.md", pages.ROOT / "ARCHITECTURE.md", pages.ROOT / "modules/job/README.md"]
YAML = [b for p in pages.pages() for b in pages.blocks(p) if b.language in {"yaml", "yml"}]
_IDS = [b.where for b in YAML]


def _errors(found: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{d.location}: {d.summary}" for d in found if d.severity is Severity.ERROR]


def _fields(schema: str) -> set[str]:
    return set(published()[schema]["properties"])


@pytest.mark.parametrize("block", YAML, ids=_IDS)
def test_an_example_file_is_one_that_is_read(block: Block) -> None:
    """What is no whole file says so (`<!-- fragment: of what -->`), and still has no field that does not exist."""
    said = block.marks.get("fragment")
    data = yaml.safe_load(block.text)
    if said == "skyplan.yaml":
        assert set(data) <= _fields("project"), block.where
    elif said == "job file":
        assert set(data) <= _fields("job"), block.where
    elif said is not None:
        assert said in {"GitHub workflow", "GitLab pipeline", "pre-commit", "Atlantis", "another tool's"}, block.where
    elif "project" in data:
        assert _errors(parse_project(block.text, block.where, load_words())[1]) == []
    elif "listen" in data and "people" not in data and not data["listen"].startswith("127."):
        parse_broker(block.text, block.where, Project(targets=()))  # the control plane off loopback wants people
    elif "listen" in data:
        assert _errors(parse_server(block.text, block.where)[1]) == []
    elif block.title and not block.title.startswith("jobs/"):
        # another tool's: tests/e2e/test_quick_start.py plans it
        assert block.page.startswith("tasks/"), f"{block.where}: whose file is it?"
    else:
        project, _ = parse_project("", "skyplan.yaml", load_words())
        jobs, problems = parse_jobs(block.text, block.where, load_words(), project)
        assert _errors(problems) == []
        assert jobs


# --- command lines ---------------------------------------------------------------------------------------------------------------


def _lines() -> Iterator[tuple[str, list[str], bool]]:
    """(page:line, words after `skyplan`, whether it is a whole command) of every block and every bit of code in a line."""
    for path in PAGES:
        for block in pages.blocks(path):
            for line, words in pages.skyplan_lines(block):
                yield f"{block.page}:{line}", words, True
        outside = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1", lambda m: "\n" * m[0].count("\n"), path.read_text("utf-8"))
        for number, text in enumerate(outside.splitlines(), 1):
            for code in re.findall(r"`(skyplan [^`]+)`", text):
                try:
                    words = shlex.split(code.replace("…", ""))[1:]
                except ValueError:
                    continue
                yield f"{pages.name_of(path)}:{number}", words, False


LINES = list(_lines())


def problem_of(words: list[str], *, whole: bool) -> str:
    """What is wrong in a command line, or nothing.  Nothing is run and no file is looked for.

    Words in capitals are the reader's to fill in.  `whole`: what is required must be there.
    """
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group):
        if not rest or rest[0].startswith("-") or rest[0].isupper():
            return ""
        found = command.get_command(click.Context(command), rest[0])
        if found is None:
            near = difflib.get_close_matches(rest[0], COMMANDS, 1)
            return f"no command `{rest[0]}` (near: {near})"
        command, rest = found, rest[1:]
    context = click.Context(command, info_name=command.name)
    try:
        given, left, _ = command.make_parser(context).parse_args(rest)
    except click.BadOptionUsage as error:  # in a line of text an option may be named without its value
        return error.format_message() if whole else ""
    except click.UsageError as error:
        return error.format_message()
    if left and not command.allow_extra_args:
        return f"too much: {left}"
    said = {name: value for name, value in given.items() if not repr(value).startswith("Sentinel")}
    return next(filter(None, (_param(p, said, whole=whole and not said.get("help")) for p in command.params)), "")


def _param(param: click.Parameter, said: dict[str, Any], *, whole: bool) -> str:
    value = said.get(param.name or "")
    if whole and param.required and value in (None, (), []):
        return f"`{param.human_readable_name}` is missing"
    if isinstance(param.type, click.Choice) and value:
        wrong = [v for v in ([value] if isinstance(value, str) else value) if not _choice(param.type, v)]
        return f"{param.opts[0]} does not know {wrong}" if wrong else ""
    return ""


def _choice(kind: click.Choice[str], value: str) -> bool:
    return value.isupper() or value in [str(c) for c in kind.choices]


def test_every_command_line_of_the_pages_exists_with_its_flags() -> None:
    assert len(LINES) > 150
    wrong = {
        f"{where}: skyplan {shlex.join(words)}": p
        for where, words, whole in LINES
        if (p := problem_of(words, whole=whole))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("line", "whole", "right"),
    [
        ("plan jobs/train.yaml --out plans", True, True),
        ("plan", True, False),
        ("plan", False, True),
        ("plan jobs/train.yaml --colour", True, False),
        ("diff --format yaml", True, False),
        ("diff --format markdown --output diff.md", True, True),
        ("state backup record.sqlite", True, True),
        ("state restore record.sqlite", True, False),
        ("plam jobs/train.yaml", True, False),
        ("COMMAND --help", False, True),
        ("diff --terraform-plan", False, True),
        ("diff --terraform-plan", True, False),
        ("schema project", True, True),
        ("schema projects", True, False),
        ("diff a b c", True, False),
    ],
)
def test_a_wrong_command_line_would_be_seen(line: str, whole: bool, right: bool) -> None:
    assert (problem_of(line.split(), whole=whole) == "") is right


# --- what is named ---------------------------------------------------------------------------------------------------------------


def test_every_code_of_the_pages_exists() -> None:
    named = {
        f"{pages.name_of(path)}: {code}"
        for path in PAGES
        for code in re.findall(r"SKY-[A-Z]+-[0-9]{3}", path.read_text("utf-8"))
        if code not in CODES
    }
    assert named == set()


def test_every_file_of_the_repository_that_is_named_is_there() -> None:
    named = re.compile(
        r"`((?:planner|stacks|modules|catalog|tests|docs|examples|benchmarks|ci|planner)/[A-Za-z0-9_./-]+)(?:::\w+)?`"
    )
    gone = {
        f"{pages.name_of(path)}: {found}"
        for path in PAGES
        for found in named.findall(path.read_text("utf-8"))
        if not (pages.ROOT / found.replace("CLOUD", "aws")).exists() and not _readers_own(found)
    }
    assert gone == set()


def _readers_own(path: str) -> bool:
    """A folder of the reader's that is called as one of ours: `catalog/gpus.csv` of a catalog folder, `ci/` of another repository."""
    return path in {f"catalog/{name}" for name in ("gpus.csv", "aliases.csv", "instance_types.csv", "prices.csv")}


def test_every_extra_that_is_named_exists() -> None:
    extras = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for path in PAGES:
        text = path.read_text("utf-8")
        named = {one for some in re.findall(r"\.\[([a-z,]+)\]", text) for one in some.split(",")}
        named |= set(re.findall(r"(?:the|\() ?extra `([a-z]+)`", text))
        assert named <= extras.keys(), path.name


def test_no_page_speaks_of_what_is_to_come() -> None:
    """A page says what is there.  What is missing is said as missing, not as coming."""
    words = re.compile(
        r"coming soon|in a future (?:version|release)|will be (?:added|supported|possible)|not (?:yet )?implemented yet",
        re.IGNORECASE,
    )
    found = [f"{pages.name_of(p)}: {m[0]}" for p in PAGES for m in words.finditer(p.read_text("utf-8"))]
    assert found == []


def test_every_variable_that_the_programs_read_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(pages.DOCS / "site"))
    from site_commands import variables
    from site_environment import CI, NODES, READ

    read = set(_read_by(Path("planner"), Path("stacks"), Path("catalog"), Path("modules")))
    # `modules/job` and `modules/agent` set and read what docs/job-protocol.md and docs/node-credentials.md list
    protocol = (pages.DOCS / "job-protocol.md").read_text("utf-8") + (pages.DOCS / "node-credentials.md").read_text(
        "utf-8"
    )
    known = {*VARIABLES, *READ, *NODES, *CI, *variables(), *re.findall(r"SKYPLAN_[A-Z_]+", protocol)}
    assert read - known == set()
    assert {name for name in {*READ, *CI} if name.startswith("SKYPLAN_")} <= read, "the table names what nobody reads"


def _read_by(*folders: Path) -> Iterator[str]:
    for folder in folders:
        for path in (pages.ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and re.fullmatch(r"SKYPLAN_[A-Z_]+[A-Z]", text):
                    yield text
