"""`backend` of the project file: where Terraform keeps its state.

Decides which kind it is and which settings it may hold.  Settings go to `-backend-config` as they are, so no credential may be among them,
and none that skyplan sets itself: one state per stack depends on it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.project import Backend
from planner.spec.near import one_of
from planner.spec.secret import shown
from planner.spec.yaml_lines import Mapping, Scalar

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.spec.fields import Fields

#: kind -> settings it cannot do without
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "local": (),
    "s3": ("bucket", "region"),
    "gcs": ("bucket",),
    "azurerm": ("storage_account_name", "container_name"),
}
_OURS: Final = {"s3": "key", "azurerm": "key", "gcs": "prefix", "local": "path"}
_SECRET: Final = re.compile(
    r"access_key|secret_key|sas_token|password|client_secret|^token$|access_token|encryption_key|^credentials$"
)
_EXAMPLE: Final = (
    "write one of local, s3, gcs, azurerm, such as `backend: {s3: {bucket: acme-tfstate, region: us-east-1}}`"
)


def backend(project: Fields) -> Backend:
    """The backend; local where nothing is said."""
    node = project.get("backend")
    if node is None:
        return Backend()
    report = project.report
    if isinstance(node, Scalar):
        kind = report.choice("backend", node, REQUIRED)
        if kind and REQUIRED[kind]:
            report.error(node.at, "SKY-SPEC-103", f"`backend`: {kind} needs {', '.join(REQUIRED[kind])}", _EXAMPLE)
        return Backend(kind=kind or "local")
    if not isinstance(node, Mapping) or len(node.entries) != 1:
        report.error(node.at, "SKY-SPEC-104", "`backend` must name one kind", _EXAMPLE)
        return Backend()
    f = report.mapping("backend", node)
    kind = next(iter(node.entries))
    if f is None or kind not in REQUIRED:
        at = node.entries[kind].key_at
        report.error(at, "SKY-SPEC-105", f"`backend`: {shown(kind)} is not known", one_of(kind, REQUIRED))
        return Backend()
    settings = f.strings(kind, check=lambda name, at, path: _setting(f, kind, name, at, path))
    for name in REQUIRED[kind]:
        entry = node.entries[kind].value
        if not isinstance(entry, Mapping) or name not in entry.entries:
            report.error(entry.at, "SKY-SPEC-103", f"`backend.{kind}.{name}` is missing", _EXAMPLE)
    return Backend(kind=kind, settings=settings)


def _setting(f: Fields, kind: str, name: str, at: Location, path: str) -> bool:
    if _SECRET.search(name):
        hint = "leave it out: Terraform takes credentials from the environment or a profile"
        f.report.error(at, "SKY-SPEC-111", f"`{path}` is a credential", hint)
        return False
    if name == _OURS[kind]:
        f.report.error(
            at, "SKY-SPEC-105", f"`{path}` is set by skyplan: each stack has a state of its own", "leave it out"
        )
        return False
    return True
