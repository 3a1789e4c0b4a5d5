"""Where a finding stands in what people wrote: the line of the job file that asks for the right, of skyplan.yaml for a target's identities.

Re-reads those files, since a plan keeps no lines; a file that is gone leaves the plan file as the place.  Changes nothing else of a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

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
_WORKLOAD = re.compile(r"\bworkload\.([a-z_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A line of a job file, and the words by which a right is known to come from it."""

    field: str
    words: tuple[str, ...]
    at: Location


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
            return replace(finding, location=_line(job, finding))
        target = self._stacks.get(stack)
        if target is not None or stack.startswith("fnd-"):
            return replace(finding, location=self._targets.get(target or _target(stack), self._project))
        return finding


def _target(stack: str) -> str:
    """`fnd-CLOUD-TARGET`."""
    return stack.split("-", 2)[-1]


def _line(job: _JobFile, finding: Finding) -> Location:
    """The most telling line: the one most of whose words the finding has; else the part that the identity is about; else the job."""
    text = f"{finding.resource} {finding.grant} {finding.message} {finding.evidence}"
    best = max(
        job.asked, key=lambda a: sum(len(w) for w in a.words) if all(w in text for w in a.words) else 0, default=None
    )
    if best is not None and best.words and all(word in text for word in best.words):
        return best.at
    if at := job.fields.get(_field(finding.origin)):
        return at
    fields = _CHECKPOINTS if finding.identity == Identity.NODE_CHECKPOINT else ()
    return next((a.at for a in job.asked if a.field in fields), job.at)


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
    return _Asked(field=name, words=words, at=at)


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
