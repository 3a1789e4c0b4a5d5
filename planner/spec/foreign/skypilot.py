"""SkyPilot task files -> a job: the fields at the top.  Written from its documented YAML reference; nothing of SkyPilot is imported.

Decides what each top field means here.  Resources, mounts and storage have modules of their own.  Where SkyPilot and skyplan differ in meaning the
difference is told: its `workdir` is a folder of the user's machine, its secrets are values, its list of accelerators has an order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Location
from planner.spec.foreign import common
from planner.spec.foreign.scripts import Shape, prepared, unmet
from planner.spec.foreign.sky_mounts import mounts
from planner.spec.foreign.sky_resources import FIELDS as RESOURCES
from planner.spec.foreign.sky_resources import resources
from planner.spec.yaml_lines import Mapping

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

TOOL: Final = "SkyPilot"
#: documented fields at the top of a task
FIELDS: Final = (
    *(
        "name",
        "workdir",
        "num_nodes",
        "resources",
        "envs",
        "secrets",
        "managed_secrets",
        "file_mounts",
        "volumes",
        "setup",
    ),
    *("run", "service", "pool", "config", "experimental", "inputs", "outputs", "event_callback", "volume_mounts"),
    *("file_mounts_mapping", "api_server_access", "execution", "placement", "primary_tasks", "termination_delay"),
    "_metadata",
)
_LOCAL: Final = "a folder of your machine: skyplan sends no files to nodes"
_LOCAL_NEEDS: Final = (
    "bake the files into `image`, fetch them in `setup` (git clone), or put them in a bucket under `data`"
)
#: field -> why it is not carried over, and what it would need
_LEFT: Final = {
    "config": ("settings of SkyPilot itself", "what matters of it belongs into skyplan.yaml"),
    "experimental": ("settings of SkyPilot itself", "what matters of it belongs into skyplan.yaml"),
    "event_callback": ("SkyPilot's own callback", "`skyplan events` tells what happens to a job"),
    "volumes": ("a volume of SkyPilot's: skyplan knows buckets, not volumes", "put the data in a bucket under `data`"),
    "volume_mounts": ("written by SkyPilot for itself", ""),
    "file_mounts_mapping": ("written by SkyPilot for itself", ""),
    "_metadata": ("written by SkyPilot for itself", ""),
    "api_server_access": ("skyplan has no such server", ""),
}
_CONDA: Final = re.compile(r"^\s*(?:source\s+\S*)?conda\s+\w", re.MULTILINE)
#: what a script takes for granted on SkyPilot's machines
_EXPECTED: Final = (
    (re.compile(r"\bsky_workdir\b"), "the script names ~/sky_workdir, SkyPilot's copy of `workdir`", _LOCAL_NEEDS),
    (
        re.compile(r">>\s*[\"']?(?:~|\$HOME|\$\{HOME\})/\.(?:bashrc|bash_profile|profile)\b"),
        "the script writes to ~/.bashrc, which SkyPilot's shells read and skyplan's do not",
        "set it in `env`, or in `run` itself",
    ),
    (
        _CONDA,
        "the script calls conda, which SkyPilot's own machine image has",
        "give an `image` that has it, or install it in `setup`",
    ),
)
_REGISTRY: Final = ("SKYPILOT_DOCKER_", "SKYPILOT_RUNPOD_DOCKER_")
_REGISTRY_NEEDS: Final = "give `registry_auth` a reference to user:password, such as aws-secretsmanager://acme/registry"
_GROUPS: Final = ("execution", "placement", "primary_tasks", "termination_delay")


def task(job: Job, root: Part, file_name: str) -> None:
    """Fill the job's draft from one document."""
    book, draft = job.book, job.draft
    if _refused(root):
        book.taken.update(root.leaves())
        return
    common.name(job, root.get("name"), file_name, root.at)
    common.nodes(job, root.get("num_nodes"))
    known = _environment(job, root)
    shape = resources(job, root, known)
    mounts(job, root, known)
    _workdir(root)
    _secrets(root)
    for key, (why, needs) in _LEFT.items():
        part = root.get(key)
        if part is not None:
            part.leave(why, needs)
    full = Shape(job.nodes, shape, str(draft.value("name")))
    for key in ("setup", "run"):
        _script(job, root, key, full)
    if draft.value("run") is None and not book.failed:
        hint = "an interactive cluster is no job: give `run` the command that does the work"
        book.error(root.at, "the task has no `run`", hint, "SKY-SPEC-103")
    if job.nodes > 1 and draft.value("resources.interconnect_sensitive") is None:
        why = "nodes are assumed to need no fast fabric: set it true for data-parallel training"
        draft.todo.append(job.say("resources.interconnect_sensitive", root.at, "false", why))
    book.rest(root, FIELDS, RESOURCES)


def _refused(root: Part) -> bool:
    """A service, a pool or a job group is no job."""
    words = {
        "service": "a service (SkyServe): skyplan plans jobs that end",
        "pool": "a pool of workers: skyplan plans jobs that end",
    }
    found = False
    for key, what in words.items():
        part = root.get(key)
        if part is not None and part.is_null:
            part.leave("it is empty")
        elif part is not None:
            part.refuse(f"`{key}` makes it {what}", f"import a task without `{key}`")
            found = True
    return found


def _environment(job: Job, root: Part) -> dict[str, str | None]:
    """`envs` into the draft; returns what can be filled into other fields, None where a value is given at launch."""
    part = root.get("envs")
    given = job.options.env
    env: dict[str, str] = {}
    known: dict[str, str | None] = dict(given)
    for variable, value in (part.entries() if part else {}).items():
        text = given.get(variable, value.scalar)
        known[variable] = text
        if value.scalar is None and not value.is_null and not given.get(variable):
            value.refuse(f"`{value.path}` must be a single value", "write it out")
            continue
        if variable.startswith(_REGISTRY):
            value.leave("it logs in to the image's registry there", _REGISTRY_NEEDS)
        else:
            common.env_value(env, value, variable, text)
    if part is not None and not part.entries():
        _empty(part, "no variable")
    for variable, text in given.items():
        env.setdefault(variable, text)
    if env:
        job.draft.put("env", dict(sorted(env.items())), part.at if part else root.at)
    return known


def _empty(part: Part, what: str) -> None:
    if part.is_null or isinstance(part.node, Mapping):
        part.leave(f"it names {what}")
    else:
        part.refuse(f"`{part.path}` must be a mapping, not {part.shown}", "see SkyPilot's YAML reference")


def _secrets(root: Part) -> None:
    for key in ("secrets", "managed_secrets"):
        part = root.get(key)
        if part is None:
            continue
        for one in tuple(part.entries().values()) or part.items():
            why = "skyplan never holds secrets: nodes fetch them from their own cloud's store"
            one.leave(why, common.BY_REFERENCE)


def _workdir(root: Part) -> None:
    part = root.get("workdir")
    if part is None:
        return
    url = part.get("url")
    if url is not None:
        part.leave(
            "a Git repository, laid down before `setup`", "clone it in `setup` and `cd` into it in `setup` and `run`"
        )
    else:
        part.leave(_LOCAL, f"{_LOCAL_NEEDS}; `workdir` here is a folder on the node")


def _script(job: Job, root: Part, key: str, shape: Shape) -> None:
    part = root.get(key)
    if part is None:
        return
    if part.scalar is None and not part.is_null:
        part.refuse(f"`{key}` must be a text", "write the commands as a block: `run: |`")
        return
    text = common.script(part, part.scalar)
    if text is None:
        if not set(part.leaves()) <= job.book.taken:
            part.leave("it is empty")
        return
    unmet(part, "skypilot", text, shape)
    draft_has_image = job.draft.value("image") is not None
    made = prepared("skypilot", text, shape)
    job.draft.put(key, made, part.at)
    if made == text:
        part.carry(key)
    else:
        part.change(key, "lines before it set the SKYPILOT_ variables it reads")
    for pattern, why, needs in _EXPECTED:
        found = pattern.search(text)
        if found and not (pattern is _CONDA and draft_has_image):
            line = text.count("\n", 0, found.start()) + 1 if "\n" in text.strip() else 0
            job.book.note(part.path, Location(part.at.file, part.at.line + line, 1), why, needs)


def is_group(root: Part) -> bool:
    """The first document of several that names the pipeline and nothing else."""
    return bool(root.entries()) and set(root.entries()) <= {"name", *_GROUPS}


def group(job: Job, root: Part) -> None:
    """The document that names a pipeline or a group of jobs."""
    for key, part in root.entries().items():
        if key == "name":
            part.leave("it names the pipeline, not a job", "")
        elif key in _GROUPS:
            part.leave("jobs are planned one by one, not as a group", "apply them together with `skyplan plan JOB...`")
    job.book.rest(root, FIELDS)
