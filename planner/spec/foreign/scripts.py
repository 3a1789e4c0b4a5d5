"""What a script expects of the tool it was written for: variables that tell a node its place among the others.

Decides which of them lines put before the script can set from what a skyplan node knows, and which it cannot: those are told, with the line.
The script itself is carried word for word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.spec.foreign.carried import Part

#: addresses of which only the first is asked for: the head's, which every node knows
_FIRST_ONLY: Final = re.compile(r"\}?\s*\"?\s*\|\s*(?:head\s+(?:-n\s*1|-1)\b|sed\s+-n\s+'?1p|awk\s+'NR==1)")
_CARDS: Final = "$(nvidia-smi --list-gpus | wc -l)"
_FIRST_NODE: Final = "the head's address is the only one that nodes are told"


@dataclass(frozen=True, slots=True)
class Shape:
    """What the job's own figures say: nodes, and GPUs per node where that is one number."""

    nodes: int
    gpus: int | None
    name: str


def _settings(tool: str, shape: Shape) -> dict[str, str]:
    """Variable -> the shell's word for its value on a skyplan node."""
    cards = str(shape.gpus) if shape.gpus else _CARDS
    every = str(shape.gpus * shape.nodes) if shape.gpus else f"$(({_CARDS} * {shape.nodes}))"
    run = f'"${{SKYPLAN_RUN:-{shape.name}}}"'
    rank, head, nodes = '"${NODE_RANK:-0}"', '"${MASTER_ADDR:-127.0.0.1}"', str(shape.nodes)
    return {
        "skypilot": {
            "SKYPILOT_NODE_RANK": rank,
            "SKYPILOT_NUM_NODES": nodes,
            "SKYPILOT_NUM_GPUS_PER_NODE": cards,
            "SKYPILOT_NODE_IPS": head,
            "SKYPILOT_TASK_ID": run,
            "SKYPILOT_SPOT_RUN_ID": run,
            "SKYPILOT_JOB_ID": run,
            "SKYPILOT_RUN_ID": run,
            "SKYPILOT_CLUSTER_INFO": "",
            **_old(rank, head, nodes, cards),
        },
        "dstack": {
            "DSTACK_NODE_RANK": rank,
            "DSTACK_NODES_NUM": nodes,
            "DSTACK_GPUS_PER_NODE": cards,
            "DSTACK_GPUS_NUM": every,
            "DSTACK_MASTER_NODE_IP": head,
            "DSTACK_NODES_IPS": head,
            "DSTACK_RUN_NAME": shape.name,
            "DSTACK_RUN_ID": run,
        },
        "slurm": {
            "SLURM_NNODES": nodes,
            "SLURM_JOB_NUM_NODES": nodes,
            "SLURM_NODEID": rank,
            "SLURM_GPUS_ON_NODE": cards,
            "SLURM_JOB_NAME": shape.name,
            "SLURM_JOB_ID": run,
            "SLURM_JOBID": run,
        },
    }[tool]


def _old(rank: str, head: str, nodes: str, cards: str) -> dict[str, str]:
    """What SkyPilot's variables were called before 2023, which scripts of that time still read."""
    return {
        "SKY_NODE_RANK": rank,
        "SKY_NODE_IPS": head,
        "SKY_NUM_NODES": nodes,
        "SKY_NUM_GPUS_PER_NODE": cards,
    }


def prepared(tool: str, script: str, shape: Shape) -> str:
    """The script, with lines before it that set what it reads of the other tool's variables and skyplan knows."""
    known = _settings(tool, shape)
    lines = [f"export {name}={known[name]}" for name in sorted(_used(tool, script)) if _can(name, script, shape, known)]
    return "\n".join(["# set by skyplan import, as the other tool would have", *lines, script]) if lines else script


def unmet(part: Part, tool: str, script: str, shape: Shape) -> None:
    """List what the script reads of the other tool and no skyplan node has."""
    known = _settings(tool, shape)
    remote = re.search(r"^(?!\s*#).*\b(mpirun|mpiexec|pdsh|ssh|hostfile)\b", script, re.MULTILINE)
    if shape.nodes > 1 and remote:
        at = _line(part, script, script.count("\n", 0, remote.start(1)) + 1)
        why = f"{remote[1]} needs SSH between the nodes, which skyplan's do not have"
        part.book.note(
            part.path, at, why, "start one process per node with torchrun: it finds the others by MASTER_ADDR"
        )
    for name, line in sorted(_used(tool, script).items()):
        if _can(name, script, shape, known):
            continue
        why = f"the script reads ${name}, which no skyplan node sets"
        if known.get(name):
            why = f"the script reads all of ${name}: {_FIRST_NODE}"
        at = _line(part, script, line)
        part.book.note(
            part.path,
            at,
            why,
            "see docs/job-protocol.md for what nodes are told: NODE_RANK, MASTER_ADDR, SKYPLAN_NODES",
        )


def _line(part: Part, script: str, line: int) -> Location:
    """A line of the script in the file: a block begins in the line below its key."""
    return Location(part.at.file, part.at.line + line, 1) if "\n" in script.strip() else part.at


def _can(name: str, script: str, shape: Shape, known: dict[str, str]) -> bool:
    if not known.get(name):
        return False
    if not name.endswith("_IPS") or shape.nodes == 1:
        return True
    uses = list(_uses(name, script))
    return all(script[use.start() - 1] in "${" and _FIRST_ONLY.match(script, use.end()) for use in uses if use.start())


def _uses(name: str, script: str) -> Iterator[re.Match[str]]:
    """Where the script says it outside comments, whether as the shell's or, within a program, by its name."""
    for use in re.finditer(rf"\b(?:{name})\b", script):
        line = script[script.rfind("\n", 0, use.start()) + 1 : use.start()]
        if not line.lstrip().startswith("#"):
            yield use


def _used(tool: str, script: str) -> dict[str, int]:
    """The tool's variables that the script reads -> line within it, the first counting 1.  One that it sets itself is its own."""
    found: dict[str, int] = {}
    names = rf"{tool.upper()}_[A-Z0-9_]*[A-Z0-9]"
    if tool == "skypilot":
        names = rf"{names}|{'|'.join(_old('', '', '', ''))}"
    for use in _uses(names, script):
        found.setdefault(use[0], script.count("\n", 0, use.start()) + 1)
    own = {m[1] for m in re.finditer(rf"^\s*(?:export\s+)?({names})=", script, re.MULTILINE)}
    return {name: line for name, line in found.items() if name not in own}
