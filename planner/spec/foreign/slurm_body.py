"""A batch script's body as a job's command, and what in it only the cluster can meet.

Decides which lines are told: srun, modules, conda, files that are sourced, arguments of sbatch, images of the cluster's container programs.  The body itself
is carried word for word.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location
from planner.spec.foreign import common
from planner.spec.foreign.carried import Part
from planner.spec.foreign.sbatch import runs
from planner.spec.foreign.scripts import prepared, unmet

if TYPE_CHECKING:
    from planner.spec.foreign.common import Job
    from planner.spec.foreign.sbatch import Script
    from planner.spec.foreign.scripts import Shape

#: what a body says that only a cluster with Slurm understands, and what it would need
_TOLD: Final = (
    (
        re.compile(r"^\s*(?:\w+=\S+\s+|time\s+|exec\s+)*srun\b"),
        "srun starts tasks over a cluster: nodes have no Slurm",
        "start the command itself: skyplan runs the body on every node; use torchrun for several GPUs",
    ),
    (
        re.compile(r"^\s*(?:module|ml)\s+\S"),
        "environment modules are the cluster's",
        "give `image`, or install it in `setup`",
    ),
    (re.compile(r"^\s*(?:sbatch|scontrol|sacct|squeue|salloc|sbcast|scancel)\b"), "nodes have no Slurm", "take it out"),
    (re.compile(r"scontrol\s+show\s+hostnames?"), "nodes have no Slurm", "MASTER_ADDR is set on every node"),
    (
        re.compile(r"^\s*(?:eval\s.*)?conda\s+\w|conda\s+shell\.bash"),
        "the environment is the cluster's",
        "give an `image` that has it, or install it in `setup`",
    ),
    (
        re.compile(r"^\s*(?:source|\.)\s+\S"),
        "it reads a file that lies on the cluster",
        "make it in `setup`, bake it into `image`, or take the line out",
    ),
    (
        re.compile(r"^\s*(?:srun\s+)?(?:singularity|apptainer)\s+\w"),
        "the container's image lies on the cluster, and nodes have no such program",
        "give `image`, by its registry, and run the command itself",
    ),
)
_QUOTED: Final = re.compile(r"'[^']*'")
_ARGUMENT: Final = re.compile(r"\$(?:[1-9@*]|\{[1-9@*][^}]*\})")
_FUNCTION: Final = re.compile(r"^\s*(?:function\s+\w|\w+\s*\(\)\s*\{?)", re.MULTILINE)
_OTHER_SHELL: Final = re.compile(r"\b(zsh|ksh|dash)\b")


def body(job: Job, root: Part, script: Script, shape: Shape) -> None:
    """The body into the draft, with what it expects of a cluster listed by line."""
    part = root.get("body")
    if part is None:
        return
    text = common.script(part, part.scalar, script.numbers)
    if text is None or not any(runs(line) for line in text.split("\n")):
        if text is not None or not job.book.failed:
            part.refuse("the script runs nothing", "give it a command", "SKY-SPEC-103")
        return
    _tell(job, part, script, text, shape)
    made = prepared("slurm", text, shape)
    job.draft.put("run", made, part.at)
    whys = ["lines before it set the SLURM_ variables it reads"] if made != text else []
    whys += [f"Slurm runs it on the first of {shape.nodes} nodes, skyplan on every one"] if shape.nodes > 1 else []
    if whys:
        part.change(
            "run",
            "; ".join(whys),
            "start one process per node in it; NODE_RANK says which it is" if shape.nodes > 1 else "",
        )
    else:
        part.carry("run")


def _tell(job: Job, part: Part, script: Script, text: str, shape: Shape) -> None:
    book, file = job.book, part.at.file
    for number, line in enumerate(text.split("\n")):
        at = Location(file, script.line(number), 1)
        for pattern, why, needs in _TOLD:
            if pattern.search(line):
                book.note("body", at, why, needs)
                break
        given = _ARGUMENT.search(_QUOTED.sub("", line)) if runs(line) else None
        if given and not _FUNCTION.search(text):
            book.note("body", at, f"it reads {given[0]}, an argument of sbatch: a job has none", "write its value out")
    where = "it starts in the folder it was submitted from, with the cluster's file systems: nodes have neither"
    book.note("body", part.at, where, "fetch what it needs in `setup`, or bake it into `image`")
    other = _OTHER_SHELL.search(script.shebang)
    if other:
        book.note("body", Location(file, 1, 1), f"it was written for {other[1]}; bash runs it here", "see that it may")
    before = len(book.entries)
    unmet(Part(part.book, part.node, Location(file, 0, 1), part.path, part.key), "slurm", text, shape)
    # told by the body's lines, between which there are options: the file's lines are meant
    for at, entry in enumerate(book.entries[before:], before):
        book.entries[at] = entry.placed(Location(file, script.line(max(entry.at.line, 1) - 1), 1))
