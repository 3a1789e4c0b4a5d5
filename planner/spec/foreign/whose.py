"""Whose a file is: SkyPilot's, dstack's, Slurm's, or ours.

Decides it by what only one of them has: a batch script's #SBATCH lines, dstack's `type`, fields of ours, fields of SkyPilot's.  A file that has only what a
job of ours and a SkyPilot task share, and lacks `work`, which every job of ours has, is taken for SkyPilot's, and said to be taken for it.  Reads no values
but the shape of `accelerators` and SkyPilot's variables in scripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.spec.foreign import dstack, sky_resources, skypilot
from planner.spec.ours import is_script, says_work
from planner.spec.yaml_lines import Mapping, Scalar, Sequence, documents

if TYPE_CHECKING:
    from planner.spec.yaml_lines import Node

#: fields that only our own job files have, at the top and in `resources`
OURS: Final = frozenset(
    {
        *("work", "image", "env", "data", "checkpoint", "output", "constraints", "tags", "network", "access"),
        *("registry_auth", "priority", "team", "anti_affinity", "gang"),
    }
)
OUR_RESOURCES: Final = frozenset({"nodes", "disk", "capacity", "interconnect_sensitive"})
#: how our own files write a GPU that is no text
_OUR_GPU: Final = frozenset({"gpu_memory", "model", "count"})
#: fields of a task that ours have too: they tell nothing
SHARED: Final = frozenset({"name", "resources", "run", "setup", "workdir", "secrets"})
_SHARED_RESOURCES: Final = frozenset({"accelerators", "cpus", "memory"})
_VARIABLE: Final = re.compile(r"\bSKYPILOT_[A-Z]")


@dataclass(frozen=True, slots=True)
class Whose:
    """`tool` is skypilot, dstack or slurm; None where the file is our own or nobody's.  Not `sure`: it might as well be the beginning of a job of ours."""

    tool: str | None
    sure: bool = True

    def warning(self, file: str) -> Diagnostic | None:
        """What is said where it is not sure."""
        if self.sure:
            return None
        return Diagnostic(
            code="SKY-SPEC-130",
            summary="it is taken for a SkyPilot task: it has no `work`, which every job file of skyplan has",
            location=Location(file, 1, 1),
            hint="say `work` if it is skyplan's; `skyplan import --from skypilot` makes a job file of a SkyPilot task",
            severity=Severity.WARNING,
        )


def whose(text: str, file: str) -> Whose:
    """Whose file it is."""
    ours = says_work(text)
    if is_script(text) and (text.removeprefix("\ufeff").startswith("#!") or not ours):
        return Whose("slurm")
    return Whose(None) if ours else _of_yaml(text, file)


def _of_yaml(text: str, file: str) -> Whose:
    nodes, _ = documents(text, file)
    maps = [node for node in nodes if isinstance(node, Mapping)]
    if any(_word(node, "type") in dstack.TYPES for node in maps) and not any("work" in node.entries for node in maps):
        return Whose("dstack")
    if not maps or any(_is_ours(node) for node in maps):
        return Whose(None)
    if any(node.entries.keys() & (set(skypilot.FIELDS) - SHARED) for node in maps):
        return Whose("skypilot")
    likely = all(node.entries.keys() <= set(skypilot.FIELDS) for node in maps)
    if not likely or not any(node.entries.keys() & {"resources", "run", "setup"} for node in maps):
        return Whose(None)
    return Whose("skypilot", sure=_VARIABLE.search(text) is not None or any(_is_theirs(node) for node in maps))


def _word(node: Mapping, key: str) -> str:
    entry = node.entries.get(key)
    return entry.value.text if entry and isinstance(entry.value, Scalar) else ""


def _resources(node: Mapping) -> Mapping | None:
    entry = node.entries.get("resources")
    return entry.value if entry and isinstance(entry.value, Mapping) else None


def _is_ours(node: Mapping) -> bool:
    """It says what only a job of ours can."""
    inner = _resources(node)
    if node.entries.keys() & OURS or (inner is not None and inner.entries.keys() & OUR_RESOURCES):
        return True
    return any(one.entries.keys() & _OUR_GPU for one in _gpus(inner) if isinstance(one, Mapping))


def _is_theirs(node: Mapping) -> bool:
    """Its `resources` says what only a SkyPilot task can."""
    inner = _resources(node)
    if inner is None:
        return False
    fields = inner.entries.keys() & (set(sky_resources.FIELDS) - _SHARED_RESOURCES)
    return bool(fields) or any(isinstance(one, Mapping) and one.entries for one in _gpus(inner))


def _gpus(resources: Mapping | None) -> tuple[Node, ...]:
    """What stands under `accelerators`: it, and the items where it is a list."""
    entry = resources.entries.get("accelerators") if resources is not None else None
    if entry is None:
        return ()
    return tuple(entry.value.items) if isinstance(entry.value, Sequence) else (entry.value,)
