"""The documentation's pages as tests read them: fenced blocks with their marks, and running those of one page as its reader would.

How a block says what it is, so that nothing is left out without a word:

- ```` ```console ````  commands after `$ `, then what they print; a line `…` stands for any lines, `…` within a line for any text
- ```` ```sh ````       commands; what they print is not compared
- ```` ```yaml title="FILE" ````  a file that is written as it stands there
- `<!-- not run: WHY -->` right before a block: not run, and why
- `<!-- needs: terraform -->`, `<!-- exit: 2 -->`, `<!-- fragment -->`, `<!-- files of: PAGE -->` (that page's files are written first)

Only stdout is compared: how old the packaged prices are is said on stderr, and changes daily.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>.*)$")
_MARK = re.compile(r"^<!-- (?P<name>[a-z ]+?)(?:: (?P<value>.*))? -->$")
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines without the common indentation, the page's line it begins at, its marks."""

    page: str
    line: int
    language: str
    title: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a block, and what the page shows of its output; None where it shows nothing on purpose."""

    block: Block
    text: str
    shown: str | None


def pages() -> list[Path]:
    """All pages, rules and decisions too."""
    return sorted(DOCS.rglob("*.md"))


def name_of(path: Path) -> str:
    """As a link from the docs folder: `iam.md`, `../README.md`."""
    return Path(os.path.relpath(path, DOCS)).as_posix()


def blocks(path: Path) -> Iterator[Block]:
    """The page's blocks in their order."""
    lines = path.read_text(encoding="utf-8").splitlines()
    marks: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        opened = _FENCE.match(line)
        if mark := _MARK.match(line.strip()):
            marks[mark["name"]] = mark["value"] or ""
        elif not opened and line.strip():
            marks = {}
        if not opened:
            number += 1
            continue
        start, indent = number, len(opened["indent"])
        number += 1
        inner: list[str] = []
        while number < len(lines) and lines[number].strip() != opened["fence"]:
            inner.append(lines[number][indent:] if not lines[number][:indent].strip() else lines[number].strip())
            number += 1
        number += 1
        info = opened["info"]
        title = _TITLE.search(info)
        yield Block(
            name_of(path),
            start + 1,
            info.split(" ")[0].strip("{}."),
            title[1] if title else "",
            "".join(f"{one}\n" for one in inner),
            marks,
        )
        marks = {}


def commands(block: Block) -> Iterator[Command]:
    """What a `console` or `sh` block runs."""
    if block.language == "sh":
        yield Command(block, block.text, None)
        return
    text, shown = "", []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if text:
                yield Command(block, text, "\n".join(shown))
            text, shown = line.removeprefix("$ "), []
        elif text.endswith("\\"):
            text = f"{text[:-1].rstrip()} {line.strip()}"
        else:
            assert text, f"{block.where}: a console block begins with a command: `$ …`"
            shown.append(line)
    yield Command(block, text, "\n".join(shown))


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed; `…` alone on a line stands for any lines, within a line for any text."""
    if not shown.strip():
        return not printed.strip()
    pattern = ""
    for line in shown.strip("\n").splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("…")) + r" *\n"
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def write_files(path: Path, folder: Path) -> None:
    """The files that a page shows whole."""
    for block in blocks(path):
        if block.title:
            _write(block, folder)


def _write(block: Block, folder: Path) -> None:
    file = folder / block.title
    assert file.resolve().is_relative_to(folder.resolve()), block.where
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text, encoding="utf-8")


def environment(home: Path, more: dict[str, str]) -> dict[str, str]:
    """A reader's: the installed program on PATH, a name for git, nothing of whoever runs the tests; branches begin as git's own default has them."""
    home.mkdir(parents=True, exist_ok=True)
    config = home / "gitconfig"
    config.write_text("[user]\n\tname = Reader\n\temail = reader@example.com\n[init]\n\tdefaultBranch = master\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {
        "PATH": path,
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
        **more,
    }


def run_page(
    path: Path, folder: Path, missing: dict[str, str] | None = None, more: dict[str, str] | None = None
) -> int:
    """Runs a page from its top; how many commands ran.  `missing`: what a block may need -> why it is not here; such blocks are passed over.

    Raises AssertionError with the page's line where an exit code or an output is another one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    surroundings = environment(folder.parent / "home", more or {})
    ran = 0
    for block in blocks(path):
        if other := block.marks.get("files of"):
            write_files((path.parent / other).resolve(), folder)
        if block.title:
            _write(block, folder)
        elif block.language in {"console", "sh"} and "not run" not in block.marks:
            if block.marks.get("needs") in (missing or {}):
                continue
            for command in commands(block):
                _run(command, folder, surroundings)
                ran += 1
    return ran


def printed(line: str, folder: Path) -> str:
    """What a command prints on stdout, run as a page's are; it must end with 0."""
    done = _bash(line, folder, environment(folder.parent / "home", {}))
    assert done.returncode == 0, f"{line}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def _bash(line: str, folder: Path, surroundings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        env=surroundings,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=300,
        check=False,
    )


def _run(command: Command, folder: Path, surroundings: dict[str, str]) -> None:
    done = _bash(command.text, folder, surroundings)
    where = f"{command.block.where}: {command.text.strip()}"
    wanted = int(command.block.marks.get("exit", "0"))
    assert done.returncode == wanted, f"{where}\nexit {done.returncode}, not {wanted}\n{done.stdout}{done.stderr}"
    if command.shown is not None:
        assert matches(command.shown, done.stdout), (
            f"{where}\nthe page shows\n{command.shown}\nprinted was\n{done.stdout}\n{done.stderr}"
        )


def skyplan_lines(block: Block) -> Iterator[tuple[int, list[str]]]:
    """(line of the page, words after `skyplan`) of each call of the program in a block of commands, pipes and substitutions apart."""
    if block.language not in {"console", "sh", "bash", "shell", ""}:
        return
    text = re.sub(r"\\\n\s*", " ", block.text)
    for offset, raw in enumerate(text.splitlines(), 1):
        line = raw.strip().removeprefix("$ ").strip()
        if not re.match(r"(?:[A-Z_]+=\S+ )*skyplan\s", line):
            continue
        for words in _calls(line):
            yield block.line + offset, words


def _calls(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    call: list[str] = []
    for token in [*lexer, ";"]:
        if set(token) <= set("|&;<>()"):
            while call and re.fullmatch(r"[A-Z_]+=.*", call[0]):
                call.pop(0)
            if call and call[0] == "skyplan":
                yield call[1:]
            call = []
        else:
            call.append(token)
