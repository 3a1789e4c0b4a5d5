"""A shell completes commands, options, values, job files, plans, jobs and codes; asked of real shells, and nothing heavy is imported for it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.entry import COMMANDS, COMPLETE, call
from planner.cli.options import SCHEMAS
from tests.unit.cli.test_help import HEAVY

ROOT = Path(__file__).parents[3]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Jobs, settings, plans and a record; and `skyplan` on PATH."""
    for name in ("train.yaml", "eval.yaml"):
        (tmp_path / "jobs").mkdir(exist_ok=True)
        (tmp_path / "jobs" / name).write_text("name: x\nresources: {accelerators: H100}\n")
    (tmp_path / "here.yaml").write_text("resources: {}\n")
    (tmp_path / "skyplan.yaml").write_text("project: acme\nresources: none\n")
    (tmp_path / "other.yaml").write_text("not: a job\n")
    (tmp_path / "plans").mkdir()
    for name in ("train", "sweep-a"):
        (tmp_path / "plans" / f"{name}.plan.json").write_text("{}")
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "train.diff.json").write_text("{}")
    (tmp_path / ".skyplan").mkdir()
    database = sqlite3.connect(tmp_path / ".skyplan" / "record.sqlite")
    database.execute("CREATE TABLE job (name TEXT)")
    database.execute("INSERT INTO job VALUES ('old-run'), ('train')")
    database.commit()
    database.close()
    program = tmp_path / "bin" / "skyplan"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom planner.cli.entry import run\nrun()\n"
    )
    program.chmod(0o755)
    return tmp_path


def environment(repo: Path, **more: str) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith("SKYPLAN")}
    return {**own, "PATH": f"{repo / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(repo), **more}


def asked(repo: Path, *words: str, **more: str) -> list[str]:
    """What is answered to bash: the last word is completed."""
    env = environment(repo, COMP_WORDS="\n".join(["skyplan", *words]), COMP_CWORD=str(len(words)), **more)
    done = subprocess.run(
        [repo / "bin" / "skyplan"],
        cwd=repo,
        env={**env, COMPLETE: "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_options_and_values(repo: Path) -> None:
    assert asked(repo, "") == list(COMMANDS)
    assert asked(repo, "re") == [name for name in COMMANDS if name.startswith("re")]
    assert "--detailed-exitcode" in asked(repo, "plan", "--de")
    assert asked(repo, "synth", "--format", "") == ["json", "hcl"]
    assert asked(repo, "schema", "p") == [name for name in SCHEMAS if name.startswith("p")]
    assert asked(repo, "prices", "ref") == ["refresh"]
    assert asked(repo, "completion", "") == ["bash", "zsh", "fish"]


def test_job_files_and_nothing_that_is_none(repo: Path) -> None:
    assert asked(repo, "plan", "") == ["here.yaml", "jobs/eval.yaml", "jobs/train.yaml"]
    assert asked(repo, "plan", "jobs/t") == ["jobs/train.yaml"]
    assert asked(repo, "plan", "jobs/train.yaml", "jobs/e") == ["jobs/eval.yaml"]
    assert asked(repo, "plan", "/nowhere/x") == ["/nowhere/x"]  # type `file`: the shell's own completion


def test_plans_diffs_and_names_of_jobs(repo: Path) -> None:
    assert asked(repo, "synth", "") == ["plans/sweep-a.plan.json", "plans/train.plan.json"]
    assert asked(repo, "apply", "plans/t") == ["plans/train.plan.json"]
    assert asked(repo, "migrate", "") == ["migrations/train.diff.json"]
    assert asked(repo, "status", "") == ["old-run", "sweep-a", "train"]
    assert asked(repo, "logs", "o") == ["old-run"]
    assert asked(repo, "destroy", "train", "s") == ["sweep-a"]
    (repo / "elsewhere").mkdir()
    (repo / "elsewhere" / "far.plan.json").write_text("{}")
    assert asked(repo, "replan", "--plans", "elsewhere", "f") == ["far"]


def test_a_record_that_cannot_be_read_is_passed_over(repo: Path) -> None:
    (repo / ".skyplan" / "record.sqlite").write_bytes(b"no database at all, but long enough to be taken for one" * 40)
    assert asked(repo, "status", "") == ["sweep-a", "train"]
    assert asked(repo, "status", "", SKYPLAN_DATABASE_URL="postgresql://127.0.0.1:9/none") == ["sweep-a", "train"]


@pytest.mark.parametrize(
    "name",
    [
        b"my job",
        b"$(touch pwned)",
        b"`id`",
        b"st*r",
        b"a;b",
        b"q'uo\"te",
        b"nl\nplain,--out",
        b"b\xff",
        b"-x",
        b"~",
        b"a:b",
    ],
)
def test_a_name_that_a_shell_reads_as_more_than_a_word_is_left_to_the_shell(repo: Path, name: bytes) -> None:
    """It would stand in the line without quotes: at best as two words, at worst as a command."""
    (repo / os.fsdecode(name + b".yaml")).write_text("resources: {}\n")
    (repo / "plans" / os.fsdecode(name + b".plan.json")).write_text("{}")
    assert asked(repo, "plan", "") == [""]  # type `file`
    assert asked(repo, "status", "") == ["old-run", "sweep-a", "train"]
    assert asked(repo, "plan", "jobs/") == ["jobs/eval.yaml", "jobs/train.yaml"]


def test_a_pipe_is_not_waited_for(repo: Path) -> None:
    os.mkfifo(repo / "jobs" / "pipe.yaml")
    assert asked(repo, "plan", "jobs/") == ["jobs/eval.yaml", "jobs/train.yaml"]


def test_codes_by_their_beginning_in_any_case(repo: Path) -> None:
    assert asked(repo, "explain", "sky-rej-20")[:2] == ["SKY-REJ-201", "SKY-REJ-202"]
    assert asked(repo, "explain", "SKY-IAM-9")[0] == "SKY-IAM-901"
    assert asked(repo, "explain", "h") == ["here.yaml"]


@pytest.mark.parametrize("words", [("",), ("plan", ""), ("explain", "SKY-"), ("status", ""), ("synth", "--f")])
def test_nothing_heavy_is_imported_for_it(repo: Path, words: tuple[str, ...]) -> None:
    program = (
        "import sys\nfrom planner.cli.entry import call\n"
        "try:\n    call([])\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(' '.join(sorted(set({HEAVY!r}) & set(sys.modules))))"
    )
    env = environment(repo, COMP_WORDS="\n".join(["skyplan", *words]), COMP_CWORD=str(len(words)), PYTHONPATH=str(ROOT))
    env[COMPLETE] = "bash_complete"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repo, env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert done.stdout


def test_bash_completes_a_line(repo: Path) -> None:
    """The script that is printed, sourced by a real bash, called as readline calls it."""
    lines = {
        "skyplan expl": ["explain"],
        "skyplan plan jobs/t": ["jobs/train.yaml"],
        "skyplan status tr": ["train"],
        "skyplan synth --format h": ["hcl"],
    }
    for line, wanted in lines.items():
        words = line.split(" ")
        script = (
            'eval "$(skyplan completion bash)"\n'
            f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
            "_skyplan_completion skyplan\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", script],
            cwd=repo,
            env=environment(repo),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout.split(), done.stderr) == (wanted, ""), line


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_take_the_script(repo: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    line = {
        "zsh": 'autoload -U compinit; compinit -u; eval "$(skyplan completion zsh)"; whence -w _skyplan_completion',
        "fish": "skyplan completion fish | source; complete --do-complete 'skyplan expl'",
    }[shell]
    flags = ["-f"] if shell == "zsh" else ["--no-config"]
    done = subprocess.run(
        [shell, *flags, "-c", line], cwd=repo, env=environment(repo), capture_output=True, text=True, check=False
    )
    assert {"zsh": "_skyplan_completion: function", "fish": "explain"}[shell] in done.stdout


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --no-files")]
)
def test_each_script_names_the_program(shell: str, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert mark in text
    assert COMPLETE in text
