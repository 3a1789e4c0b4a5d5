"""A Slurm batch script -> a job: its #SBATCH lines, and its body as the command.  Written from the sbatch manual.

Decides what each option means on machines that are bought per job: sizes per task, per CPU and per GPU become sizes per node.  What only a standing cluster
has (partitions, accounts, modules, srun) is told.  Slurm runs the body on the first node alone, skyplan on every node: that is told too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location
from planner.spec.foreign import common
from planner.spec.foreign.carried import Part
from planner.spec.foreign.sbatch import runs
from planner.spec.foreign.scripts import Shape, prepared, unmet
from planner.spec.foreign.slurm_left import LEFT
from planner.spec.near import did_you_mean
from planner.spec.secret import shown

if TYPE_CHECKING:
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
    *("mem", "mem-per-cpu", "mem-per-gpu", "job-name", "export", "array", "mincpus"),
)
FIELDS: Final = (*_READ, *LEFT)
_GIB: Final = {"K": 1 / (1 << 20), "M": 1 / 1024, "G": 1.0, "T": 1024.0}
_TIME: Final = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
#: what a body says that only a cluster with Slurm understands, and what it would need
_BODY: Final = (
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
)


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
    gpus = _gpus(job, root, tasks)
    _sizes(job, root, tasks, gpus)
    limit = _time(job, root)
    first = draft.value("resources.accelerators")
    if isinstance(first[0], str) if first else False:
        common.work(job, root.at, str(first[0]), limit)
    elif first:
        common.work(job, root.at, None, limit)
        common.work_on_memory(job, root.at, common.LEAST_GB, gpus)
    _export(job, root)
    _body(job, root, Shape(job.nodes, gpus or None, str(draft.value("name"))))
    for key, (why, needs) in LEFT.items():
        part = root.get(key)
        if part is not None:
            part.leave(why, needs)
    for key, part in root.entries().items():
        if not set(part.leaves()) <= book.taken:
            hint = did_you_mean(key, FIELDS) or "see the sbatch manual"
            part.refuse(f"--{key} is no option of sbatch that is known", hint, "SKY-SPEC-102")


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
        part.change("resources.nodes", f"{low} to {high} there: the least is planned")
    else:
        common.nodes(job, part)


def _tasks(job: Job, root: Part) -> int:
    """Tasks per node."""
    total, each = root.get("ntasks"), root.get("ntasks-per-node")
    for part in (total, each):
        if part is not None and _count(part) is not None:
            part.leave(
                "skyplan runs the body once on every node", "start several processes in it, with torchrun or mpirun"
            )
    if each is not None and (each.scalar or "").isdigit():
        return int(each.scalar or "1")
    if total is not None and (total.scalar or "").isdigit():
        return max(1, -(-int(total.scalar or "1") // job.nodes))
    return 1


def _gpus(job: Job, root: Part, tasks: int) -> int:
    """GPUs per node into the draft, of whichever option says them."""
    found: list[tuple[Part, str | None, int]] = []
    for key, factor in (
        ("gres", 1.0),
        ("gpus-per-node", 1.0),
        ("gpus", 1 / job.nodes),
        ("gpus-per-task", float(tasks)),
    ):
        part = root.get(key)
        if part is None:
            continue
        text = part.scalar or ""
        kinds = [one for one in text.split(",") if one.split(":")[0] == "gpu"] if key == "gres" else [f"gpu:{text}"]
        if not kinds:
            part.leave(f"{part.shown} asks for what no cloud machine names so")
            continue
        read = re.fullmatch(r"gpu(?::([A-Za-z][\w.-]*))?(?::(\d+))?(?:\(.*\))?", kinds[0])
        each = float(read[2] or 1) * factor if read else 0
        if read is None or len(kinds) > 1 or each != int(each) or each < 1:
            part.refuse(
                f"--{key}: {part.shown} is no number of GPUs of one kind per node", "write it like --gres=gpu:a100:4"
            )
            continue
        found.append((part, read[1], int(each)))
    socket = root.get("gpus-per-socket")
    if socket is not None:
        socket.refuse("GPUs per socket: skyplan counts per node", "say --gpus-per-node")
    if not found:
        if not job.book.failed:
            common.no_gpu(job, root.at)
        return 0
    return _asked(job, found)


def _asked(job: Job, found: list[tuple[Part, str | None, int]]) -> int:
    count, kind = found[0][2], job.options.gpu or next((k for _, k, _ in found if k), None)
    if any(c != count for _, _, c in found):
        job.book.taken.update(leaf for part, _, _ in found for leaf in part.leaves())
        found[-1][0].refuse(
            "two options ask for different numbers of GPUs per node", "keep one of them", "SKY-SPEC-113"
        )
        return 0
    at = found[0][0].at
    models = list(job.shelf.models(kind)) if kind else list[str]()
    if kind and len(models) != 1:
        why = f"may mean {', '.join(models)}: say which (--gpu)" if models else job.shelf.why_not(kind)
        for part, _, _ in found:
            part.refuse(f"--{part.key}: {shown(kind)} {why}", "say which GPU is meant: --gpu NAME", "SKY-SPEC-106")
        return 0
    if kind:
        job.draft.put("resources.accelerators", [f"{models[0]}:{count}"], at)
        larger = [m for m in job.shelf.family(kind) if m != models[0]] if not job.options.gpu else []
        for part, _, _ in found:
            if larger:
                part.change(
                    "resources.accelerators",
                    f"taken for {models[0]} ({job.shelf.words.gpus[models[0]]:g} GiB): the cluster's may be {' or '.join(larger)}",
                    "say which with --gpu",
                )
            else:
                part.carry("resources.accelerators")
        return count
    why = f"any GPU with {common.LEAST_GB:g} GB is asked for: name the cluster's (--gpu)"
    todo = job.say("resources.accelerators", at, f">={common.LEAST_GB:g}GiB:{count}", why)
    job.draft.put("resources.accelerators", [{"gpu_memory": f"{common.LEAST_GB:g}GiB+", "count": count}], at, todo)
    for part, _, _ in found:
        part.change("resources.accelerators", "a number without a kind: which GPU the cluster has is not said")
    return count


def _memory(part: Part) -> float | None:
    """GiB; megabytes where no unit is given."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT])?[Bb]?", part.scalar or "", re.IGNORECASE)
    if found is None:
        part.refuse(f"--{part.key}: {part.shown} is no size", "write it like 64G")
        return None
    return float(found[1]) * _GIB[(found[2] or "M").upper()]


def _sizes(job: Job, root: Part, tasks: int, gpus: int) -> None:
    part = root.get("cpus-per-task")
    each = _count(part)
    cpus = (each or 1) * tasks
    least = root.get("mincpus")
    fewest = _count(least)
    if part is not None and each:
        job.draft.put("resources.cpus", f"{cpus}", part.at)
        part.carry("resources.cpus") if tasks == 1 else part.change(
            "resources.cpus", f"per task there, per node here: {each} times {tasks}"
        )
    if least is not None and fewest:
        job.draft.put("resources.cpus", f"{max(fewest, cpus)}", least.at)
        least.carry("resources.cpus")
    for key, factor, of in (("mem", 1, "node"), ("mem-per-cpu", cpus, "CPU"), ("mem-per-gpu", gpus, "GPU")):
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
        if whys:
            part.change("env", "; ".join(whys), "write what the job needs under `env`")
        else:
            part.carry("env")
    if env:
        job.draft.put("env", dict(sorted(env.items())), part.at if part else root.at)


def _body(job: Job, root: Part, shape: Shape) -> None:
    part = root.get("body")
    if part is None:
        return
    text = common.script(part, part.scalar)
    if text is None or not any(runs(line) for line in text.split("\n")):
        if text is not None or not job.book.failed:
            part.refuse("the script runs nothing", "give it a command", "SKY-SPEC-103")
        return
    for number, line in enumerate(text.split("\n")):
        for pattern, why, needs in _BODY:
            if pattern.search(line):
                job.book.note("body", Location(part.at.file, part.at.line + number, 1), why, needs)
                break
    unmet(
        Part(part.book, part.node, Location(part.at.file, part.at.line - 1, 1), part.path, part.key),
        "slurm",
        text,
        shape,
    )
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
