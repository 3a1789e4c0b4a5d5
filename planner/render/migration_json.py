"""What `skyplan replan --json` prints.  Fields are only ever added within a major version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.migration.document import kept_document, to_document
from planner.model.migration import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.migration import Kept, MigrationDiff


def document(diffs: Sequence[MigrationDiff], kept: Sequence[Kept], *, as_of: str) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": FORMAT_VERSION,
        "as_of": as_of,
        "migrations": [to_document(d) for d in diffs],
        "kept": [kept_document(k) for k in kept],
    }
