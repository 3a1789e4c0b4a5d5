"""Workload and Project <-> JSON-ready documents: the normal form that plans hold and digests are made of.

Decides how a value is written: field names are the model's (units in the names), what equals the default is left out, pairs become objects,
locations become `uri` and `region`, whole numbers have no fraction.  Two equal values give equal documents, and a workload comes back exactly.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.offer import CapacityType
from planner.model.workload import (
    AntiAffinity,
    Apart,
    CheckpointPolicy,
    Constraints,
    Dataset,
    Gang,
    GpuOption,
    Image,
    ObjectPrefix,
    Output,
    Resources,
    SecretRef,
    Store,
    Work,
    Workload,
)

if TYPE_CHECKING:
    from planner.model.project import Project

#: fields whose pairs are written as an object; in all other places a pair is a list of two
_OBJECTS: Final = frozenset(
    {"env", "tags", "settings", "provider_versions", "images", "subnets", "cidrs", "network_quota"}
)


def workload_document(workload: Workload) -> dict[str, Any]:
    """The workload as JSON-ready values."""
    return _document(workload)


def project_document(project: Project) -> dict[str, Any]:
    """The project as JSON-ready values; made for digests, not for reading back."""
    return _document(project)


def _document(value: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if not _is_default(field, item):
            if isinstance(item, ObjectPrefix):
                out |= _location(item)
            else:
                out[field.name] = _object(item) if field.name in _OBJECTS else _plain(item)
    return out


def _object(item: Any) -> Any:
    return dict(cast("tuple[tuple[str, Any], ...]", item)) if isinstance(item, tuple) else item


def _is_default(field: Field[Any], item: Any) -> bool:
    if field.default_factory is not MISSING:
        return item == field.default_factory()
    return field.default is not MISSING and item == field.default


def _plain(item: Any) -> Any:
    if is_dataclass(item):
        return _document(item)
    if isinstance(item, tuple):
        return [_plain(one) for one in cast("tuple[Any, ...]", item)]
    if isinstance(item, Enum):
        return item.value
    return int(item) if isinstance(item, float) and item.is_integer() else item


def _location(at: ObjectPrefix) -> dict[str, Any]:
    return {"uri": at.uri} | ({"region": at.region} if at.region is not None else {})


def workload_from_document(document: dict[str, Any]) -> Workload:
    """The workload that gave this document.  Raises InputError (SKY-APPLY-301) on what never was one: plans come from strangers too."""
    try:
        return _workload(document)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        summary = f"the plan's job lacks or mistypes a field: {error}"
        raise InputError([Diagnostic(code="SKY-APPLY-301", summary=summary)]) from error


def _workload(d: dict[str, Any]) -> Workload:
    return Workload(
        name=d["name"],
        resources=_resources(d["resources"]),
        work=Work(**(d["work"] | {"hours": float(d["work"]["hours"])})),
        run=d["run"],
        image=Image(**d["image"]) if "image" in d else None,
        setup=d.get("setup"),
        workdir=d.get("workdir"),
        registry_auth=SecretRef(**d["registry_auth"]) if "registry_auth" in d else None,
        env=_pairs(d.get("env", {})),
        secrets=tuple(SecretRef(**one) for one in d.get("secrets", ())),
        data=tuple(_dataset(one) for one in d.get("data", ())),
        checkpoint=_checkpoint(d["checkpoint"]) if "checkpoint" in d else None,
        output=Output(at=_prefix(d["output"]), size_bytes=d["output"]["size_bytes"]) if "output" in d else None,
        constraints=_constraints(d.get("constraints", {})),
        tags=_pairs(d.get("tags", {})),
        priority=d.get("priority", 0),
        tunnel=d.get("tunnel", False),
        sync_bytes=d.get("sync_bytes"),
        sync_seconds=_number(d.get("sync_seconds")),
        session=d.get("session", False),
        team=d.get("team", ""),
        anti_affinity=tuple(_anti_affinity(one) for one in d.get("anti_affinity", ())),
        gang=Gang(**d["gang"]) if "gang" in d else None,
    )


def _anti_affinity(d: dict[str, Any]) -> AntiAffinity:
    return AntiAffinity(group=d["group"], by=Apart(d["by"])) if "by" in d else AntiAffinity(group=d["group"])


def _pairs(found: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(found.items()))


def _number(found: Any) -> float | None:
    return None if found is None else float(found)


def _resources(d: dict[str, Any]) -> Resources:
    options = (GpuOption(**(o | {"min_memory_gib": _number(o.get("min_memory_gib"))})) for o in d["accelerators"])
    capacity = d.get("capacity", (CapacityType.ON_DEMAND,))
    read: dict[str, Any] = {
        "accelerators": tuple(options),
        "capacity": tuple(CapacityType(one) for one in capacity),
        "min_ram_gib": _number(d.get("min_ram_gib")),
    }
    return Resources(**(d | read))


def _prefix(d: dict[str, Any]) -> ObjectPrefix:
    scheme, _, rest = str(d["uri"]).partition("://")
    store = Store(scheme)
    parts = rest.split("/", 2 if store is Store.AZURE_BLOB else 1)
    return ObjectPrefix(store=store, bucket="/".join(parts[:-1]), prefix=parts[-1], region=d.get("region"))


def _dataset(d: dict[str, Any]) -> Dataset:
    return Dataset(
        at=_prefix(d),
        size_bytes=d["size_bytes"],
        reads=float(d.get("reads", 1.0)),
        mount=d.get("mount"),
        copy_to=d.get("copy_to"),
    )


def _checkpoint(d: dict[str, Any]) -> CheckpointPolicy:
    return CheckpointPolicy(at=_prefix(d), size_bytes=d["size_bytes"], every_hours=float(d["every_hours"]))


def _constraints(d: dict[str, Any]) -> Constraints:
    numbers = ("deadline_hours", "max_usd_per_hour", "max_usd_total", "stop_after_hours")
    lists = ("clouds", "regions", "instance_types")
    read: dict[str, Any] = {name: _number(d.get(name)) for name in numbers}
    read |= {name: tuple(d.get(name, ())) for name in lists}
    return Constraints(**read)
