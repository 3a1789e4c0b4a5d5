"""The help of every command says what it does, how it ends, what it reads, and shows lines that work; showing it imports nothing heavy."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from planner.cli.entry import COMMANDS, call, main
from planner.cli.examples import EXAMPLES, Example
from planner.cli.help_text import VARIABLES
from tests.unit.cli.command_tree import commands

ROOT = Path(__file__).parents[3]
PATHS = [path for path, _, _ in commands()]
LINES = [(path, example) for path, examples in EXAMPLES.items() for example in examples]
HEAVY = ("numpy", "networkx", "scipy", "sqlalchemy", "boto3", "cdktf", "jsii", "yaml", "fastapi", "jsonschema", "rich")


def help_of(path: str, capsys: pytest.CaptureFixture[str], *flag: str) -> str:
    capsys.readouterr()
    assert call([*path.split(), *(flag or ("--help",))]) == 0
    return capsys.readouterr().out


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=(80, 24): os.terminal_size((80, 24)))


def test_every_command_has_examples_and_every_example_a_command() -> None:
    assert sorted(set(PATHS) - set(EXAMPLES)) == [], "give each a row in planner/cli/examples.py"
    assert sorted(set(EXAMPLES) - set(PATHS)) == []
    assert all(EXAMPLES.values())


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("path", PATHS)
def test_help_fits_a_terminal_of_80_and_ends_with_examples(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(path, capsys)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert text.startswith("Usage: skyplan")
    tail = text.partition("\nExamples:\n")[2]
    assert all(f"  skyplan {example.line}\n" in tail for example in EXAMPLES[path])
    assert help_of(path, capsys, "-h") == text


def test_a_command_knows_its_short_help_whatever_it_was_asked_with_first() -> None:
    for path, command, _ in commands():
        names = command.get_help_option_names(click.Context(command))
        assert set(names) == {"-h", "--help"}, path


@pytest.mark.parametrize("path", [p for p in PATHS if p not in {"", "state", "agent", "prices", "catalog"}])
def test_help_says_how_a_command_ends_and_what_it_reads(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(path, capsys)
    assert "\nExit codes:\n" in text
    assert "\nEnvironment:\n" in text
    assert ("--detailed-exitcode:" in text) == ("  --detailed-exitcode" in text)


def options_used(command: click.Command, words: list[str]) -> None:
    """Parsed by the real command: nothing is run."""
    context = command.make_context("x", list(words), resilient_parsing=False)
    context.close()


@pytest.mark.parametrize(("path", "example"), LINES, ids=[f"{p or 'skyplan'}-{n}" for n, (p, _) in enumerate(LINES)])
def test_every_example_is_a_line_that_the_command_takes(
    path: str, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans").mkdir()
    words = shlex.split(example.line.partition(" > ")[0])
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
    options_used(command, words)
    assert example.line.startswith(path)


@pytest.mark.parametrize("example", [e for _, e in LINES if e.runs], ids=[e.line for _, e in LINES if e.runs])
def test_examples_that_need_nothing_run(example: Example, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    job = (ROOT / "examples" / "jobs" / "llama3-8b-sft.yaml").read_text(encoding="utf-8")
    (tmp_path / "jobs" / "train.yaml").write_text(job, encoding="utf-8")
    program = [sys.executable, "-c", "from planner.cli.entry import run; run()", *shlex.split(example.line)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(program, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def imported_by(*arguments: str, **environment: str) -> set[str]:
    """Of the heavy ones, what a call imports; each in a fresh interpreter."""
    program = (
        "import sys\n"
        "from planner.cli.entry import call\n"
        f"try:\n    call({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(' '.join(sorted(set({HEAVY!r}) & set(sys.modules))))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_imports_nothing_heavy() -> None:
    """In one interpreter, every command's help."""
    program = (
        "import sys\nfrom planner.cli.entry import call\n"
        f"for path in {PATHS!r}: call([*path.split(), '--help'])\n"
        f"sys.stderr.write(' '.join(sorted(set({HEAVY!r}) & set(sys.modules))))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


def test_the_first_help_imports_no_command() -> None:
    program = (
        "import sys\nfrom planner.cli.entry import call\ncall(['--help'])\n"
        "sys.stderr.write(' '.join(m for m in sys.modules if m.endswith('_cmd')))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert all(f"\n  {name}" in done.stdout for name in COMMANDS)


def test_variables_that_help_names_are_read_and_those_that_are_read_are_named() -> None:
    """Of the machine that skyplan runs on; what nodes and jobs find in their environment docs/job-protocol.md says."""
    read: set[str] = set()
    for folder in ("planner", "stacks"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name != "help_text.py":
                read |= set(re.findall(r'environ(?:ment)?(?:\.get\(|\[)\s*"(SKYPLAN_[A-Z_]+)"', path.read_text()))
    read |= set(re.findall(r'environ\.get\("(SKYPLAN_[A-Z_]+)"', (ROOT / "modules" / "cdk.py").read_text()))
    shown = {
        str(param.envvar)
        for _, command, _ in commands()
        for param in command.params
        if isinstance(param, click.Option) and param.envvar
    }
    assert read - shown - {"SKYPLAN_PLANS"} <= set(VARIABLES), "name it in planner/cli/help_text.py"
    text = "".join(p.read_text() for f in ("planner", "stacks", "modules") for p in (ROOT / f).rglob("*.py") if p.name != "help_text.py")  # fmt: skip
    assert [name for name in VARIABLES if name not in text] == []
    assert {path for _, paths in VARIABLES.values() for path in paths} <= set(PATHS)


def test_many_options_are_grouped_and_few_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    many, few = help_of("plan", capsys), help_of("status", capsys)
    assert all(f"\n{title}:\n" in many for title in ("Options", "Inputs", "Output"))
    assert "\nInputs:\n" not in few
    for text in (many, few):
        assert text.count("\n  --project ") == text.count("\n  --json ") == 1
        assert "\n  JOB..." not in text
        assert "\n  [JOB...]" not in text
