"""SkyPilot's `file_mounts`, `inputs` and `outputs` -> data, checkpoints' buckets told, local files told.

Decides which bucket a mount means and where on the node it lies.  A bucket's size and region are not said there: the size is stated and marked, the region
left open, so that its egress counts as unknown.  A mount that SkyPilot writes to can only be read here, and that is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from planner.spec.foreign.common import DATA_SIZE
from planner.spec.foreign.filling import filled
from planner.spec.mounts import folder
from planner.spec.secret import shown
from planner.spec.stores import split
from planner.spec.units import Malformed

if TYPE_CHECKING:
    from planner.spec.foreign.carried import Part
    from planner.spec.foreign.common import Job

_AZURE: Final = re.compile(r"https://([a-z0-9]{3,24})\.blob\.core\.windows\.net/(.+)", re.ASCII)
_STORES: Final = {"s3": "s3", "gcs": "gs", "nebius": "nebius"}
_OTHER_STORES: Final = (
    "r2://",
    "cos://",
    "oci://",
    "cw://",
    "coreweave://",
    "hf://",
    "vast://",
    "tigris://",
    "verda://",
)
_LOCAL_NEEDS: Final = "bake the files into `image`, fetch them in `setup`, or put them in a bucket under `data`"
_READ_ONLY: Final = "it can be written to there and is read-only here"
_WRITES: Final = "write results to `output` or `checkpoint` (docs/job-protocol.md)"


@dataclass(frozen=True, slots=True)
class _Found:
    """A dataset, with the size if it was said."""

    uri: str
    key: str
    path: str | None
    size: str | None
    at: Part


def mounts(job: Job, root: Part, known: dict[str, str | None]) -> None:
    """Fill the draft's `data` and `output`."""
    sizes = _inputs(job, root, known)
    found: list[_Found] = []
    part = root.get("file_mounts")
    if part is not None and not part.entries():
        part.leave("it names no file")
    for target, source in (part.entries() if part else {}).items():
        path, unknown = filled(target, known)
        if unknown:
            source.leave(f"its folder needs ${unknown}, which is given at launch", f"import with --env {unknown}=…")
        elif source.scalar is not None:
            _plain(source, path, known, found)
        elif source.entries():
            _storage(source, path, known, found)
        else:
            source.leave("it names no source")
    _put(job, root, found, sizes)


def _plain(source: Part, path: str, known: dict[str, str | None], found: list[_Found]) -> None:
    text, unknown = filled(source.scalar or "", known)
    if unknown:
        source.leave(f"it needs ${unknown}, which is given at launch", f"import with --env {unknown}=…")
        return
    uri = _uri(text)
    if uri is None:
        source.leave(*_why_not(text))
        return
    found.append(_placed(source, uri, path, copy=True, why=""))


def _storage(part: Part, path: str, known: dict[str, str | None], found: list[_Found]) -> None:
    """`{name, source, store, mode}`: of a bucket that exists, or one that SkyPilot makes and fills."""
    said = {
        key: filled(value.scalar, known)
        for key in ("name", "source", "store", "mode", "type")
        if (value := part.get(key)) and value.scalar
    }
    unknown = next((name for _, name in said.values() if name), None)
    if unknown:
        part.leave(f"it needs ${unknown}, which is given at launch", f"import with --env {unknown}=…")
        return
    words = {key: text for key, (text, _) in said.items()}
    store, source = words.get("store", "").lower(), words.get("source")
    made = f"{_STORES[store]}://{words['name']}" if store in _STORES and "name" in words else None
    uri = _uri(source) if source else _uri(made) if made else None
    if uri is None:
        part.leave(*_no_bucket(part, store, source, words))
    else:
        mode = words.get("mode", "MOUNT").upper()
        _bucket(part, uri, path, found, mode=mode, made=source is None)


def _no_bucket(part: Part, store: str, source: str | None, words: dict[str, str]) -> tuple[str, str]:
    """Why a storage object means no bucket that skyplan can name, and what it would need."""
    several = part.get("source")
    if store == "volume" or words.get("type", "").lower() == "volume":
        return "a volume of SkyPilot's: skyplan knows buckets, not volumes", "put the data in a bucket under `data`"
    if several is not None and several.scalar is None and not several.is_null:
        return "a bucket filled from several local files", _LOCAL_NEEDS
    if source:
        return _why_not(source)
    if store == "azure":
        return "its storage account is not said", "write it under `data` as az://account/container"
    if store and store not in _STORES:
        return f"store {shown(store)} is none that skyplan knows", "move the data to S3, GCS, Azure Blob or Nebius"
    unsaid = "its store is not said, so it is not known in which cloud the bucket lies"
    return (
        "its name is no bucket's" if store else unsaid,
        "write it under `data`, `checkpoint` or `output` as s3://… or gs://…",
    )


def _bucket(part: Part, uri: str, path: str, found: list[_Found], *, mode: str, made: bool) -> None:
    left = {
        "persistent": "buckets are never deleted by skyplan",
        "config": "settings of SkyPilot's mount",
        "mount_options": "settings of SkyPilot's mount",
    }
    entries = part.entries()
    one = _where(path)
    key = "data" if one is None else "data.copy_to" if mode == "COPY" else "data.mount"
    why = [] if one else [f"{path} is no folder that a job may take here: it is read by its address"]
    if mode != "COPY":
        why.append(_READ_ONLY)
    if made:
        why.append("SkyPilot makes the bucket if it is not there; skyplan never does")
    for name, value in entries.items():
        if name in left:
            value.leave(left[name])
        elif name in {"source", "name"} and (name == "source" or made):
            if why:
                value.change(key, "; ".join(why), _WRITES if mode != "COPY" else "")
            else:
                value.carry(key)
        elif name in {"store", "mode", "name", "type"}:
            value.carry("data" if name in {"store", "name", "type"} else key)
    found.append(_Found(uri, "copy_to" if mode == "COPY" else "mount", one, None, part))


def _placed(source: Part, uri: str, path: str, *, copy: bool, why: str) -> _Found:
    one = _where(path)
    if one is None:
        source.change(
            "data",
            f"{path} is no folder that a job may take here: it is read by its address",
            "give it `copy_to`, such as /data, and change the script",
        )
    elif why:
        source.change("data", why)
    else:
        source.carry("data.copy_to" if copy else "data.mount")
    return _Found(uri, "copy_to" if copy else "mount", one, None, source)


def _where(path: str) -> str | None:
    try:
        return folder(path)
    except Malformed:
        return None


def _uri(text: str) -> str | None:
    """The data location that a source means; None for a local path or another store."""
    azure = _AZURE.fullmatch(text)
    uri = f"az://{azure[1]}/{azure[2]}" if azure else text
    return uri if "://" in uri and not isinstance(split(uri), str) else None


def _why_not(text: str) -> tuple[str, str]:
    if text.lower().startswith(_OTHER_STORES):
        return (
            f"{text.partition(':')[0]}:// is no store that skyplan knows",
            "move the data to S3, GCS, Azure Blob or Nebius",
        )
    if "://" in text:
        return "it is no bucket that skyplan can name", "fetch it in `setup`, or write the bucket under `data`"
    return "files of your machine: skyplan sends none to nodes", _LOCAL_NEEDS


def _inputs(job: Job, root: Part, known: dict[str, str | None]) -> dict[str, tuple[str, Part]]:
    """Bucket locations with their size, of `inputs`; `outputs` into the draft."""
    sizes: dict[str, tuple[str, Part]] = {}
    for field in ("inputs", "outputs"):
        part = root.get(field)
        if part is not None and not part.entries():
            part.leave("it names no data")
        for name, value in (part.entries() if part else {}).items():
            text, unknown = filled(name, known)
            uri = None if unknown else _uri(text)
            size = re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", value.scalar or "")
            if uri is None or size is None or float(size[0]) <= 0:
                value.leave("it is no bucket with a size", "write it under `data` or `output`")
            elif field == "inputs":
                sizes[uri] = (f"{float(size[0]):.12g}GB", value)
                value.carry("data.size")
            else:
                value.carry("output")
                job.draft.put("output", {"uri": uri, "size": f"{float(size[0]):.12g}GB"}, value.at)
    return sizes


def _put(job: Job, root: Part, found: list[_Found], sizes: dict[str, tuple[str, Part]]) -> None:
    data: list[dict[str, str]] = []
    taken: list[str] = []
    assumed = 0
    for one in found:
        size = sizes.pop(one.uri, (None, one.at))[0]
        entry = {"uri": one.uri, "size": size or job.options.data_size or DATA_SIZE}
        if size is None and job.options.data_size is None:
            assumed += 1
            job.say(
                f"data[{len(data)}].size", one.at.at, DATA_SIZE, f"{one.uri} is taken to hold {DATA_SIZE} (--data-size)"
            )
        job.say(f"data[{len(data)}].region", one.at.at, "unknown", f"where {one.uri} lies: egress cannot be priced")
        if one.path and not any(_within(one.path, other) or _within(other, one.path) for other in taken):
            entry[one.key] = one.path
            taken.append(one.path)
        elif one.path:
            job.book.note(
                one.at.path,
                one.at.at,
                f"{one.path} lies within another dataset's folder: it is read by its address",
                "give it a folder of its own",
            )
        data.append(entry)
    for uri, (size, part) in sizes.items():
        job.say(f"data[{len(data)}].region", part.at, "unknown", f"where {uri} lies: egress cannot be priced")
        data.append({"uri": uri, "size": size})
    if data:
        at = found[0].at.at if found else root.at
        todo = "add each bucket's region" + (
            f", and its size where {DATA_SIZE} stands: it was not said there" if assumed else ""
        )
        job.draft.put("data", data, at, todo)


def _within(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/")
