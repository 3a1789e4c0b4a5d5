"""From plans to stacks on disk.  The only user of `stacks.app`, imported here and nowhere on the way of a plan without stacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planner.app import compose
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError

if TYPE_CHECKING:
    from planner.app.plan import Result
    from planner.model.market import Market
    from planner.model.plan import PlacementPlan
    from planner.model.project import Project
    from planner.model.stack import StackInput
    from planner.model.workload import Workload


def inputs_of(
    plan: PlacementPlan, workload: Workload, project: Project, market: Market, generation: int
) -> tuple[StackInput, ...]:
    """The choice's stacks; none where nothing is feasible.  Raises InputError for a job in several clouds."""
    if not plan.ranked:
        return ()
    if plan.choice.parts:
        summary = f"`{plan.name}` lies in several clouds: its endpoints are known only once they are reserved"
        raise InputError(
            [Diagnostic(code="SKY-SPEC-113", summary=summary, hint="use `skyplan apply`, which reserves them first")]
        )
    (found,) = compose.stack_sets(plan.ranked, plan.choice, workload, project, market, generation=generation)
    return (found.network, found.access, found.compute)


def write(stacks: Sequence[StackInput], folder: Path) -> tuple[tuple[str, Path], ...]:
    """Write each distinct stack once; returns (name, path)."""
    from stacks.app import synth  # noqa: PLC0415 - starts node

    distinct = {s.name: s for s in stacks}
    return tuple((name, Path(path)) for name, path, _ in synth(list(distinct.values()), folder))


class Hcl(NamedTuple):
    """Files that stand now, and folders that were emptied since nothing planned is in them any more."""

    files: tuple[Path, ...]
    emptied: tuple[Path, ...]


def write_hcl(sets: Sequence[Sequence[StackInput]], folder: Path, *, root: bool, whole: bool) -> Hcl:
    """Each distinct stack as a folder of native HCL; with `root` a folder per job instead, whose root module has its stacks as child modules.

    `whole`: the sets are all there are, so what an earlier call wrote of others in the same form is removed, but for compute stacks of other generations
    of a job that is still planned: they may run.
    """
    from planner.model.stack import ComputeInput  # noqa: PLC0415 - beside its use
    from stacks import hcl, hcl_files, hcl_root  # noqa: PLC0415 - only with this form
    from stacks.app import document  # noqa: PLC0415 - starts node

    folders: dict[str, dict[str, str]] = {}
    jobs: list[str] = []
    for stacks in sets:
        compute = next(one for one in stacks if isinstance(one, ComputeInput))
        jobs.append(compute.job)
        if root:
            made = dict(zip(hcl_root.CHILDREN, map(document, stacks), strict=True))
            folders[f"job-{compute.job}"] = hcl_root.root_files(made, compute)
        else:
            folders |= {one.name: hcl.files(document(one)) for one in stacks if one.name not in folders}

    def stale(name: str) -> bool:
        if not whole or name.startswith(tuple(f"cmp-{job}-g" for job in jobs)):
            return False
        return name.startswith("job-" if root else ("net-", "acc-", "cmp-"))

    return Hcl(*hcl_files.write(folders, folder, stale=stale))


def write_stacks(result: Result, folder: Path, generation: int = 1) -> tuple[tuple[str, Path], ...]:
    """The stacks of every planned job."""
    found: list[StackInput] = []
    for p in result.planned:
        found += inputs_of(p.plan, p.placed.workload, result.inputs.project, result.inputs.market, generation)
    return write(found, folder)
