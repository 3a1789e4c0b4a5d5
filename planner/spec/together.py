"""What jobs of one call say against each other.

Decides three things: a gang has one `least`, an anti-affinity group one `by`, and a gang can be filled at all by the jobs that are known.  Who gets a place is
placement's business.  Pure: `text_of` gives a file's text again, only where a place in it has to be told.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from planner.model.diagnostic import Diagnostic, Location
from planner.spec.yaml_lines import Mapping, Node, Scalar, Sequence, documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planner.model.workload import Workload

T = TypeVar("T")
Said = tuple["Workload", str]
"""A job and the file it stands in, as the user wrote it."""
_CODE: Final = "SKY-SPEC-113"


def disagreements(jobs: Iterable[Said], text_of: Callable[[str], str]) -> list[Diagnostic]:
    """Every job that says otherwise than most of its gang or group; where as many say this as that, the first by file and name is followed."""
    gangs: dict[str, list[tuple[Said, int]]] = {}
    groups: dict[str, list[tuple[Said, str]]] = {}
    for said in jobs:
        if (gang := said[0].gang) is not None:
            gangs.setdefault(gang.group, []).append((said, gang.least))
        for apart in said[0].anti_affinity:
            groups.setdefault(apart.group, []).append((said, apart.by.value))
    out: list[Diagnostic] = []
    for group, members in sorted(gangs.items()):
        for said, least, other in _against(members):
            words = f"gang `{group}`: {said[0].name} says least {least}, {other[0][0].name} in {other[0][1]} says least {other[1]}"
            at = _place(said, text_of, "gang", "least")
            out.append(Diagnostic(code=_CODE, summary=words, location=at, hint="write the same in every job of a gang"))
    for group, members in sorted(groups.items()):
        for said, by, other in _against(members):
            words = f"anti-affinity group `{group}`: {said[0].name} is apart by {by}, {other[0][0].name} in {other[0][1]} by {other[1]}"
            at = _place(said, text_of, "anti_affinity", group)
            hint = "write the same `by` in every job of a group, or name two groups"
            out.append(Diagnostic(code=_CODE, summary=words, location=at, hint=hint))
    return out


def _against(members: list[tuple[Said, T]]) -> list[tuple[Said, T, tuple[Said, T]]]:
    """(job, what it says, the first that says what most do), of each that says otherwise."""
    members = sorted(members, key=lambda member: (member[0][1], member[0][0].name))
    counts = Counter(value for _, value in members)
    if len(counts) == 1:
        return []
    usual = max(counts, key=counts.__getitem__)  # the first of equals: Counter keeps the order in which values came
    first = next(member for member in members if member[1] == usual)
    return [(said, value, first) for said, value in members if value != usual]


def unfillable(jobs: Iterable[Said], others: Iterable[Workload], text_of: Callable[[str], str]) -> list[Diagnostic]:
    """A gang whose `least` is more than its jobs of this call and those of `others`, which were planned before; told at its first job."""
    gangs: dict[str, list[Said]] = {}
    for said in jobs:
        if said[0].gang is not None:
            gangs.setdefault(said[0].gang.group, []).append(said)
    if not gangs:
        return []
    before = Counter(job.gang.group for job in others if job.gang is not None)
    out: list[Diagnostic] = []
    for group, members in sorted(gangs.items()):
        first = min(members, key=lambda said: (said[1], said[0].name))
        least = first[0].gang.least if first[0].gang else 0
        if least <= len(members) + before[group]:
            continue
        known = f"{len(members)} of this call" + (f" and {before[group]} with plan files" if before[group] else "")
        summary = f"gang `{group}` is of use from {least} jobs on; known are {known}"
        hint = "name all job files of the gang in one call, or lower `least` in each"
        at = _place(first, text_of, "gang", "least")
        out.append(Diagnostic(code=_CODE, summary=summary, location=at, hint=hint))
    return out


def _place(said: Said, text_of: Callable[[str], str], field: str, part: str) -> Location:
    """Where the job says it: the line of `field`'s `part`, a field of it or the group of that name."""
    job, file = said
    nodes, _ = documents(text_of(file), file)
    whole = next((node for node in nodes if isinstance(node, Mapping) and _text(node, "name") == job.name), None)
    entry = whole.entries.get(field) if whole else None
    if entry is None:
        return whole.at if whole else Location(file)
    value = entry.value
    if isinstance(value, Mapping) and part in value.entries:
        return value.entries[part].value.at
    items = value.items if isinstance(value, Sequence) else (value,)
    found = next((item for item in items if isinstance(item, Mapping) and _text(item, "group") == part), None)
    return found.at if found else value.at


def _text(node: Mapping, key: str) -> str:
    entry = node.entries.get(key)
    value: Node | None = entry.value if entry else None
    return value.text if isinstance(value, Scalar) else ""
