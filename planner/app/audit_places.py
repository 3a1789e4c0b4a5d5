"""Where a finding stands in what people wrote: the line of the job file that asks for the right, of skyplan.yaml for a target's identities.

Re-reads those files, since a plan keeps no lines; a file that is gone leaves the plan file as the place.  Of what a change makes wider its fix says there, in
the words of that file, what to take back: nobody edits the stack that is made of it.  Changes nothing else of a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.audit_report import WIDENING
from planner.model.diagnostic import Location
from planner.model.errors import InputError
from planner.model.grants import Identity
from planner.model.stack import AccessInput, AddressInput, ComputeInput
from planner.spec.yaml_lines import Mapping, Node, Scalar, documents
from planner.spec.yaml_lines import Sequence as Items

if TYPE_CHECKING:
    from planner.app.audit_sources import PlanSource
    from planner.app.audit_tree import Tree
    from planner.model.finding import Finding

_CHECKPOINTS = ("checkpoint", "output")
_NARROWED = {
    "data": "narrow `uri`",
    "checkpoint": "narrow `checkpoint`",
    "output": "narrow `output`",
    "secrets": "drop the secret",
}
#: how each cloud names a store and what is in it
_STORES = (
    re.compile(r"^arn:[\w-]+:s3:::([^/]+)/?(.*)"),
    re.compile(r"\bbuckets/([^/]+)(?:/(?:managedFolders|objects)/(.*))?"),
    re.compile(r"/storageAccounts/([^/]+)/blobServices/default/containers/([^/]+)()"),
)
_WORKLOAD = re.compile(r"\bworkload\.([a-z_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A line of a job file, the words by which a right is known to come from it, and of a URI the store and what is named in it."""

    field: str
    words: tuple[str, ...]
    at: Location
    place: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobFile:
    """The job's own place, and what it asks for."""

    at: Location
    asked: tuple[_Asked, ...] = ()
    fields: dict[str, Location] = field(default_factory=dict[str, Location])


class Places:
    """The lines of the plans' job files and of the project file, each read once."""

    def __init__(self, plans: Sequence[PlanSource], project_file: str | None, tree: Tree) -> None:
        self._by_stack: dict[str, _JobFile] = {}
        self._targets = _targets(project_file, tree)
        self._project = Location(project_file, 1) if project_file else None
        self._stacks: dict[str, str] = {}
        for source in plans:
            job = _job_file(source, tree)
            for stack in source.stacks:
                if isinstance(stack, AccessInput | ComputeInput | AddressInput):
                    self._by_stack[stack.name] = job
                self._stacks[stack.name] = stack.target

    def locate(self, finding: Finding) -> Finding:
        """With its place, where it has none and one is known."""
        if finding.location is not None and finding.location.file:
            return finding
        stack = finding.origin.split(" ", 1)[0]
        job = self._by_stack.get(stack)
        if job is not None:
            asked, at = _line(job, finding)
            return _told(replace(finding, location=at), f"{_NARROWED.get(asked, 'take the change back')} at {at}")
        target = self._stacks.get(stack)
        if target is not None or stack.startswith("fnd-"):
            at = self._targets.get(target or _target(stack), self._project)
            return _told(replace(finding, location=at), f"{_of_target(finding)} at {at}") if at else finding
        return finding


def _of_target(finding: Finding) -> str:
    about_regions = "RequestedRegion" in finding.message or "the region " in finding.message
    return "narrow `regions` of the target" if about_regions else "take the change of the target back"


def _told(finding: Finding, first: str) -> Finding:
    """What makes it wider is undone where it was written, or accepted; what it was before, its message says."""
    if finding.rule != WIDENING:
        return finding
    return replace(finding, fix=f"{first}, or ask the owner of skyplan.yaml for a suppression")


def _target(stack: str) -> str:
    """`fnd-CLOUD-TARGET`."""
    return stack.split("-", 2)[-1]


def _line(job: _JobFile, finding: Finding) -> tuple[str, Location]:
    """The field and its line: that whose URI the resource is, or is under; else the one most of whose words the finding has; else the part that the
    identity is about; else the job.
    """
    if under := _under(job, finding):
        return under.field, under.at
    text = f"{finding.resource} {finding.grant} {finding.message} {finding.evidence}"
    best = max(
        job.asked, key=lambda a: sum(len(w) for w in a.words) if all(w in text for w in a.words) else 0, default=None
    )
    if best is not None and best.words and all(word in text for word in best.words):
        return best.field, best.at
    named = _field(finding.origin)
    if at := job.fields.get(named):
        return named, at
    fields = _CHECKPOINTS if finding.identity == Identity.NODE_CHECKPOINT else ()
    return next(((a.field, a.at) for a in job.asked if a.field in fields), ("", job.at))


def _under(job: _JobFile, finding: Finding) -> _Asked | None:
    """The very URI, else the longest that a resource lies under, else one within it (a container's role is on the container)."""
    best, most = None, -1
    for resource in finding.resource.split(", "):
        found = _place(resource)
        for asked in job.asked:
            if found is None or asked.place is None or asked.place[0] != found[0]:
                continue
            length = _fit(found[1], asked.place[1])
            if length > most:
                best, most = asked, length
    return best


def _fit(key: str, prefix: str) -> int:
    if key == prefix:
        return len(key) + 2
    if not prefix or key.startswith(f"{prefix}/"):
        return len(prefix) + 1
    return 0 if key and prefix.startswith(f"{key}/") else -1


def _place(resource: str) -> tuple[str, str] | None:
    """(store, what is named in it) of a resource of any cloud's; None for what is in no store."""
    for form in _STORES:
        if found := form.search(resource):
            return found[1], "/".join(filter(None, found.groups()[1:])).rstrip("*").rstrip("/")
    return None


def _field(origin: str) -> str:
    """`setup` of `acc-train--… workload.setup`: where in a stack's input a secret was found."""
    found = _WORKLOAD.search(origin)
    return found[1] if found else ""


def _job_file(source: PlanSource, tree: Tree) -> _JobFile:
    file = str(source.plan.inputs["job"]["file"])
    gone = _JobFile(at=Location(source.file, 1))
    try:
        text = tree.text(Path(file))
    except InputError:
        return gone
    for node in documents(text, file)[0]:
        if isinstance(node, Mapping) and _text(node, "name") == source.plan.name:
            lines = {key: entry.key_at for key, entry in node.entries.items()}
            return _JobFile(at=lines["name"], asked=tuple(_asked(node)), fields=lines)
    return gone


def _asked(job: Mapping) -> Iterable[_Asked]:
    data = job.entries.get("data")
    if data is not None:
        for item in data.value.items if isinstance(data.value, Items) else ():
            yield _prefix("data", item, item.at)
    for name in _CHECKPOINTS:
        entry = job.entries.get(name)
        if entry is not None:
            yield _prefix(name, entry.value, entry.key_at)
    secrets = job.entries.get("secrets")
    if secrets is not None and isinstance(secrets.value, Mapping):
        for entry in secrets.value.entries.values():
            for item in entry.value.items if isinstance(entry.value, Items) else (entry.value,):
                if isinstance(item, Scalar):
                    path = item.text.split("://", 1)[-1].partition("/")[2]  # secret://STORE/NAME
                    yield _Asked(field="secrets", words=(path,) if path else (), at=entry.key_at)


def _prefix(name: str, node: Node, at: Location) -> _Asked:
    uri = _text(node, "uri") if isinstance(node, Mapping) else node.text if isinstance(node, Scalar) else ""
    bucket, _, prefix = uri.split("://", 1)[-1].partition("/")
    words = tuple(word for word in (bucket, prefix.rstrip("/")) if word)
    return _Asked(field=name, words=words, at=at, place=(bucket, prefix.rstrip("/")) if bucket else None)


def _text(node: Mapping, key: str) -> str:
    entry = node.entries.get(key)
    return entry.value.text if entry is not None and isinstance(entry.value, Scalar) else ""


def _targets(project_file: str | None, tree: Tree) -> dict[str, Location]:
    """Target name -> its line in skyplan.yaml."""
    root = _project(project_file, tree)
    entry = root.entries.get("targets") if root else None
    items = entry.value.items if entry is not None and isinstance(entry.value, Items) else ()
    return {_text(item, "name"): item.at for item in items if isinstance(item, Mapping)}


def suppression_places(project_file: str | None, tree: Tree) -> tuple[Location, ...]:
    """Where each of `iam.suppressions` stands, in order."""
    root = _project(project_file, tree)
    iam = root.entries.get("iam") if root else None
    if iam is None or not isinstance(iam.value, Mapping):
        return ()
    entry = iam.value.entries.get("suppressions")
    return tuple(item.at for item in entry.value.items) if entry and isinstance(entry.value, Items) else ()


def _project(project_file: str | None, tree: Tree) -> Mapping | None:
    if project_file is None:
        return None
    try:
        found = documents(tree.text(Path(project_file)), project_file)[0]
    except InputError:
        return None
    return found[0] if found and isinstance(found[0], Mapping) else None
