"""A batch script taken apart: its #SBATCH options, each with its line, and the body that the shell runs.

Decides what Slurm itself would read: options before the first command, the last of two; `-N 2`, `-N2`, `--nodes=2` and `--nodes 2` are one, and so are an
option's two spellings.  Knows no option's meaning.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location
from planner.spec.foreign.carried import Part
from planner.spec.secret import shown
from planner.spec.yaml_lines import Entry, Mapping, Scalar

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Book

_SHORT: Final = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "t": "time",
    "J": "job-name",
    "p": "partition",
    "o": "output",
    "e": "error",
    "C": "constraint",
    "G": "gpus",
    "A": "account",
    "q": "qos",
    "d": "dependency",
    "a": "array",
    "D": "chdir",
    "w": "nodelist",
    "x": "exclude",
    "b": "begin",
    "L": "licenses",
    "M": "clusters",
    "F": "nodefile",
    "s": "oversubscribe",
    "k": "no-kill",
    "H": "hold",
    "i": "input",
    "m": "distribution",
    "S": "core-spec",
    "B": "extra-node-info",
    "Q": "quiet",
    "v": "verbose",
    "W": "wait",
    "O": "overcommit",
}
#: another spelling of an option -> the one that is read
_ALSO: Final = {"tasks-per-node": "ntasks-per-node"}
_FLAGS: Final = frozenset(
    {
        "exclusive",
        "requeue",
        "no-requeue",
        "oversubscribe",
        "no-kill",
        "hold",
        "contiguous",
        "quiet",
        "verbose",
        "wait",
        "overcommit",
        "spread-job",
        "get-user-env",
        "parsable",
        "test-only",
        "ignore-pbs",
        "use-min-nodes",
        "reboot",
        "container-mount-home",
        "no-container-mount-home",
        "container-writable",
        "container-readonly",
        "container-remap-root",
        "no-container-remap-root",
        "container-entrypoint",
        "no-container-entrypoint",
    }
)


@dataclass(slots=True)
class _Line:
    """An option with its place."""

    name: str
    value: str | None
    at: Location


@dataclass(slots=True)
class Script:
    """A batch script taken apart: options, those Slurm itself would not read, and the body with the number that each of its lines has in the file."""

    options: list[_Line] = field(default_factory=list[_Line])
    late: list[_Line] = field(default_factory=list[_Line])
    body: str = ""
    numbers: list[int] = field(default_factory=list[int])
    shebang: str = ""

    @property
    def first(self) -> int:
        """The file's line that the body begins in."""
        return self.numbers[0] if self.numbers else 1

    def line(self, at: int) -> int:
        """The file's line of a line of the body, the first counting 0."""
        return self.numbers[min(max(at, 0), len(self.numbers) - 1)] if self.numbers else 1


def taken_apart(text: str, file: str, book: Book) -> Script:
    """The script's lines, sorted into what Slurm reads and what the shell runs."""
    script = Script()
    body: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        at = Location(file, number, 1)
        if line.startswith("#SBATCH"):
            (script.late if any(runs(one) for one in body) else script.options).extend(_options(line, at, book))
        elif number == 1 and line.startswith("#!"):
            script.shebang = line
        else:
            body.append(line)
            script.numbers.append(number)
    while body and not body[0].strip():
        body.pop(0)
        script.numbers.pop(0)
    script.body = "\n".join(body)
    return script


def runs(line: str) -> bool:
    """The shell does something for it."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _options(line: str, at: Location, book: Book) -> list[_Line]:
    try:
        words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
    except ValueError as error:
        hint = "close the quotes, and end no line with a backslash: Slurm reads each by itself"
        book.error(at, f"the line cannot be read: {error}", hint)
        return []
    out: list[_Line] = []
    while words:
        word = words.pop(0)
        if word in {":", "hetjob", "packjob"}:
            book.error(at, "a heterogeneous job: its parts need different nodes", "import one script per part")
            return out
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            name = _ALSO.get(name, name)
            takes = not sign and name not in _FLAGS and words and not words[0].startswith("-")
            out.append(_Line(name, words.pop(0) if takes else value if sign else None, at))
        elif word.startswith("-") and len(word) > 1:
            name = _SHORT.get(word[1], word[1])
            value = word[2:].removeprefix("=") or (
                words.pop(0) if words and name not in _FLAGS and not words[0].startswith("-") else None
            )
            out.append(_Line(name, value, at))
        else:
            book.error(at, f"{shown(word)} is no option", "options begin with `-`")
    return out


def root_of(script: Script, file: str, book: Book) -> Part:
    """The options as a tree of values, so that they are accounted for as those of any other file; the last of two holds, as in Slurm."""
    entries: dict[str, Entry] = {}
    for line in script.options:
        entries[line.name] = Entry(line.at, Scalar(line.at, line.value or "", plain=line.value is None))
    at = Location(file, script.first, 1)
    entries["body"] = Entry(at, Scalar(at, script.body, plain=False))
    for line in script.late:
        book.note(
            line.name,
            line.at,
            f"Slurm itself does not read --{line.name} below the first command",
            "move it up, or take it out",
        )
    lasts = {line.name: line for line in script.options}
    for line in script.options:
        if lasts[line.name] is not line:
            book.note(
                line.name, line.at, f"--{line.name} is given again in line {lasts[line.name].at.line}, which holds", ""
            )
    return Part(book, Mapping(Location(file, 1, 1), entries), Location(file, 1, 1))
