"""The parts of a job file: resources, work, image, environment, data.

Decides the fields of each part.  Each function takes its own field of the job, reports what is wrong with it and returns the value, or None
(empty) where it is absent or wrong.  What one part says against another is `contradictions`' business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.model.offer import CAPACITY_ORDER, CapacityType
from planner.model.workload import (
    CheckpointPolicy,
    Constraints,
    Dataset,
    GpuOption,
    Image,
    Output,
    Resources,
    SecretRef,
    Work,
)
from planner.spec import gpus, secret, units
from planner.spec.constraints import constraints
from planner.spec.mounts import places
from planner.spec.stores import placed
from planner.spec.yaml_lines import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.model.words import Words
    from planner.spec.fields import Fields, Report

MAX_NODES: Final = 4096
CAPACITIES: Final = (CapacityType.ON_DEMAND.value, CapacityType.SPOT.value)
ACROSS: Final = ("tunnel",)
ACCESS: Final = ("session",)
SYNC_HINT: Final = "without it the cost of a tunnel cannot be told: `sync: {size: 2GB, every: 30s}`, the bytes reduced each time and the computing between two"
WORK_HINT: Final = "say how long the job takes on hardware you know, such as `work: {hours: 24, on: A100-80GB:8}`"
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]*(?:@(sha256:[0-9a-f]{64}))?", re.ASCII)
#: bash refuses to set these, or splits its own words by them
_SHELLS_OWN: Final = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "IFS", "PPID", "SHELLOPTS", "UID"})
_ENV: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.:/=+@-]{0,127}", re.ASCII)
_TAG_VALUE_LENGTH: Final = 256


def _nodes(text: str) -> int:
    return units.integer(text, 1, MAX_NODES)


def resources(job: Fields, words: Words) -> Resources | None:
    """`resources`: what one node needs, and how many nodes."""
    f = job.fields("resources", required="say what a node needs, such as `resources: {accelerators: A100-80GB:8}`")
    if f is None:
        return None
    node = f.get("accelerators", required=gpus.HINT)
    accelerators = gpus.options(f.report, f.name("accelerators"), node, words) if node else ()
    capacity = set(f.words("capacity", lambda path, item: f.report.choice(path, item, CAPACITIES)))
    ram = f.read("memory", units.size_bytes)
    found = Resources(
        accelerators=accelerators,
        nodes=f.read("nodes", _nodes) or 1,
        min_ram_gib=ram / units.GIB if ram else None,
        min_vcpus=f.read("cpus", lambda text: units.integer(text.strip().removesuffix("+").rstrip(), 1, 100_000)),
        disk_bytes=f.read("disk", units.size_bytes),
        capacity=tuple(c for c in CAPACITY_ORDER if c in capacity) or (CapacityType.ON_DEMAND,),
        interconnect_sensitive=f.boolean("interconnect_sensitive") or False,
    )
    f.finish()
    return found if accelerators else None


def work(job: Fields, nodes: int, words: Words) -> Work | None:
    """`work`: how long the job takes on hardware that the user knows; on as many nodes as the job has where it says no number."""
    f = job.fields("work", required=WORK_HINT)
    if f is None:
        return None
    hours = f.read("hours", lambda text: units.hours(text, bare=True), required=WORK_HINT)
    node = f.get("on", required=WORK_HINT)
    on = _reference(f.report, f.name("on"), node, words) if isinstance(node, Scalar | Mapping) else None
    if node is not None and on is None and not isinstance(node, Scalar | Mapping):
        f.report.error(node.at, "SKY-SPEC-104", f"`{f.name('on')}` names one accelerator, not a list", WORK_HINT)
    found_nodes = f.read("nodes", _nodes) or nodes
    f.finish()
    if hours is None or on is None or on.model is None:
        return None
    return Work(hours=hours, model=on.model, count=on.count, nodes=found_nodes)


def _reference(report: Report, path: str, node: Scalar | Mapping, words: Words) -> GpuOption | None:
    found = gpus.options(report, path, node, words)
    if len(found) > 1 or any(option.model is None for option in found):
        report.error(node.at, "SKY-SPEC-105", f"`{path}` must name one accelerator model", WORK_HINT)
        return None
    return found[0] if found else None


def image(job: Fields) -> Image | None:
    """`image`: a reference, or `{ref, size}`."""
    node = job.get("image")
    if node is None:
        return None
    if isinstance(node, Mapping):
        f = job.report.mapping("image", node)
        if f is None:
            return None
        ref_node = f.get("ref", required="name the image, such as ghcr.io/acme/train:1.4")
        ref, size = (f.text("ref") if ref_node else None), f.read("size", units.size_bytes)
        f.finish()
    else:
        ref_node, ref, size = node, job.report.text("image", node), None
    if ref is None or ref_node is None:
        return None
    found = _IMAGE.fullmatch(ref)
    if found is None:
        hint = "write NAME:TAG or NAME@sha256:… with 64 hex digits, such as ghcr.io/acme/train:1.4"
        job.report.error(ref_node.at, "SKY-SPEC-105", f"`image`: {secret.shown(ref)} is no image reference", hint)
        return None
    return Image(ref=ref, size_bytes=size, digest=found[1])


def env(job: Fields) -> tuple[tuple[str, str], ...]:
    """`env`: values as they are written; what looks like a secret is refused."""
    hint = f"name it under `secrets` with a reference such as {secret.STORES['aws-secretsmanager']}; skyplan never holds secrets"
    return job.strings("env", check=lambda name, at, path: _variable(job.report, name, at, path), secret_hint=hint)


def _variable(report: Report, name: str, at: Location, path: str) -> bool:
    if name in _SHELLS_OWN:
        hint = "the node's shell keeps this name for itself; choose another"
        report.error(at, "SKY-SPEC-105", f"`{path}` cannot be set", hint)
        return False
    if _ENV.fullmatch(name):
        return True
    report.error(at, "SKY-SPEC-105", f"`{path}` is no name of a variable", "letters, digits and `_`, such as EPOCHS")
    return False


def secrets(job: Fields) -> tuple[SecretRef, ...]:
    """`secrets`: references only, one or one per cloud.  The text of what is no reference is never shown."""
    f = job.fields("secrets")
    if f is None:
        return ()
    out: list[SecretRef] = []
    for name, entry in sorted(f.node.entries.items()):
        path = f.name(name)
        if not _variable(job.report, name, entry.key_at, path):
            continue
        items = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        refs = [secret.reference(item.text, name) if isinstance(item, Scalar) else None for item in items]
        stores = [ref.store for ref in refs if ref]
        if None in refs or not refs:
            job.report.error(
                entry.value.at, "SKY-SPEC-111", f"`{path}` is no reference to a secret", secret.REFERENCE_HINT
            )
        elif len(set(stores)) < len(stores):
            hint = "one reference per store: nodes read the one of their own cloud"
            job.report.error(entry.value.at, "SKY-SPEC-113", f"`{path}` names one store twice", hint)
        elif any(name == key for key in _env_names(job)):
            job.report.error(entry.key_at, "SKY-SPEC-113", f"{name} stands under `env` and under `secrets`", "keep one")
        else:
            out += [ref for ref in refs if ref]
    return tuple(out)


def _env_names(job: Fields) -> tuple[str, ...]:
    entry = job.node.entries.get("env")
    return tuple(entry.value.entries) if entry and isinstance(entry.value, Mapping) else ()


def registry_auth(job: Fields) -> SecretRef | None:
    """`registry_auth`: a reference to `user:password` of the image's registry."""
    node = job.get("registry_auth")
    ref = secret.reference(node.text, "") if isinstance(node, Scalar) else None
    if node is not None and ref is None:
        job.report.error(node.at, "SKY-SPEC-111", "`registry_auth` is no reference to a secret", secret.REFERENCE_HINT)
    return ref


def datasets(job: Fields, words: Words) -> tuple[Dataset, ...]:
    """`data`: what the job reads, in the order written."""
    out: list[Dataset] = []
    for f in job.records("data"):
        at = placed(f, words)
        size = f.read("size", units.size_bytes, required="say how large the data is, such as 500GB")
        reads = f.read("reads", lambda text: units.real(text, high=1e6))
        mount, copy_to = places(f)
        f.finish()
        if at and size:
            out.append(Dataset(at=at, size_bytes=size, reads=reads or 1.0, mount=mount, copy_to=copy_to))
    return tuple(out)


def checkpoint(job: Fields, words: Words) -> CheckpointPolicy | None:
    """`checkpoint`: where, how large, how often."""
    f = job.fields("checkpoint")
    if f is None:
        return None
    at = placed(f, words)
    size = f.read("size", units.size_bytes, required="say how large one checkpoint is, such as 96GB")
    every = f.read("every", units.hours, required="say how often one is written, such as 30m")
    f.finish()
    return CheckpointPolicy(at=at, size_bytes=size, every_hours=every) if at and size and every else None


def output(job: Fields, words: Words) -> Output | None:
    """`output`: the result, written once at the end."""
    f = job.fields("output")
    if f is None:
        return None
    at = placed(f, words)
    size = f.read("size", units.size_bytes, required="say how large the result is, such as 16GB")
    f.finish()
    return Output(at=at, size_bytes=size) if at and size else None


@dataclass(frozen=True, slots=True)
class Sync:
    """What nodes exchange: bytes reduced per synchronisation, seconds of computing between two on the reference hardware."""

    size_bytes: int | None = None
    every_seconds: float | None = None


def tunnel(job: Fields) -> tuple[bool, Sync]:
    """`network: {across: tunnel, sync: {size, every}}`: nodes may lie in several clouds; what they exchange then sets what that costs."""
    f = job.fields("network")
    if f is None:
        return False, Sync()
    across = f.choice("across", ACROSS, required="say how nodes may be joined across clouds: `across: tunnel`")
    # a wrong word is one mistake, not two
    found = _sync(f, required=SYNC_HINT if across is not None else "")
    f.finish()
    return across is not None, found


def _sync(network: Fields, *, required: str) -> Sync:
    f = network.fields("sync", required=required)
    if f is None:
        return Sync()
    size = f.read("size", units.size_bytes, required="say how much is reduced each time, such as 2GB")
    every = f.read("every", units.hours, required="say how long the nodes compute between two, such as 30s")
    f.finish()
    return Sync(size, None if every is None else round(every * 3600, 6))


def session(job: Fields) -> bool:
    """`access: session`: people may open a shell on the nodes."""
    return job.choice("access", ACCESS) is not None


def limits(job: Fields, words: Words) -> Constraints:
    """`constraints`: the job's own limits, not yet narrowed by the project's."""
    f = job.fields("constraints")
    if f is None:
        return Constraints()
    found = constraints(f, words)
    f.finish()
    return found


def tags(fields: Fields) -> tuple[tuple[str, str], ...]:
    """`tags` of a job or a project; `skyplan:` and the clouds' own prefixes are not the user's."""

    def check(name: str, at: Location, path: str) -> bool:
        lower = name.lower()
        if lower.startswith(("skyplan:", "aws:", "goog-", "azure", "microsoft", "windows")):
            fields.report.error(at, "SKY-SPEC-105", f"`{path}`: this prefix is reserved", "choose another name")
            return False
        if not _TAG.fullmatch(name):
            fields.report.error(
                at, "SKY-SPEC-105", f"`{path}` is no tag name", "letters, digits and ` _.:/=+@-`, at most 128"
            )
            return False
        return True

    found = fields.strings("tags", check=check)
    for name, value in found:
        if len(value) > _TAG_VALUE_LENGTH or not value.isprintable():
            at = fields.report.places["tags"]
            fields.report.error(at, "SKY-SPEC-105", f"`tags.{name}` is longer than 256 characters or not printable")
    return found
