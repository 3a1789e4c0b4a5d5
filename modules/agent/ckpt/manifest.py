"""What a checkpoint says of itself (docs/job-protocol.md): canonical text, digest, mac.  Decides whether a manifest is one; reads no store and writes none.

The job's half is `skyplan_job`, the record's `planner.model.runtime`; a test holds the three to one another.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any, NamedTuple, cast

from .errors import Invalid

MANIFEST = "skyplan-checkpoint.json"
DOMAIN = "skyplan-checkpoint-v1"
FORMAT = 1
MAX_MANIFEST_BYTES = 32 << 20
"""About 150,000 files: more than torch.distributed.checkpoint makes for 16,384 ranks."""
MAX_STEP = 10**12 - 1
_FOLDER = re.compile(r"step-([0-9]{12})(?:-[1-9][0-9]{0,5})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MAX_PATH = 900  # object names end at 1,024 bytes on all four
_WORDS = ("created_at", "framework", "job", "mac", "project", "run", "uri")
_NUMBERS = ("bytes", "format", "generation", "nodes", "step", "world_size")


class File(NamedTuple):
    """One file of a checkpoint; `path` is relative to its folder."""

    path: str
    bytes: int
    sha256: str


class Manifest(NamedTuple):
    """A checkpoint, or (where `rank` is not None) one node's part of it."""

    project: str
    job: str
    run: str
    generation: int
    step: int
    uri: str
    created_at: str
    framework: str
    nodes: int
    world_size: int
    files: tuple[File, ...]
    mac: str = ""
    rank: int | None = None

    @property
    def bytes(self) -> int:
        """Of all files together."""
        return sum(file.bytes for file in self.files)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text without `mac`."""
        return digest_of(self._document())

    @property
    def folder(self) -> str:
        """`step-000000001200`."""
        return self.uri.rstrip("/").rpartition("/")[2]

    def text(self) -> bytes:
        """The manifest as it is written."""
        return canonical(dict(self._document(), mac=self.mac))

    def signed(self, key: bytes) -> Manifest:
        """The same with its mac."""
        return self._replace(mac=mac(key, message(self)))

    def holds(self, key: bytes) -> bool:
        """Whether its mac is by this key."""
        return hmac.compare_digest(self.mac, mac(key, message(self)))

    def _document(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            name: getattr(self, name) for name in (*_WORDS, *_NUMBERS) if name not in {"mac", "format"}
        }
        found["format"] = FORMAT
        found["files"] = [file._asdict() for file in self.files]
        if self.rank is not None:
            found["rank"] = self.rank
        return found


class Hashed:
    """Bytes as a manifest names them: how many, and their SHA-256."""

    def __init__(self) -> None:
        self._hash, self.bytes = hashlib.sha256(), 0

    def update(self, some: bytes) -> None:
        """Take more."""
        self._hash.update(some)
        self.bytes += len(some)

    @property
    def sha256(self) -> str:
        """Of all so far, in hex."""
        return self._hash.hexdigest()


def canonical(document: dict[str, Any]) -> bytes:
    """JSON with sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest_of(document: dict[str, Any]) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(document)).hexdigest()


def message(found: Manifest) -> bytes:
    """What the mac is about."""
    m = found
    return "\n".join((DOMAIN, m.project, m.job, str(m.generation), str(m.step), m.uri, m.digest)).encode()


def mac(key: bytes, signed: bytes) -> str:
    """HMAC-SHA256, in hex."""
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def part_name(rank: int) -> str:
    """Name of one node's manifest in a checkpoint of several nodes."""
    return f"skyplan-part-r{rank:02d}.json"


def step_of(folder: str) -> int | None:
    """The step that a checkpoint folder's name says; None where it is no such name."""
    found = _FOLDER.fullmatch(folder)
    return int(found.group(1)) if found else None


def parse(raw: bytes) -> Manifest:
    """Raises Invalid.  Text that is not canonical is refused: it would be a second text of one digest."""
    try:
        read = json.loads(raw)
    except (ValueError, RecursionError):
        raise Invalid("the manifest is torn or no JSON") from None
    if not isinstance(read, dict):
        raise Invalid("the manifest is no object")
    document = cast("dict[str, Any]", read)
    found = _read(document)
    if document.get("bytes") != found.bytes:
        raise Invalid("`bytes` is not the sum of its files")
    if found.text() != raw:
        raise Invalid("the manifest is not in canonical form, or has unknown fields")
    if step_of(found.folder) != found.step:
        raise Invalid("`uri` and `step` do not say the same")
    return found


def _read(document: dict[str, Any]) -> Manifest:
    for name in _WORDS:
        if not isinstance(document.get(name), str) or _CONTROL.search(document[name]):
            raise Invalid(f"`{name}` is missing or no text")
    for name in (*_NUMBERS, *(("rank",) if "rank" in document else ())):
        value = document.get(name)
        if type(value) is not int or not 0 <= value <= (MAX_STEP if name == "step" else 1 << 62):
            raise Invalid(f"`{name}` is missing or no whole number")
    if document["format"] != FORMAT:
        raise Invalid(f"the manifest has format {document['format']}; this agent reads {FORMAT}")
    given = {name: document[name] for name in (*_WORDS, *_NUMBERS) if name not in {"bytes", "format"}}
    return Manifest(files=_files(document.get("files")), rank=document.get("rank"), **given)


def _files(listed: object) -> tuple[File, ...]:
    if not isinstance(listed, list):
        raise Invalid("`files` is missing")
    files = tuple(_file(one) for one in cast("list[Any]", listed))
    paths = [file.path for file in files]
    if len(set(paths)) < len(paths):
        raise Invalid("a file is named twice")
    if paths != sorted(paths):
        raise Invalid("the files are not in order")
    return files


def _file(one: object) -> File:
    entry = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
    path, size, sha256 = entry.get("path"), entry.get("bytes"), entry.get("sha256")
    if not isinstance(path, str) or type(size) is not int or size < 0 or not isinstance(sha256, str):
        raise Invalid("a file's entry is malformed")
    if not safe(path) or not _SHA256.fullmatch(sha256):
        raise Invalid(f"a file's path or hash is not allowed: {path[:120]!r}")
    return File(path, size, sha256)


def safe(path: str) -> bool:
    """Whether a file may have this name: inside the folder, not ours, and one name in every store and file system."""
    steps = path.split("/")
    if not path or len(path.encode("utf-8", "surrogatepass")) > _MAX_PATH or _CONTROL.search(path) or "\\" in path:
        return False
    if any(step in {"", ".", ".."} for step in steps) or any("\ud800" <= letter <= "\udfff" for letter in path):
        return False
    return not (len(steps) == 1 and (path == MANIFEST or path.startswith("skyplan-part-")))
