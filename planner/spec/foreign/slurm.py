"""A Slurm batch script -> a job: its #SBATCH lines, and its body as the command.  Written from the sbatch manual.

Decides what each option means on machines that are bought per job: sizes per task, per CPU and per GPU become sizes per node.  What only a standing cluster
has (partitions, accounts, modules, srun) is told.  Slurm runs the body on the first node alone, skyplan on every node: that is told too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location
from planner.spec.foreign import common
from planner.spec.foreign.scripts import Shape
from planner.spec.foreign.slurm_body import body
from planner.spec.foreign.slurm_gpus import ASKING, gpus
from planner.spec.foreign.slurm_left import LEFT
from planner.spec.near import did_you_mean
from planner.spec.secret import shown

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job
    from planner.spec.foreign.sbatch import Script

TOOL: Final = "Slurm"
_READ: Final = (
    *(
        "nodes",
        "ntasks",
        "ntasks-per-node",
        "cpus-per-task",
        "gres",
        "gpus",
        "gpus-per-node",
        "gpus-per-task",
        "gpus-per-socket",
        "time",
    ),
    *("mem", "mem-per-cpu", "mem-per-gpu", "job-name", "export", "array", "mincpus", "cpus-per-gpu", "constraint"),
    "container-image",
)
FIELDS: Final = (*_READ, *LEFT)
#: an image by tag or digest, with its registry or without
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?", re.ASCII)
_GIB: Final = {"K": 1 / (1 << 20), "M": 1 / 1024, "G": 1.0, "T": 1024.0}
_TIME: Final = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


def batch(job: Job, root: Part, script: Script, file_name: str) -> None:
    """Fill the job's draft."""
    book, draft = job.book, job.draft
    array = root.get("array")
    if array is not None:
        array.refuse("a job array: many jobs in one script", "import the script once per task, its number written out")
    if script.shebang and not re.search(r"\b(?:ba|z|k|da)?sh\b", script.shebang):
        book.error(
            Location(root.at.file, 1, 1),
            f"the body is for {shown(script.shebang)}, not for a shell",
            "call it from a shell script",
        )
    name = root.get("job-name")
    common.name(job, name, file_name, root.at)
    _nodes(job, root)
    tasks = _tasks(job, root)
    _late(job, root, script)
    count = gpus(job, root, tasks)
    _sizes(job, root, tasks, count)
    limit = _time(job, root)
    first = draft.value("resources.accelerators")
    if isinstance(first[0], str) if first else False:
        common.work(job, root.at, str(first[0]), limit, of_many=len(first) > 1)
    elif first:
        common.work(job, root.at, None, limit)
        common.work_on_memory(job, root.at, common.LEAST_GB, count)
    if job.nodes > 1:
        why = "nodes are assumed to need no fast fabric: set it true for data-parallel training"
        draft.todo.append(job.say("resources.interconnect_sensitive", root.at, "false", why))
    _export(job, root)
    _image(root, job)
    body(job, root, script, Shape(job.nodes, count or None, str(draft.value("name"))))
    for key, (why, needs) in LEFT.items():
        part = root.get(key)
        if part is not None:
            part.leave(why, needs)
    for key, part in root.entries().items():
        if not set(part.leaves()) <= book.taken:
            hint = did_you_mean(key, FIELDS) or "see the sbatch manual"
            part.refuse(f"--{key} is no option of sbatch that is known", hint, "SKY-SPEC-102")


def _late(job: Job, root: Part, script: Script) -> None:
    """GPUs that are asked for only where Slurm does not read it: the error stands there."""
    late = next((line for line in script.late if line.name in ASKING), None)
    if late is not None and not any(root.get(key) for key in ASKING):
        why = f"--{late.name} stands below the first command, where Slurm does not read it: the script asks for no GPU"
        job.book.error(late.at, why, "move it up, above every command", "SKY-SPEC-103")


def _count(part: Part | None) -> int | None:
    """A whole number from 1; an error where it is none."""
    if part is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", part.scalar or "") or int(part.scalar or "0") < 1:
        part.refuse(f"--{part.key}: {part.shown} is no number", "write a whole number from 1")
        return None
    return int(part.scalar or "1")


def _nodes(job: Job, root: Part) -> None:
    part = root.get("nodes")
    if part is None:
        return
    low, dash, high = (part.scalar or "").partition("-")
    if dash and low.isdigit() and high.isdigit() and int(low) > 0:
        job.draft.put("resources.nodes", int(low), part.at)
        part.carry("resources.nodes") if low == high else part.change(
            "resources.nodes", f"{low} to {high} there: the least is planned"
        )
    else:
        common.nodes(job, part)


def _tasks(job: Job, root: Part) -> int:
    """Tasks per node.  Each has a CPU of its own at least, so their number is the least of CPUs."""
    total, each = root.get("ntasks"), root.get("ntasks-per-node")
    counts = {part.key: count for part in (total, each) if part is not None and (count := _count(part)) is not None}
    tasks = counts.get("ntasks-per-node") or max(1, -(-counts.get("ntasks", 1) // job.nodes))
    for part in (total, each):
        if part is None or part.key not in counts:
            continue
        needs = "start several processes in it, with torchrun or mpirun"
        why = "skyplan runs the body once on every node"
        if tasks > 1:
            part.change("resources.cpus", f"{why}; a CPU for each of {tasks} tasks per node is asked for", needs)
        else:
            part.leave(why, needs)
    return tasks


def _memory(part: Part) -> float | None:
    """GiB; megabytes where no unit is given."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT])?[Bb]?", part.scalar or "", re.IGNORECASE)
    if found is None:
        part.refuse(f"--{part.key}: {part.shown} is no size", "write it like 64G")
        return None
    return float(found[1]) * _GIB[(found[2] or "M").upper()]


def _sizes(job: Job, root: Part, tasks: int, count: int) -> None:
    cpus = _cpus(job, root, tasks, count)
    for key, factor, of in (("mem", 1, "node"), ("mem-per-cpu", cpus, "CPU"), ("mem-per-gpu", count, "GPU")):
        size = root.get(key)
        gib = _memory(size) if size is not None else None
        if size is None or gib is None:
            continue
        if gib == 0:
            size.leave("all memory of a node, which a job has anyway")
            continue
        job.draft.put("resources.memory", f"{gib * max(factor, 1):.12g}GiB", size.at)
        if of == "node":
            size.carry("resources.memory")
        else:
            size.change("resources.memory", f"per {of} there, per node here: {gib:g} GiB times {max(factor, 1)}")


def _cpus(job: Job, root: Part, tasks: int, count: int) -> int:
    """CPUs per node: the most that any option asks for."""
    part, per_gpu, least = (root.get(key) for key in ("cpus-per-task", "cpus-per-gpu", "mincpus"))
    each, of_gpu, fewest = _count(part), _count(per_gpu), _count(least)
    cpus = max((each or 1) * tasks, (of_gpu or 0) * max(count, 1), fewest or 1)
    at = next((one for one in (part, per_gpu, least, root.get("ntasks-per-node"), root.get("ntasks")) if one), None)
    if at is not None and (cpus > 1 or each or of_gpu or fewest):
        job.draft.put("resources.cpus", f"{cpus}", at.at)
    if part is not None and each and tasks == 1:
        part.carry("resources.cpus")
    elif part is not None and each:
        part.change("resources.cpus", f"per task there, per node here: {each} times {tasks}")
    if per_gpu is not None and of_gpu:
        per_gpu.change("resources.cpus", f"per GPU there, per node here: {of_gpu} times {max(count, 1)}")
    if least is not None and fewest:
        least.carry("resources.cpus")
    return cpus


def _image(root: Part, job: Job) -> None:
    """`--container-image` of the plugins that run containers: a registry's reference, in which `#` may part the registry's name from the image's."""
    part = root.get("container-image")
    if part is None:
        return
    ref = re.sub(r"^(?:docker|dockerd|podman)://", "", part.scalar or "").replace("#", "/", 1)
    if not _IMAGE.fullmatch(ref) or ref.startswith(("/", ".")) or ref.endswith((".sqsh", ".sif", ".squashfs")):
        part.leave("an image that lies on the cluster", "give `image`, by its registry")
        return
    job.draft.put("image", ref, part.at)
    part.carry("image")


def _time(job: Job, root: Part) -> float | None:
    part = root.get("time")
    if part is None:
        return None
    text = (part.scalar or "").strip()
    if text.upper() in {"UNLIMITED", "INFINITE", "-1", "0"}:
        part.leave("no limit there", "give `constraints.stop_after` for a hard end")
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        part.refuse(f"--time: {part.shown} is no time", "write D-HH:MM:SS, HH:MM:SS or minutes")
        return None
    days, first, second, third = (int(g) if g is not None else None for g in found.groups())
    if days is not None:
        seconds = ((days * 24 + (first or 0)) * 60 + (second or 0)) * 60 + (third or 0)
    elif third is not None:
        seconds = ((first or 0) * 60 + (second or 0)) * 60 + third
    else:
        seconds = (first or 0) * 60 + (second or 0)
    if not 0 < seconds / 3600 <= common.MAX_HOURS:
        part.refuse(f"--time: {part.shown} is out of range", "write D-HH:MM:SS, HH:MM:SS or minutes")
        return None
    job.draft.put("constraints.stop_after", f"{seconds}s" if seconds % 60 else f"{seconds // 60}m", part.at)
    part.change("constraints.stop_after", "counted from a node's boot here, so with setup and copying of data")
    return seconds / 3600


def _export(job: Job, root: Part) -> None:
    part = root.get("export")
    env = dict(job.options.env)
    if part is not None:
        pairs = [word.partition("=") for word in (part.scalar or "").split(",")]
        bare = [name for name, sign, _ in pairs if not sign and name not in {"ALL", "NONE", "NIL", ""}]
        odd = [name for name, sign, value in pairs if sign and not common.plain_variable(name, value)]
        env |= {name: value for name, sign, value in pairs if sign and name not in odd}
        whys = (
            [f"{', '.join(bare + odd)}: not carried, a value of the submitting shell or a secret"]
            if bare or odd
            else []
        )
        whys += (
            ["nothing of the submitting shell's environment reaches a node"]
            if any(n in {"ALL", ""} for n, s, _ in pairs if not s)
            else []
        )
        if not any(sign and name not in odd for name, sign, _ in pairs):
            part.leave("; ".join(whys) or "it exports nothing", "write what the job needs under `env`" if whys else "")
        elif whys:
            part.change("env", "; ".join(whys), "write what the job needs under `env`")
        else:
            part.carry("env")
    if env:
        job.draft.put("env", dict(sorted(env.items())), part.at if part else root.at)
