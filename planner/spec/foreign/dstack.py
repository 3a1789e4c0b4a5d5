"""dstack configurations -> a job: the fields at the top.  Written from its documented reference; nothing of dstack is imported.

Decides what each field of a task means here; of a fleet only its resources.  A dev environment and a service are no jobs.  Resources have a module of
their own.  Commands are joined as dstack joins them: the first that fails ends the job.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.spec import units
from planner.spec.foreign import common
from planner.spec.foreign.dstack_left import FILES_NEED, LEFT
from planner.spec.foreign.dstack_resources import FIELDS as RESOURCES
from planner.spec.foreign.dstack_resources import resources
from planner.spec.foreign.scripts import Shape, prepared, unmet
from planner.spec.foreign.shelf import CLOUDS, region_of_zone
from planner.spec.patterns import is_pattern
from planner.spec.yaml_lines import Mapping

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

TOOL: Final = "dstack"
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*(?:@sha256:[0-9a-f]{64})?", re.ASCII)
_OWN: Final = (
    *(
        "type",
        "name",
        "image",
        "working_dir",
        "env",
        "shell",
        "resources",
        "priority",
        "commands",
        "nodes",
        "backends",
        "regions",
    ),
    *(
        "availability_zones",
        "instance_types",
        "spot_policy",
        "max_duration",
        "max_price",
        "tags",
        "placement",
        "ssh_config",
        "groups",
    ),
)
_FILLED: Final = re.compile(r"\$\{\{[^}\n]*\}\}")
#: documented fields at the top of a configuration
FIELDS: Final = (*_OWN, *LEFT)
#: what else a file of dstack's may hold, and why it is no job
_NO_JOB: Final = {
    "service": "a service: skyplan plans jobs that end",
    "dev-environment": "a dev environment: skyplan plans jobs that end",
    "volume": "a volume: skyplan knows buckets, not volumes",
    "gateway": "a gateway: skyplan plans jobs, not services",
    "endpoint": "an endpoint: skyplan plans jobs that end",
    "preset": "a preset of endpoints: skyplan plans jobs that end",
}
TYPES: Final = ("task", "fleet", *_NO_JOB)


def configuration(job: Job, root: Part, file_name: str) -> None:
    """Fill the job's draft from one document."""
    book, draft = job.book, job.draft
    kind = root.get("type")
    word = kind.scalar if kind else None
    if kind is None or word not in {"task", "fleet"}:
        book.taken.update(root.leaves())
        at = kind.at if kind else root.at
        why = f"it is {_NO_JOB[word]}" if word in _NO_JOB else "`type` must be task or fleet"
        book.error(at, why, "import a task", "SKY-SPEC-105")
        return
    hosts = root.get("ssh_config")
    if hosts is not None:
        book.taken.update(root.leaves())
        book.error(hosts.at, "it is a fleet of hosts you have: skyplan plans what clouds sell", "import a task")
        return
    groups = root.get("groups")
    if groups is not None and not groups.is_null:
        book.taken.update(root.leaves())
        why = "`groups` makes nodes that differ, each group with commands of its own: nodes of a job are alike"
        book.error(groups.at, why, "write one task per group, without `groups`")
        return
    fleet = word == "fleet"
    kind.carry("run") if not fleet else kind.change(
        "resources", "a fleet is machines without work: its resources are carried over, `run` is yours to write"
    )
    common.name(job, root.get("name"), file_name, root.at)
    _nodes(job, root)
    gpus = resources(job, root)
    _where(job, root)
    _bought(job, root)
    env = _environment(job, root)
    _image(job, root)
    shape = Shape(job.nodes, gpus, str(draft.value("name")))
    limit = _limit(job, root)
    first = draft.value("resources.accelerators")
    common.work(
        job, root.at, job.shelf.best_known(first) if first else None, limit, of_many=bool(first) and len(first) > 1
    )
    _placement(job, root)
    if fleet:
        line = "echo 'TODO: a fleet says no work: write what the job runs' >&2; exit 1"
        draft.put("run", line, root.at, job.say("run", root.at, "exit 1", "a fleet says no work: write the command"))
    else:
        _commands(job, root, shape)
    _rest(job, root)
    if env:
        draft.put("env", dict(sorted(env.items())), root.at)
    book.rest(root, FIELDS, RESOURCES)


def _nodes(job: Job, root: Part) -> None:
    """A number; of a fleet a range, of which the upper end is planned."""
    part = root.get("nodes")
    if part is None:
        return
    top = part.get("target") or part.get("max") or part.get("min")
    text = (top.scalar if top else part.scalar) or ""
    low, dots, high = text.partition("..")
    count = (high or low) if dots else text
    if not top and not dots:
        common.nodes(job, part)
    elif count == "0" and not high:
        part.change("resources.nodes", "as many as are needed there, none at first: 1 node is planned")
        job.draft.put("resources.nodes", 1, part.at)
    elif count.isdigit() and 0 < int(count) <= common.MAX_NODES:
        job.draft.put("resources.nodes", int(count), part.at)
        part.change("resources.nodes", f"a range there: {count} nodes are planned")
    else:
        part.refuse(f"`{part.path}`: {part.shown} names no number of nodes", "give a number, such as 2")


def _listed(root: Part, key: str) -> tuple[Part | None, list[Part]]:
    part = root.get(key)
    if part is None:
        return None, []
    if part.is_null or not part.items():
        part.leave("it is empty")
        return None, []
    return part, list(part.items())


def _where(job: Job, root: Part) -> None:
    clouds = _backends(job, root)
    known = {r for cloud in (clouds or CLOUDS) for r in job.shelf.words.regions.get(cloud, ())}
    part, items = _listed(root, "regions")
    named = _kept(job, part, items, known, what="region", to="constraints.regions")
    zones, items = _listed(root, "availability_zones")
    found = {item.path: region_of_zone((item.scalar or "").strip(), job.shelf) for item in items}
    for item in items:
        owner = found[item.path]
        if owner is None or owner[1] not in known:
            item.leave("a zone that the catalog does not know", "name a region under `constraints.regions`")
        else:
            item.change("constraints.regions", f"becomes its region {owner[1]}: zones are the planner's to choose")
    of_zones = {owner[1] for owner in found.values() if owner and owner[1] in known}
    if zones is not None and not of_zones:
        job.book.error(zones.at, "none of the zones is one that the catalog knows", "name regions instead")
    both = named & of_zones if named and of_zones else named or of_zones
    at = part or zones
    if both and at is not None:
        job.draft.put("constraints.regions", sorted(both), at.at)
    elif named and of_zones and at is not None:
        job.book.error(
            at.at, "`regions` and `availability_zones` have nothing in common", "correct one of them", "SKY-SPEC-113"
        )
    types, items = _listed(root, "instance_types")
    kept = _kept(
        job,
        types,
        items,
        set(job.shelf.words.instance_types),
        what="machine type with GPUs",
        to="constraints.instance_types",
    )
    if kept and types is not None:
        job.draft.put("constraints.instance_types", sorted(kept), types.at)


def _backends(job: Job, root: Part) -> set[str]:
    part, items = _listed(root, "backends")
    kept = _kept(job, part, items, set(CLOUDS), what="cloud", to="constraints.clouds")
    if kept and part is not None:
        job.draft.put("constraints.clouds", sorted(kept), part.at)
    return kept


def _kept(job: Job, part: Part | None, items: list[Part], known: set[str], *, what: str, to: str) -> set[str]:
    """Those of a list that are known here; the others are told, and none left is an error."""
    kept: set[str] = set()
    for item in items:
        text = (item.scalar or "").strip()
        if text in known and is_pattern(text):
            kept.add(text)
            item.carry(to)
        else:
            item.leave(f"{item.shown} is no {what} that skyplan knows")
    if part is not None and not kept:
        whats = f"{what}s are such as {', '.join(sorted(known)[:4])}"
        job.book.error(part.at, f"`{part.path}` names no {what} that skyplan knows", whats)
    return kept


def _bought(job: Job, root: Part) -> None:
    part = root.get("spot_policy")
    ways = {"spot": ["spot"], "auto": ["spot", "on_demand"], "on-demand": ["on_demand"]}
    if part is not None and part.scalar in ways:
        job.draft.put("resources.capacity", ways[part.scalar], part.at)
        part.carry("resources.capacity")
    elif part is not None and part.is_null:
        part.leave("it is empty")
    elif part is not None:
        part.refuse(f"`{part.path}`: {part.shown} is not known", "write spot, on-demand or auto")
    price = root.get("max_price")
    if price is None:
        return
    try:
        usd = units.real((price.scalar or "").strip(), example="write US dollars, such as 12.5")
    except units.Malformed as problem:
        price.refuse(f"`{price.path}`: {price.shown} {problem}", problem.hint)
        return
    job.draft.put("constraints.max_usd_per_hour", usd * job.nodes, price.at)
    why = f"the price of one instance there, of the whole job here: {usd:g} times {job.nodes}"
    price.change("constraints.max_usd_per_hour", f"{why}; disks and addresses count here too")


def _limit(job: Job, root: Part) -> float | None:
    """`max_duration` is the hard end; returns its hours."""
    part = root.get("max_duration")
    if part is None:
        return None
    text = (part.scalar or "").strip().lower()
    if part.is_null or text in {"off", "false", "true"}:
        part.leave(
            "no limit there" if not part.is_null else "it is empty", "give `constraints.stop_after` for a hard end"
        )
        return None
    try:
        hours = units.real(text) / 3600 if text.isdigit() else units.hours(text)
    except units.Malformed as problem:
        part.refuse(f"`{part.path}`: {part.shown} {problem}", problem.hint)
        return None
    job.draft.put("constraints.stop_after", f"{text}s" if text.isdigit() else text, part.at)
    part.change("constraints.stop_after", "counted from a node's boot here, so with setup and copying of data")
    return hours


def _environment(job: Job, root: Part) -> dict[str, str]:
    """A mapping, or a list of NAME=VALUE and NAME."""
    part = root.get("env")
    given = job.options.env
    env: dict[str, str] = {}
    if part is None:
        return dict(given)
    pairs = [(value, key, value.scalar) for key, value in part.entries().items()]
    if not pairs and not part.is_null and not isinstance(part.node, Mapping):
        for item in part.items():
            variable, sign, text = (item.scalar or "").partition("=")
            pairs.append((item, variable, text if sign else None))
    for where, variable, text in pairs:
        value = given.get(variable, text)
        if value is not None and "${{" in value:
            where.leave(
                "it is filled in by dstack at launch",
                common.BY_REFERENCE if "secrets" in value else f"write `{variable}` under `env`",
            )
        else:
            common.env_value(env, where, variable, value)
    if not pairs:
        part.leave("it names no variable")
    return given | env


def _image(job: Job, root: Part) -> None:
    part = root.get("image")
    if part is None:
        return
    ref = part.scalar or ""
    if ref and _IMAGE.fullmatch(ref):
        job.draft.put("image", ref, part.at)
        part.carry("image")
    elif part.is_null:
        part.leave("it is empty")
    else:
        part.refuse(f"`image`: {part.shown} is no image by tag or digest", "write NAME:TAG")


def _placement(job: Job, root: Part) -> None:
    part = root.get("placement")
    if root.get("groups") is not None:
        root.entries()["groups"].leave("it is empty")
    if part is not None and part.scalar == "cluster":
        job.draft.put("resources.interconnect_sensitive", value=True, at=part.at)
        part.change(
            "resources.interconnect_sensitive", "skyplan keeps such a job on machines with a fabric between nodes"
        )
    elif part is not None:
        part.leave("nodes lie in one zone anyway")
    elif job.nodes > 1:
        why = "nodes are assumed to need no fast fabric: set it true for data-parallel training"
        job.draft.todo.append(job.say("resources.interconnect_sensitive", root.at, "false", why))


def _commands(job: Job, root: Part, shape: Shape) -> None:
    part = root.get("commands")
    texts = [item.scalar for item in part.items()] if part is not None and not part.is_null else []
    if part is None or not texts:
        why = "it has no `commands`: what the image runs by itself is not known to skyplan"
        job.book.error(part.at if part else root.at, why, "give `commands`", "SKY-SPEC-103")
        if part is not None:
            job.book.taken.update(part.leaves())
        return
    if any(text is None for text in texts):
        part.refuse("`commands` must be a list of texts", "write one command per item")
        return
    script = common.script(part, " &&\n".join(_joined(text) for text in texts if text and text.strip()))
    if script is None:
        if not job.book.failed:
            part.refuse("`commands` is empty", "give the command that does the work", "SKY-SPEC-103")
        return
    for item in part.items():
        unmet(item, "dstack", item.scalar or "", shape)
        filled = _FILLED.search(item.scalar or "")
        if filled:
            why = f"dstack fills in {filled[0]} at launch; to bash it is an error"
            job.book.note(item.path, item.at, why, "write out what stands for it")
    made = prepared("dstack", script, shape)
    job.draft.put("run", made, part.at)
    if made == script:
        part.carry("run")
    else:
        part.change("run", "lines before it set the DSTACK_ variables it reads")
    if job.draft.value("image") is None:
        job.book.note(
            part.path,
            part.at,
            "no `image` there means dstack's own, with Python and uv in it",
            "give `image`, or install what the commands need",
        )


def _joined(command: str) -> str:
    """As it may stand before `&&`: what ends in a background command, a comment or a here-document stands in braces."""
    text = command.strip()
    if text.rpartition("\n")[2].lstrip().startswith("#") or "<<" in text:
        return f"{{\n{text}\n}}"
    return f"{{ {text} }}" if text.endswith("&") and not text.endswith("&&") else text


def _rest(job: Job, root: Part) -> None:
    shell = root.get("shell")
    if shell is not None and (shell.scalar or "").rpartition("/")[2] == "bash":
        shell.carry("run")
    elif shell is not None:
        shell.leave("commands are run by bash", "start another shell in the commands")
    folder = root.get("working_dir")
    if folder is not None and (folder.scalar or "").startswith("/"):
        job.draft.put("workdir", folder.scalar, folder.at)
        folder.carry("workdir")
    elif folder is not None:
        folder.leave("a folder within the repository, which skyplan does not lay down", FILES_NEED)
    priority = root.get("priority")
    if priority is not None and re.fullmatch(r"-?[0-9]{1,6}", priority.scalar or ""):
        job.draft.put("priority", int(priority.scalar or ""), priority.at)
        priority.carry("priority")
    elif priority is not None:
        priority.refuse(f"`priority`: {priority.shown} is not a whole number", "write 0 to 100")
    labels = root.get("tags")
    if labels is not None:
        common.tags(job, labels)
    for key, (why, needs) in LEFT.items():
        part = root.get(key)
        if part is not None:
            part.leave(why, needs)
