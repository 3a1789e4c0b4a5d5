"""To be written."""

from __future__ import annotations

from collections.abc import Mapping

from planner.iam.read.references import Computed, Document
from planner.model.policy import Audited

COMPUTED: Mapping[str, Computed] = {}


def read(document: Document) -> Audited:
    """All that it says of it."""
    del document
    return Audited()
