"""Accelerators as people write them -> canonical models with a count.

Decides what a spelling means and says so where it means several models or none.  Never lowers GPU memory and never guesses: a name that is
not in the words is an error with near misses, however close it comes (`A100-8:8` is not an A100).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.workload import GpuOption
from planner.spec import units
from planner.spec.near import near
from planner.spec.secret import shown
from planner.spec.yaml_lines import Mapping, Node, Scalar

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.model.words import Words
    from planner.spec.fields import Fields, Report

MAX_COUNT: Final = 256
HINT: Final = "write NAME:COUNT such as A100-80GB:8, or {gpu_memory: 80GiB+, count: 8}; a list means any of them"
_KNOWN: Final = frozenset({"model", "gpu_memory", "count"})


def spelling(name: str) -> str:
    """The key of an alias: lower case without spaces, `_` and `-`."""
    return name.lower().translate(str.maketrans("", "", " _-\t"))


def models_of(name: str, words: Words) -> tuple[str, ...]:
    """The canonical models a name may mean, sorted."""
    if name in words.gpus:
        return (name,)
    key = spelling(name)
    found = set(words.aliases.get(key, ())) or {gpu for gpu in words.gpus if spelling(gpu) == key}
    return tuple(sorted(found))


def near_names(name: str, words: Words) -> tuple[str, ...]:
    """Canonical models whose name or spelling looks like it."""
    found: dict[str, None] = dict.fromkeys(near(name, words.gpus))
    for key in near(spelling(name), words.aliases):
        found |= dict.fromkeys(words.aliases[key])
    inside = spelling(name)
    parts = [gpu for gpu in words.gpus if spelling(gpu) in inside]
    found |= dict.fromkeys(sorted(parts, key=lambda gpu: (-len(gpu), gpu)))
    return tuple(found)[:4]


def _larger(report: Report, path: str, at: Location, name: str, *, found: str, words: Words) -> None:
    """A bare name that is the canonical one of a model with two memories (`A100` next to `A100-80GB`): say which is taken."""
    others = [gpu for gpu in sorted(words.gpus) if re.fullmatch(rf"{re.escape(found)}-[0-9]+GB", gpu)]
    if not others or spelling(name) != spelling(found):
        return
    own = f"{found}-{words.gpus[found]:g}GB"
    plain = [own] if models_of(own, words) == (found,) else []
    hint = f"write {' or '.join(f'`{choice}`' for choice in plain + others)} to be plain about it"
    summary = f"`{path}`: {shown(name)} means the one with {words.gpus[found]:g} GiB, not {', '.join(others)}"
    report.warning(at, "SKY-SPEC-107", summary, hint)


def model(report: Report, path: str, at: Location, name: str, words: Words, *, with_count: str = "") -> str | None:
    """The one canonical model; SKY-SPEC-106 or 107 else."""
    found = models_of(name, words)
    if len(found) == 1:
        _larger(report, path, at, name, found=found[0], words=words)
        return found[0]
    choices = [f"`{choice}{with_count}`" for choice in found or near_names(name, words)]
    listed = " or ".join(choices)
    if found:
        hint = f"write {listed}"
        summary = f"`{path}`: {shown(name)} may mean {', '.join(found)}"
        report.error(at, "SKY-SPEC-107", summary, hint)
    else:
        hint = f"did you mean {listed}?" if choices else ""
        report.error(at, "SKY-SPEC-106", f"`{path}`: {shown(name)} is no accelerator that is known", hint)
    return None


def option(report: Report, path: str, node: Scalar, words: Words) -> GpuOption | None:
    """`A100-80GB:8`; without a count it is 1."""
    name, colon, count_text = node.text.strip().rpartition(":")
    if not colon:
        name, count_text = node.text.strip(), "1"
    if not name.strip():
        report.error(node.at, "SKY-SPEC-105", f"`{path}`: {shown(node.text)} names no accelerator", HINT)
        return None
    found = model(report, path, node.at, name.strip(), words, with_count=f":{count_text.strip()}" if colon else "")
    with report.reading(path, node):
        count = units.integer(count_text.strip(), 1, MAX_COUNT)
        return GpuOption(model=found, count=count) if found else None
    return None


def options(report: Report, path: str, node: Node, words: Words) -> tuple[GpuOption, ...]:
    """Every acceptable accelerator that the node names, in canonical order, each once."""
    found: set[GpuOption] = set()
    for item in report.items(path, node):
        if isinstance(item, Scalar):
            one = option(report, path, item, words)
            found |= {one} if one else set()
        elif isinstance(item, Mapping):
            found |= _of_mapping(report, path, item, words)
        else:
            report.error(item.at, "SKY-SPEC-104", f"`{path}` holds a list in a list", HINT)
    return tuple(sorted(found, key=lambda o: (str(o), o.count)))


def _of_mapping(report: Report, path: str, node: Mapping, words: Words) -> set[GpuOption]:
    fields = report.mapping(path, node)
    if fields is None or not node.entries:
        report.error(node.at, "SKY-SPEC-105", f"`{path}` is empty", HINT)
        return set()
    if not _KNOWN & node.entries.keys() and _counts(node):
        return _of_counts(report, path, node, words)
    one = _of_fields(fields, words)
    return {one} if one else set()


def _counts(node: Mapping) -> bool:
    """Each value is a number: a map of names, `{A100-80GB: 8, H100: 8}`."""
    return all(isinstance(e.value, Scalar) and e.value.text.strip("+-").isdigit() for e in node.entries.values())


def _of_counts(report: Report, path: str, node: Mapping, words: Words) -> set[GpuOption]:
    found: set[GpuOption] = set()
    for name, entry in node.entries.items():
        one = model(report, path, entry.key_at, name, words)
        if isinstance(entry.value, Scalar):
            with report.reading(f"{path}.{name}", entry.value):
                count = units.integer(entry.value.text, 1, MAX_COUNT)
                found |= {GpuOption(model=one, count=count)} if one else set()
    return found


def _of_fields(fields: Fields, words: Words) -> GpuOption | None:
    """`{model: H100, count: 8}` or `{gpu_memory: 80GiB+, count: 8}`; both together mean that model, checked against the memory."""
    count = fields.read("count", lambda text: units.integer(text, 1, MAX_COUNT), required="say how many GPUs per node")
    name_node = fields.get("model")
    name = fields.text("model") if name_node else None
    memory = fields.read("gpu_memory", lambda text: units.size_bytes(text, "80GiB") / units.GIB)
    fields.finish()
    if name_node is None and "gpu_memory" not in fields.node.entries:
        fields.missing("`model` or `gpu_memory`", HINT)
        return None
    found = model(fields.report, fields.name("model"), name_node.at, name, words) if name_node and name else None
    if found and memory and words.gpus.get(found, memory) < memory:
        summary = f"`{fields.path}`: {found} has {words.gpus[found]:g} GiB, below the {memory:g} GiB asked for"
        fields.report.error(fields.node.at, "SKY-SPEC-113", summary, "drop one of `model` and `gpu_memory`")
        return None
    if count is None or (name_node is not None and found is None) or (found is None and memory is None):
        return None
    return GpuOption(count=count, model=found, min_memory_gib=None if found else memory)
