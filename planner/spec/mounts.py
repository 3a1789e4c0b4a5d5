"""`mount` and `copy_to` of a dataset: where on the node the job finds it.

Decides which folders a job may take.  Folders that the machine or skyplan itself lives in are refused, and so are those that would hide
them.  How a dataset gets there is the stacks' business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.spec.units import Malformed

if TYPE_CHECKING:
    from planner.spec.fields import Fields

#: what the machine, its container runtime and skyplan keep for themselves
KEPT: Final = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin"),
    *("/sys", "/usr", "/opt/dlami", "/opt/skyplan", "/var/lib", "/var/log", "/var/run"),
)
#: is there before any dataset: taken as a whole it would be hidden
SCRATCH: Final = "/scratch"
FOLDER: Final = r"/[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*/?"
_LONGEST: Final = 200


def folder(text: str) -> str:
    """An absolute path without its last slash.  Raises Malformed."""
    if not re.fullmatch(FOLDER, text, re.ASCII) or len(text) > _LONGEST or {".", ".."} & set(text.split("/")):
        raise Malformed("is no absolute path", "write a folder such as /data, of letters, digits and `._-`")
    found = text.rstrip("/")
    kept = next((one for one in KEPT if inside(found, one) or inside(one, found)), None)
    if found == SCRATCH:
        raise Malformed("is the local disk itself", f"write a folder in it, such as {SCRATCH}/data")
    if kept is not None:
        raise Malformed("is not the job's to take", f"{kept} is the machine's own; write a folder such as /data")
    return found


def inside(path: str, other: str) -> bool:
    """`path` is `other` or lies under it."""
    return f"{path}/".startswith(f"{other}/")


def places(f: Fields) -> tuple[str | None, str | None]:
    """(`mount`, `copy_to`) of a dataset; (None, None) where it is streamed, or where both are said."""
    mount, copy_to = f.read("mount", folder), f.read("copy_to", folder)
    if {"mount", "copy_to"} <= {key for key in f.node.entries if f.name(key) in f.report.places}:
        at = f.report.places[f.name("copy_to")]
        f.report.error(at, "SKY-SPEC-113", f"`{f.path}` is both mounted and copied", "keep one of them")
        return None, None
    return mount, copy_to
