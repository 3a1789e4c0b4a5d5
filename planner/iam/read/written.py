"""How names come out in stacks, and what nodes boot as far as rights are concerned: the little that every cloud's `written_*` shares.

The modules that write stacks are not to be seen from here; that both agree is a test over every golden job.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from planner.model.labels import labels_of
from planner.model.offer import Fabric
from planner.model.stack import NodeTemplate, StackBase
from planner.model.workload import Workload

#: Terraform text of blocks: section -> type -> name -> arguments
Blocks = dict[str, dict[str, dict[str, dict[str, Any]]]]
_BY_CONTAINER = (Fabric.TCPX, Fabric.TCPXO, Fabric.ROCE)
_CONTAINER = "docker run"


def empty() -> Blocks:
    """No blocks yet."""
    return {"resource": {}, "data": {}}


def add(blocks: Blocks, kind: str, name: str, values: dict[str, Any], *, section: str = "resource") -> None:
    """One block."""
    blocks[section].setdefault(kind, {})[name] = {key: value for key, value in values.items() if value is not None}


def fit(name: str, limit: int) -> str:
    """As stacks shorten a name."""
    return name if len(name) <= limit else f"{name[: limit - 9]}-{digits(name)}"


def digits(text: str) -> str:
    """8 hex digits of the whole."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def label(text: str) -> str:
    """A Terraform identifier of ours."""
    made = re.sub(r"[^A-Za-z0-9_-]", "-", text)
    return made if re.match(r"[A-Za-z_]", made) else f"x{made}"


def literal(text: str) -> str:
    """Words of a user's, which are no template."""
    return text.replace("${", "$${").replace("%{", "%%{")


def tags(given: StackBase) -> dict[str, str]:
    """Skyplan's own tags, which say whose things these are."""
    return {key: literal(value) for key, value in given.tags if key.startswith("skyplan:")}


def labels(given: StackBase) -> dict[str, str]:
    """The same as labels."""
    return labels_of((key, value) for key, value in given.tags if key.startswith("skyplan:"))


def boots(workload: Workload | None, template: NodeTemplate | None) -> str:
    """What a node runs: enough of its user data to tell whether containers are among it."""
    if workload is None:
        return ""
    joined = template is not None and template.fabric in _BY_CONTAINER and workload.resources.nodes > 1
    own = "\n".join((workload.setup or "", workload.run))
    return literal(f"{own}\n{_CONTAINER}\n" if workload.image or joined else own)
